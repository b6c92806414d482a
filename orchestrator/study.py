"""The nouns of a study and the identity of its trials: frozen, pure, hashable.

A study is datasets × arms × search × protocol. Everything that can change a number is in a trial's
key, and nothing else is: the key decides what a resumed run may skip.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

ParamValue = Any
"""Whatever YAML can say: null, booleans, numbers, text, and lists and mappings of these."""

PATH_PARAM = "C"
"""The hyper-parameter along which a path of trainings is warm-started, in ascending order."""

REFIT = -1
"""The `inner` index of the training on the whole outer training set."""


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
        return deepcopy(dict(self.params))

    def value(self, name: str, default: ParamValue = None) -> ParamValue:
        """Return the value of a parameter, or another if the candidate does not have it."""
        return next((value for known, value in self.params if known == name), default)

    @cached_property
    def off_path(self) -> "Candidate":
        """The candidate without the parameter of paths: what the trainings of a path have in common."""
        return Candidate(tuple(pair for pair in self.params if pair[0] != PATH_PARAM))

    def __str__(self) -> str:
        return ", ".join(f"{name}={cell(value)}" for name, value in self.params)


@dataclass(frozen=True)
class DatasetSpec:
    """Where a dataset comes from: the dotted path of a callable returning `(X, y)`, and its arguments."""

    name: str
    target: str
    params: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Arm:
    """A solver with its fixed parameters and its sweep values; `name` is the trials' column `solver`.

    Attributes
    ----------
    target : str
        Dotted path of a scikit-learn classifier class.
    params : mapping
        Constructor arguments that every training of the arm shares, sweep values included.
    space : mapping of str to tuple
        The hyper-parameters the inner search chooses from, in order of precedence for ties.
    identity : str
        Hash of the sources that the class consists of, or the version of its package.
    solver : str
        The configured solver the arm belongs to, without its sweep values.
    sweep : mapping
        The sweep values alone.
    warm_starts : bool
        Whether the trainings of a path start from one another.
    """

    name: str
    target: str
    params: Mapping[str, Any]
    space: Mapping[str, tuple[ParamValue, ...]]
    identity: str = ""
    solver: str = ""
    sweep: Mapping[str, ParamValue] = field(default_factory=dict)
    warm_starts: bool = False

    @classmethod
    def from_facts(cls, facts: Mapping[str, Any]) -> "Arm":
        """Return the arm that `asdict` and JSON turned into a mapping.

        Raises
        ------
        TypeError
            If it lacks an attribute or holds one that this version does not know.
        """
        space = {name: tuple(values) for name, values in facts.get("space", {}).items()}
        return cls(**{**facts, "space": space})

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
class Protocol:
    """How trials are made comparable: folds, seed, scaling, metric, profile and limits.

    Attributes
    ----------
    outer, inner : int
        Numbers of outer and inner folds, each at least 2.
    seed : int
        Root of every split and every solver's random state.
    scaling : {"train", "dataset", "none"}
        Scale features to [0, 1] by the training rows at hand, by the whole dataset (as the papers
        did), or not.
    metric : str
        Name of the scikit-learn scorer that selects candidates.
    also : tuple of str
        Further scorers recorded beside it.
    profile : {"throughput", "timing"}
        Share work between trainings, or train each alone and cold so that seconds can be compared.
    max_seconds : float or None
        Time limit of one training.
    """

    outer: int = 5
    inner: int = 5
    seed: int = 0
    scaling: str = "train"
    metric: str = "accuracy"
    also: tuple[str, ...] = ()
    profile: str = "throughput"
    max_seconds: float | None = None

    @classmethod
    def from_facts(cls, facts: Mapping[str, Any]) -> "Protocol":
        """Return the protocol that `asdict` and JSON turned into a mapping.

        Raises
        ------
        TypeError
            If it holds a setting that this version does not know.
        """
        return cls(**{**facts, "also": tuple(facts.get("also", ()))})


@dataclass(frozen=True)
class Study:
    """One declared comparison."""

    name: str
    datasets: tuple[DatasetSpec, ...]
    arms: tuple[Arm, ...]
    search: str
    protocol: Protocol

    @property
    def param_names(self) -> tuple[str, ...]:
        """Names of all hyper-parameters any arm searches over, in order of first appearance."""
        return tuple(dict.fromkeys(name for arm in self.arms for name in arm.space))


@dataclass(frozen=True)
class Path:
    """Trials of one split that differ only in C, in ascending order: one unit of randomness.

    If `warm_starts`, each training starts from the one before; then it is one unit of work and of resume
    too, stored whole or not at all, or a killed study would differ from an undisturbed one.
    """

    dataset: str
    solver: str
    outer: int
    inner: int
    candidates: tuple[Candidate, ...]
    keys: tuple[str, ...]
    seed: int
    warm_starts: bool

    def __len__(self) -> int:
        return len(self.candidates)

    def only(self, indices: Sequence[int]) -> "Path":
        """Return the path of some of its trials."""
        if len(indices) == len(self):
            return self
        return replace(
            self,
            candidates=tuple(self.candidates[index] for index in indices),
            keys=tuple(self.keys[index] for index in indices),
        )


def canonical_json(value: Any) -> str:
    """Write a value as JSON, so that two values have one text exactly if no classifier tells them apart.

    The order of a mapping's keys carries no meaning, nor does the type that holds an integer (`int`,
    `numpy.int32`), a float or a list. 1, 1.0, true and "1" are four values: `max_features=1` is one
    feature, and 1.0 all of them. What JSON lacks is written `NaN`, `Infinity` and `{0:1}` (a key that is no
    text).

    Raises
    ------
    TypeError
        If a value is none that YAML could say.
    """
    if value is None:
        return "null"
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(str(value))
    if isinstance(value, (int, np.integer)):
        return str(int(value))
    if isinstance(value, (float, np.floating)):
        return json.dumps(float(value) + 0.0)  # -0.0 becomes 0.0, which is equal to it
    if isinstance(value, Mapping):
        items = sorted((canonical_json(key), canonical_json(item)) for key, item in value.items())
        return "{" + ",".join(f"{key}:{item}" for key, item in items) + "}"
    if isinstance(value, Iterable) and not isinstance(value, (bytes, bytearray)):
        return "[" + ",".join(map(canonical_json, value)) + "]"
    raise TypeError(
        f"cannot put a {type(value).__name__} into a trial key; use numbers, strings, lists and mappings"
    )


def cell(value: ParamValue) -> str:
    """Write a value for a column of text and for a reader: as canonical JSON, but plain text as it is.

    Text that would read as something else, such as that of the number 1 or of null, stays in quotes; so
    different values have different texts.
    """
    if not isinstance(value, str):
        return canonical_json(value)
    try:
        json.loads(value)
    except (ValueError, RecursionError):
        return json.dumps(value) if value[:1] in ("", "[", "{", '"') else str(value)
    return json.dumps(value)


_ITEMS = "__items__"


def for_json(value: Any) -> Any:
    """Return a value with its mappings made ready for JSON, which knows text keys only: see `from_json`."""
    if isinstance(value, Mapping):
        if any(not isinstance(key, str) or key == _ITEMS for key in value):
            return {_ITEMS: [[key, for_json(item)] for key, item in value.items()]}
        return {key: for_json(item) for key, item in value.items()}
    return [for_json(item) for item in value] if isinstance(value, (list, tuple)) else value


def from_json(mapping: dict[str, Any]) -> dict[Any, Any]:
    """Return a mapping as it was before `for_json`; the `object_hook` of `json.loads`."""
    return dict(mapping[_ITEMS]) if mapping.keys() == {_ITEMS} else mapping


def is_number(value: Any) -> bool:
    """Whether a value is a number that a float holds exactly; a boolean is none."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
        return False
    try:
        return bool(float(value) == value)
    except OverflowError:
        return False


def stored_as_numbers(values: Sequence[ParamValue]) -> bool:
    """Whether floats can stand for the values of a parameter: all are numbers, and no two are equal."""
    return all(map(is_number, values)) and len(set(map(float, values))) == len(values)


def with_merged_numbers(value: Any) -> Any:
    """Return a value in which whole numbers are integers, for what 1 and 1.0 are the same to."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    if isinstance(value, Mapping):
        return {key: with_merged_numbers(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [with_merged_numbers(item) for item in value]
    return value


def digest(value: Any) -> str:
    """Return the first 32 hex digits of the SHA-256 of a value's canonical JSON."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()[:32]


class Identity:
    """What all trials of one dataset × arm have in common, as far as numbers depend on it.

    Trial keys and seeds are hashes over this and the trial's own axes; the common part is hashed once.

    Parameters
    ----------
    dataset : str
        Name of the dataset, for the records; its identity is `fingerprint`.
    fingerprint, split_hash : str
        Hashes of the dataset's content and of its nested folds.
    arm : Arm
    protocol : Protocol
    shared_gram : bool
        Whether trainings share their split's Gram matrices, which are rounded.
    """

    def __init__(
        self,
        dataset: str,
        fingerprint: str,
        split_hash: str,
        arm: Arm,
        protocol: Protocol,
        shared_gram: bool = False,
    ):
        self.dataset = dataset
        self.arm = arm
        self.protocol = protocol
        self.shared_gram = shared_gram
        common = {
            "dataset": fingerprint,
            "splits": split_hash,
            "target": arm.target,
            "params": arm.params,
            "package": arm.identity,
            "protocol": with_merged_numbers(asdict(protocol)),
            "shared_gram": shared_gram,
        }
        self._hash = hashlib.sha256(canonical_json(common).encode())
        self.digest = self._hash.hexdigest()[:32]
        # The arm stays out: solvers are compared under common random numbers.
        self._seed_axes = (fingerprint, split_hash, protocol.seed)

    def paths(self, outer: int, inner: int, candidates: Iterable[Candidate]) -> list[Path]:
        """Return the paths of one split; see `paths_of_splits`."""
        return self.paths_of_splits(outer, [inner], candidates)

    def paths_of_splits(
        self, outer: int, inners: Iterable[int], candidates: Iterable[Candidate]
    ) -> list[Path]:
        """Group the candidates of each split into paths, each in ascending order of C.

        A candidate whose C is not a number has no place in an order, and a path of its own.
        """
        groups: dict[Candidate, list[Candidate]] = {}
        for candidate in candidates:
            ordered = is_number(candidate.value(PATH_PARAM, 0))
            groups.setdefault(candidate.off_path if ordered else candidate, []).append(candidate)
        ascending = [tuple(sorted(group, key=_path_position)) for group in groups.values()]
        return [self._path(outer, inner, group) for inner in inners for group in ascending]

    def _path(self, outer: int, inner: int, candidates: tuple[Candidate, ...]) -> Path:
        # A warm-started training depends on those before it: keyed together, a path is one unit of resume.
        company = ";".join(candidate.text for candidate in candidates) if self.arm.warm_starts else ""
        keys = tuple(self._key(f"{outer}|{inner}|{candidate.text}|{company}") for candidate in candidates)
        seed = self._seed(outer, inner, candidates[0].off_path)
        return Path(self.dataset, self.arm.name, outer, inner, candidates, keys, seed, self.arm.warm_starts)

    def _key(self, axes: str) -> str:
        key = self._hash.copy()
        key.update(axes.encode())
        return key.hexdigest()[:32]

    def _seed(self, outer: int, inner: int, rest: Candidate) -> int:
        return _seed_of(*self._seed_axes, outer, inner, rest)


@lru_cache(maxsize=100_000)
def _seed_of(fingerprint: str, split_hash: str, root: int, outer: int, inner: int, rest: Candidate) -> int:
    axes = [fingerprint, split_hash, root, outer, inner, dict(rest.params)]
    entropy = int(digest(with_merged_numbers(axes)), 16)
    return int(np.random.SeedSequence(entropy).generate_state(1)[0])


def _path_position(candidate: Candidate) -> Any:
    return candidate.value(PATH_PARAM, 0)
