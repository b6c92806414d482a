"""Checks of a composed configuration, and its conversion to `Settings`. All problems are reported at once."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import platformdirs

from orchestrator.config.cluster_settings import cluster_settings
from orchestrator.config.narrowing import OPTIONAL_AXES
from orchestrator.config.report_settings import checked_choices, published_files, section_names
from orchestrator.config.scalars import MAX_FOLDS, wrong_values
from orchestrator.datasets.about import ABOUT, about_problems
from orchestrator.study.errors import ConfigError
from orchestrator.study.schemes import n_repeats
from orchestrator.study.settings import MAX_TRAININGS, Cluster, Paths, Settings
from orchestrator.study.study import EVERY, Arm, DatasetSpec, Protocol, SearchSpec, Study
from orchestrator.study.study_name import name_problem
from orchestrator.study.targets import ResolveError, is_imported, resolve
from orchestrator.study.text import shown
from orchestrator.training.cores import physical_cores, usable_cores

NOTHING_GIVEN = (
    "found no study, datasets or solvers; expected what to compare. Write "
    "datasets=[table.csv] label=COLUMN solvers=[boosting,forest,logistic,svm], experiment=quickstart, or the "
    "study=NAME of a stored study"
)
"""Message about a command that names nothing to run."""

NO_NAME = "the study has no name"
"""Start of the message about a study without a name."""


def check_settings(config: Mapping[str, Any]) -> Settings:
    """Convert a composed configuration to settings that can be run.

    Parameters
    ----------
    config : mapping
        Composed configuration, in plain containers.

    Raises
    ------
    ConfigError
        If the configuration cannot be run. The error lists every problem.
    """
    if not (config["study"] or config["datasets"] or config["solvers"]):
        raise ConfigError([NOTHING_GIVEN])
    problems: list[str] = []
    name = _study_name(config, problems)
    for key in ("dataset", "solver"):
        if not config[f"{key}s"]:
            problems.append(
                f"no {key}s; choose some with {key}s=[NAME,…] (see: svmbench list {key}s), or an experiment"
            )
    from orchestrator.config.protocol_settings import read_protocol  # imports scikit-learn

    has_inner_splits = (config["search"] or {}).get("kind") != EVERY
    protocol = read_protocol(config["protocol"], problems, has_inner_splits)
    cluster = cluster_settings(config["cluster"], problems)
    report = checked_choices(config["report"], problems)
    problems += _too_few_cores(cluster, protocol)
    problems += wrong_values(config, ("on_error", "retry", "data_memory", "minutes"))
    problems += _path_problems(config["paths"])
    section_names(config, problems)
    published_files(config, problems)
    nodes = {group: _with_target(group, config[group], problems) for group in ("dataset", "solver")}
    specs = [dataset_spec(key, node, problems) for key, node in nodes["dataset"].items()]
    # These modules import scikit-learn or NumPy, which not every command needs.
    from orchestrator.config.arms import build_arms
    from orchestrator.config.axes import swept_datasets
    from orchestrator.config.search_settings import read_search
    from orchestrator.training.source_hash import class_identity

    is_custom = any(metric.name == protocol.metric for metric in protocol.custom_metrics)
    search, space, resolutions = read_search(config["search"] or {}, protocol.metric, problems, is_custom)
    sweep = _sweep(config["sweep"], problems)
    datasets = [each for spec in specs for each in swept_datasets(spec, sweep, problems)]
    arms, found = build_arms(nodes["solver"], sweep, search, space, protocol.profile, resolutions)
    problems += found
    problems += _size_problem(protocol, search, arms, len(datasets))
    if {arm.solver for arm in arms} == set(config["solvers"]):
        needed = {axis: values for axis, values in sweep.items() if axis not in config.get(OPTIONAL_AXES, ())}
        problems += _unused_axes(needed, arms, specs)
    if not problems:
        names = [arm.name for arm in arms], [dataset.name for dataset in datasets]
        problems += report.unknown_names(*names)
        problems += report.outside_plan(*names, n_repeats(protocol.to_dict()))
        problems += report.unused_reference(search.target)
    keeps_predictions = config["protocol"].get("predictions") == "outer"
    if keeps_predictions and search.target == EVERY:
        problems.append(
            "protocol.predictions=outer: predictions are kept of the refits of selected candidates, and "
            f"search={EVERY} selects none. Leave protocol.predictions out"
        )
    if problems:
        raise ConfigError(list(dict.fromkeys(problems)))
    if search.is_custom:
        search = replace(search, identity=class_identity(search.target))
    study = Study(name, tuple(datasets), tuple(arms), search, protocol, keeps_predictions)
    memory = config["data_memory"] and config["data_memory"] * 2**30
    return Settings(
        study,
        cluster,
        folders(config),
        config["on_error"],
        config["retry"],
        report,
        memory,
        config["minutes"],
    )


def _path_problems(paths: Mapping[str, Any]) -> Iterator[str]:
    for key, path in paths.items():
        if path is None and key == "cache":
            continue
        try:
            usable = isinstance(path, str) and path.isprintable() and bool(path and Path(path).expanduser())
        except RuntimeError:  # the home of a user who does not exist
            usable = False
        if not usable:
            yield f"paths.{key} must name a folder, found {shown(path)}"


def _size_problem(
    protocol: Protocol, search: SearchSpec, arms: Sequence[Arm], n_datasets: int
) -> Iterator[str]:
    folds = protocol.outer, protocol.outer if protocol.inner is None else protocol.inner
    if not all(isinstance(number, int) and 2 <= number <= MAX_FOLDS for number in folds):
        return
    from orchestrator.search import max_candidates

    points = []
    for arm in arms:
        with suppress(ValueError, TypeError):  # reported as a problem of the arm
            points.append(max_candidates(search, arm.space))
    if search.target == EVERY:
        number = n_datasets * sum(points) * len(protocol.n_inner)
    else:
        number = n_datasets * sum(inner * each + 1 for each in points for inner in protocol.n_inner)
    if number > MAX_TRAININGS:
        yield (
            f"the study asks for {number:.3g} trainings; expected at most {MAX_TRAININGS:,}: "
            "use fewer folds, values, solvers or datasets"
        )


def folders(config: Mapping[str, Any]) -> Paths:
    """Return the folders of a configuration as absolute paths.

    Parameters
    ----------
    config : mapping
        Composed configuration.
    """
    paths = config["paths"]
    cache = paths["cache"] or platformdirs.user_cache_dir("svmbench")
    return Paths(
        *(Path(str(path)).expanduser().absolute() for path in (paths["results"], paths["data"], cache))
    )


def study_name(config: Mapping[str, Any]) -> str:
    """Return the name of the study that a configuration names.

    Parameters
    ----------
    config : mapping
        Configuration with the key `study`.

    Raises
    ------
    ConfigError
        If the key is empty or not a valid name.
    """
    problems: list[str] = []
    name = _study_name(config, problems)
    if problems:
        raise ConfigError(problems)
    return name


def _study_name(config: Mapping[str, Any], problems: list[str]) -> str:
    given = config["study"]
    if given is None or given == "":
        problems.append(f"{NO_NAME}; give it one with study=NAME, or choose an experiment")
        return ""
    if problem := name_problem(given):
        problems.append(problem)
    return str(given)


def _too_few_cores(cluster: Cluster, protocol: Protocol) -> Iterator[str]:
    workers, cores = cluster.workers, usable_cores()
    if cluster.in_process or not cluster.on_this_host:
        return
    if protocol.profile != "timing" or not isinstance(workers, int):
        return
    if physical_cores() and workers > cores:  # empty on systems that cannot pin a process to a core
        yield (
            f"cluster.workers={workers}: protocol.profile=timing needs one core for each worker, and this "
            f"process may use {cores}; lower cluster.workers, or choose protocol.profile=throughput"
        )


def _with_target(group: str, nodes: Mapping[str, Any], problems: list[str]) -> dict[str, Any]:
    """Return the configurations that have a `_target_`.

    Parameters
    ----------
    group : {"dataset", "solver"}
        Group of the configurations, for the messages.
    nodes : mapping of str to mapping
        Configurations by name.
    problems : list of str
        One message is appended for each configuration without a `_target_`.
    """
    lacking = [name for name, node in nodes.items() if not isinstance(node.get("_target_"), str)]
    problems += [
        f"{group} {name}: its configuration has no _target_; add the dotted path of a class or function"
        for name in lacking
    ]
    return {name: node for name, node in nodes.items() if name not in lacking}


def dataset_spec(name: str, node: Mapping[str, Any], problems: list[str]) -> DatasetSpec:
    """Return the specification of a dataset, from its configuration.

    Parameters
    ----------
    name : str
        Name of the dataset.
    node : mapping
        Configuration of the dataset.
    problems : list of str
        One message is appended for each problem.
    """
    target = str(node.get("_target_"))
    try:
        if is_imported(target) and not callable(resolve(target)):
            problems.append(f"dataset {name}: {target} is not a function that returns (X, y)")
    except ResolveError as error:
        problems.append(f"dataset {name}: {error}")
    problems += about_problems(name, node)
    family = node.get("family", "")
    if not isinstance(family, str):
        problems.append(f"dataset {name}: expected a name as family, found {shown(family)}; put it in quotes")
    params = {key: value for key, value in node.items() if key not in ("_target_", "family", ABOUT)}
    return DatasetSpec(name, target, params, family)


def _sweep(node: Any, problems: list[str]) -> dict[str, list[Any]]:
    axes = {}
    for param, values in (node or {}).items():
        values = values if isinstance(values, list) else [values]
        if not values:
            problems.append(f"sweep.{param} is empty; expected at least one value")
        axes[str(param)] = values
    return axes


def _unused_axes(
    sweep: Mapping[str, Any], arms: Sequence[Arm], datasets: Sequence[DatasetSpec]
) -> Iterator[str]:
    from orchestrator.config.axes import swept_step

    for param, values in sweep.items():
        taken = [*(arm.sweep for arm in arms), *(dataset.params for dataset in datasets)]
        if arms and values and not any(param in each or swept_step(param, each) for each in taken):
            yield (
                f"sweep.{param}: no chosen solver has a parameter {param!r}, and no chosen dataset's "
                "configuration sets it"
            )
