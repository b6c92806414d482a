"""From what a user says to a `Study`: Hydra composes, this module checks and converts.

Every problem is collected before anything is refused, so that a user mends a configuration once. No
other module but the command line knows Hydra or omegaconf.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import platformdirs
from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException
from sklearn.metrics import get_scorer_names

from orchestrator.arms import build_arms
from orchestrator.datasets import libsvm_names
from orchestrator.resolve import ResolveError, did_you_mean, resolve
from orchestrator.study import DatasetSpec, Protocol, Study

CONF_FOLDER = next(
    folder
    for folder in (Path(__file__).parent / "conf", Path(__file__).parent.parent / "conf")
    if folder.is_dir()
)
"""Inside the package when installed from a wheel, beside it in a checkout."""

_GROUPS = ("dataset", "solver", "search", "protocol", "cluster", "experiment")
_OPEN_PREFIXES = ("sweep.", "search.space.")
"""Under these keys a user names parameters of solvers, which no schema lists."""

_CHOICES = {
    "protocol.scaling": ("train", "dataset", "none"),
    "protocol.profile": ("throughput", "timing"),
    "cluster.kind": ("serial", "local", "address"),
    "on_error": ("continue", "fail_fast"),
    "retry": ("none", "failed"),
}


class ConfigError(ValueError):
    """A configuration that cannot be run, with all its problems, one sentence each."""

    def __init__(self, problems: Sequence[str]):
        super().__init__("\n".join(problems))
        self.problems = list(problems)


@dataclass(frozen=True)
class Cluster:
    """Where to run: kind of cluster, and what that kind needs."""

    kind: str = "local"
    workers: int | None = None
    memory: float | None = None
    address: str | None = None


@dataclass(frozen=True)
class Paths:
    """The folders of studies, of datasets as files, and of prepared datasets."""

    results: Path
    data: Path
    cache: Path


@dataclass(frozen=True)
class Settings:
    """A checked configuration."""

    study: Study
    cluster: Cluster
    paths: Paths
    on_error: str
    retry: str


# -- composing -----------------------------------------------------------------------------------


@contextmanager
def _hydra(config_dir: Path | None) -> Iterator[list[str]]:
    """Open the configuration folders, a user's own besides ours; yield what every composition needs."""
    if config_dir is not None and not config_dir.is_dir():
        raise ConfigError([f"--config-dir: {config_dir} is not a folder"])
    GlobalHydra.instance().clear()
    with initialize_config_dir(str(CONF_FOLDER), version_base="1.3", job_name="svmbench"):
        yield [] if config_dir is None else [f"hydra.searchpath=[file://{config_dir.resolve()}]"]
    GlobalHydra.instance().clear()


def compose_settings(overrides: Sequence[str], config_dir: Path | None = None) -> dict[str, Any]:
    """Compose the configuration, with the configurations of the chosen datasets and solvers filled in.

    Parameters
    ----------
    overrides : sequence of str
        In Hydra's grammar.
    config_dir : Path or None
        A user's folder of further configurations, laid out like `conf/`.

    Returns
    -------
    dict
        Plain containers: the keys of `conf/config.yaml`, and `dataset` and `solver`, which map each chosen
        name to its configuration.

    Raises
    ------
    ConfigError
        For keys and names that do not exist, each with the nearest that does.
    """
    with _hydra(config_dir) as base:
        base += [text for text in overrides if text.startswith("hydra.searchpath=")]
        said, problems = _checked_overrides(overrides, base)
        if problems:
            raise ConfigError(problems)
        try:
            lists = compose("config", overrides=[*base, *said])
            files, chosen = _chosen_configs(lists)
            config = OmegaConf.to_container(
                compose("config", overrides=[*base, *said, *chosen]), resolve=True
            )
        except (HydraException, OmegaConfBaseException) as error:
            raise ConfigError([" ".join(str(error).split())]) from error
    assert isinstance(config, dict)
    return {
        **{str(key): value for key, value in config.items()},
        "dataset": {**(config.get("dataset") or {}), **files},
        "solver": config.get("solver") or {},
    }


def known_names(group: str, config_dir: Path | None = None) -> list[str]:
    """Return the names a group offers, a user's own included."""
    with _hydra(config_dir) as base:
        return _options(group, base)


def _options(group: str, base: Sequence[str]) -> list[str]:
    compose("config", overrides=list(base))  # so that the loader knows the user's folder
    return list(GlobalHydra.instance().config_loader().get_group_options(group))


def _checked_overrides(overrides: Sequence[str], base: list[str]) -> tuple[list[str], list[str]]:
    """Return the overrides as Hydra wants them, and what is wrong with them.

    A user need not know that new keys take a `+`: names under the open prefixes get it here.
    """
    known = OmegaConf.to_container(compose("config", overrides=base))
    parser = OverridesParser.create()
    accepted, problems = [], []
    for text in overrides:
        try:
            override = parser.parse_override(text)
        except HydraException:
            problems.append(f"cannot read the override {text!r}; expected key=value or key=[value,value]")
            continue
        key = override.key_or_group
        if key.startswith(_OPEN_PREFIXES) and not override.is_delete():
            accepted.append("++" + text.lstrip("+"))
        elif key == "hydra.searchpath":
            continue  # in `base` already
        elif key.startswith("hydra.") or override.is_add() or override.is_force_add():
            accepted.append(text)
        elif problem := _unknown_key(override, known, base):
            problems.append(problem)
        else:
            accepted.append(text)
    return accepted, problems


def _unknown_key(override: Override, known: Any, base: list[str]) -> str:
    key = override.key_or_group
    if key in _GROUPS:
        value = override.value()
        options = _options(key, base)
        if key not in ("dataset", "solver") and value is not None and str(value) not in options:
            near = did_you_mean(str(value), options)
            return f"unknown {key} {str(value)!r}{near}; known: {', '.join(options)}"
        if key in ("dataset", "solver"):
            return f"unknown key {key!r}; did you mean '{key}s=[{value}]'?"
        return ""
    paths = list(_key_paths(known)) + list(_GROUPS)
    return "" if key in paths else f"unknown key {key!r}{did_you_mean(key, paths)}"


def _key_paths(node: Any, prefix: str = "") -> Iterator[str]:
    if isinstance(node, Mapping):
        for key, value in node.items():
            yield f"{prefix}{key}"
            yield from _key_paths(value, f"{prefix}{key}.")


def _chosen_configs(lists: Any) -> tuple[dict[str, Any], list[str]]:
    """Check the lists of names; return datasets that are bare files, and overrides that load the rest."""
    loader = GlobalHydra.instance().config_loader()
    folder = Path(str(lists.paths.data))
    found = libsvm_names(folder)
    files: dict[str, Any] = {}
    chosen: list[str] = []
    problems: list[str] = []
    for group in ("dataset", "solver"):
        options = loader.get_group_options(group)
        for name in _names(lists, group, problems):
            if name in options:
                chosen.append(f"+{group}@{group}.{name}={name}")
            elif group == "dataset" and name in found:
                files[name] = {
                    "_target_": "orchestrator.datasets.libsvm_file",
                    "name": name,
                    "folder": str(folder),
                }
            else:
                offered = [*options, *found] if group == "dataset" else options
                problems.append(
                    f"unknown {group} {name!r}{did_you_mean(name, offered)} (see: svmbench list {group}s)"
                )
    if problems:
        raise ConfigError(problems)
    return files, chosen


def _names(lists: Any, group: str, problems: list[str]) -> list[str]:
    value = OmegaConf.to_container(lists)[f"{group}s"]  # type: ignore[index, call-overload]
    if isinstance(value, str):
        value = [value]
    if not isinstance(value, list):
        problems.append(f"{group}s must be a list of names such as {group}s=[a,b], found {value!r}")
        return []
    return list(dict.fromkeys(str(name) for name in value))


# -- checking ------------------------------------------------------------------------------------


def check_settings(config: Mapping[str, Any]) -> Settings:
    """Turn a composed configuration into settings that can be run.

    Raises
    ------
    ConfigError
        With every problem found.
    """
    problems: list[str] = []
    name = _study_name(config, problems)
    for key in ("dataset", "solver"):
        if not config[key]:
            problems.append(
                f"no {key}s; choose some with {key}s=[NAME,…] (see: svmbench list {key}s), or an experiment"
            )
    protocol = _protocol(config["protocol"], problems)
    cluster = _cluster(config["cluster"], problems)
    for key in ("on_error", "retry"):
        _choice(key, config[key], problems)
    datasets = [_dataset(key, node, problems) for key, node in config["dataset"].items()]
    search = config["search"] or {}
    arms, found = build_arms(
        config["solver"],
        _sweep(config["sweep"], problems),
        str(search.get("kind")),
        search.get("space") or {},
        protocol.profile,
    )
    problems += found
    if problems:
        raise ConfigError(list(dict.fromkeys(problems)))
    study = Study(name, tuple(datasets), tuple(arms), str(search["kind"]), protocol)
    return Settings(study, cluster, folders(config), config["on_error"], config["retry"])


def folders(config: Mapping[str, Any]) -> Paths:
    """Return the folders a configuration names."""
    paths = config["paths"]
    cache = paths["cache"] or platformdirs.user_cache_dir("svmbench")
    return Paths(*(Path(str(path)).expanduser() for path in (paths["results"], paths["data"], cache)))


def study_name(config: Mapping[str, Any]) -> str:
    """Return the name of the study a configuration speaks of.

    Raises
    ------
    ConfigError
        If it has none, or one that is no file name.
    """
    problems: list[str] = []
    name = _study_name(config, problems)
    if problems:
        raise ConfigError(problems)
    return name


def _study_name(config: Mapping[str, Any], problems: list[str]) -> str:
    name = str(config["study"] or "")
    if not name:
        problems.append("the study has no name; give it one with study=NAME, or choose an experiment")
    elif not name.replace("-", "").replace("_", "").replace(".", "").isalnum() or name.startswith("."):
        problems.append(f"study={name!r}: expected letters, digits, '-', '_' and '.', for it names a folder")
    return name


def _protocol(node: Mapping[str, Any], problems: list[str]) -> Protocol:
    for key in ("outer", "inner"):
        _whole(f"protocol.{key}", node[key], 2, problems)
    _whole("protocol.seed", node["seed"], 0, problems)
    for key in ("scaling", "profile"):
        _choice(f"protocol.{key}", node[key], problems)
    _positive("protocol.max_seconds", node["max_seconds"], problems)
    also = node["also"] if isinstance(node["also"], list) else [node["also"]]
    scorers = get_scorer_names()
    for key, metric in [("metric", node["metric"]), *(("also", metric) for metric in also)]:
        if metric not in scorers:
            problems.append(
                f"protocol.{key}: scikit-learn has no scorer {metric!r}{did_you_mean(str(metric), scorers)}"
            )
    return Protocol(**{**node, "also": tuple(map(str, also))})


def _cluster(node: Mapping[str, Any], problems: list[str]) -> Cluster:
    _choice("cluster.kind", node["kind"], problems)
    if node["workers"] is not None:
        _whole("cluster.workers", node["workers"], 1, problems)
    _positive("cluster.memory", node["memory"], problems)
    if node["kind"] == "address" and not node["address"]:
        problems.append("cluster=address needs the scheduler's address: cluster.address=tcp://HOST:PORT")
    return Cluster(**node)


def _dataset(name: str, node: Mapping[str, Any], problems: list[str]) -> DatasetSpec:
    target = str(node.get("_target_"))
    try:
        if not callable(resolve(target)):
            problems.append(f"dataset {name}: {target} is not a function that returns (X, y)")
    except ResolveError as error:
        problems.append(f"dataset {name}: {error}")
    return DatasetSpec(name, target, {key: value for key, value in node.items() if key != "_target_"})


def _sweep(node: Any, problems: list[str]) -> dict[str, list[Any]]:
    axes = {}
    for param, values in (node or {}).items():
        values = values if isinstance(values, list) else [values]
        if not values:
            problems.append(f"sweep.{param} is empty; expected at least one value")
        axes[str(param)] = values
    return axes


def _whole(key: str, value: Any, least: int, problems: list[str]) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        problems.append(f"{key} must be a whole number of at least {least}, found {value!r}")


def _positive(key: str, value: Any, problems: list[str]) -> None:
    if value is not None and (
        isinstance(value, bool) or not isinstance(value, (int, float)) or not value > 0
    ):
        problems.append(f"{key} must be a number above 0, or null, found {value!r}")


def _choice(key: str, value: Any, problems: list[str]) -> None:
    choices = _CHOICES[key]
    if value not in choices:
        problems.append(
            f"{key} must be one of {', '.join(choices)}, found {value!r}{did_you_mean(str(value), choices)}"
        )
