"""The declaration of a comparison: Python objects become the settings that YAML files would give."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sklearn.pipeline import Pipeline

from orchestrator.config.compose import compose_settings, data_problems
from orchestrator.config.local_definitions import LocalDefinitions
from orchestrator.config.node_files import CONFIGURATIONS, name_problem_of_node, write_nodes
from orchestrator.config.objects import NodeWriter, UnwritableError
from orchestrator.config.override_text import override_of, value_of
from orchestrator.config.schema import check_settings
from orchestrator.config.tables import label_problems, table_problems
from orchestrator.config.user_files import GROUPS
from orchestrator.config.user_modules import find_modules
from orchestrator.datasets.dataset import DatasetError
from orchestrator.datasets.formats import dataset_name, file_node, format_problem, is_path
from orchestrator.datasets.frames import has_durations
from orchestrator.datasets.in_memory import has_float_labels, label_hint_of, written_dataset
from orchestrator.datasets.memory_files import MEMORY_FOLDER
from orchestrator.study.errors import ConfigError
from orchestrator.study.settings import Settings
from orchestrator.study.text import represented

DATA = "data"
"""Name of a dataset that has none."""


@dataclass
class Declared:
    """Configurations of the datasets and solvers of a comparison.

    Attributes
    ----------
    folder : Path
        Folder of the study.
    nodes : dict of str to dict
        Configurations of objects by name, for `dataset` and `solver`.
    names : dict of str to list of str
        Names of all datasets and solvers, in order.
    sources : dict of str to dict
        Names of built-in or the user's configurations by the name that the caller gave in its place, for
        `dataset` and `solver`.
    durations : set of str
        Names of the datasets whose frame has a column of durations.
    float_labels : set of str
        Names of the datasets in memory whose labels are floats.
    problems : list of str
        One sentence for each object that cannot be written.
    writer : NodeWriter
        Writes objects as configurations.
    """

    folder: Path
    nodes: dict[str, dict[str, Any]] = field(default_factory=lambda: {"dataset": {}, "solver": {}})
    names: dict[str, list[str]] = field(default_factory=lambda: {"dataset": [], "solver": []})
    sources: dict[str, dict[str, str]] = field(default_factory=lambda: {"dataset": {}, "solver": {}})
    durations: set[str] = field(default_factory=set)
    float_labels: set[str] = field(default_factory=set)
    problems: list[str] = field(default_factory=list)
    writer: NodeWriter = field(init=False)

    def __post_init__(self) -> None:
        self.writer = NodeWriter(LocalDefinitions(self.configurations).path_of)

    @property
    def configurations(self) -> Path:
        """Folder of the written configurations and modules."""
        return self.folder / CONFIGURATIONS

    def add(self, group: str, name: str, node: Mapping[str, Any] | None = None) -> None:
        """Add a dataset or solver.

        Parameters
        ----------
        group : {"dataset", "solver"}
            Group of configurations.
        name : str
            Name of the dataset or solver.
        node : mapping, optional
            Its configuration; by default a file holds it.
        """
        if problem := name_problem_of_node(group, name, is_object=node is not None):
            self.problems.append(problem)
            return
        if name in self.names[group]:
            self.problems.append(f"{group} {name} is given twice; give each a different name")
            return
        self.names[group].append(name)
        if node is not None:
            self.nodes[group][name] = dict(node)

    def add_configured(self, group: str, name: str, source: str) -> None:
        """Add a dataset or solver that a configuration describes.

        Parameters
        ----------
        group : {"dataset", "solver"}
            Group of configurations.
        name : str
            Name that the caller gave; empty for that of the configuration.
        source : str
            Name of the configuration, or dotted path of a class.
        """
        if name in ("", source):
            self.add(group, source)
        elif problem := name_problem_of_node(group, name, is_object=True):
            self.problems.append(problem)
        else:
            self.add(group, name)
            self.sources[group][name] = source

    def add_data(self, data: Any, label: Any, groups: str | None) -> None:
        """Add the datasets of a comparison; those in memory are written to the study's folder.

        Parameters
        ----------
        data : object
            Dataset, or a mapping of names to datasets.
        label : object
            Labels, or the name of their column; None if the data hold them.
        groups : str or None
            Column that names the group of each row.
        """
        for name, each in data.items() if _is_mapping_of_data(data) else [("", data)]:
            try:
                self._add_dataset(str(name), each, label, groups)
            except DatasetError as error:
                self.problems.append(f"dataset {name or DATA}: {error}")

    def _add_dataset(self, name: str, data: Any, label: Any, groups: str | None) -> None:
        X, y = data if isinstance(data, tuple) and len(data) == 2 else (data, label)
        if isinstance(X, (str, Path)):
            self._add_named(name, str(X), y, groups)
            return
        if y is None and hasattr(X, "columns"):
            raise DatasetError(label_hint_of(X))
        if y is None:
            raise DatasetError(
                "expected (X, y), a frame and its column of labels, a path, or a name, found "
                f"{represented(X)} ({type(X).__name__})"
            )
        node = written_dataset(self.folder / MEMORY_FOLDER, name or DATA, X, y, groups)
        if has_durations(X):
            self.durations.add(name or DATA)
        if has_float_labels(X, y):
            self.float_labels.add(name or DATA)
        self.add("dataset", name or DATA, node)

    def _add_named(self, name: str, given: str, label: Any, groups: str | None) -> None:
        """Add a dataset that is a file, or one with a configuration.

        Parameters
        ----------
        name : str
            Name that the caller gave; may be empty.
        given : str
            Path, or name of a configuration.
        label : object
            Column of labels; None if the data hold them.
        groups : str or None
            Column that names the group of each row.
        """
        if not is_path(given):
            if label is not None:
                raise DatasetError(
                    f"{given} is a configured dataset, which has its labels; leave out "
                    f"label={represented(label)}"
                )
            self.add_configured("dataset", name, given)
            return
        if problem := format_problem(given):
            raise DatasetError(problem)
        name = name or dataset_name(given)
        node = file_node(str(Path(given).expanduser().absolute()), label, groups=groups)
        self.problems += table_problems({name: node}) or label_problems({name: node})
        self.add("dataset", name, node)

    def add_solvers(self, solvers: Any, prepared: bool) -> None:
        """Add the solvers of a comparison.

        Parameters
        ----------
        solvers : object
            Names, classes and estimators in a list, or estimators by name in a mapping.
        prepared : bool
            Whether pipelines get prepared features. Otherwise they prepare them.
        """
        if solvers is None or hasattr(solvers, "dtype") or hasattr(solvers, "columns"):
            found = "none" if solvers is None else f"a {type(solvers).__name__}"
            self.problems.append(
                "expected solvers as the last argument, as in compare(X, y, ['logistic', 'forest']), "
                f"found {found}"
            )
            return
        # An ensemble of scikit-learn is iterable: over its fitted members.
        is_estimator = isinstance(solvers, type) or hasattr(solvers, "fit")
        single = is_estimator or isinstance(solvers, str) or not isinstance(solvers, Iterable)
        given = (
            solvers.items()
            if isinstance(solvers, Mapping)
            else [("", each) for each in _listed(solvers, single)]
        )
        for name, each in given:
            if isinstance(each, str):
                self.add_configured("solver", str(name), each)
                continue
            estimator = each[0] if isinstance(each, tuple) and each else each
            kind = estimator if isinstance(estimator, type) else type(estimator)
            name = str(name) or kind.__name__
            try:
                node = self.writer.solver(each)
                if isinstance(estimator, Pipeline) and not prepared:
                    node["prepare"] = "none"
                self.add("solver", name, node)
            except UnwritableError as error:
                self.problems.append(f"solver {name}: {error}")

    def set_parameters(self, overrides: Sequence[str]) -> list[str]:
        """Set parameters of files and of data in memory, and return the overrides of everything else.

        Parameters
        ----------
        overrides : sequence of str
            Overrides in Hydra's grammar. `dataset.NAME.KEY=VALUE` sets a parameter of dataset NAME.

        Returns
        -------
        list of str
            Overrides of other keys, and of datasets that a configuration describes.

        Raises
        ------
        ConfigError
            If the value of a parameter cannot be read.
        """
        others = []
        for text in overrides:
            group, _, path = text.lstrip("+").partition("=")[0].partition(".")
            name, _, key = path.partition(".")
            if group == "dataset" and key and name in self.nodes["dataset"]:
                self.nodes["dataset"][name][key] = value_of(text)
            else:
                others.append(text)
        return others

    def has_ranges(self) -> bool:
        """Return whether the space of an estimator has a range."""
        spaces = (node.get("space", {}) for node in self.nodes["solver"].values())
        return any(isinstance(values, Mapping) for space in spaces for values in space.values())

    def settings(
        self, values: Mapping[str, Any], overrides: Sequence[str], config_dir: Path | None
    ) -> Settings:
        """Return the checked settings of the comparison.

        Parameters
        ----------
        values : mapping of str to object
            Values of configuration keys.
        overrides : sequence of str
            Further overrides in Hydra's grammar, which have precedence.
        config_dir : Path or None
            The user's folder of further configurations.

        Raises
        ------
        ConfigError
            If the comparison cannot be run. The error lists every problem.
        """
        if self.problems and not all(self.names.values()):
            raise ConfigError(self.problems)  # nothing else can be checked
        find_modules(config_dir)
        # All other values are set below, so that the cache of compositions has few keys.
        chosen = [override_of(key, values[key]) for key in GROUPS if key in values]
        configured = {
            group: [self.sources[group].get(name, name) for name in names if name not in self.nodes[group]]
            for group, names in self.names.items()
        }
        lists = [override_of(f"{group}s", list(dict.fromkeys(each))) for group, each in configured.items()]
        try:
            config = compose_settings([*lists, *chosen, *overrides], config_dir)
        except ConfigError as error:
            raise ConfigError([*self.problems, *error.problems]) from None
        problems = [*self.problems, *data_problems(config["dataset"], overrides, config_dir)]
        given = {text.lstrip("+").partition("=")[0] for text in overrides}
        if "metric" in given:  # the short form
            given.add("protocol.metric")
        for key, value in values.items():
            if key not in given and key not in GROUPS:
                _set(config, key, value)
        for group, names in self.names.items():
            # A dotted path of a class has a shorter name.
            composed = dict(zip(dict.fromkeys(configured[group]), config[f"{group}s"], strict=True))
            for name, source in self.sources[group].items():
                self.nodes[group][name] = config[group][composed[source]]
            found = config[group] | self.nodes[group]
            names = [name if name in self.nodes[group] else composed[name] for name in names]
            config[group] = {name: found[name] for name in names}
            config[f"{group}s"] = names
        try:
            settings = check_settings(config)
        except ConfigError as error:
            raise ConfigError([*problems, *error.problems]) from None
        if problems:
            raise ConfigError(problems)
        return settings

    def command(
        self, values: Mapping[str, Any], overrides: Sequence[str], config_dir: Path | None
    ) -> list[str]:
        """Return the command that continues the study.

        Parameters
        ----------
        values : mapping of str to object
            Values of configuration keys.
        overrides : sequence of str
            Further overrides in Hydra's grammar.
        config_dir : Path or None
            The user's folder of further configurations.
        """
        folders = [folder for folder in (config_dir, self.configurations) if folder is not None]
        given = [override_of(key, value) for key, value in values.items()]
        lists = [override_of(f"{group}s", names) for group, names in self.names.items()]
        path = (
            [override_of("hydra.searchpath", [str(folder) for folder in folders[1:]])] if folders[1:] else []
        )
        command = ["svmbench", "run", *given, *lists, *overrides, *path]
        return [*command, "--config-dir", str(folders[0])]

    def write(self) -> None:
        """Write the configurations as YAML files, by which the command line continues the study.

        Paths of data in the study's folder are relative, so that the folder can be moved.
        """
        for group, nodes in self.nodes.items():
            folder = self.configurations / group
            write_nodes(folder, {name: self._relative(node, folder) for name, node in nodes.items()})

    def _relative(self, node: Mapping[str, Any], folder: Path) -> dict[str, Any]:
        """Return a configuration whose path is relative to its file, if it leads into the study's folder.

        Parameters
        ----------
        node : mapping of str to object
            Configuration.
        folder : Path
            Folder of its file.
        """
        path = node.get("path")
        if not isinstance(path, str) or not Path(path).is_relative_to(self.folder / MEMORY_FOLDER):
            return dict(node)
        return {**node, "path": os.path.relpath(path, folder)}


def _set(config: dict[str, Any], key: str, value: Any) -> None:
    """Set a value of a composed configuration.

    Parameters
    ----------
    config : dict
        Configuration.
    key : str
        Dotted key.
    value : object
        Value.
    """
    *parents, last = key.split(".")
    for parent in parents:
        config = config[parent]
    config[last] = value


def _is_mapping_of_data(data: Any) -> bool:
    return isinstance(data, Mapping) and not hasattr(data, "columns")


def _listed(solvers: Any, single: bool) -> list[Any]:
    """Return solvers as a list; a tuple of an estimator and its space is one solver.

    Parameters
    ----------
    solvers : object
        One solver, or several.
    single : bool
        Whether it is one.
    """
    if isinstance(solvers, tuple) and len(solvers) == 2 and isinstance(solvers[1], Mapping):
        single = True
    return [solvers] if single else list(solvers)
