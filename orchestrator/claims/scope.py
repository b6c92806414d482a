"""The datasets and swept settings that a test of a claim includes, and which of them its studies lack."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import Any

from orchestrator.analysis.findings import Findings
from orchestrator.claims.declared import Part, listed
from orchestrator.claims.terms import Terms, settings, settings_of_arm, swept_axis
from orchestrator.study.values import ParamValue, cell, is_number


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
        if self.part.options.get("datasets"):
            return []
        return sorted(name for name in self._limited_to or () if self.includes(name))

    @cached_property
    def missing(self) -> list[str]:
        """The phrases that name what the part lacks: datasets, settings, and studies with all arms."""
        phrases = []
        if datasets := self._absent_datasets:
            phrases.append(f"no dataset {', '.join(datasets)}")
        if datasets := self._undeclared_datasets:
            phrases.append(f"the experiment has no dataset {', '.join(datasets)}")
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
        present = {text for name in self._dataset_names for text in settings(name)}.union(*self._arms)
        x = swept_axis(self.part.options.get("x", ""), self._swept)
        axes = set(map(_axis, present))
        axes |= {x} if self.part.options.get("solver") else set()
        return [
            text
            for axis, values in self._swept.items()
            if axis in axes
            for text, value in values.items()
            if text not in present and (x != axis or self._is_within(value)) and self._is_needed(text)
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
        if not self._are_swept(settings(dataset)) or (named and not both & named) or both & left_out:
            return False
        return self._limited_to is None or bool(both & self._limited_to)

    def includes_arm(self, arm: Mapping[str, Any]) -> bool:
        """Return whether a test over the settings of a solver includes an arm.

        The value of its `x` is within the limits, and the experiments sweep over all its values.

        Parameters
        ----------
        arm : mapping of str to object
            Recorded attributes of the arm.
        """
        value = (arm.get("sweep") or {}).get(self.part.options["x"])
        return self._is_within(value) and self._are_swept(settings_of_arm(arm, self._swept))

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
    def _claimed(self) -> frozenset[str] | None:
        """The datasets of the experiments; None if a study has no experiment, so that all are meant."""
        declared = [self.terms[name].datasets for name in self._names if name in self.terms]
        if not declared or None in declared:
            return None
        return frozenset(dataset for datasets in declared for dataset in datasets or ())

    @cached_property
    def _limited_to(self) -> frozenset[str] | None:
        """The datasets of the experiments; None if the studies have none of them and theirs are meant."""
        used = {_base(name) for name in self._dataset_names}
        return self._claimed if self._claimed and used & self._claimed else None

    @cached_property
    def _swept(self) -> dict[str, dict[str, ParamValue]]:
        """The values over which the experiments sweep, by setting such as `n=1000`, by parameter.

        The mapping is empty if a study has no experiment, so that all settings are meant.
        """
        found: dict[str, dict[str, ParamValue]] = {}
        for name in self._names if self._claimed is not None else ():
            for axis, values in self.terms.get(name, Terms()).swept.items():
                found.setdefault(axis, {}).update({f"{axis}={cell(value)}": value for value in values})
        return found

    @property
    def _dataset_names(self) -> list[str]:
        """The datasets of the stored studies, with settings."""
        return [name for study in self._stored for name in study.design.datasets]

    @property
    def _arms(self) -> list[list[str]]:
        """The settings of each arm of the solver of a test over settings; empty for other tests."""
        solver = self.part.options.get("solver")
        arms = [arm for study in self._stored for arm in study.design.arms.values()]
        return [settings_of_arm(arm, self._swept) for arm in arms if solver and arm.get("solver") == solver]

    def _are_swept(self, texts: Iterable[str]) -> bool:
        """Return whether the experiments sweep over all settings, where they sweep over the parameter.

        Parameters
        ----------
        texts : iterable of str
            Settings such as `n=1000`.
        """
        known = ((text, self._swept.get(_axis(text))) for text in texts)
        return all(values is None or text in values for text, values in known)

    def _is_needed(self, text: str) -> bool:
        """Return whether the options of the part leave in a setting of an arm, or of some dataset.

        Parameters
        ----------
        text : str
            Setting such as `n=1000`.
        """
        swept = {_base(name) for name in self._dataset_names if _axis(text) in map(_axis, settings(name))}
        return not swept or any(self.includes(f"{name}[{text}]") for name in swept)

    @property
    def _absent_datasets(self) -> list[str]:
        """The datasets that the part names and its studies do not have."""
        return [name for name, of_name in self._named_datasets.items() if not of_name]

    @property
    def _undeclared_datasets(self) -> list[str]:
        """The datasets that the part names and its studies have, but not their experiments."""
        excepted = listed(self.part.options.get("except"))
        return [
            name
            for name, of_name in self._named_datasets.items()
            if of_name and name not in excepted and not any(map(self.includes, of_name))
        ]

    @property
    def _named_datasets(self) -> dict[str, list[str]]:
        """The datasets of the studies, without those of `against`, by each name that the part gives."""
        used = [self.studies[name] for name in listed(self.part.options.get("study")) if name in self.studies]
        present = [full for each in used for full in each.design.datasets]
        names = listed(self.part.options.get("datasets"))
        return {name: [full for full in present if name in (full, _base(full))] for name in names}

    def _is_within(self, value: ParamValue) -> bool:
        """Return whether a swept value is a number within the limits of the part.

        Parameters
        ----------
        value : object
            The value.
        """
        least, most = self.part.options.get("from", -inf), self.part.options.get("to", inf)
        return is_number(value) and bool(least <= value <= most)


def _base(name: str) -> str:
    """Return the name of a dataset or an arm without its settings.

    Parameters
    ----------
    name : str
        Name such as `checkers[n=1000]`.
    """
    return name.partition("[")[0]


def _axis(setting: str) -> str:
    """Return the name of the parameter of a setting.

    Parameters
    ----------
    setting : str
        Setting such as `n=1000`.
    """
    return setting.partition("=")[0]
