"""The nouns of a study: frozen, pure, hashable.

A study is datasets × arms × search × protocol. Everything that can change a number is in a trial's
key, and nothing else is: the key decides what a resumed run may skip.
"""

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

from orchestrator.study.targets import targets_in
from orchestrator.study.values import ParamValue, canonical_json, cell, stored_as_numbers

PATH_PARAM = "C"
"""The hyper-parameter along which a path of trainings is warm-started, in ascending order."""

SELECTED, CANDIDATES = "selected", "candidates"
"""The search that takes what another study has selected, and the option that holds it, by dataset and arm."""


@dataclass(frozen=True, eq=False)
class Candidate:
    """One point of the hyper-parameter space: `(name, value)` pairs, sorted by name.

    Candidates are equal if their canonical texts are: 1, 1.0 and true are equal to Python and three
    different values to a classifier, and lists have no hash.
    """

    params: tuple[tuple[str, ParamValue], ...]

    @classmethod
    def of(cls, params: Mapping[str, ParamValue]) -> "Candidate":
        """Build the candidate of a mapping, whatever the mapping's order."""
        return cls(tuple(sorted(params.items())))

    @cached_property
    def text(self) -> str:
        """The parameters' canonical text."""
        return canonical_json(dict(self.params))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Candidate) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __reduce__(self) -> tuple[Any, ...]:
        return Candidate, (self.params,)  # the text can be written again where the candidate arrives

    def as_dict(self) -> dict[str, ParamValue]:
        """Return the parameters as keyword arguments of an estimator, which may change its own copy."""
        return {
            name: value if isinstance(value, (int, float, str)) else deepcopy(value)
            for name, value in self.params
        }

    def value(self, name: str, default: ParamValue = None) -> ParamValue:
        """Return the value of a parameter, or another if the candidate does not have it."""
        for known, value in self.params:
            if known == name:
                return value
        return default

    @cached_property
    def off_path(self) -> "Candidate":
        """The candidate without the parameter of paths: what the trainings of a path have in common."""
        return Candidate(tuple(pair for pair in self.params if pair[0] != PATH_PARAM))

    def __str__(self) -> str:
        return ", ".join(f"{name}={cell(value)}" for name, value in self.params)


@dataclass(frozen=True)
class DatasetSpec:
    """Where a dataset comes from: the dotted path of a callable returning `(X, y)`, and its arguments.

    Datasets that declare one `family` come from one source, and are no independent evidence.
    """

    name: str
    target: str
    params: Mapping[str, Any] = field(default_factory=dict)
    family: str = ""


@dataclass(frozen=True)
class Arm:
    """A solver with its fixed parameters and its sweep values; `name` is the trials' column `solver`.

    Attributes
    ----------
    target : str
        Dotted path of a scikit-learn classifier class, or of a function that returns a classifier.
    params : mapping
        Parameters that every training of the arm shares, sweep values included: arguments of the target, and
        those of nested estimators as `step__param`.
    space : mapping of str to tuple or mapping
        The hyper-parameters the inner search chooses from, in order of precedence for ties: lists of values,
        or ranges such as `{low: 1, high: 100, log: true}`.
    identity : str
        Hashes of the sources that its target and those in its parameters consist of, or the versions of their
        packages.
    space_identities : mapping of str to str
        The same of targets in the space, where they have others; a trial depends on those of its candidate.
    solver : str
        The configured solver the arm belongs to, without its sweep values.
    sweep : mapping
        The sweep values alone; those that are no parameters belong to the search.
    warm_starts : bool
        Whether the trainings of a path start from one another.
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

    @classmethod
    def from_facts(cls, facts: Mapping[str, Any]) -> "Arm":
        """Return the arm that `asdict` and JSON turned into a mapping.

        Raises
        ------
        TypeError
            If it lacks an attribute or holds one that this version does not know.
        """
        space = {
            name: values if isinstance(values, Mapping) else tuple(values)
            for name, values in facts.get("space", {}).items()
        }
        return cls(**{**facts, "space": space})

    @cached_property
    def targets(self) -> tuple[str, ...]:
        """The dotted paths of the target and of all that is nested in parameters and space, each once."""
        return tuple(dict.fromkeys([self.target, *targets_in([self.params, self.space])]))

    @cached_property
    def of_search(self) -> dict[str, ParamValue]:
        """The sweep values that no training is given: the resolution of the search."""
        return {name: value for name, value in self.sweep.items() if name not in self.params}

    @cached_property
    def _numeric_axes(self) -> frozenset[str]:
        return frozenset(name for name, values in self.space.items() if stored_as_numbers(values))

    def param_columns(self, candidate: Candidate) -> dict[str, float | str]:
        """Return a candidate as the columns `param_<name>` of its rows.

        The whole axis decides how its values are stored, so that it does not depend on which of them a
        batch or a part of the store holds.
        """
        return {
            f"param_{name}": float(value) if name in self._numeric_axes else cell(value)
            for name, value in candidate.params
        }


@dataclass(frozen=True)
class Metric:
    """A metric that is none of scikit-learn's scorers.

    Attributes
    ----------
    name : str
        What its column `score_<name>` and the report call it.
    definition : str
        What the configuration says: the dotted path of a callable, or a mapping with `_target_` as JSON.
    identity : str
        Hash of the sources that it consists of, or the version of its package.
    """

    name: str
    definition: str
    identity: str = ""


@dataclass(frozen=True)
class Protocol:
    """How trials are made comparable: folds, seed, scaling, metric, profile and limits.

    Attributes
    ----------
    outer, inner : int or mapping
        How rows are split: a number of stratified, shuffled folds of at least 2, or a splitter of
        scikit-learn's kind, the dotted path `_target_` of its class with arguments.
    seed : int or tuple of int
        Root of every split and every solver's random state. Each of several makes splits of its own.
    scaling : {"train", "dataset", "none"}
        Scale features to [0, 1] by the training rows at hand, by the whole dataset (as the papers
        did), or not.
    metric : str
        Name of the metric that selects candidates: a scorer of scikit-learn's, or one of `own_metrics`.
    also : tuple of str
        Further metrics recorded beside it.
    profile : {"throughput", "timing"}
        Share work between trainings, or train each alone and cold so that seconds can be compared.
    max_seconds : float or None
        Time limit of one training.
    own_metrics : tuple of Metric
        What the names mean that are not scikit-learn's.
    """

    outer: int | Mapping[str, Any] = 5
    inner: int | Mapping[str, Any] = 5
    seed: int | tuple[int, ...] = 0
    scaling: str = "train"
    metric: str = "accuracy"
    also: tuple[str, ...] = ()
    profile: str = "throughput"
    max_seconds: float | None = None
    own_metrics: tuple[Metric, ...] = ()

    def facts(self) -> dict[str, Any]:
        """Return the protocol as trial keys and provenance hold it: what they lacked before is left out."""
        facts = asdict(self)
        if not self.own_metrics:
            del facts["own_metrics"]
        return facts

    def metrics(self, names: Iterable[str]) -> "tuple[str | Metric, ...]":
        """Return what names of metrics mean; a scorer of scikit-learn's is its name."""
        own = {metric.name: metric for metric in self.own_metrics}
        return tuple(own.get(name, name) for name in names)

    @classmethod
    def from_facts(cls, facts: Mapping[str, Any]) -> "Protocol":
        """Return the protocol that `facts` and JSON turned into a mapping.

        Raises
        ------
        TypeError
            If it holds a setting that this version does not know.
        """
        own = tuple(Metric(**metric) for metric in facts.get("own_metrics", ()))
        seed = facts.get("seed", cls.seed)
        if isinstance(seed, (list, tuple)):
            seed = seed[0] if len(seed) == 1 else tuple(seed)  # a list of one says no more than the seed
        also = tuple(facts.get("also", ()))
        return cls(**{**facts, "seed": seed, "also": also, "own_metrics": own})

    def __hash__(self) -> int:
        # Mappings, which splitters are, have no hash of their own.
        return hash((self.seed, self.scaling, self.metric, self.also, self.profile, self.max_seconds))

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds, one or several."""
        return self.seed if isinstance(self.seed, tuple) else (self.seed,)

    @property
    def n_inner(self) -> tuple[int, ...]:
        """The number of inner folds of each outer fold, where numbers say it; else empty."""
        if not isinstance(self.outer, int) or not isinstance(self.inner, int):
            return ()
        return (self.inner,) * (self.outer * len(self.seeds))


@dataclass(frozen=True)
class SearchSpec:
    """A search over hyper-parameters, which an instance for each dataset × arm × outer fold follows.

    Attributes
    ----------
    target : str
        The name of one that is built in, or the dotted path of a user's own.
    options : mapping
        What it is given beside the space, `budget` and `seed` for example.
    identity : str
        Of a user's own, hash of the sources that it consists of, or the version of its package.
    """

    target: str
    options: Mapping[str, Any] = field(default_factory=dict)
    identity: str = ""

    @property
    def is_own(self) -> bool:
        """Whether it is a user's, whose code reading a study must not need."""
        return "." in self.target

    def facts(self) -> Any:
        """Return the search as selection keys and provenance hold it: its name alone if it has no options."""
        return asdict(self) if self.options or self.is_own else self.target

    @property
    def words(self) -> str:
        """What it is, for a reader."""
        shown = {name: value for name, value in self.options.items() if name != CANDIDATES}
        options = ", ".join(f"{name} {cell(value)}" for name, value in shown.items())
        return f"{self.target} ({options})" if options else self.target

    @cached_property
    def text(self) -> str:
        """What it is, as canonical text."""
        return canonical_json(self.facts())

    @classmethod
    def from_facts(cls, facts: Any) -> "SearchSpec":
        """Return the search that `facts` and JSON turned into a text or a mapping.

        Raises
        ------
        TypeError
            If it holds what this version does not know.
        """
        return cls(**facts) if isinstance(facts, Mapping) else cls(str(facts))


@dataclass(frozen=True)
class Study:
    """One declared comparison."""

    name: str
    datasets: tuple[DatasetSpec, ...]
    arms: tuple[Arm, ...]
    search: SearchSpec
    protocol: Protocol
    predictions: bool = False
    """Whether what refits predict of their test rows is stored, too; no trial depends on it."""


def axis_values(values: Sequence[ParamValue] | Mapping[str, Any]) -> tuple[ParamValue, ...]:
    """Return the values of a hyper-parameter; of a range its ends."""
    if not isinstance(values, Mapping):
        return tuple(values)
    number = int if values.get("integer") else float
    return number(values["low"]), number(values["high"])
