"""From what a user says to a configuration: Hydra composes, and what it does not know is found here.

No other module but the command line knows Hydra or omegaconf.
"""

import copy
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from hydra import compose, initialize_config_dir
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra._internal.core_plugins.file_config_source import FileConfigSource
from hydra._internal.sources_registry import SourcesRegistry
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException
from hydra.plugins.config_source import ConfigResult
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError  # type: ignore[import-untyped]

from orchestrator.config.data_paths import path_problems, with_paths
from orchestrator.config.dataset_table import table_datasets
from orchestrator.config.schema import check_settings
from orchestrator.config.yaml_files import MOST_DEPTH, file_problem
from orchestrator.datasets.libsvm_files import libsvm_names
from orchestrator.study.errors import ConfigError
from orchestrator.study.names import did_you_mean
from orchestrator.study.settings import Settings
from orchestrator.study.text import one_line, shown

_PACKAGE = Path(__file__).parents[1]

CONF_FOLDER = next(folder for folder in (_PACKAGE / "conf", _PACKAGE.parent / "conf") if folder.is_dir())
"""Inside the package when installed from a wheel, beside it in a checkout."""

_TABLE = CONF_FOLDER / "dataset" / "packages.csv"
_SEARCH_PATH = "hydra.searchpath="
GROUPS = ("dataset", "solver", "search", "protocol", "cluster", "experiment")
_OPEN = (
    *("sweep", "search", "search.space", "dataset", "solver", "cluster.options"),
    *("protocol.outer", "protocol.inner", "protocol.metric"),
)
"""Under these keys a user names parameters of classes and functions, which no schema lists."""

_LONGEST_OVERRIDE = 50_000
"""In characters: Hydra's parser takes a second for them."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
"""What Hydra takes for one key; it reads a dot, for example, as a key within a key."""


class _CheckedFiles(FileConfigSource):
    """A user's configuration files, of which none is loaded that `file_problem` finds fault with."""

    @staticmethod
    def scheme() -> str:
        return "checked"

    def load_config(self, config_path: str) -> ConfigResult:
        path = Path(self.path) / self._normalize_file_name(config_path)
        if problem := file_problem(path):
            raise ConfigError([problem])
        return super().load_config(config_path)


@contextmanager
def _hydra(config_dir: Path | None, overrides: Sequence[str] = ()) -> Iterator[list[str]]:
    """Open the configuration folders, a user's own besides ours; yield what every composition needs."""
    folders = _own_folders(config_dir, overrides)
    quoted = ",".join(_quoted(f"checked://{folder.resolve()}") for folder in folders)
    GlobalHydra.instance().clear()
    with initialize_config_dir(str(CONF_FOLDER), version_base="1.3", job_name="svmbench"):
        SourcesRegistry.instance().register(_CheckedFiles)
        yield [f"{_SEARCH_PATH}[{quoted}]"] if folders else []
    GlobalHydra.instance().clear()


def _own_folders(config_dir: Path | None, overrides: Sequence[str]) -> list[Path]:
    """Return a user's folders of configurations, in the order in which they are searched after ours."""
    if config_dir is not None and not _is_folder(config_dir):
        raise ConfigError([f"--config-dir: {config_dir} is not a folder"])
    further = [path for text in overrides if text.startswith(_SEARCH_PATH) for path in _search_path(text)]
    return [*([] if config_dir is None else [config_dir]), *further]


def _search_path(text: str) -> list[Path]:
    """Return the folders of an override of Hydra's search path."""
    try:
        value = OverridesParser.create().parse_override(text).value()
    except Exception:  # not only Hydra's own: its parser recurses, and Python limits the digits of a number
        value = None
    paths = [Path(str(item).removeprefix("file://")) for item in value] if isinstance(value, list) else []
    if not paths or not all(map(_is_folder, paths)):
        raise ConfigError([f"expected {_SEARCH_PATH}[file://DIR,…] with folders, found {shown(text)}"])
    return paths


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except ValueError:  # a null byte
        return False


def _quoted(text: str) -> str:
    """Write a text as a value in Hydra's grammar."""
    escaped = re.sub(r"(\\*)'", r"\1\1\'", text)
    return "'" + re.sub(r"(\\+)$", r"\1\1", escaped) + "'"


def find_modules(config_dir: Path | None) -> None:
    """Let Python find the modules in a user's folder."""
    if config_dir is not None and (modules := str(config_dir.resolve())) not in sys.path:
        sys.path.insert(0, modules)


def load_settings(overrides: Sequence[str], config_dir: Path | None = None) -> Settings:
    """Compose a configuration and check it: what `run` and `plan` start from.

    Parameters
    ----------
    overrides : sequence of str
        In Hydra's grammar.
    config_dir : Path or None
        A user's folder of further configurations, laid out like `conf/`, and of Python modules.

    Raises
    ------
    ConfigError
        With every problem found.
    """
    find_modules(config_dir)
    config, problems = _compose(overrides, config_dir)
    problems += data_problems(config["dataset"], overrides, config_dir)
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


def composed_yaml(overrides: Sequence[str], config_dir: Path | None = None) -> str:
    """Return the configuration that `compose_settings` composes, as YAML."""
    return str(OmegaConf.to_yaml(OmegaConf.create(compose_settings(overrides, config_dir))))


def _compose(overrides: Sequence[str], config_dir: Path | None) -> tuple[dict[str, Any], list[str]]:
    """Return what can be composed, and what is wrong with the rest."""
    problems: list[str] = []
    with _hydra(config_dir, overrides) as base:
        try:
            known = _defaults()
            said = _checked_overrides(overrides, known, base, problems)
            lists = _composed([*base, *said])
            problems += _unknown_keys(lists, known)
            broken = list(_broken_groups(lists))
            found = dict(_walk(lists))
            sections = [key for key, value in _walk(known) if isinstance(value, Mapping)]
            if broken or not all(isinstance(found.get(key, {}), Mapping) for key in sections):
                raise ConfigError([*problems, *broken])
            choices = {group: _choices(group, lists, base, problems) for group in ("dataset", "solver")}
            loads = [load for choice in choices.values() for load in choice.loads]
            config = _composed([*base, *said, *loads]) if loads else lists
            # Files of datasets and solvers are loaded last, but what an experiment says of them counts.
            config |= {group: _merged(config.get(group), lists.get(group)) for group in choices}
        except ConfigError as error:
            raise ConfigError(list(dict.fromkeys([*problems, *error.problems]))) from None
        except (HydraException, OmegaConfBaseException, YAMLError) as error:
            text = one_line(error) or _uncomposed(error.__cause__ or error)
            raise ConfigError([*problems, text]) from error
        except Exception as error:  # Hydra and YAML check little of what they are given
            raise ConfigError([*problems, _uncomposed(error)]) from error
    for group, choice in choices.items():
        config[f"{group}s"] = choice.names
        config[group] = choice.filled(config.get(group) or {}, problems)
    config["dataset"] = with_paths(config["dataset"], _own_folders(config_dir, overrides))
    return config, problems


def _merged(node: Any, over: Any) -> Any:
    """Return a node with the values of another in place of its own, key by key in mappings."""
    if not (isinstance(node, Mapping) and isinstance(over, Mapping)):
        return node if over is None else over
    return {**node, **{key: _merged(node.get(key), value) for key, value in over.items()}}


def _uncomposed(error: BaseException) -> str:
    return f"Hydra cannot compose this configuration: {type(error).__name__}: {one_line(error)}"


def _composed(overrides: list[str]) -> dict[str, Any]:
    files, values = _files_and_values(overrides)
    own = any(text.startswith(_SEARCH_PATH) for text in files)
    loaded = compose("config", overrides=files) if own else copy.deepcopy(_loaded(tuple(files)))
    ConfigLoaderImpl._apply_overrides_to_config(values, loaded)
    config = OmegaConf.to_container(loaded, resolve=True)
    if _depth(config) > MOST_DEPTH:
        raise ConfigError([f"the values of the configuration are nested more than {MOST_DEPTH} levels deep"])
    return {str(key): value for key, value in config.items()}  # type: ignore[union-attr]


def _files_and_values(overrides: Sequence[str]) -> tuple[list[str], list[Override]]:
    """Tell overrides that choose files from those whose values Hydra sets in what the files hold."""
    files: list[Override] = []
    values: list[Override] = []
    for override in OverridesParser.create().parse_overrides(list(overrides)):
        sets_value = override.package is None and override.key_or_group not in (*GROUPS, "hydra.searchpath")
        (values if sets_value else files).append(override)
    return [str(override.input_line) for override in files], values


@lru_cache(maxsize=64)
def _loaded(files: tuple[str, ...]) -> DictConfig:
    """Return the configuration of some of our own files, which Hydra takes long to load; only read."""
    return compose("config", overrides=list(files))


@cache
def _defaults() -> dict[str, Any]:
    """Return the configuration of a user who says nothing; only read."""
    return _composed([])


def _depth(node: Any) -> int:
    inner = node.values() if isinstance(node, Mapping) else node if isinstance(node, list) else ()
    return 1 + max(map(_depth, inner), default=0)


def known_names(group: str, overrides: Sequence[str] = (), config_dir: Path | None = None) -> list[str]:
    """Return the names a group offers, a user's own included."""
    with _hydra(config_dir, overrides) as base:
        names = _options(group, base)
    return sorted({*names, *table_datasets(_TABLE)}) if group == "dataset" else names


def dataset_nodes(overrides: Sequence[str] = (), config_dir: Path | None = None) -> dict[str, dict[str, Any]]:
    """Return the configuration of every dataset with a file or a row of our table, by its name.

    Each file is read by itself: Hydra takes seconds to compose some hundred of them. Only those with a list
    of `defaults` are composed.

    Raises
    ------
    ConfigError
        If a file cannot be read.
    """
    config = compose_settings(overrides, config_dir)
    files = _files_of("dataset", overrides, config_dir)
    try:
        nodes = {name: OmegaConf.load(path) for name, path in sorted(files.items())}
        composed = [name for name, node in nodes.items() if "defaults" in node]
        plain = {name: node for name, node in nodes.items() if name not in composed}
        read = OmegaConf.to_container(OmegaConf.create({**config, "dataset": plain}), resolve=True)
    except (OmegaConfBaseException, YAMLError) as error:
        raise ConfigError([one_line(error)]) from error
    found: dict[str, dict[str, Any]] = read["dataset"]  # type: ignore[call-overload, index, assignment]
    if composed:
        found |= compose_settings([*overrides, f"datasets=[{','.join(composed)}]"], config_dir)["dataset"]
    located = with_paths(found, _own_folders(config_dir, overrides))
    return dict(sorted((table_datasets(_TABLE) | located).items()))


def data_problems(
    nodes: Mapping[str, Mapping[str, Any]], overrides: Sequence[str], config_dir: Path | None
) -> list[str]:
    """Return what is wrong with the relative paths that a user's files of datasets name.

    Parameters
    ----------
    nodes : mapping of str to mapping
        Configurations by the names of their datasets.
    overrides, config_dir
        As of `load_settings`.
    """
    return [*path_problems(nodes, _own_folders(config_dir, overrides))]


def claim_nodes(overrides: Sequence[str] = (), config_dir: Path | None = None) -> dict[str, dict[str, Any]]:
    """Return what each file of a claim says, by its name, a user's own included.

    Raises
    ------
    ConfigError
        If a file cannot be read.
    """
    files = _files_of("claim", overrides, config_dir)
    try:
        nodes = {name: OmegaConf.to_container(OmegaConf.load(path)) for name, path in sorted(files.items())}
    except (OmegaConfBaseException, YAMLError) as error:
        raise ConfigError([one_line(error)]) from error
    return nodes  # type: ignore[return-value]


def _files_of(group: str, overrides: Sequence[str], config_dir: Path | None) -> dict[str, Path]:
    """Return the files of a group by their names; of one name ours counts, as when Hydra composes."""
    files: dict[str, Path] = {}
    for folder in reversed([CONF_FOLDER, *_own_folders(config_dir, overrides)]):
        files |= {path.stem: path for path in (folder / group).glob("*.yaml")}
    if problems := list(filter(None, map(file_problem, files.values()))):
        raise ConfigError(problems)
    return files


def _options(group: str, base: Sequence[str]) -> list[str]:
    loader = GlobalHydra.instance().config_loader()
    return list(loader.get_group_options(group, overrides=list(base)))


# -- overrides -----------------------------------------------------------------------------------


def _checked_overrides(
    overrides: Sequence[str], known: Mapping[str, Any], base: list[str], problems: list[str]
) -> list[str]:
    """Return the overrides as Hydra wants them; tell what is wrong with the others."""
    parser = OverridesParser.create()
    accepted: list[str] = []
    for text in overrides:
        try:
            if len(text) > _LONGEST_OVERRIDE:
                raise ValueError(f"it is longer than {_LONGEST_OVERRIDE:,} characters")
            override = parser.parse_override(text)
            override.value()
        except Exception:  # not only Hydra's own: its parser recurses, and Python limits a number's digits
            override = None
        if override is None or override.package is not None:
            problems.append(
                f"cannot read the override {shown(text, 100)}; expected key=value or key=[value,value]"
            )
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
        return f"{key} has no effect here; of Hydra's own settings, only hydra.searchpath has"
    sections = dict(_walk(known))
    if override.is_sweep_override():
        listed = isinstance(sections.get(key), list) or (_is_open(key) and key not in sections)
        write = f"write a list, {key}=[a,b]" if listed else f"write one, such as {key}=a"
        return f"{key} was given several values; {write}, or quote the value"
    if key in ("dataset", "solver"):
        names = value if isinstance(value, list) else [value]
        named = ",".join(name for name in names if isinstance(name, str) and _NAME.fullmatch(name))
        return f"unknown key {key!r}; did you mean '{key}s=[{named or 'NAME'}]'?"
    if key in GROUPS:
        options = _options(key, base)
        if str(value) in options or (key == "experiment" and value is None):
            return ""
        near = did_you_mean(str(value), options)
        return f"unknown {key} {shown(str(value))}; known: {', '.join(options)}{near}"
    if _is_open(key) and key not in known and not (override.is_delete() and key in _OPEN):
        return "" if override.is_delete() else _not_a_section(key, value, sections.get(key))
    if key not in sections:
        return f"unknown key {key!r}{did_you_mean(key, [*sections, *GROUPS])}"
    if override.is_delete():
        return f"{key!r} cannot be left out; give it another value"
    if isinstance(sections[key], list) and isinstance(value, Mapping):
        return f"{key} must be a list such as {key}=[a,b], found {shown(value)}"
    return _not_a_section(key, value, sections[key])


def _for_hydra(override: Override, text: str) -> list[str]:
    """Spell an override so that a user need not know which keys are new, nor how to replace a section."""
    key, plain = override.key_or_group, text.lstrip("+")
    if override.is_delete():
        return [text]
    if not _is_open(key) or key in GROUPS:
        # A user's file of a group may leave out what it does not change.
        return [f"++{plain}" if "." in key else plain]
    if key in _OPEN or key.rpartition(".")[0] == "search.space":  # neither lists nor mappings are merged
        return [f"++{key}=null", f"++{plain}"]
    return [f"++{plain}"]


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
    choose = f"; choose a file of conf/{key}/ on the command line or in `defaults`" if key in GROUPS else ""
    inside = next(iter(known), "NAME")
    return f"{key} holds settings of its own, such as {key}.{inside}; found {shown(value)}{choose}"


def _unknown_keys(config: Any, known: Mapping[str, Any]) -> Iterator[str]:
    """Find what files brought in (a user's experiment or protocol) that nothing here reads."""
    expected = dict(_walk(known))
    for key, value in _walk(config):
        parent = key.rpartition(".")[0]
        if key in expected:
            if problem := _not_a_section(key, value, expected[key]):
                yield problem
        elif not _is_open(key) and (not parent or parent in expected):
            yield f"unknown key {key!r} in a configuration file{did_you_mean(key, expected)}"


def _broken_groups(config: Mapping[str, Any]) -> Iterator[str]:
    """Find parameters of datasets and solvers that are none, before what is loaded takes their place."""
    for group in ("dataset", "solver"):
        given = config.get(group, {})
        if not isinstance(given, Mapping):
            yield (
                f"{group} must map names to parameters, found {shown(given)}; "
                f"choose by name with {group}s=[NAME]"
            )
            continue
        for name, node in given.items():
            if not isinstance(node, Mapping):
                yield (
                    f"{group}.{name} must hold parameters, such as {group}.{name}.PARAMETER=1, "
                    f"found {shown(node)}"
                )


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
        Configurations of datasets that are bare files, or rows of our table.
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
                    f"{self.group}.{one_line(name, 60)} is given parameters, "
                    f"but {self.group}s=[…] does not name it"
                )
        loaded = {load.rpartition("=")[2].strip("'") for load in self.loads}
        return {
            name: {**self.files.get(name, {}), **given.get(name, {})}
            for name in self.names
            if name in loaded or name in self.files
        }


def _choices(group: str, lists: Mapping[str, Any], base: list[str], problems: list[str]) -> _Choice:
    options = _options(group, base)
    folder = Path(str(lists["paths"]["data"]))
    choice = _Choice(group, _names(lists, group, problems), [], {})
    table = table_datasets(_TABLE) if group == "dataset" else {}
    found = [] if group == "solver" or set(choice.names) <= {*options, *table} else _files_in(folder)
    for name in filter(None, choice.names):
        if name in options and not _NAME.fullmatch(name):
            problems.append(
                f"the file {group}/{one_line(name, 60)}.yaml cannot be chosen: expected a name of letters, "
                "digits, '-' and '_' that begins with a letter; rename it"
            )
        elif name in options:
            choice.loads.append(f"+{group}@{group}.{name}='{name}'")
        elif name in table:
            choice.files[name] = dict(table[name])
        elif name in found:
            target = "orchestrator.datasets.libsvm_file"
            choice.files[name] = {"_target_": target, "name": name, "folder": str(folder)}
        else:
            near = did_you_mean(name, [*options, *table, *found])
            problems.append(f"unknown {group} {shown(name)}{near} (see: svmbench list {group}s)")
    return choice


def _files_in(folder: Path) -> list[str]:
    try:
        return libsvm_names(folder)
    except (OSError, ValueError):  # a null byte in its name, for example; whoever reads a file there says so
        return []


def _names(lists: Mapping[str, Any], group: str, problems: list[str]) -> list[str]:
    value = lists[f"{group}s"]
    if not isinstance(value, list):
        value = [] if value is None else [value]
    names = []
    for name in value:
        if isinstance(name, str) or type(name) is int:
            names.append(str(name))
        else:
            names.append("")
            problems.append(
                f"{group}s holds {shown(name)}; expected names, such as {group}s=[NAME], "
                "in quotes if they read as something else"
            )
    return list(dict.fromkeys(names))
