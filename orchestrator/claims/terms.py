"""Compare a study's declaration with the experiment of the same name, for which the claims are made."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from orchestrator.analysis.design import Design
from orchestrator.study.preparation import asked_scaling
from orchestrator.study.values import canonical_json, cell

Experiments = Callable[[str], Mapping[str, Any] | None]
"""Function that returns the composed configuration of an experiment by its name; None if there is none."""

Designs = Callable[[str], Design | None]
"""Function that returns the design of a stored study by its name; None if it cannot be read."""


def other_terms(name: str, design: Design, experiments: Experiments, designs: Designs) -> list[str]:
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
    list of str
        One phrase for each difference. The list is empty if there is no such experiment.
    """
    terms = _differences(design, experiments(name))
    source = design.search.options.get("study")
    if isinstance(source, str):  # an option of a custom search may be a list
        selecting = designs(source)
        if selecting is not None and _differences(selecting, experiments(source)):
            terms.append(f"candidates selected by study {source}, which differs from its experiment, too")
    return terms


def _differences(design: Design, config: Mapping[str, Any] | None) -> list[str]:
    """Return the differences between a design and the configuration of an experiment.

    Parameters
    ----------
    design : Design
        Design of the study.
    config : mapping of str to object or None
        Configuration of the experiment, or None.

    Returns
    -------
    list of str
        One phrase for each difference.
    """
    if config is None:
        return []
    found = [*_other_datasets(design, config["datasets"]), *_other_settings(design, config)]
    found += dict.fromkeys(_other_makings(design, config["dataset"]))
    found += dict.fromkeys(_other_params(design, config["solver"]))
    asked = {**config["protocol"], "scaling": asked_scaling(config["protocol"])}
    for key in ("outer", "inner", "seed", "scaling", "metric", "profile", "max_seconds"):
        if design.protocol.get(key) != asked[key]:
            found.append(f"protocol.{key}={design.protocol.get(key)} in place of {asked[key]}")
    if design.search.target != config["search"].get("kind"):
        found.append(f"search={design.search.target} in place of {config['search'].get('kind')}")
    for key in ("study", "arm"):  # options of a search at selected candidates
        given, declared = design.search.options.get(key), config["search"].get(key)
        if given != declared:
            found.append(f"search.{key}={given} in place of {declared}")
    return found


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


def _other_makings(design: Design, declared: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Yield parameters of datasets that differ, such as a seed, without those of sweeps.

    Parameters
    ----------
    design : Design
        Design of the study.
    declared : mapping of str to mapping of str to object
        Configuration of each of the experiment's datasets.

    Yields
    ------
    str
        One phrase for each parameter.
    """
    for name, summary in design.datasets.items():
        base, swept = name.partition("[")[0], {text.partition("=")[0] for text in _settings(name)}
        given, numbers = summary.get("params") or {}, declared.get(base, {})
        for key in sorted(given.keys() & numbers.keys() - swept):
            if given[key] != numbers[key]:
                yield f"dataset.{base}.{key}={cell(given[key])} in place of {cell(numbers[key])}"


def _other_settings(design: Design, config: Mapping[str, Any]) -> Iterator[str]:
    """Yield values of sweeps that the study omits, and differences of the search space.

    Parameters
    ----------
    design : Design
        Design of the study.
    config : mapping of str to object
        Configuration of the experiment.

    Yields
    ------
    str
        One phrase for each axis.
    """
    present = {text for each in (*design.arms, *design.datasets) for text in _settings(each)}
    resolutions = config["search"].get("resolution") or []
    for axis, values in {**config["sweep"], "resolution": resolutions}.items():
        if missing := [text for value in values if (text := f"{axis}={cell(value)}") not in present]:
            yield f"without {', '.join(missing)}"
    spaces = [arm.get("space") or {} for arm in design.arms.values()]
    for param, values in {} if resolutions else (config["search"].get("space") or {}).items():
        if any(sorted(map(cell, space.get(param, ()))) != sorted(map(cell, values)) for space in spaces):
            yield f"another search.space.{param}"


def _other_params(design: Design, solvers: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Yield classes and parameters of solvers that differ, without those of sweeps.

    Parameters
    ----------
    design : Design
        Design of the study.
    solvers : mapping of str to mapping of str to object
        Configuration of each of the experiment's solvers.

    Yields
    ------
    str
        One phrase for each parameter.
    """
    for arm in design.arms.values():
        solver, swept = arm.get("solver", ""), arm.get("sweep") or {}
        if solver not in solvers:
            continue
        declared = {
            key: value for key, value in solvers[solver].items() if key not in ("space", "prepare", *swept)
        }
        given = {key: value for key, value in (arm.get("params") or {}).items() if key not in swept}
        given["_target_"] = arm.get("target")
        for key in sorted(declared.keys() | given.keys()):
            if canonical_json(given.get(key)) != canonical_json(declared.get(key)):
                yield f"another {solver}.{key}"


def _settings(name: str) -> list[str]:
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
    return name.partition("[")[2].removesuffix("]").split(",")
