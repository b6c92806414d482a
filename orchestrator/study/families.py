"""Datasets that are no independent evidence, as the families that count once in a test."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

ONCE, APART = "once", "apart"
"""What `report.families` takes: whether a family counts once in a test, or each of its datasets."""


class Family(NamedTuple):
    """Datasets of one source, or that share rows.

    Attributes
    ----------
    name : str
        "family" and what its datasets declare, or the name of its first dataset.
    datasets : tuple of str
    shared : tuple of str
        Which of them share rows without declaring one family, in words.
    """

    name: str
    datasets: tuple[str, ...]
    shared: tuple[str, ...]

    def __str__(self) -> str:
        found = f" ({'; '.join(self.shared)})" if self.shared else ""
        return f"{self.name}: {', '.join(self.datasets)}{found}"


def families(datasets: Mapping[str, Mapping[str, Any]]) -> list[Family]:
    """Return the families of two datasets or more, in the order of their first ones.

    Parameters
    ----------
    datasets : mapping of str to mapping
        By name, what provenance records: `family`, which may be empty, and `related`, by name of another
        dataset the reason why the two are one family.
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
    """Return what each dataset counts as: the name of its family, or its own."""
    family_of = {dataset: family.name for family in found for dataset in family.datasets}
    return [family_of.get(name, name) for name in datasets]


def n_units(datasets: Mapping[str, Any], found: Sequence[Family]) -> int:
    """Return the number of datasets when each of these families counts as one."""
    return len(datasets) - sum(len(family.datasets) - 1 for family in found)


def _links(datasets: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, str, str]]:
    """Yield pairs of one family, and how they share rows if that is not declared."""
    first_of: dict[str, str] = {}
    for name, facts in datasets.items():
        family = facts.get("family")
        if family and (first := first_of.setdefault(family, name)) != name:
            yield first, name, ""
        for other, why in (facts.get("related") or {}).items():
            if other in datasets and not (family and family == datasets[other].get("family")):
                yield name, other, why
