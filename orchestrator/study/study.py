"""Data types of a study: frozen, hashable, and without side effects.

A study is datasets × arms × search × protocol. The key of a trial contains everything that can change its
numbers, and nothing else, because a resumed run skips the trials whose keys are stored.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any

from orchestrator.study.preparation import AUTO, SCALINGS, Preparation
from orchestrator.study.targets import targets_in
from orchestrator.study.values import ParamValue, canonical_json, cell, stored_as_numbers

PATH_PARAM = "C"
"""The hyper-parameter along which a path of trainings is warm-started, in ascending order."""

PREPARE = "prepare"
"""Key of the preparation in the configuration of a protocol, a solver or a sweep."""

SELECTED, CANDIDATES = "selected", "candidates"
"""Name of the search that uses the candidates selected by another study, and of its option with these
candidates by dataset and arm."""

MOST_OFTEN, MEDIAN, SELECTION_SPLITS = "most_often", "median", "splits"
"""Rules by which one candidate follows from the selections of several outer splits, and the name of the
option with the number of these splits, which the rule of the median records."""

BY_DATASET = "by_dataset"
"""Name of the option of the grid search with the hyper-parameters that are fixed on single datasets."""

SAMPLE, STRATA, REFITS = "sample", "strata", "refits"
"""Name of the search that measures a sample of another study's trainings, and of its options with the drawn
trainings and with the candidates of the refits, both by dataset."""


EVERY = "every"
"""Name of the search that trains every candidate on each outer split and selects none."""


@dataclass(frozen=True, eq=False)
class Candidate:
    """One point of the hyper-parameter space.

    Candidates are equal if their canonical texts are equal. Comparing values would not do: 1, 1.0 and true
    are equal in Python but different values for a classifier, and lists have no hash.

    Attributes
    ----------
    params : tuple of (str, value)
        Names and values of the hyper-parameters, sorted by name.
    """

    params: tuple[tuple[str, ParamValue], ...]

    @classmethod
    def of(cls, params: Mapping[str, ParamValue]) -> "Candidate":
        """Build a candidate from a mapping.

        Parameters
        ----------
        params : mapping of str to value
            Hyper-parameters by name, in any order.
        """
        return cls(tuple(sorted(params.items())))

    @cached_property
    def text(self) -> str:
        """Canonical text of the parameters."""
        return canonical_json(dict(self.params))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Candidate) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __reduce__(self) -> tuple[Any, ...]:
        return Candidate, (self.params,)  # the text is not sent, because the receiver can compute it

    def as_dict(self) -> dict[str, ParamValue]:
        """Return the parameters as keyword arguments of an estimator, copied where they are mutable."""
        return {
            name: value if isinstance(value, (int, float, str)) else deepcopy(value)
            for name, value in self.params
        }

    def value(self, name: str, default: ParamValue = None) -> ParamValue:
        """Return the value of a parameter.

        Parameters
        ----------
        name : str
            Name of the parameter.
        default : value
            Returned if the candidate lacks the parameter. Default None.
        """
        for known, value in self.params:
            if known == name:
                return value
        return default

    @cached_property
    def off_path(self) -> "Candidate":
        """The candidate without C: the part that all trainings of a path share."""
        return Candidate(tuple(pair for pair in self.params if pair[0] != PATH_PARAM))

    def __str__(self) -> str:
        return ", ".join(f"{name}={cell(value)}" for name, value in self.params)


@dataclass(frozen=True)
class DatasetSpec:
    """Name of a dataset and how to load it.

    Attributes
    ----------
    name : str
        Name of the dataset.
    target : str
        Dotted path of a callable that returns `(X, y)`.
    params : mapping
        Keyword arguments of the callable. Default: none.
    family : str
        Name of its family; empty by default. Datasets of one family come from one source, so their results
        are not independent.
    """

    name: str
    target: str
    params: Mapping[str, Any] = field(default_factory=dict)
    family: str = ""


@dataclass(frozen=True)
class Arm:
    """A solver with its fixed parameters and its sweep values.

    Attributes
    ----------
    name : str
        Name of the arm, which is the column `solver` of its trials.
    target : str
        Dotted path of a scikit-learn classifier class, or of a function that returns a classifier.
    params : mapping
        Parameters of every training, including sweep values: arguments of the target, and those of nested
        estimators as `step__param`.
    space : mapping of str to tuple or mapping
        Hyper-parameters of the inner search, in order of precedence for ties. Each has a list of values, or a
        range such as `{low: 1, high: 100, log: true}`.
    identity : str
        Hashes of the sources of its target and of the targets in its parameters, or the versions of their
        packages.
    solver : str
        Name of the configured solver, without sweep values.
    sweep : mapping
        Sweep values of the arm. Values that are not parameters belong to the search.
    warm_starts : bool
        Whether each training of a path starts from the solution of the one before. Default False.
    space_identities : mapping of str to str
        Identities of targets in the space that `identity` does not contain. A trial depends on those that its
        candidate names.
    prepare : str
        Preparation that the solver or the sweep asks for: a name, or a transformer as JSON. Empty (default)
        for the preparation of the protocol.
    """

    name: str
    target: str
    params: Mapping[str, Any]
    space: Mapping[str, tuple[ParamValue, ...] | Mapping[str, Any]]
    identity: str = ""
    solver: str = ""
    sweep: Mapping[str, ParamValue] = field(default_factory=dict)
    warm_starts: bool = False
    space_identities: Mapping[str, str] = field(default_factory=dict)
    prepare: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the arm as provenance records it, without `prepare` if it is empty."""
        attributes = asdict(self)
        return attributes if self.prepare else {key: attributes[key] for key in attributes if key != PREPARE}

    @classmethod
    def from_dict(cls, recorded: Mapping[str, Any]) -> "Arm":
        """Rebuild an arm from its recorded attributes.

        Parameters
        ----------
        recorded : mapping
            Attributes as `to_dict` and JSON returned them.

        Raises
        ------
        TypeError
            If an attribute is missing, or this version does not know one.
        """
        space = {
            name: values if isinstance(values, Mapping) else tuple(values)
            for name, values in recorded.get("space", {}).items()
        }
        return cls(**{**recorded, "space": space})

    @cached_property
    def targets(self) -> tuple[str, ...]:
        """Dotted paths of the target and of all targets in the parameters and the space, without repeats."""
        return tuple(dict.fromkeys([self.target, *targets_in([self.params, self.space])]))

    @cached_property
    def of_search(self) -> dict[str, ParamValue]:
        """Sweep values that are not parameters of trainings: the resolution of the search."""
        return {
            name: value for name, value in self.sweep.items() if name not in self.params and name != PREPARE
        }

    @cached_property
    def _numeric_axes(self) -> frozenset[str]:
        return frozenset(name for name, values in self.space.items() if stored_as_numbers(values))

    def param_columns(self, candidate: Candidate) -> dict[str, float | str]:
        """Return the columns `param_<name>` of the rows of a candidate.

        All values of a hyper-parameter in the space decide the type of its column. So the type is the same in
        every batch and in every part of the store.

        Parameters
        ----------
        candidate : Candidate
            A point of the arm's space.
        """
        return {
            f"param_{name}": float(value) if name in self._numeric_axes else cell(value)
            for name, value in candidate.params
        }


@dataclass(frozen=True)
class Metric:
    """A custom metric, which is not a scorer of scikit-learn.

    Attributes
    ----------
    name : str
        Name in the report and in its column `score_<name>`.
    definition : str
        Configured value: the dotted path of a callable, or a mapping with `_target_` as JSON.
    identity : str
        Hash of its sources, or the version of its package.
    """

    name: str
    definition: str
    identity: str = ""


@dataclass(frozen=True)
class Protocol:
    """Protocol that all trials of a study share: splits, seed, preparation, metric, profile and limits.

    Attributes
    ----------
    outer, inner : int or mapping
        How rows are split: a number of stratified, shuffled folds (at least 2, default 5), or a splitter with
        the interface of scikit-learn's, as the dotted path `_target_` of its class with arguments. `inner` is
        None for a search without inner splits.
    seed : int or tuple of int
        Root of every split and of every solver's random state. Default 0. With several seeds, the splits are
        repeated for each.
    scaling : {"train", "dataset", "none"}
        Whether features are scaled to [0, 1] by the training rows of each split (default), by the whole
        dataset (as in Strack (2013)), or not at all.
    metric : str
        Name of the metric that selects candidates: a scorer of scikit-learn or one of `custom_metrics`.
    also : tuple of str
        Names of further metrics that are recorded.
    profile : {"throughput", "timing"}
        Whether trainings share work (default), or each training runs by itself and without warm start, so
        that times are comparable.
    max_seconds : float or None
        Time limit of one training, in seconds. None (default) means no limit.
    custom_metrics : tuple of Metric
        Custom metrics among `metric` and `also`.
    prepare : Preparation or None
        Preparation of the features, if `scaling` cannot express it. None by default. The preparation `AUTO`
        is chosen for each dataset; see `for_preparation`.
    """

    outer: int | Mapping[str, Any] = 5
    inner: int | Mapping[str, Any] | None = 5
    seed: int | tuple[int, ...] = 0
    scaling: str = "train"
    metric: str = "accuracy"
    also: tuple[str, ...] = ()
    profile: str = "throughput"
    max_seconds: float | None = None
    custom_metrics: tuple[Metric, ...] = ()
    prepare: Preparation | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the protocol as a dictionary for provenance, and for the keys of older versions.

        Custom metrics are recorded as `own_metrics`, and omitted if there are none. A preparation is omitted
        if `scaling` expresses it. It is also omitted if it is chosen for each dataset: every pair of dataset
        and arm then records its own preparation. These rules keep the keys of older studies valid.
        """
        attributes = asdict(self)
        del attributes[PREPARE]
        if custom := attributes.pop("custom_metrics"):
            attributes["own_metrics"] = custom
        if self.prepare is not None and self.prepare.name != AUTO:
            attributes[PREPARE] = self.prepare.to_dict()
        return attributes

    def of_trials(self) -> dict[str, Any]:
        """Return what the keys of all trials contain; an attribute that is not set is omitted.

        Numbers of folds and splitters are left out, because the hash of the splits says more. Further metrics
        are left out, because inner trials do not record them; see `of_refits`.
        """
        values = {
            "seed": self.seed,
            "scaling": self.scaling,
            "metric": self.metric,
            "profile": self.profile,
            "max_seconds": self.max_seconds,
            "own_metrics": self._custom([self.metric]),
            PREPARE: None if self.prepare is None or self.prepare.name == AUTO else self.prepare.to_dict(),
        }
        return {name: value for name, value in values.items() if value not in (None, [])}

    def of_refits(self) -> dict[str, Any]:
        """Return what only the keys of refits contain: the further metrics; empty if there are none."""
        custom = self._custom(self.also)
        return {"also": list(self.also), **({"own_metrics": custom} if custom else {})} if self.also else {}

    def _custom(self, names: Collection[str]) -> list[dict[str, Any]]:
        return [asdict(metric) for metric in self.custom_metrics if metric.name in names]

    @property
    def preparation(self) -> Preparation:
        """The preparation of the features, also if `scaling` says it."""
        return self.prepare or Preparation(SCALINGS[self.scaling])

    def for_preparation(self, preparation: Preparation) -> "Protocol":
        """Return the protocol of a dataset × arm, with the preparation that it gets.

        Parameters
        ----------
        preparation : Preparation
            Preparation of its features. One that `scaling` can say enters trial keys as `scaling`.
        """
        if scaling := preparation.scaling:
            return replace(self, scaling=scaling, prepare=None)
        return replace(self, scaling="none", prepare=preparation)

    def metrics(self, names: Iterable[str]) -> "tuple[str | Metric, ...]":
        """Return the metrics of the given names: a `Metric` for a custom one, else the name itself.

        Parameters
        ----------
        names : iterable of str
            Names of metrics.
        """
        custom = {metric.name: metric for metric in self.custom_metrics}
        return tuple(custom.get(name, name) for name in names)

    @classmethod
    def from_dict(cls, recorded: Mapping[str, Any]) -> "Protocol":
        """Rebuild a protocol from its recorded attributes.

        Parameters
        ----------
        recorded : mapping
            Attributes as `to_dict` and JSON returned them.

        Raises
        ------
        TypeError
            If this version does not know one of the attributes.
        """
        recorded = dict(recorded)
        custom = tuple(Metric(**metric) for metric in recorded.pop("own_metrics", ()))
        seed = recorded.get("seed", cls.seed)
        if isinstance(seed, (list, tuple)):
            seed = seed[0] if len(seed) == 1 else tuple(seed)  # a list of one seed means that seed
        also = tuple(recorded.get("also", ()))
        prepare = Preparation(**recorded[PREPARE]) if PREPARE in recorded else None
        return cls(**{**recorded, "seed": seed, "also": also, "custom_metrics": custom, PREPARE: prepare})

    def __hash__(self) -> int:
        # Splitters are left out, because they are mappings, which have no hash.
        scalars = (self.seed, self.scaling, self.prepare, self.metric, self.also, self.profile)
        return hash((*scalars, self.max_seconds))

    @property
    def seeds(self) -> tuple[int, ...]:
        """All seeds, as a tuple."""
        return self.seed if isinstance(self.seed, tuple) else (self.seed,)

    @property
    def n_inner(self) -> tuple[int, ...]:
        """Number of inner folds of each outer fold; empty if a splitter defines either."""
        if not isinstance(self.outer, int) or isinstance(self.inner, Mapping):
            return ()
        return (self.inner or 0,) * (self.outer * len(self.seeds))


def arm_on(arm: Arm, options: Mapping[str, Any], dataset: str) -> Arm:
    """Return an arm with the space that a search has on a dataset.

    Parameters
    ----------
    arm : Arm
        Arm with the space of all datasets.
    options : mapping
        Options of the search, of which `by_dataset` fixes hyper-parameters.
    dataset : str
        Name of the dataset. What is fixed on `blobs` also holds on the swept dataset `blobs[n=100]`.

    Returns
    -------
    Arm
        The arm; the same object if nothing is fixed on the dataset.
    """
    fixed = fixed_on(options, dataset)
    return replace(arm, space=space_on(arm.space, fixed)) if fixed.keys() & arm.space.keys() else arm


def fixed_on(options: Mapping[str, Any], dataset: str) -> Mapping[str, ParamValue]:
    """Return the hyper-parameters that a search fixes on a dataset, by name.

    Parameters
    ----------
    options : mapping
        Options of the search, of which `by_dataset` fixes hyper-parameters.
    dataset : str
        Name of the dataset. What is fixed on `blobs` also holds on the swept dataset `blobs[n=100]`.
    """
    by_dataset = options.get(BY_DATASET, {})
    fixed: Mapping[str, ParamValue] = by_dataset.get(dataset, by_dataset.get(dataset.partition("[")[0], {}))
    return fixed


def space_on(space: Mapping[str, Any], fixed: Mapping[str, ParamValue]) -> dict[str, Any]:
    """Return a space in which each fixed hyper-parameter has its only value.

    Parameters
    ----------
    space : mapping of str to sequence or mapping
        Values or range of each hyper-parameter.
    fixed : mapping
        Fixed values by name. Names that are not in the space have no effect.
    """
    return {name: (fixed[name],) if name in fixed else values for name, values in space.items()}


@dataclass(frozen=True, eq=False)
class SearchSpec:
    """A search over hyper-parameters. Each dataset × arm × outer fold runs an instance of it.

    Searches are equal if their canonical texts are.

    Attributes
    ----------
    target : str
        Name of a built-in search, or dotted path of a custom one.
    options : mapping
        Arguments beside the space, for example `budget` and `seed`. Default: none.
    identity : str
        Hash of the sources of a custom search, or the version of its package; empty for a built-in one.
    """

    target: str
    options: Mapping[str, Any] = field(default_factory=dict)
    identity: str = ""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SearchSpec) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    @property
    def is_custom(self) -> bool:
        """Whether the search is custom. Its code may be missing when a stored study is read."""
        return "." in self.target

    def to_record(self) -> Any:
        """Return the search as selection keys and provenance record it.

        A built-in search without options is its name, any other a dictionary.
        """
        return asdict(self) if self.options or self.is_custom else self.target

    @property
    def words(self) -> str:
        """Description for a reader: the name and the options."""
        hidden = (BY_DATASET, CANDIDATES, STRATA, REFITS)  # too many to be read
        shown = {name: value for name, value in self.options.items() if name not in hidden}
        options = ", ".join(f"{name} {cell(value)}" for name, value in shown.items())
        return f"{self.target} ({options})" if options else self.target

    @cached_property
    def text(self) -> str:
        """Canonical text of the search."""
        return canonical_json(self.to_record())

    @classmethod
    def from_record(cls, recorded: Any) -> "SearchSpec":
        """Rebuild a search from its record.

        Parameters
        ----------
        recorded : str or mapping
            Record as `to_record` and JSON returned it.

        Raises
        ------
        TypeError
            If this version does not know one of the attributes.
        """
        return cls(**recorded) if isinstance(recorded, Mapping) else cls(str(recorded))


@dataclass(frozen=True)
class Study:
    """One declared comparison.

    Attributes
    ----------
    name : str
        Name of the study and of its folder.
    datasets : tuple of DatasetSpec
        Datasets, each of which is combined with every arm.
    arms : tuple of Arm
        Solvers that are compared.
    search : SearchSpec
        Search over hyper-parameters.
    protocol : Protocol
        Splits, metric and limits.
    predictions : bool
        Whether refits also store their predictions for the test rows. Default False. No key depends on it.
    """

    name: str
    datasets: tuple[DatasetSpec, ...]
    arms: tuple[Arm, ...]
    search: SearchSpec
    protocol: Protocol
    predictions: bool = False


def axis_values(values: Sequence[ParamValue] | Mapping[str, Any]) -> tuple[ParamValue, ...]:
    """Return the values of a hyper-parameter, or the two ends of a range.

    Parameters
    ----------
    values : sequence or mapping
        Values, or a range with the keys `low` and `high`.
    """
    if not isinstance(values, Mapping):
        return tuple(values)
    number = int if values.get("integer") else float
    return number(values["low"]), number(values["high"])
