"""Families of datasets that are not independent of each other, and count once in a statistical test."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

ONCE, APART = "once", "apart"
"""Values of `report.families`: a family counts once in a test, or each of its datasets counts."""


class Family(NamedTuple):
    """Group of datasets that have one source or share rows.

    Attributes
    ----------
    name : str
        The word "family" and the declared name of the family, or else the name of its first dataset.
    datasets : tuple of str
        Names of its datasets, in the order of the study.
    shared : tuple of str
        Descriptions of the datasets that share rows without declaring one family.
    """

    name: str
    datasets: tuple[str, ...]
    shared: tuple[str, ...]

    def __str__(self) -> str:
        found = f" ({'; '.join(self.shared)})" if self.shared else ""
        return f"{self.name}: {', '.join(self.datasets)}{found}"


def families(datasets: Mapping[str, Mapping[str, Any]]) -> list[Family]:
    """Return the families of at least two datasets, in the order of their first datasets.

    Parameters
    ----------
    datasets : mapping of str to mapping
        Recorded descriptions of the datasets, by name. `family` may be empty. `related` maps the names of
        other datasets to the reasons why they belong to the same family.
    """
    group = {name: {name} for name in datasets}
    for first, second, _ in _links(datasets):
        if group[first] is not group[second]:
            group[first] |= group[second]
            for name in group[second]:
                group[name] = group[first]
    found = []
    for name, members in group.items():
        names = tuple(other for other in datasets if other in members)
        if len(names) > 1 and names[0] == name:
            declared = next(filter(None, (datasets[each].get("family") for each in names)), name)
            shared = [f"{a} and {b} {why}" for a, b, why in _links(datasets) if why and a in members]
            found.append(Family(f"family {declared}", names, tuple(shared)))
    return found


def unit_names(datasets: Iterable[str], found: Sequence[Family]) -> list[str]:
    """Return the unit of each dataset in a test: the name of its family, or of the dataset without one.

    Parameters
    ----------
    datasets : iterable of str
        Names of datasets.
    found : sequence of Family
        Families that count once.
    """
    family_of = {dataset: family.name for family in found for dataset in family.datasets}
    return [family_of.get(name, name) for name in datasets]


def n_units(datasets: Mapping[str, Any], found: Sequence[Family]) -> int:
    """Return the number of independent units: datasets, with each family counted once.

    Parameters
    ----------
    datasets : mapping
        Datasets by name; only their number is used.
    found : sequence of Family
        Families that count once. All their datasets are among `datasets`.
    """
    return len(datasets) - sum(len(family.datasets) - 1 for family in found)


def _links(datasets: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, str, str]]:
    """Yield pairs of datasets of one family, with the reason if the family is not declared.

    Parameters
    ----------
    datasets : mapping of str to mapping
        Recorded descriptions of the datasets, by name.

    Yields
    ------
    tuple of str
        Names of two datasets, and how they share rows; empty if they declare one family.
    """
    first_of: dict[str, str] = {}
    for name, description in datasets.items():
        family = description.get("family")
        if family and (first := first_of.setdefault(family, name)) != name:
            yield first, name, ""
        for other, why in (description.get("related") or {}).items():
            if other in datasets and not (family and family == datasets[other].get("family")):
                yield name, other, why
