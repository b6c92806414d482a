"""The nouns of a study and the identity of its trials: frozen, pure, hashable.

A study is datasets × arms × search × protocol. Everything that can change a number is in a trial's
key, and nothing else is: the key decides what a resumed run may skip.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

ParamValue = float | int | str | bool | None

PATH_PARAM = "C"
"""The hyper-parameter along which a path of trainings is warm-started, in ascending order."""

REFIT = -1
"""The `inner` index of the training on the whole outer training set."""


@dataclass(frozen=True)
class Candidate:
    """One point of the hyper-parameter space: `(name, value)` pairs, sorted by name."""

    params: tuple[tuple[str, ParamValue], ...]

    @classmethod
    def of(cls, params: Mapping[str, ParamValue]) -> "Candidate":
        """Build the candidate of a mapping, whatever the mapping's order."""
        return cls(tuple(sorted(params.items())))

    def as_dict(self) -> dict[str, ParamValue]:
        """Return the parameters as keyword arguments of an estimator."""
        return dict(self.params)

    def without(self, name: str) -> "Candidate":
        """Return the candidate with one parameter left out."""
        return Candidate(tuple(pair for pair in self.params if pair[0] != name))

    def __str__(self) -> str:
        return ", ".join(
            f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}"
            for name, value in self.params
        )


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
        Version, and for code under development the source hash, of the package that holds the class.
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
        space = {name: tuple(map(frozen, values)) for name, values in facts.get("space", {}).items()}
        return cls(**{**facts, "space": space})


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
    """Serialise to JSON in which order of keys and spelling of numbers carry no meaning.

    `1` and `1.0` give the same text, tuples and lists too.
    """
    return json.dumps(_canonical(value), sort_keys=True, separators=(",", ":"), allow_nan=False)


def _canonical(value: Any) -> Any:
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, (float, np.floating)):
        number = float(value)
        # JSON has no infinities; a whole number has one spelling whichever type holds it.
        if not np.isfinite(number):
            return repr(number)
        return int(number) if number.is_integer() and abs(number) < 2**53 else number
    if isinstance(value, Mapping):
        return {str(key): _canonical(item) for key, item in value.items()}
    if isinstance(value, Iterable):
        return [_canonical(item) for item in value]
    raise TypeError(
        f"cannot put a {type(value).__name__} into a trial key; use numbers, strings, lists and mappings"
    )


def frozen(value: Any) -> Any:
    """Turn lists into tuples, which have a hash as candidates need it, and which classes take as well."""
    return tuple(map(frozen, value)) if isinstance(value, list) else value


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
            "protocol": asdict(protocol),
            "shared_gram": shared_gram,
        }
        self.digest = digest(common)
        self._hash = hashlib.sha256(canonical_json(common).encode())
        # The arm stays out: solvers are compared under common random numbers.
        self._seed_axes = (fingerprint, split_hash, protocol.seed)
        self._seeds: dict[tuple[int, int, Candidate], int] = {}
        self._candidate_json: dict[Candidate, str] = {}

    def paths(self, outer: int, inner: int, candidates: Iterable[Candidate]) -> list[Path]:
        """Group the candidates of one split into paths, each in ascending order of C."""
        groups: dict[Candidate, list[Candidate]] = {}
        for candidate in candidates:
            groups.setdefault(candidate.without(PATH_PARAM), []).append(candidate)
        return [self._path(outer, inner, sorted(group, key=_path_position)) for group in groups.values()]

    def _path(self, outer: int, inner: int, candidates: list[Candidate]) -> Path:
        # A warm-started training depends on those before it: keyed together, a path is one unit of resume.
        company = ";".join(map(self._json, candidates)) if self.arm.warm_starts else ""
        keys = tuple(
            self._key(f"{outer}|{inner}|{self._json(candidate)}|{company}") for candidate in candidates
        )
        seed = self._seed(outer, inner, candidates[0].without(PATH_PARAM))
        return Path(
            self.dataset, self.arm.name, outer, inner, tuple(candidates), keys, seed, self.arm.warm_starts
        )

    def _json(self, candidate: Candidate) -> str:
        text = self._candidate_json.get(candidate)
        if text is None:
            text = self._candidate_json[candidate] = canonical_json(candidate.as_dict())
        return text

    def _key(self, axes: str) -> str:
        key = self._hash.copy()
        key.update(axes.encode())
        return key.hexdigest()[:32]

    def _seed(self, outer: int, inner: int, rest: Candidate) -> int:
        axes = (outer, inner, rest)
        seed = self._seeds.get(axes)
        if seed is None:
            entropy = int(digest([*self._seed_axes, outer, inner, rest.as_dict()]), 16)
            seed = self._seeds[axes] = int(np.random.SeedSequence(entropy).generate_state(1)[0])
        return seed


def _path_position(candidate: Candidate) -> float:
    value = candidate.as_dict().get(PATH_PARAM, 0.0)
    if isinstance(value, (int, float)):
        return float(value)
    raise TypeError(f"{PATH_PARAM} must be a number to order a path, found {value!r}")
