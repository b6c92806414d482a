"""From what a user says to a configuration: Hydra composes, and what it does not know is found here.

No other module but the command line knows Hydra or omegaconf.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError  # type: ignore[import-untyped]

from orchestrator.resolve import did_you_mean
from orchestrator.settings import ConfigError, Settings, check_settings

CONF_FOLDER = next(
    folder
    for folder in (Path(__file__).parent / "conf", Path(__file__).parent.parent / "conf")
    if folder.is_dir()
)
"""Inside the package when installed from a wheel, beside it in a checkout."""

_GROUPS = ("dataset", "solver", "search", "protocol", "cluster", "experiment")
_OPEN = ("sweep", "search.space", "dataset", "solver", "cluster.options")
"""Under these keys a user names parameters of solvers, datasets and clusters, which no schema lists."""


@contextmanager
def _hydra(config_dir: Path | None) -> Iterator[list[str]]:
    """Open the configuration folders, a user's own besides ours; yield what every composition needs."""
    if config_dir is not None and not config_dir.is_dir():
        raise ConfigError([f"--config-dir: {config_dir} is not a folder"])
    GlobalHydra.instance().clear()
    with initialize_config_dir(str(CONF_FOLDER), version_base="1.3", job_name="svmbench"):
        yield [] if config_dir is None else [f"hydra.searchpath=[file://{config_dir.resolve()}]"]
    GlobalHydra.instance().clear()


def load_settings(overrides: Sequence[str], config_dir: Path | None = None) -> Settings:
    """Compose a configuration and check it: what `run` and `plan` start from.

    Parameters
    ----------
    overrides : sequence of str
        In Hydra's grammar.
    config_dir : Path or None
        A user's folder of further configurations, laid out like `conf/`.

    Raises
    ------
    ConfigError
        With every problem found.
    """
    config, problems = _compose(overrides, config_dir)
    if any(problem.startswith("unknown experiment") for problem in problems):
        raise ConfigError(problems)  # it would have said what seems to be missing
    try:
        settings = check_settings(config)
    except ConfigError as error:
        raise ConfigError([*problems, *error.problems]) from None
    if problems:
        raise ConfigError(problems)
    return settings


def compose_settings(overrides: Sequence[str], config_dir: Path | None = None) -> dict[str, Any]:
    """Compose the configuration, with the configurations of the chosen datasets and solvers filled in.

    Parameters
    ----------
    overrides, config_dir
        As of `load_settings`.

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
    config, problems = _compose(overrides, config_dir)
    if problems:
        raise ConfigError(problems)
    return config


def _compose(overrides: Sequence[str], config_dir: Path | None) -> tuple[dict[str, Any], list[str]]:
    """Return what can be composed, and what is wrong with the rest."""
    problems: list[str] = []
    with _hydra(config_dir) as base:
        base += [text for text in overrides if text.startswith("hydra.searchpath=")]
        try:
            known = _composed(base)
            said = _checked_overrides(overrides, known, base, problems)
            lists = _composed([*base, *said])
            problems += _strangers(lists, known)
            if any(isinstance(known[key], Mapping) and not isinstance(lists[key], Mapping) for key in known):
                raise ConfigError(problems)
            choices = {group: _choices(group, lists, base, problems) for group in ("dataset", "solver")}
            loads = [load for choice in choices.values() for load in choice.loads]
            config = _composed([*base, *said, *loads])
        except (HydraException, OmegaConfBaseException, YAMLError) as error:
            raise ConfigError([*problems, " ".join(str(error).split())]) from error
    for group, choice in choices.items():
        config[f"{group}s"] = choice.names
        config[group] = choice.filled(config.get(group) or {}, problems)
    return config, problems


def _composed(overrides: list[str]) -> dict[str, Any]:
    config = OmegaConf.to_container(compose("config", overrides=overrides), resolve=True)
    return {str(key): value for key, value in config.items()}  # type: ignore[union-attr]


def known_names(group: str, overrides: Sequence[str] = (), config_dir: Path | None = None) -> list[str]:
    """Return the names a group offers, a user's own included."""
    with _hydra(config_dir) as base:
        return _options(group, [*base, *(text for text in overrides if text.startswith("hydra.searchpath="))])


def _options(group: str, base: Sequence[str]) -> list[str]:
    loader = GlobalHydra.instance().config_loader()
    return list(loader.get_group_options(group, config_name="config", overrides=list(base)))


# -- overrides -----------------------------------------------------------------------------------


def _checked_overrides(
    overrides: Sequence[str], known: Mapping[str, Any], base: list[str], problems: list[str]
) -> list[str]:
    """Return the overrides as Hydra wants them; tell what is wrong with the others."""
    parser = OverridesParser.create()
    accepted: list[str] = []
    for text in overrides:
        try:
            override = parser.parse_override(text)
        except HydraException:
            problems.append(f"cannot read the override {text!r}; expected key=value or key=[value,value]")
            continue
        if override.key_or_group == "hydra.searchpath":
            continue  # in `base` already
        if problem := _problem_of(override, known, base):
            problems.append(problem)
        else:
            accepted += _for_hydra(override, text)
    return accepted


def _problem_of(override: Override, known: Mapping[str, Any], base: list[str]) -> str:
    key, value = override.key_or_group, override.value()
    if key.startswith("hydra."):
        return ""
    if override.is_sweep_override():
        return f"{key} was given several values; write a list, {key}=[a,b], or quote the value"
    if key in ("dataset", "solver"):
        return f"unknown key {key!r}; did you mean '{key}s=[{value}]'?"
    if key in _GROUPS:
        options = _options(key, base)
        if str(value) in options or (key == "experiment" and value is None):
            return ""
        return f"unknown {key} {str(value)!r}; known: {', '.join(options)}{did_you_mean(str(value), options)}"
    if _is_open(key) and key not in known:
        return ""
    sections = dict(_walk(known))
    if key not in sections:
        return f"unknown key {key!r}{did_you_mean(key, [*sections, *_GROUPS])}"
    if override.is_delete():
        return f"{key!r} cannot be left out; give it another value"
    if isinstance(sections[key], list) and isinstance(value, Mapping):
        return f"{key} must be a list such as {key}=[a,b], found {value!r}"
    return _not_a_section(key, value, sections[key])


def _for_hydra(override: Override, text: str) -> list[str]:
    """Spell an override so that a user need not know which keys are new, nor how to replace a section."""
    key, plain = override.key_or_group, text.lstrip("+")
    if override.is_delete() or key.startswith("hydra."):
        return [text]
    if not _is_open(key):
        return [plain]
    return [f"~{key}", f"+{plain}"] if key in _OPEN else [f"++{plain}"]


def _is_open(key: str) -> bool:
    return any(key == prefix or key.startswith(f"{prefix}.") for prefix in _OPEN)


def _walk(node: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the dotted key and the value of every node below one."""
    if isinstance(node, Mapping):
        for key, value in node.items():
            yield f"{prefix}{key}", value
            yield from _walk(value, f"{prefix}{key}.")


def _not_a_section(key: str, value: Any, known: Any) -> str:
    if not isinstance(known, Mapping) or isinstance(value, Mapping):
        return ""
    choose = f"; choose a file of conf/{key}/ on the command line or in `defaults`" if key in _GROUPS else ""
    inside = next(iter(known), "NAME")
    return f"{key} holds settings of its own, such as {key}.{inside}; found {value!r}{choose}"


def _strangers(config: Any, known: Mapping[str, Any]) -> Iterator[str]:
    """Find what files brought in (a user's experiment or protocol) that nothing here reads."""
    expected = dict(_walk(known))
    for key, value in _walk(config):
        parent = key.rpartition(".")[0]
        if key in expected:
            if problem := _not_a_section(key, value, expected[key]):
                yield problem
        elif not _is_open(key) and (not parent or parent in expected):
            yield f"unknown key {key!r} in a configuration file{did_you_mean(key, expected)}"


# -- datasets and solvers by name ----------------------------------------------------------------


@dataclass(frozen=True)
class _Choice:
    """The datasets or solvers a user chose.

    Attributes
    ----------
    group : str
    names : list of str
        As the user listed them.
    loads : list of str
        Overrides that load those with a file in `conf/`.
    files : dict
        Configurations of datasets that are bare files.
    """

    group: str
    names: list[str]
    loads: list[str]
    files: dict[str, dict[str, Any]]

    def filled(self, given: Mapping[str, Any], problems: list[str]) -> dict[str, Any]:
        """Return the configurations of the names that exist, with the parameters a user gave beside."""
        for name in given:
            if name not in self.names:
                problems.append(
                    f"{self.group}.{name} is given parameters, but {self.group}s=[…] does not name it"
                )
        loaded = {load.rpartition("=")[2] for load in self.loads}
        return {
            name: {**self.files.get(name, {}), **given.get(name, {})}
            for name in self.names
            if name in loaded or name in self.files
        }


def _choices(group: str, lists: Mapping[str, Any], base: list[str], problems: list[str]) -> _Choice:
    options = _options(group, base)
    folder = Path(str(lists["paths"]["data"]))
    choice = _Choice(group, _names(lists, group), [], {})
    found: list[str] = []
    if group == "dataset" and not set(choice.names) <= set(options):
        from orchestrator.datasets import libsvm_names  # it imports scikit-learn

        found = libsvm_names(folder)
    for name in choice.names:
        if name in options:
            choice.loads.append(f"+{group}@{group}.{name}={name}")
        elif name in found:
            target = "orchestrator.datasets.libsvm_file"
            choice.files[name] = {"_target_": target, "name": name, "folder": str(folder)}
        else:
            near = did_you_mean(name, [*options, *found])
            problems.append(f"unknown {group} {name!r}{near} (see: svmbench list {group}s)")
    return choice


def _names(lists: Mapping[str, Any], group: str) -> list[str]:
    value = lists[f"{group}s"]
    if not isinstance(value, list):
        value = [] if value is None else [value]
    return list(dict.fromkeys(str(name) for name in value))
