"""Composition of a configuration by Hydra, with checks of overrides and files that Hydra does not make."""

import pickle
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from hydra import initialize_config_dir
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra._internal.config_repository import CachingConfigRepository
from hydra._internal.defaults_list import create_defaults_list
from hydra._internal.sources_registry import SourcesRegistry
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import ConfigCompositionException, HydraException
from omegaconf import DictConfig, ListConfig, OmegaConf, flag_override
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError  # type: ignore[import-untyped]

from orchestrator.config.classes import class_suggestion, is_class
from orchestrator.config.narrowing import OPTIONAL_AXES, left_aside, optional_axes, report_of
from orchestrator.config.override_text import with_quotes
from orchestrator.config.tables import TABLES, file_nodes, given_split
from orchestrator.config.user_files import (
    CONF_FOLDER,
    GROUPS,
    built_in_table,
    reads_bare_file,
    say_replaced,
)
from orchestrator.config.user_source import BuiltInFiles, UserFiles
from orchestrator.config.yaml_files import MAX_DEPTH
from orchestrator.datasets.formats import TEST, TRAIN, dataset_name, is_path
from orchestrator.datasets.libsvm_files import libsvm_names
from orchestrator.study.errors import ConfigError
from orchestrator.study.targets import TARGET, did_you_mean
from orchestrator.study.text import one_line, shown

_USER = "user"
"""Name of the user's folders in Hydra's search path."""

_OPEN = (
    *("sweep", "search", "search.space", "dataset", "solver", "cluster.options"),
    *("protocol.outer", "protocol.inner", "protocol.metric", "protocol.prepare"),
)
"""Keys below which users name parameters of classes and functions, which no schema lists."""

_LISTS = ("protocol.seed", "report.sections")
"""Keys whose default is no list, but which take one."""

_LIBSVM_FILE = "orchestrator.datasets.libsvm_file"
"""Dotted path of the loader of bare LIBSVM files."""

_LONGEST_OVERRIDE = 50_000
"""Longest override, in characters. Hydra's parser takes a second for it."""

_QUOTES = """Put a text with brackets into quotes, as in "datasets=['a[1].csv']" in a shell"""
"""Advice for overrides that cannot be read."""

_SPACE = re.compile(r"search\.space\.[^.]+|solver\.[^.]+\.space(\.[^.]+)?")
"""Keys of spaces of hyper-parameters and of their axes."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
"""Names that Hydra reads as one key. It reads a dot, for example, as a key within a key."""


class _Load(NamedTuple):
    """File of a dataset or solver.

    Attributes
    ----------
    group : {"dataset", "solver"}
        Group of the file.
    name : str
        Name of the file without its suffix.
    """

    group: str
    name: str

    @property
    def override(self) -> str:
        """Override that loads the file."""
        return f"+{self.group}@{self.group}.{self.name}='{self.name}'"


_LoadFiles = Callable[[tuple[str, ...]], bytes]
"""Function that returns the pickled configuration of the files that overrides choose."""


@contextmanager
def _hydra(folders: Sequence[Path]) -> Iterator[None]:
    """Open the user's folders of configurations, which are searched first, and the built-in one.

    Parameters
    ----------
    folders : sequence of Path
        The user's folders, in the order of their precedence.
    """
    GlobalHydra.instance().clear()
    with initialize_config_dir(str(CONF_FOLDER), version_base="1.3", job_name="svmbench"):
        for source in (UserFiles, BuiltInFiles):
            SourcesRegistry.instance().register(source)
        loader = _loader()
        for item in loader.config_search_path.get_path():
            if item.provider == "main":
                item.path = f"{BuiltInFiles.scheme()}://{CONF_FOLDER}"
        for folder in folders:
            loader.config_search_path.prepend(_USER, f"{UserFiles.scheme()}://{folder.resolve()}", "main")
        loader.repository.initialize_sources(loader.config_search_path)
        yield
    GlobalHydra.instance().clear()


def _loader() -> ConfigLoaderImpl:
    loader = GlobalHydra.instance().config_loader()
    assert isinstance(loader, ConfigLoaderImpl)
    return loader


def compose_with_hydra(overrides: Sequence[str], folders: Sequence[Path]) -> tuple[dict[str, Any], list[str]]:
    """Return the composed configuration without its invalid parts, and their problems.

    Parameters
    ----------
    overrides : sequence of str
        Overrides in Hydra's grammar.
    folders : sequence of Path
        The user's folders of configurations, in the order of their precedence.

    Returns
    -------
    config : dict
        Plain containers with the keys of `conf/config.yaml`. `dataset` and `solver` map each chosen name to
        its configuration.
    problems : list of str
        One message for each invalid part.

    Raises
    ------
    ConfigError
        If no configuration can be composed without the invalid parts.
    """
    problems: list[str] = []
    known = _defaults()
    load_files = lru_cache(_load_files) if folders else _load_built_in
    with _hydra(folders):
        try:
            said = _checked_overrides(overrides, known, problems)
            typed = {_parsed(text).key_or_group for text in said}
            deleted = [text for text in said if _deletes_from_file(text)]  # not loaded yet
            lists = _composed([text for text in said if text not in deleted], load_files)
            problems += _unknown_keys(lists, known)
            broken = [*_lost_sections(lists, known), *_broken_groups(lists)]
            found = dict(_walk(lists))
            sections = [key for key, value in _walk(known) if isinstance(value, Mapping)]
            if broken or not all(isinstance(found.get(key, {}), Mapping) for key in sections):
                raise ConfigError([*problems, *broken])
            choices = {group: _choices(group, lists, problems) for group in ("dataset", "solver")}
            loads = [load for choice in choices.values() for load in choice.loads]
            config = _composed(said, load_files, loads) if loads or deleted else lists
            for text in deleted:
                _delete(lists, _parsed(text).key_or_group.split("."))
            # Files of datasets and solvers are loaded last, but values of an experiment have precedence.
            config |= {group: _merged(config.get(group), lists.get(group)) for group in choices}
        except ConfigError as error:
            raise ConfigError(list(dict.fromkeys([*problems, *error.problems]))) from None
        except (HydraException, OmegaConfBaseException, YAMLError) as error:
            text = one_line(error) or _uncomposed(error.__cause__ or error)
            raise ConfigError([*problems, text]) from error
        except Exception as error:  # Hydra and YAML raise many kinds of errors for invalid input
            raise ConfigError([*problems, _uncomposed(error)]) from error
    for group, choice in choices.items():
        config[f"{group}s"] = choice.names
        given = config.get(group) or {}
        absent = left_aside(group, typed, given, choice.names)
        kept = {name: node for name, node in given.items() if name not in absent}
        config[group] = choice.filled(kept, problems)
    config[OPTIONAL_AXES] = optional_axes(config["sweep"], typed)
    config["report"] = report_of(config["report"], typed, config["solvers"])
    config[TABLES] = choices["dataset"].by_path
    return config, problems


def _merged(node: Any, over: Any) -> Any:
    """Return a node updated by another one, key by key in mappings.

    Parameters
    ----------
    node : object
        Node of a configuration.
    over : object
        Node whose values have precedence. None has no effect.
    """
    if not (isinstance(node, Mapping) and isinstance(over, Mapping)):
        return node if over is None else over
    return {**node, **{key: _merged(node.get(key), value) for key, value in over.items()}}


def _deletes_from_file(text: str) -> bool:
    """Return whether an override deletes a key of a dataset or solver, whose file may have this key.

    Parameters
    ----------
    text : str
        Override in Hydra's grammar.
    """
    override = _parsed(text)
    return override.is_delete() and override.key_or_group.startswith(("dataset.", "solver."))


def _delete(node: Any, parts: Sequence[str]) -> None:
    """Delete a key from nested mappings, if it is there.

    Parameters
    ----------
    node : object
        Node of a configuration, which is changed.
    parts : sequence of str
        Parts of the key.
    """
    for part in parts[:-1]:
        node = node.get(part) if isinstance(node, Mapping) else None
    if isinstance(node, dict):
        node.pop(parts[-1], None)


def _uncomposed(error: BaseException) -> str:
    return f"Hydra cannot compose this configuration: {type(error).__name__}: {one_line(error)}"


def _composed(
    overrides: Sequence[str], load_files: _LoadFiles, loads: Sequence[_Load] = ()
) -> dict[str, Any]:
    """Return the configuration of the chosen files, updated by the values of overrides.

    Parameters
    ----------
    overrides : sequence of str
        Overrides in Hydra's grammar.
    load_files : callable
        `_load_files` or a function that caches it.
    loads : sequence of _Load
        Files of datasets and solvers, which are loaded after all other files.

    Raises
    ------
    ConfigError
        If the values are nested too deeply.
    """
    files, values = _files_and_values(overrides)
    loaded = pickle.loads(load_files(tuple(files)))
    if not _has_merged(loaded, loads):
        loaded = pickle.loads(load_files((*files, *(each.override for each in loads))))
    ConfigLoaderImpl._apply_overrides_to_config(values, loaded)
    config = OmegaConf.to_container(loaded, resolve=True)
    if _depth(config) > MAX_DEPTH:
        raise ConfigError(
            [f"the configuration's values are nested more than {MAX_DEPTH} levels deep; use fewer levels"]
        )
    return {str(key): value for key, value in config.items()}  # type: ignore[union-attr]


def _has_merged(config: DictConfig, loads: Sequence[_Load]) -> bool:
    """Merge files into a configuration, and return whether Hydra would merge just these.

    Parameters
    ----------
    config : DictConfig
        Configuration that is changed.
    loads : sequence of _Load
        Files of datasets and solvers.

    Returns
    -------
    bool
        False if a file has a list of `defaults` or a line `# @package`, or cannot be merged. Then the
        configuration must not be used.
    """
    contents: dict[str, dict[str, Any]] = {}
    try:
        for load in loads:
            found = _loader().repository.load_config(f"{load.group}/{load.name}")
            if found is None or found.defaults_list or found.header["package"] is not None:
                return False
            contents.setdefault(load.group, {})[load.name] = found.config
        _merge(config, OmegaConf.create(contents))
    except OmegaConfBaseException:  # Hydra names the file
        return False
    return True


def _merge(config: DictConfig, content: DictConfig) -> None:
    """Update a configuration by the content of a file.

    A list and a mapping replace each other, such as a list of values of a hyper-parameter and a range.
    OmegaConf cannot merge them.

    Parameters
    ----------
    config : DictConfig
        Configuration that is changed.
    content : DictConfig
        Values that have precedence.

    Raises
    ------
    OmegaConfBaseException
        If OmegaConf cannot merge other values.
    """
    with flag_override(config, ["struct", "no_deepcopy_set_nodes"], [False, True]):
        _clear_replaced(config, content)
        config.merge_with(content)


def _clear_replaced(config: Any, content: Any) -> None:
    """Set lists to None in whose place another configuration has a mapping, and the reverse.

    Parameters
    ----------
    config : DictConfig
        Configuration that is changed. The order of its keys stays, because it decides ties of a search.
    content : DictConfig
        The other configuration.
    """
    if not (_has_keys(config) and _has_keys(content)):
        return
    for key in content:
        node, new = (each._get_node(key, validate_access=False) for each in (config, content))
        if {type(node), type(new)} == {DictConfig, ListConfig}:
            config[key] = None
        else:
            _clear_replaced(node, new)


def _has_keys(node: Any) -> bool:
    return isinstance(node, DictConfig) and not (node._is_none() or node._is_interpolation())


def _files_and_values(overrides: Sequence[str]) -> tuple[list[str], list[Override]]:
    """Separate overrides that choose files from those that set values in the loaded files.

    Parameters
    ----------
    overrides : sequence of str
        Overrides in Hydra's grammar.
    """
    files: list[Override] = []
    values: list[Override] = []
    for override in map(_parsed, overrides):
        sets_value = override.package is None and override.key_or_group not in GROUPS
        (values if sets_value else files).append(override)
    return [str(override.input_line) for override in files], values


@lru_cache(maxsize=1024)
def _parsed(text: str) -> Override:
    """Return an override as Hydra's parser reads it. It is cached and must not be changed.

    Parameters
    ----------
    text : str
        Override in Hydra's grammar.

    Raises
    ------
    HydraException
        If the text is no override.
    """
    return OverridesParser.create().parse_override(text)


def _load_files(files: tuple[str, ...]) -> bytes:
    """Return the configuration of the chosen files, pickled: a copy is eight times as fast as `deepcopy`.

    Hydra's own settings, which `hydra.compose` computes and removes, take most of its time. So this function
    does the rest of it.

    Parameters
    ----------
    files : tuple of str
        Overrides that choose files.

    Raises
    ------
    HydraException
        If Hydra cannot compose the files.
    """
    try:
        repository = CachingConfigRepository(_loader().repository)
        defaults = create_defaults_list(
            repo=repository,
            config_name="config",
            overrides_list=[_parsed(text) for text in files],
            prepend_hydra=False,
            skip_missing=False,
        )
        config = OmegaConf.create()
        for each in defaults.defaults:
            loaded = _loader()._compose_config_from_defaults_list(defaults=[each], repo=repository)
            with _naming(each.config_path):
                _merge(config, loaded)
        config.pop("hydra", None)
        OmegaConf.set_struct(config, True)
        ConfigLoaderImpl._apply_overrides_to_config(defaults.config_overrides, config)
    except OmegaConfBaseException as error:
        raise ConfigCompositionException from error
    return pickle.dumps(config)


@contextmanager
def _naming(path: str | None) -> Iterator[None]:
    """Raise errors of OmegaConf in a block with the name of a file, as Hydra does.

    Parameters
    ----------
    path : str or None
        Path of the file in the search path.

    Raises
    ------
    ConfigCompositionException
        If OmegaConf raises an error.
    """
    try:
        yield
    except OmegaConfBaseException as error:
        raise ConfigCompositionException(f"In {path!r}: {one_line(error)}") from error


_load_built_in = lru_cache(maxsize=128)(_load_files)
"""Cached `_load_files` for use without user files, as Hydra is slow."""


@cache
def _defaults() -> dict[str, Any]:
    """Return the configuration without overrides and user files. It is cached and must not be changed."""
    with _hydra([]):
        return _composed([], _load_built_in)


def _depth(node: Any) -> int:
    inner = node.values() if isinstance(node, Mapping) else node if isinstance(node, list) else ()
    return 1 + max(map(_depth, inner), default=0)


def _options(group: str) -> list[str]:
    return list(_loader().repository.get_group_options(group))


# -- overrides -----------------------------------------------------------------------------------


def _checked_overrides(overrides: Sequence[str], known: Mapping[str, Any], problems: list[str]) -> list[str]:
    """Return the valid overrides in the form that Hydra accepts.

    Parameters
    ----------
    overrides : sequence of str
        Overrides as typed.
    known : mapping
        Default configuration, which has all known keys.
    problems : list of str
        One message is appended for each override that is not valid.
    """
    accepted: list[str] = []
    for typed in overrides:
        text = with_quotes(typed)
        try:
            if len(text) > _LONGEST_OVERRIDE:
                raise ValueError(f"it is longer than {_LONGEST_OVERRIDE:,} characters")
            override = _parsed(text)
            override.value()
        except Exception:  # any error: the parser recurses, and Python limits the digits of a number
            override = None
        if override is None or override.package is not None:
            expected = "expected key=value or key=[value,value]"
            if any(mark in typed.partition("=")[2][1:] for mark in "[{("):
                expected += f". {_QUOTES}"
            problems.append(f"cannot read the override {shown(typed, 100)}; {expected}")
            continue
        if override.key_or_group == "hydra.searchpath":
            continue  # these folders are open already
        if problem := _problem_of(override, known):
            problems.append(problem)
        else:
            accepted += _for_hydra(override, text)
    return accepted


def _problem_of(override: Override, known: Mapping[str, Any]) -> str:
    key, value = override.key_or_group, override.value()
    if key.startswith("hydra."):
        return f"{key} has no effect; the only setting of Hydra that has one is hydra.searchpath"
    sections = dict(_walk(known))
    if override.is_sweep_override():
        listed = isinstance(sections.get(key), list) or (_is_open(key) and key not in sections)
        typed = str(override.input_line).partition("=")[2]
        write = f"write one, such as {key}={typed.partition(',')[0]}"
        if listed or key in _LISTS:
            write = f"write a list, {key}=[{typed}]"
        return f"{key} was given several values; {write}, or quote the value"
    if key in ("dataset", "solver"):
        names = value if isinstance(value, list) else [value]
        named = ",".join(name for name in names if isinstance(name, str) and _NAME.fullmatch(name))
        return f"unknown key {key!r}; did you mean '{key}s=[{named or 'NAME'}]'?"
    if key in GROUPS:
        options = _options(key)
        if str(value) in options or (key == "experiment" and value is None):
            return ""
        near = did_you_mean(str(value), options)
        named = shown(value if value is None or isinstance(value, bool) else str(value))
        return f"unknown {key} {named}{near}{' ' if near else '; '}known: {', '.join(options)}"
    if _is_open(key) and key not in known and not (override.is_delete() and key in _OPEN):
        return "" if override.is_delete() else _not_a_section(key, value, sections.get(key))
    if key not in sections:
        whole = [each for each in sections if each.rpartition(".")[2] == key]
        whole += ["study"] if key == "name" else []
        near = f"; did you mean {whole[0]!r}?" if whole else did_you_mean(key, [*sections, *GROUPS])
        return f"unknown key {key!r}{near}"
    if override.is_delete():
        return f"{key!r} cannot be left out; give it another value"
    if isinstance(sections[key], list) and isinstance(value, Mapping):
        return f"{key} must be a list such as {key}=[a,b], found {shown(value)}"
    return _not_a_section(key, value, sections[key])


def _for_hydra(override: Override, text: str) -> list[str]:
    """Return an override in Hydra's grammar for new keys and for values that replace a section.

    So users need not know which keys are new, and need not remove a section before they replace it.

    Parameters
    ----------
    override : Override
        Override as Hydra's parser returns it.
    text : str
        The override as typed.
    """
    key, plain = override.key_or_group, text.lstrip("+")
    if override.is_delete():
        return [text]
    if not _is_open(key) or key in GROUPS:
        # A user's file of a group may omit keys that it does not change.
        return [f"++{plain}" if "." in key else plain]
    if key in _OPEN or _SPACE.fullmatch(key):  # neither lists nor mappings are merged
        return [f"++{key}=null", f"++{plain}"]
    return [f"++{plain}"]


def _is_open(key: str) -> bool:
    return any(key == prefix or key.startswith(f"{prefix}.") for prefix in _OPEN)


def _walk(node: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the dotted key and the value of every node below a node.

    Parameters
    ----------
    node : object
        Node of a configuration. Only mappings have nodes below them.
    prefix : str
        Start of the keys. Default: none.
    """
    if isinstance(node, Mapping):
        for key, value in node.items():
            yield f"{prefix}{key}", value
            yield from _walk(value, f"{prefix}{key}.")


def _not_a_section(key: str, value: Any, known: Any) -> str:
    if not isinstance(known, Mapping) or isinstance(value, Mapping):
        return ""
    choose = f"; choose a file of conf/{key}/ on the command line or in `defaults`" if key in GROUPS else ""
    inside = next(iter(known), "NAME")
    return f"{key} holds settings, such as {key}.{inside}, found {shown(value)}{choose}"


def _unknown_keys(config: Any, known: Mapping[str, Any]) -> Iterator[str]:
    """Yield a message for each key from a file, such as a user's experiment, that is not known.

    Parameters
    ----------
    config : object
        Composed configuration.
    known : mapping
        Default configuration, which has all known keys.
    """
    expected = dict(_walk(known))
    for key, value in _walk(config):
        parent = key.rpartition(".")[0]
        if key in expected:
            if problem := _not_a_section(key, value, expected[key]):
                yield problem
        elif key == "experiment":
            yield "an experiment's file lacks the first line `# @package _global_`; add it"
        elif not _is_open(key) and (not parent or parent in expected):
            yield f"unknown key {key!r} in a configuration file{did_you_mean(key, expected)}"


def _lost_sections(config: Mapping[str, Any], known: Mapping[str, Any]) -> Iterator[str]:
    """Yield a message for each section that the line `# @package` of a file has moved.

    Parameters
    ----------
    config : mapping
        Composed configuration.
    known : mapping
        Default configuration, which has all known keys.
    """
    for key in known:
        if key not in config:
            yield (
                f"the file chosen for {key} leaves the configuration without the key {key!r}; remove its "
                f"line `# @package …`, or write its settings below `{key}:`"
            )


def _broken_groups(config: Mapping[str, Any]) -> Iterator[str]:
    """Report dataset and solver overrides that are not mappings, before files replace them.

    Parameters
    ----------
    config : mapping
        Composed configuration.

    Yields
    ------
    str
        One message for each problem.
    """
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
    """The chosen datasets or solvers.

    Attributes
    ----------
    group : {"dataset", "solver"}
        Group of the configurations.
    names : list of str
        Chosen names, as typed.
    loads : list of _Load
        Configuration files of those that have one.
    files : dict
        Configurations of datasets that are bare files or rows of the built-in table, and of datasets and
        solvers that are given by a path.
    by_path : list of str
        Names of those that are given by a path.
    """

    group: str
    names: list[str]
    loads: list[_Load]
    files: dict[str, dict[str, Any]]
    by_path: list[str]

    def filled(self, given: Mapping[str, Any], problems: list[str]) -> dict[str, Any]:
        """Return the configurations of the chosen names that exist, updated by the given parameters.

        Parameters
        ----------
        given : mapping of str to mapping
            Parameters by name, from overrides and the loaded files.
        problems : list of str
            One message is appended for each name with parameters that was not chosen.
        """
        for name in given:
            if name not in self.names:
                problems.append(
                    f"{self.group}.{one_line(name, 60)} is given parameters, "
                    f"but {self.group}s=[…] does not name it"
                )
        loaded = {load.name for load in self.loads}
        return {
            name: {**self.files.get(name, {}), **given.get(name, {})}
            for name in self.names
            if name in loaded or name in self.files
        }


def _choices(group: str, lists: Mapping[str, Any], problems: list[str]) -> _Choice:
    options = _options(group)
    folder = Path(str(lists["paths"]["data"]))
    names = _names(lists, group, problems)
    if group == "dataset" and (split := _of_split(lists)):
        names.append(split)
    given = _given_by_path(group, lists, [name for name in names if name not in options], problems)
    choice = _Choice(group, _called(group, names, given, problems), [], {}, [])
    paths = {name for name in names if is_path(name) or name == _of_split(lists)}
    refused = paths - {*given, *options} if group == "dataset" else set()
    for name, node in given.values():
        choice.files[name] = node
        choice.by_path.append(name)
    table = built_in_table() if group == "dataset" else {}
    found = files_in(folder) if group == "dataset" else []
    undescribed = _undescribed_files(found)
    for name in filter(None, choice.names):
        if name in choice.files or name in refused:
            continue
        if name in options and not _NAME.fullmatch(name):
            problems.append(
                f"the file {group}/{one_line(name, 60)}.yaml cannot be chosen: expected a name of letters, "
                "digits, '-' and '_' that begins with a letter; rename it"
            )
        elif name in options and name not in undescribed:
            choice.loads.append(_Load(group, name))
        elif name in table and name not in undescribed:
            choice.files[name] = dict(table[name])
        elif name in found:
            choice.files[name] = bare_file(name, folder)
            if name in undescribed and name in (*options, *table):
                say_replaced(f"{name}.libsvm in {folder}", f"dataset {name}")
        else:
            near = did_you_mean(name, [*options, *table, *found])
            if group == "solver":
                near = class_suggestion(name, near)
            problems.append(f"unknown {group} {shown(name)}{near} (see: svmbench list {group}s)")
    return choice


_Given = dict[str, tuple[str, dict[str, Any]]]
"""Name and configuration of each dataset or solver that is given by a path, by this path as typed."""


def _given_by_path(group: str, lists: Mapping[str, Any], names: Sequence[str], problems: list[str]) -> _Given:
    """Return the datasets that are files, or the solvers that are dotted paths of classes.

    Parameters
    ----------
    group : {"dataset", "solver"}
        Group of the configurations.
    lists : mapping
        Composed configuration.
    names : sequence of str
        Chosen names without a configuration file of the user or of the program.
    problems : list of str
        One message is appended for each path that cannot be used.
    """
    if group == "solver":
        return {name: (name.rpartition(".")[2], {TARGET: name}) for name in names if is_class(name)}
    paths = [name for name in names if is_path(name) and name != _of_split(lists)]
    files = file_nodes(lists, paths, problems)
    split = given_split(lists, problems)
    return {path: (dataset_name(path), node) for path, node in files.items()} | {
        _of_split(lists): pair for pair in split.items()
    }


def _of_split(lists: Mapping[str, Any]) -> str:
    """Return the text that stands for the dataset of `train=FILE test=FILE`; empty without these keys.

    Parameters
    ----------
    lists : mapping
        Composed configuration.
    """
    files = [f"{key}={lists[key]}" for key in (TRAIN, TEST) if lists[key] is not None]
    return " ".join(files)


def _called(group: str, names: Sequence[str], given: _Given, problems: list[str]) -> list[str]:
    """Return the names of the chosen datasets or solvers, with a message for each two that share one.

    Parameters
    ----------
    group : {"dataset", "solver"}
        Group of the configurations.
    names : sequence of str
        Chosen names and paths, as typed.
    given : dict
        Datasets or solvers that are given by a path.
    problems : list of str
        One message is appended for each name that two of them have.
    """
    typed: dict[str, str] = {}
    for each in names:
        name = given[each][0] if each in given else each
        if name in typed:
            remedy = "rename one of the files" if group == "dataset" else f"give one a file in {group}/"
            problems.append(f"{group}s: {typed[name]} and {each} are both called {name!r}; {remedy}")
        else:
            typed[name] = each
    return list(typed)


def bare_file(name: str, folder: Path) -> dict[str, Any]:
    """Return the configuration for a LIBSVM file that no configuration file describes.

    Parameters
    ----------
    name : str
        Name of the file, without its suffix.
    folder : Path
        Folder of the file.
    """
    return {"_target_": _LIBSVM_FILE, "name": name, "folder": str(folder)}


def undescribed_files(names: Sequence[str], folders: Sequence[Path]) -> set[str]:
    """Return the LIBSVM files that neither a user's configuration nor a built-in one describes.

    Parameters
    ----------
    names : sequence of str
        Names of LIBSVM files.
    folders : sequence of Path
        The user's folders of configurations.
    """
    with _hydra(folders):
        return _undescribed_files(names)


def _undescribed_files(found: Sequence[str]) -> set[str]:
    """Return the bare files that neither a user's configuration nor a built-in one describes.

    Parameters
    ----------
    found : sequence of str
        Names of bare files.
    """
    users = [source for source in _loader().get_sources() if source.provider == _USER]
    described = {name for name in found for source in users if source.is_config(f"dataset/{name}")}
    return {name for name in found if not reads_bare_file(name)} - described


def files_in(folder: Path) -> list[str]:
    """Return the names of the LIBSVM files in a folder.

    Parameters
    ----------
    folder : Path
        Data folder. One that cannot be read has no files.
    """
    try:
        return libsvm_names(folder)
    except (OSError, ValueError):  # for example a null byte in the name; reported when a file is read
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
                "in quotes if they read as numbers or other values"
            )
    if repeated := [name for name, number in Counter(names).items() if name and number > 1]:
        warnings.warn(f"{group}s names {', '.join(repeated)} more than once; each counts once", stacklevel=2)
    return list(dict.fromkeys(names))
