"""Compare a study's declaration with the experiment of the same name, for which the claims are made."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from orchestrator.analysis.design import Design
from orchestrator.study.preparation import asked_scaling
from orchestrator.study.study import EVERY
from orchestrator.study.values import ParamValue, canonical_json, cell

Experiments = Callable[[str], Mapping[str, Any] | None]
"""Function that returns the composed configuration of an experiment by its name; None if there is none."""

Designs = Callable[[str], Design | None]
"""Function that returns the design of a stored study by its name; None if it cannot be read."""


@dataclass(frozen=True)
class Terms:
    """Differences between a study and the experiment of its name. Each difference is a phrase.

    Attributes
    ----------
    datasets : tuple of str or None
        Datasets of the experiment; None if there is no such experiment.
    coverage : tuple of str
        Datasets and values of sweeps that only the study or only the experiment has. They do not change the
        terms of a comparison that both have.
    protocol : tuple of str
        Differences of the protocol, the search, its space and the study that selects candidates.
    of_datasets : mapping of str to tuple of str
        Differences of the parameters of a dataset, by its name.
    of_solvers : mapping of str to tuple of str
        Differences of the class and the parameters of a solver, by its name.
    swept : mapping of str to tuple of object
        Values over which the experiment sweeps, by the name of the parameter. Resolutions of the search are
        among them if there are several.
    """

    datasets: tuple[str, ...] | None = None
    coverage: tuple[str, ...] = ()
    protocol: tuple[str, ...] = ()
    of_datasets: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    of_solvers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    swept: Mapping[str, tuple[ParamValue, ...]] = field(default_factory=dict)

    @property
    def phrases(self) -> list[str]:
        """All differences."""
        each = (*self.of_datasets.values(), *self.of_solvers.values())
        return [*self.coverage, *dict.fromkeys(phrase for group in each for phrase in group), *self.protocol]

    def concerning(self, solvers: Collection[str], datasets: Collection[str]) -> list[str]:
        """Return the differences that concern a comparison of some solvers on some datasets.

        Parameters
        ----------
        solvers : collection of str
            Names of the compared solvers.
        datasets : collection of str
            Names of the datasets, without settings.

        Returns
        -------
        list of str
            Phrases. The list is empty if the comparison is that of the experiment.
        """
        chosen = [phrases for name, phrases in self.of_datasets.items() if name in datasets]
        chosen += [phrases for name, phrases in self.of_solvers.items() if name in solvers]
        return [*dict.fromkeys(phrase for group in chosen for phrase in group), *self.protocol]


def other_terms(name: str, design: Design, experiments: Experiments, designs: Designs) -> Terms:
    """Return the differences between a study's declaration and the experiment of its name.

    If the study takes its candidates from another study, differences of that study count as well.

    Parameters
    ----------
    name : str
        Name of the study.
    design : Design
        Design of the study.
    experiments : Experiments
        Function that returns the configuration of an experiment; see `Experiments`.
    designs : Designs
        Function that returns the design of a stored study; see `Designs`.

    Returns
    -------
    Terms
        The differences, which are empty if there is no such experiment.
    """
    config = experiments(name)
    if config is None:
        return Terms()
    swept = _swept(config)
    protocol = [*_other_space(design, config), *_other_protocol(design, config)]
    source = design.search.options.get("study")
    if isinstance(source, str):  # an option of a custom search may be a list
        selecting, declared = designs(source), experiments(source)
        if selecting is not None and declared is not None and _differs(selecting, declared):
            protocol.append(f"candidates selected by study {source}, which differs from its experiment, too")
    return Terms(
        tuple(config["datasets"]),
        (*_other_datasets(design, config["datasets"]), *_missing_settings(design, swept)),
        tuple(protocol),
        _grouped(_other_dataset_params(design, config["dataset"], swept)),
        _grouped((*_other_own_spaces(design, config), *_other_params(design, config["solver"], swept))),
        swept,
    )


def _swept(config: Mapping[str, Any]) -> dict[str, tuple[ParamValue, ...]]:
    """Return the values over which an experiment sweeps, by parameter.

    Parameters
    ----------
    config : mapping of str to object
        Configuration of the experiment. A sweep over a single value may lack the list.

    Returns
    -------
    dict of str to tuple of object
        Values of the sweep, and the resolutions of the search if they are a list.
    """
    axes, resolutions = config["sweep"], config["search"].get("resolution")
    found = {
        str(axis): tuple(values) if isinstance(values, list) else (values,) for axis, values in axes.items()
    }
    return found | ({"resolution": tuple(resolutions)} if isinstance(resolutions, list) else {})


def _differs(design: Design, config: Mapping[str, Any]) -> bool:
    """Return whether the protocol or the space of a study differs from an experiment.

    Parameters
    ----------
    design : Design
        Design of the study.
    config : mapping of str to object
        Configuration of the experiment.

    Returns
    -------
    bool
        False if its selections are those of the experiment.
    """
    differences = (_other_space, _other_own_spaces, _other_protocol)
    return any(any(found(design, config)) for found in differences)


def _other_protocol(design: Design, config: Mapping[str, Any]) -> Iterator[str]:
    """Yield the differences of the protocol and of the search, without its space.

    Parameters
    ----------
    design : Design
        Design of the study.
    config : mapping of str to object
        Configuration of the experiment.

    Yields
    ------
    str
        One phrase for each key.
    """
    asked = {**config["protocol"], "scaling": asked_scaling(config["protocol"])}
    if isinstance(asked.get("repeats"), int):
        asked["seed"] = list(range(asked["repeats"]))
    if config["search"].get("kind") == EVERY:  # has no inner splits
        asked["inner"] = None
    for key in ("outer", "inner", "seed", "scaling", "metric", "profile", "max_seconds"):
        if canonical_json(design.protocol.get(key)) != canonical_json(asked[key]):
            yield f"protocol.{key}={design.protocol.get(key)} in place of {asked[key]}"
    if design.search.target != config["search"].get("kind"):
        yield f"search={design.search.target} in place of {config['search'].get('kind')}"
    for key in ("study", "arm", "folds"):  # options of searches that read another study
        given, declared = design.search.options.get(key), config["search"].get(key)
        # A larger sample contains that of the experiment, and estimates the same totals more precisely.
        is_larger = key == "folds" and given is not None and declared is not None and given > declared
        if given != declared and not is_larger:
            yield f"search.{key}={given} in place of {declared}"


def _grouped(found: Iterable[tuple[str, str]]) -> dict[str, tuple[str, ...]]:
    """Return phrases by name.

    Parameters
    ----------
    found : iterable of (str, str)
        Names and phrases.

    Returns
    -------
    dict of str to tuple of str
        The distinct phrases of each name.
    """
    groups: dict[str, dict[str, None]] = {}
    for name, phrase in found:
        groups.setdefault(name, {})[phrase] = None
    return {name: tuple(phrases) for name, phrases in groups.items()}


def _other_datasets(design: Design, declared: Sequence[str]) -> Iterator[str]:
    """Yield the datasets that only the study or only the experiment has.

    Parameters
    ----------
    design : Design
        Design of the study.
    declared : sequence of str
        Names of the experiment's datasets.

    Yields
    ------
    str
        One phrase for each group.
    """
    present = {dataset.partition("[")[0] for dataset in design.datasets}
    if missing := [dataset for dataset in declared if dataset not in present]:
        yield f"without {', '.join(missing)}"
    if more := sorted(present.difference(declared)):
        yield f"with {', '.join(more)}"


def _other_dataset_params(
    design: Design,
    declared: Mapping[str, Mapping[str, Any]],
    swept: Mapping[str, Sequence[ParamValue]],
) -> Iterator[tuple[str, str]]:
    """Yield parameters of datasets that differ, such as a seed, without the settings in their names.

    A parameter that the study does not sweep but the experiment does must have a value of the sweep.

    Parameters
    ----------
    design : Design
        Design of the study.
    declared : mapping of str to mapping of str to object
        Configuration of each of the experiment's datasets.
    swept : mapping of str to sequence of object
        Values over which the experiment sweeps, by parameter.

    Yields
    ------
    (str, str)
        Name of the dataset and one phrase for each parameter.
    """
    for name, summary in design.datasets.items():
        base = name.partition("[")[0]
        named = {text.partition("=")[0] for text in settings(name)}.intersection(swept)
        given, numbers = summary.get("params") or {}, declared.get(base, {})
        for key in sorted(given.keys() & numbers.keys() - named):
            asked = swept.get(key, (numbers[key],))
            if given[key] not in asked:
                values = ", ".join(map(cell, asked))
                yield base, f"dataset.{base}.{key}={cell(given[key])} in place of {values}"


def _missing_settings(design: Design, swept: Mapping[str, Sequence[ParamValue]]) -> Iterator[str]:
    """Yield values of sweeps that the study omits.

    Parameters
    ----------
    design : Design
        Design of the study.
    swept : mapping of str to sequence of object
        Values over which the experiment sweeps, by parameter.

    Yields
    ------
    str
        One phrase for each axis.
    """
    present = {text for name in design.datasets for text in settings(name)}
    present |= {text for arm in design.arms.values() for text in settings_of_arm(arm, swept)}
    for axis, values in swept.items():
        if missing := [text for value in values if (text := f"{axis}={cell(value)}") not in present]:
            yield f"without {', '.join(missing)}"


def _other_space(design: Design, config: Mapping[str, Any]) -> Iterator[str]:
    """Yield differences of the search's space, which solvers with a space of their own do not use.

    A solver whose class lacks a parameter of the space does not differ by it: another arm has the parameter.

    Parameters
    ----------
    design : Design
        Design of the study.
    config : mapping of str to object
        Configuration of the experiment.

    Yields
    ------
    str
        One phrase for each hyper-parameter.
    """
    if config["search"].get("resolution"):
        return
    shared = [
        arm.get("space") or {}
        for arm in design.arms.values()
        if config["solver"].get(arm.get("solver", ""), {}).get("space") is None
    ]
    for param, values in (config["search"].get("space") or {}).items():
        found = {tuple(sorted(map(cell, space[param]))) for space in shared if param in space}
        if shared and found != {tuple(sorted(map(cell, values)))}:
            yield f"another search.space.{param}"


def _other_own_spaces(design: Design, config: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield differences of the spaces that the configurations of solvers give.

    A search that takes its candidates from another study uses none of them.

    Parameters
    ----------
    design : Design
        Design of the study.
    config : mapping of str to object
        Configuration of the experiment.

    Yields
    ------
    (str, str)
        Name of the solver and one phrase for each hyper-parameter.
    """
    if config["search"].get("resolution") or isinstance(config["search"].get("study"), str):
        return
    for arm in design.arms.values():
        solver = arm.get("solver", "")
        declared = config["solver"].get(solver, {}).get("space")
        if declared is None:
            continue
        given = arm.get("space") or {}
        for param in sorted(declared.keys() | given.keys()):
            if sorted(map(cell, given.get(param, ()))) != sorted(map(cell, declared.get(param, ()))):
                yield solver, f"another {solver}.space.{param}"


def _other_params(
    design: Design, solvers: Mapping[str, Mapping[str, Any]], axes: Collection[str]
) -> Iterator[tuple[str, str]]:
    """Yield classes and parameters of solvers that differ, without those of the experiment's sweeps.

    Parameters
    ----------
    design : Design
        Design of the study.
    solvers : mapping of str to mapping of str to object
        Configuration of each of the experiment's solvers.
    axes : collection of str
        Names of the parameters over which the experiment sweeps.

    Yields
    ------
    (str, str)
        Name of the solver and one phrase for each parameter.
    """
    for arm in design.arms.values():
        solver = arm.get("solver", "")
        swept = {param for param in arm.get("sweep") or {} if swept_axis(param, axes) in axes}
        if solver not in solvers:
            continue
        declared = {
            key: value for key, value in solvers[solver].items() if key not in ("space", "prepare", *swept)
        }
        given = {key: value for key, value in (arm.get("params") or {}).items() if key not in swept}
        given["_target_"] = arm.get("target")
        for key in sorted(declared.keys() | given.keys()):
            if canonical_json(given.get(key)) != canonical_json(declared.get(key)):
                yield solver, f"another {solver}.{key}"


def settings_of_arm(arm: Mapping[str, Any], axes: Collection[str]) -> list[str]:
    """Return the settings of an arm, with the names that an experiment gives to its parameters.

    Parameters
    ----------
    arm : mapping of str to object
        Recorded attributes of the arm.
    axes : collection of str
        Names of the parameters over which the experiment sweeps.

    Returns
    -------
    list of str
        Settings such as `eta=1.3`.
    """
    return [f"{swept_axis(param, axes)}={cell(value)}" for param, value in (arm.get("sweep") or {}).items()]


def swept_axis(param: str, axes: Collection[str]) -> str:
    """Return the name that an experiment gives to a swept parameter of an arm.

    Parameters
    ----------
    param : str
        Name of the parameter; `step__name` for one of a step of a pipeline.
    axes : collection of str
        Names of the parameters over which the experiment sweeps. `name` also means `step__name`.
    """
    short = param.rpartition("__")[2]
    return short if param not in axes and short in axes else param


def settings(name: str) -> list[str]:
    """Return the settings in the name of an arm or a dataset.

    Parameters
    ----------
    name : str
        Name such as `mnsvm[eta=1.3]`.

    Returns
    -------
    list of str
        Settings such as `eta=1.3`.
    """
    inside = name.partition("[")[2].removesuffix("]")
    return re.split(r",(?=\w+=)", inside) if inside else []  # a value may have commas, such as a list
