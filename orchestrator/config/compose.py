"""Configurations of commands: composed by Hydra, or read from the cache of an earlier command.

Only this package imports Hydra and omegaconf, and only where a configuration has to be composed.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from orchestrator.config.composition_cache import cached_composition
from orchestrator.config.data_paths import path_problems, with_paths
from orchestrator.config.schema import NO_NAME, NOTHING_GIVEN, check_settings
from orchestrator.config.tables import LONE_FILE, TABLES, label_problems, table_problems, with_short_forms
from orchestrator.config.user_files import (
    CONF_FOLDER,
    built_in_table,
    group_files,
    group_names,
    group_paths,
    say_if_other,
    user_folders,
)
from orchestrator.config.user_modules import find_modules
from orchestrator.datasets.formats import TEST, TRAIN, is_path
from orchestrator.study.errors import ConfigError
from orchestrator.study.settings import Settings
from orchestrator.study.study import BY_DATASET, EVERY, SAMPLE, SELECTED
from orchestrator.study.targets import did_you_mean
from orchestrator.study.text import one_line

_SUGGESTS_LABEL = "did you mean 'label'"
"""Part of the message about a misspelt key, beside which a table without a label is no further problem."""


def load_settings(overrides: Sequence[str], config_dir: Path | None = None) -> Settings:
    """Compose a configuration and check it, for `run` and `plan`.

    Parameters
    ----------
    overrides : sequence of str
        Overrides in Hydra's grammar.
    config_dir : Path, optional
        The user's folder of further configurations, laid out like `conf/`, and of Python modules. By default
        only built-in configurations are read.

    Raises
    ------
    ConfigError
        If the configuration cannot be run. The error lists every problem.
    """
    find_modules(config_dir)
    config, problems = _composed(overrides, config_dir)
    problems += data_problems(config["dataset"], overrides, config_dir)
    problems += _given_twice(overrides)
    problems += _unused_outer(config, overrides)
    problems += _unused_inner(config, overrides)
    problems += _unused_space(config, overrides)
    problems += _unknown_fixed_datasets(config, overrides, config_dir)
    if not any(_SUGGESTS_LABEL in problem for problem in problems):
        problems += table_problems({name: config["dataset"][name] for name in config[TABLES]})
    if any(problem.startswith("unknown experiment") or LONE_FILE in problem for problem in problems):
        raise ConfigError(
            problems
        )  # settings that seem to be missing would be in the experiment or the split
    try:
        settings = check_settings(config)
    except ConfigError as error:
        further = _further_problems(config, problems, error.problems)
        raise ConfigError([*problems, *_wrong_labels(config), *further]) from None
    problems += _unused_fixed_parameters(settings, overrides)
    if problems:
        raise ConfigError([*problems, *_wrong_labels(config)])
    return settings


def _wrong_labels(config: Mapping[str, Any]) -> list[str]:
    """Return a sentence for each table that lacks its column of labels, to list beside other problems.

    Parameters
    ----------
    config : mapping
        Composed configuration.
    """
    return label_problems({name: config["dataset"][name] for name in config[TABLES]})


def _given_twice(overrides: Sequence[str]) -> Iterator[str]:
    """Yield a problem if a command gives a short form and its key different values.

    Parameters
    ----------
    overrides : sequence of str
        Overrides in Hydra's grammar.
    """
    given = dict(text.lstrip("+").partition("=")[::2] for text in overrides)
    short, whole = given.get("metric", "null"), given.get("protocol.metric", "null")
    if "null" not in (short, whole) and short != whole:
        yield (
            f"metric={short} and protocol.metric={whole} are both given; metric is short for "
            "protocol.metric. Give only one of them"
        )


def _unused_outer(config: Mapping[str, Any], overrides: Sequence[str]) -> Iterator[str]:
    """Yield a problem if a command names outer splits beside two files, which are the outer split.

    Parameters
    ----------
    config : mapping
        Composed configuration.
    overrides : sequence of str
        Overrides in Hydra's grammar.
    """
    if config[TRAIN] is not None:
        for text in _below("protocol.outer", overrides):
            yield f"{text}: {TRAIN} and {TEST} give the one outer split. Leave protocol.outer out"


def _unused_inner(config: Mapping[str, Any], overrides: Sequence[str]) -> Iterator[str]:
    """Yield a problem if a command names inner splits for a search that has none.

    Parameters
    ----------
    config : mapping
        Composed configuration.
    overrides : sequence of str
        Overrides in Hydra's grammar.
    """
    if (config["search"] or {}).get("kind") == EVERY:
        for text in _below("protocol.inner", overrides):
            yield (
                f"{text}: search={EVERY} trains every candidate on the outer training rows and has no inner "
                "splits. Leave protocol.inner out, or use search=grid"
            )


def _unused_space(config: Mapping[str, Any], overrides: Sequence[str]) -> Iterator[str]:
    """Yield a problem if a command names hyper-parameters for a search that takes them from another study.

    Parameters
    ----------
    config : mapping
        Composed configuration.
    overrides : sequence of str
        Overrides in Hydra's grammar. The space of an experiment is not checked: a command may choose another
        search for it.
    """
    if (kind := (config["search"] or {}).get("kind")) in (SAMPLE, SELECTED):
        for key in ("search.space", "search.resolution"):
            for text in _below(key, overrides):
                yield (
                    f"{text}: search={kind} takes its candidates from the study of search.study. "
                    f"Leave {key} out, or use search=grid"
                )


def _below(start: str, overrides: Sequence[str]) -> Iterator[str]:
    """Yield the overrides whose key begins with a text and whose value is not null.

    Parameters
    ----------
    start : str
        Beginning of the keys.
    overrides : sequence of str
        Overrides in Hydra's grammar.
    """
    for text in overrides:
        key, _, value = text.lstrip("+").partition("=")
        if key.startswith(start) and value.strip() != "null":
            yield text


def _unknown_fixed_datasets(
    config: Mapping[str, Any], overrides: Sequence[str], config_dir: Path | None
) -> Iterator[str]:
    """Yield a problem for each name in `search.by_dataset` that is no dataset.

    A dataset that the study does not have is accepted: a narrowed experiment keeps its values.

    Parameters
    ----------
    config : mapping
        Composed configuration.
    overrides : sequence of str
        Overrides in Hydra's grammar.
    config_dir : Path or None
        The user's folder of further configurations.
    """
    fixed = (config["search"] or {}).get(BY_DATASET)
    if not isinstance(fixed, Mapping) or all(name in config["dataset"] for name in fixed):
        return
    known = {*known_names("dataset", overrides, config_dir), *config["dataset"]}
    for name in map(str, fixed):
        if name.partition("[")[0] not in known:  # a swept dataset is named blobs[n=100]
            yield (
                f"search.{BY_DATASET}.{name}: expected the name of a dataset"
                f"{did_you_mean(name, known) or '.'} See: svmbench list datasets"
            )


def _unused_fixed_parameters(settings: Settings, overrides: Sequence[str]) -> Iterator[str]:
    """Yield a problem for each hyper-parameter that a command fixes on a dataset and no arm searches.

    Parameters
    ----------
    settings : Settings
        Checked settings.
    overrides : sequence of str
        Overrides in Hydra's grammar. Values of an experiment are not checked, because it may be narrowed to
        some arms.
    """
    if not any(text.lstrip("+").startswith(f"search.{BY_DATASET}") for text in overrides):
        return
    study = settings.study
    searched = {name for arm in study.arms for name in arm.space}
    for dataset, values in study.search.options.get(BY_DATASET, {}).items():
        for name in values:
            if name not in searched:
                yield (
                    f"search.{BY_DATASET}.{dataset}.{name}: expected a hyper-parameter that an arm searches: "
                    f"{', '.join(sorted(searched))}. Correct the name, or leave it out"
                )


def _further_problems(
    config: Mapping[str, Any], problems: Sequence[str], found: Sequence[str]
) -> Iterator[str]:
    """Yield the problems of settings that do not follow from problems of the composition.

    Parameters
    ----------
    config : mapping
        Composed configuration.
    problems : sequence of str
        Problems of the composition.
    found : sequence of str
        Problems of the settings.
    """
    has_lost_table = any(is_path(name) and name not in config["dataset"] for name in config["datasets"])
    for problem in found:
        is_nameless = problem.startswith(NO_NAME) and has_lost_table  # the table would have named the study
        is_misspelt = any(
            problem.startswith(f"no {key}") and f"did you mean '{key}=" in each
            for key in ("datasets", "solvers")
            for each in problems
        )
        if not (is_nameless or is_misspelt or (problems and problem == NOTHING_GIVEN)):
            yield problem


def compose_settings(overrides: Sequence[str], config_dir: Path | None = None) -> dict[str, Any]:
    """Compose a configuration, including the configurations of the chosen datasets and solvers.

    Parameters
    ----------
    overrides : sequence of str
        Overrides in Hydra's grammar.
    config_dir : Path, optional
        The user's folder of further configurations.

    Returns
    -------
    dict
        Plain containers with the keys of `conf/config.yaml`. `dataset` and `solver` map each chosen name to
        its configuration.

    Raises
    ------
    ConfigError
        For each key or name that does not exist, with the most similar one that exists.
    """
    config, problems = _composed(overrides, config_dir)
    if problems:
        raise ConfigError(problems)
    return config


def _composed(overrides: Sequence[str], config_dir: Path | None) -> tuple[dict[str, Any], list[str]]:
    """Return the composed configuration without its invalid parts, and their problems.

    Parameters
    ----------
    overrides : sequence of str
        Overrides in Hydra's grammar.
    config_dir : Path or None
        The user's folder of further configurations.
    """
    folders = user_folders(config_dir, overrides)

    def compose() -> tuple[dict[str, Any], list[str]]:
        from orchestrator.config.hydra_compose import compose_with_hydra

        return compose_with_hydra(overrides, folders)

    config, problems = cached_composition(overrides, folders, compose)
    config["dataset"] = with_paths(config["dataset"], folders)
    return with_short_forms(config), problems


def composed_yaml(overrides: Sequence[str], config_dir: Path | None = None) -> str:
    """Return the configuration that `compose_settings` composes, as YAML.

    Parameters
    ----------
    overrides : sequence of str
        Overrides in Hydra's grammar.
    config_dir : Path, optional
        The user's folder of further configurations.
    """
    from omegaconf import OmegaConf

    return str(OmegaConf.to_yaml(OmegaConf.create(compose_settings(overrides, config_dir))))


def known_names(group: str, overrides: Sequence[str] = (), config_dir: Path | None = None) -> list[str]:
    """Return the names in a group of configurations, including those of the user.

    Parameters
    ----------
    group : str
        Name of the group, such as ``"dataset"``.
    overrides : sequence of str
        Overrides in Hydra's grammar. Those of its search path name further folders. Default: none.
    config_dir : Path, optional
        The user's folder of further configurations.
    """
    names = group_names(group, user_folders(config_dir, overrides))
    return sorted({*names, *built_in_table()}) if group == "dataset" else names


def known_files(group: str, overrides: Sequence[str] = (), config_dir: Path | None = None) -> dict[str, Path]:
    """Return the files of a group of configurations by name, including those of the user, unchecked.

    Parameters
    ----------
    group : str
        Name of the group, such as ``"solver"``.
    overrides : sequence of str
        Overrides in Hydra's grammar. Those of its search path name further folders. Default: none.
    config_dir : Path, optional
        The user's folder of further configurations.
    """
    return group_paths(group, user_folders(config_dir, overrides))


def dataset_nodes(overrides: Sequence[str] = (), config_dir: Path | None = None) -> dict[str, dict[str, Any]]:
    """Return the configuration of every dataset by name: of YAML files, the built-in table and bare files.

    Hydra composes only files with a list of `defaults`, because it takes seconds for some hundred files. All
    other files are read directly.

    Parameters
    ----------
    overrides : sequence of str
        Overrides in Hydra's grammar. Default: none.
    config_dir : Path, optional
        The user's folder of further configurations.

    Raises
    ------
    ConfigError
        If a file cannot be read.
    """
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException
    from yaml import YAMLError  # type: ignore[import-untyped]

    from orchestrator.config.hydra_compose import bare_file, files_in, undescribed_files

    config = compose_settings(overrides, config_dir)
    try:
        read = _files_of("dataset", overrides, config_dir)
        composed = [name for name, node in read.items() if "defaults" in node]
        plain = {name: node for name, node in read.items() if name not in composed}
        resolved = OmegaConf.to_container(OmegaConf.create({**config, "dataset": plain}), resolve=True)
    except (OmegaConfBaseException, YAMLError) as error:
        raise ConfigError([one_line(error)]) from error
    found: dict[str, dict[str, Any]] = resolved["dataset"]  # type: ignore[call-overload, index, assignment]
    if composed:
        found |= compose_settings([*overrides, f"datasets=[{','.join(composed)}]"], config_dir)["dataset"]
    folders = user_folders(config_dir, overrides)
    folder = Path(str(config["paths"]["data"]))
    bare = {name: bare_file(name, folder) for name in files_in(folder)}
    first = {name: bare[name] for name in undescribed_files(list(bare), folders)}
    nodes = bare | {**built_in_table()} | with_paths(found, folders) | first
    return dict(sorted(nodes.items()))


def data_problems(
    nodes: Mapping[str, Mapping[str, Any]], overrides: Sequence[str], config_dir: Path | None
) -> list[str]:
    """Return the problems of the relative paths in the user's files of datasets.

    Parameters
    ----------
    nodes : mapping of str to mapping
        Configurations by the names of their datasets.
    overrides : sequence of str
        Overrides in Hydra's grammar.
    config_dir : Path or None
        The user's folder of further configurations.
    """
    return [*path_problems(nodes, user_folders(config_dir, overrides))]


def claim_nodes(overrides: Sequence[str] = (), config_dir: Path | None = None) -> dict[str, dict[str, Any]]:
    """Return the content of every file of a claim by name, including the user's files.

    Parameters
    ----------
    overrides : sequence of str
        Overrides in Hydra's grammar. Those of its search path name further folders. Default: none.
    config_dir : Path, optional
        The user's folder of further configurations.

    Raises
    ------
    ConfigError
        If a file cannot be read.
    """
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException
    from yaml import YAMLError

    from orchestrator.config.yaml_files import built_in_content

    found: dict[str, Any] = {}
    try:
        for name, path in sorted(group_files("claim", user_folders(config_dir, overrides)).items()):
            if path.is_relative_to(CONF_FOLDER):
                found[name] = built_in_content(path)
            else:
                node = OmegaConf.load(path)
                say_if_other(path, f"claim/{name}", node)
                found[name] = OmegaConf.to_container(node)
    except (OmegaConfBaseException, YAMLError) as error:
        raise ConfigError([one_line(error)]) from error
    return found


def _files_of(group: str, overrides: Sequence[str], config_dir: Path | None) -> dict[str, Any]:
    """Return the contents of the files of a group by name, without composing them.

    Parameters
    ----------
    group : str
        Name of the group.
    overrides : sequence of str
        Overrides in Hydra's grammar. Those of its search path name further folders.
    config_dir : Path or None
        The user's folder of further configurations.
    """
    from omegaconf import OmegaConf

    from orchestrator.config.yaml_files import built_in_content

    folders = user_folders(config_dir, overrides)
    files: dict[str, Any] = {}
    for name, path in sorted(group_files(group, folders).items()):
        if path.is_relative_to(CONF_FOLDER):
            files[name] = OmegaConf.create(built_in_content(path))
        else:
            files[name] = OmegaConf.load(path)
            say_if_other(path, f"{group}/{name}", files[name])
    return files
