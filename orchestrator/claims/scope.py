"""The datasets and swept settings that a test of a claim includes, and which of them its studies lack."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import inf

from orchestrator.analysis.findings import Findings
from orchestrator.claims.declared import Part, listed
from orchestrator.claims.terms import Terms, settings
from orchestrator.study.values import cell


@dataclass(frozen=True)
class Scope:
    """What a test of a claim includes of its studies.

    A study may have more datasets than the experiment of its name, or other values of a swept parameter. They
    are left out. If the studies have none of the experiment's datasets, theirs are included, on other terms.

    Attributes
    ----------
    part : Part
        Test of the claim, with its options and region.
    studies : mapping of str to Findings
        Findings of the stored studies, by name; others than those of the part may be among them.
    terms : mapping of str to Terms
        Differences between the studies and their experiments, by name.
    """

    part: Part
    studies: Mapping[str, Findings]
    terms: Mapping[str, Terms]

    @cached_property
    def expected(self) -> list[str]:
        """The datasets that the part needs by its experiments and does not name, sorted, without settings."""
        if self.part.options.get("datasets") or not self._claimed or not self._used & self._claimed:
            return []
        return sorted(name for name in self._claimed if self.includes(name))

    @cached_property
    def missing(self) -> list[str]:
        """The phrases that name the datasets, settings and studies with common arms that the part lacks."""
        phrases = []
        if datasets := self._absent_datasets:
            phrases.append(f"no dataset {', '.join(datasets)}")
        if self.absent_settings:
            phrases.append(f"without {', '.join(self.absent_settings)}")
        if self.unused_studies:
            phrases.append(f"no dataset of {', '.join(self.unused_studies)} has all arms")
        return phrases

    @cached_property
    def absent_settings(self) -> list[str]:
        """Swept settings, such as `n=1000`, that the part needs and no dataset or arm of its studies has.

        Limits of a slope over a swept parameter are limits of its settings.
        """
        names = (full for each in self._stored for full in (*each.design.datasets, *each.design.arms))
        present = {text for full in names for text in settings(full)}
        return [
            text
            for axis, values in self._swept.items()
            for text, value in values.items()
            if text not in present and (self.part.options.get("x") != axis or self._is_within(value))
        ]

    @cached_property
    def unused_studies(self) -> list[str]:
        """Which of several studies a test over datasets does not use: each dataset of theirs lacks an arm."""
        options = self.part.options
        names = [name for name in listed(options.get("study")) if name in self.studies]
        if len(names) < 2 or options.get("apart") or self.part.test == "figure":
            return []
        arms = listed(options.get("arms"))
        arms += [] if options.get("against") else listed(options.get("reference"))
        unused = []
        for name in names:
            complete = {pair for pair, state in self.studies[name].results.states.items() if state.complete}
            datasets = filter(self.includes, self.studies[name].design.datasets)
            if not any(all((dataset, arm) in complete for arm in arms) for dataset in datasets):
                unused.append(name)
        return unused

    def includes(self, dataset: str) -> bool:
        """Return whether the test includes a dataset.

        A dataset `name` among the options of the part stands for each `name[setting]` as well.

        Parameters
        ----------
        dataset : str
            Name of the dataset, with its settings.
        """
        options, both = self.part.options, {dataset, _base(dataset)}
        named, left_out = set(listed(options.get("datasets"))), set(listed(options.get("except")))
        of_axes = [(text, self._swept.get(text.partition("=")[0])) for text in settings(dataset)]
        if not all(known is None or text in known for text, known in of_axes):
            return False
        if (named and not both & named) or both & left_out:
            return False
        return not self._claimed or not self._used & self._claimed or bool(both & self._claimed)

    def includes_value(self, value: float) -> bool:
        """Return whether a slope over settings includes a value: it is within the limits, and was asked for.

        Parameters
        ----------
        value : float
            Value of the swept parameter.
        """
        asked = self._swept.get(self.part.options.get("x", ""))
        return self._is_within(value) and (asked is None or value in asked.values())

    def differences(self) -> Iterator[str]:
        """Yield the differences between the terms of the comparison and those of the claim.

        Yields
        ------
        str
            One phrase for each difference.
        """
        options = self.part.options
        is_figure = self.part.test == "figure"
        keys = ("arms", "reference", "over", "minus") if is_figure else ("arms", "reference")
        names = [name for key in keys for name in listed(options.get(key))]
        solvers = {_base(name) for name in names} | {*listed(options.get("solver"))}
        for name in self._names:
            present = {_base(full) for full in self.studies[name].design.datasets}
            used = present if self._claimed is None else present & self._claimed
            if self._claimed is not None and not used:
                yield f"study {name}: other datasets, {', '.join(sorted(present))}"
            for phrase in self.terms.get(name, Terms()).concerning(solvers, used):
                yield f"study {name}: {phrase}"

    @cached_property
    def _names(self) -> list[str]:
        """The names of the stored studies of the part."""
        return [name for name in self.part.studies if name in self.studies]

    @property
    def _stored(self) -> list[Findings]:
        """The stored studies of the part."""
        return [self.studies[name] for name in self._names]

    @cached_property
    def _used(self) -> set[str]:
        """The datasets of the stored studies, without settings."""
        return {_base(full) for study in self._stored for full in study.design.datasets}

    @cached_property
    def _claimed(self) -> frozenset[str] | None:
        """The datasets of the experiments; None if a study has no experiment, so that all are meant."""
        declared = [self.terms[name].datasets for name in self._names if name in self.terms]
        if not declared or None in declared:
            return None
        return frozenset(dataset for datasets in declared for dataset in datasets or ())

    @cached_property
    def _swept(self) -> dict[str, dict[str, float]]:
        """The values over which the experiments sweep, by setting such as `n=1000`, by parameter.

        The parameters are those in names of datasets, and that of a slope over settings.
        """
        found: dict[str, dict[str, float]] = {}
        for name in filter(self.terms.__contains__, self._names):
            datasets = self.studies[name].design.datasets
            axes = {text.partition("=")[0] for full in datasets for text in settings(full)}
            axes |= {self.part.options["x"]} if self.part.options.get("solver") else set()
            for axis, values in self.terms[name].swept.items():
                if axis in axes:
                    found.setdefault(axis, {}).update({f"{axis}={cell(value)}": value for value in values})
        return found

    @property
    def _absent_datasets(self) -> list[str]:
        """The datasets that the part names and its studies do not have."""
        used = [self.studies[name] for name in listed(self.part.options.get("study")) if name in self.studies]
        present = {name for each in used for full in each.design.datasets for name in (full, _base(full))}
        return [name for name in listed(self.part.options.get("datasets")) if name not in present]

    def _is_within(self, value: float) -> bool:
        """Return whether a swept value lies within the limits of the part.

        Parameters
        ----------
        value : float
            The value.
        """
        return bool(self.part.options.get("from", -inf) <= value <= self.part.options.get("to", inf))


def _base(name: str) -> str:
    """Return the name of a dataset or an arm without its settings.

    Parameters
    ----------
    name : str
        Name such as `checkers[n=1000]`.
    """
    return name.partition("[")[0]
