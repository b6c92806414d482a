"""Trials of a study and their keys, and the batches in which they travel to workers.

The key of a trial contains everything that can change its numbers, and nothing else, because a resumed run
skips the trials whose keys are stored. Batches and their results are plain data of a few kilobytes.
"""

import hashlib
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np

from orchestrator.study.records import Records
from orchestrator.study.study import PATH_PARAM, PREPARE, Arm, Candidate, DatasetSpec, Protocol
from orchestrator.study.targets import targets_in
from orchestrator.study.values import canonical_json, digest, is_number, with_merged_numbers

REFIT = -1
"""Value of `inner` for the refit, which trains on the whole outer training set."""


Pair = tuple[str, str]
"""Names of a dataset and of an arm."""


@dataclass(frozen=True)
class Path:
    """Trials of one split that differ only in C, in ascending order. They share one random seed.

    With `warm_starts`, each training starts from the solution of the one before. Then the path is also one
    unit of work: it is stored completely or not at all, so that a resumed study equals an undisturbed one.

    Attributes
    ----------
    dataset, solver : str
        Names of the dataset and of the arm.
    outer, inner : int
        Indices of the outer and of the inner split; `inner` is -1 for refits.
    candidates : tuple of Candidate
        Hyper-parameters of the trials.
    keys : tuple of str
        Keys of the trials.
    seed : int
        Random state of the trainings.
    warm_starts : bool
        Whether each training starts from the solution of the one before.
    older_keys : tuple of tuple of str
        Keys under which older identities may have stored the same trials, by identity. Default: none.
    """

    dataset: str
    solver: str
    outer: int
    inner: int
    candidates: tuple[Candidate, ...]
    keys: tuple[str, ...]
    seed: int
    warm_starts: bool
    older_keys: tuple[tuple[str, ...], ...] = ()

    def __len__(self) -> int:
        return len(self.candidates)

    def only(self, indices: Sequence[int]) -> "Path":
        """Return the path with a subset of the trials, without `older_keys`.

        Parameters
        ----------
        indices : sequence of int
            Indices of the trials to keep, ascending.
        """
        if len(indices) == len(self):
            return replace(self, older_keys=()) if self.older_keys else self
        return replace(
            self,
            candidates=tuple(self.candidates[index] for index in indices),
            keys=tuple(self.keys[index] for index in indices),
            older_keys=(),
        )


class Identity:
    """Common part of the keys of all trials of one dataset × arm.

    A key has 32 hexadecimal digits. The first 12 are those of `digest`. Two give the outer split, and two the
    inner one plus 1; ff stands for larger numbers. The rest is a hash of everything that can change the
    numbers of the trial. So the keys of a dataset × arm, and of each split of it, are neighbours in sorted
    order. This definition is frozen: an input that a later version adds is omitted while it is not set, as in
    `Protocol.of_trials`, and all other keys stay valid. The module `older_keys` holds the former definition.

    Parameters
    ----------
    dataset : str
        Name of the dataset, for the records. The keys depend on `fingerprint` instead.
    fingerprint, split_hash : str
        Hashes of the dataset's content and of its splits.
    arm : Arm
        Solver with its parameters and its space.
    protocol : Protocol
        Splits, metric and limits.
    shared_gram : bool
        Whether trainings share the Gram matrices of their split, which are rounded. Default False.
    n_inner : sequence of int, optional
        Number of inner splits of each outer split, for a protocol with a splitter. By default the numbers of
        folds in the protocol define it. The keys do not depend on it, because `split_hash` does.

    Attributes
    ----------
    older : tuple of Identity
        Identities whose stored trials count as trials of this one, newest first; see `counting`.
    """

    def __init__(
        self,
        dataset: str,
        fingerprint: str,
        split_hash: str,
        arm: Arm,
        protocol: Protocol,
        shared_gram: bool = False,
        n_inner: Sequence[int] = (),
    ):
        self.n_inner = tuple(n_inner) or protocol.n_inner
        self.dataset = dataset
        self.fingerprint, self.split_hash = fingerprint, split_hash
        self.arm = arm
        self.protocol = protocol
        self.shared_gram = shared_gram
        self.older: tuple[Identity, ...] = ()
        self._hash = hashlib.sha256(canonical_json(self._inputs()).encode())
        self.digest = self._hash.hexdigest()[:32]
        # Seeds do not depend on the arm, so that solvers are compared under common random numbers.
        self._seed_axes = (fingerprint, split_hash, protocol.seed)

    def _inputs(self) -> dict[str, Any]:
        """Return everything that can change the numbers of some trial of the dataset × arm."""
        inputs: dict[str, Any] = {
            "keys": 2,
            "dataset": self.fingerprint,
            "splits": self.split_hash,
            "target": self.arm.target,
            "params": self.arm.params,
            "code": self.arm.identity,
            "protocol": with_merged_numbers(self.protocol.of_trials()),
        }
        if self.shared_gram:
            inputs["shared_gram"] = True
        if self.arm.of_search:  # arms may differ only in the resolution of the search
            inputs["search"] = self.arm.of_search
        return inputs

    @property
    def digests(self) -> tuple[str, ...]:
        """Digest of the identity, and those of all older ones whose trials count."""
        return self.digest, *(identity.digest for identity in self.older)

    def meaning(self, same: Callable[[str], str]) -> str:
        """Return a text that is equal for identities whose trials have the same numbers.

        Parameters
        ----------
        same : callable
            Function from the identity of a code to that of one version of those with the same numbers.
        """
        inputs = Identity._inputs(self)
        if preparation := inputs["protocol"].get(PREPARE):
            preparation["identity"] = same(preparation["identity"])
        inputs["code"] = same(self.arm.identity)
        inputs["space"] = {name: same(code) for name, code in self.arm.space_identities.items()}
        inputs["warm_starts"] = self.arm.warm_starts
        return canonical_json(inputs)

    def counting(self, older: "Iterable[Identity]") -> "Identity":
        """Return a copy for which the stored trials of older identities count, too.

        Parameters
        ----------
        older : iterable of Identity
            Identities of the same dataset × arm. Those with the digest of this one are left out.
        """
        found = copy(self)
        found.older = tuple({each.digest: each for each in older if each.digest != self.digest}.values())
        return found

    def paths(self, outer: int, inner: int, candidates: Iterable[Candidate]) -> list[Path]:
        """Return the paths of one split.

        Parameters
        ----------
        outer : int
            Index of the outer split.
        inner : int
            Index of the inner split, or -1 for refits.
        candidates : iterable of Candidate
            Points of the hyper-parameter space.
        """
        return self.paths_of_splits(outer, [inner], candidates)

    def paths_of_splits(
        self, outer: int, inners: Iterable[int], candidates: Iterable[Candidate]
    ) -> list[Path]:
        """Return the paths of several inner splits, split by split.

        Parameters
        ----------
        outer : int
            Index of the outer split.
        inners : iterable of int
            Indices of the inner splits; -1 means refits.
        candidates : iterable of Candidate
            Points of the hyper-parameter space, which `candidates_by_path` groups.
        """
        ascending = candidates_by_path(candidates)
        return [self._path(outer, inner, group) for inner in inners for group in ascending]

    def _path(self, outer: int, inner: int, candidates: tuple[Candidate, ...]) -> Path:
        keys = self.keys(outer, inner, candidates)
        counting = (each for each in self.older if self._has_metrics(each, inner))
        older = tuple(each.keys(outer, inner, candidates) for each in counting)
        seed = self._seed(outer, inner, candidates[0].off_path)
        pair = self.dataset, self.arm.name
        return Path(*pair, outer, inner, candidates, keys, seed, self.arm.warm_starts, older)

    def keys(self, outer: int, inner: int, candidates: tuple[Candidate, ...]) -> tuple[str, ...]:
        """Return the keys of the trials of a path.

        Parameters
        ----------
        outer : int
            Index of the outer split.
        inner : int
            Index of the inner split, or -1 for refits.
        candidates : tuple of Candidate
            Candidates of the whole path, ascending in C.
        """
        further = self.protocol.of_refits() if inner == REFIT else {}
        ending = f"|{canonical_json(further)}" if further else ""
        cell = f"{self.digest[:12]}{min(outer, 255):02x}{min(inner + 1, 255):02x}"
        return tuple(f"{cell}{text[:16]}" for text in self._hashes(outer, inner, candidates, ending))

    def _hashes(
        self, outer: int, inner: int, candidates: tuple[Candidate, ...], ending: str = ""
    ) -> Iterator[str]:
        """Yield a hash of everything that can change the numbers of each trial of a path.

        Parameters
        ----------
        outer, inner : int
            Indices of the splits.
        candidates : tuple of Candidate
            Candidates of the path.
        ending : str
            Further inputs. Default: none.

        Yields
        ------
        str
            64 hexadecimal digits.
        """
        # A warm-started training depends on those before it, so each key contains the whole path.
        together = ";".join([candidate.text for candidate in candidates]) if self.arm.warm_starts else ""
        for candidate in candidates:
            sources = self._sources(candidate) if self.arm.space_identities else ""
            key = self._hash.copy()
            key.update(f"{outer}|{inner}|{candidate.text}|{together}{sources}{ending}".encode())
            yield key.hexdigest()

    def _has_metrics(self, older: "Identity", inner: int) -> bool:
        """Return whether trials of an older identity have all metrics that this one asks for.

        Parameters
        ----------
        older : Identity
            Identity whose stored trials count.
        inner : int
            Index of the inner split, or -1 for refits, which alone have further metrics.
        """
        return inner != REFIT or older.protocol.of_refits() == self.protocol.of_refits()

    def _sources(self, candidate: Candidate) -> str:
        """Return the identities of the classes that a candidate names, as the end of a key.

        Parameters
        ----------
        candidate : Candidate
            Point of the space. Classes that the whole arm uses are left out, as they are in the common part.
        """
        known = self.arm.space_identities
        found = {known[name] for name in targets_in(dict(candidate.params)) if name in known}
        return f"|{canonical_json(sorted(found))}" if found else ""

    def search_seed(self, outer: int, root: int) -> int:
        """Return the random seed of the search of an outer fold, which is the same for every arm.

        Parameters
        ----------
        outer : int
            Index of the outer split.
        root : int
            Seed of the search, as configured.
        """
        entropy = int(digest([*self._seed_axes, "search", root, outer]), 16)
        return int(np.random.SeedSequence(entropy).generate_state(1)[0])

    def _seed(self, outer: int, inner: int, rest: Candidate) -> int:
        return _seed_of(*self._seed_axes, outer, inner, rest)


@lru_cache(maxsize=100_000)
def _seed_of(
    fingerprint: str, split_hash: str, root: int | tuple[int, ...], outer: int, inner: int, rest: Candidate
) -> int:
    axes = [fingerprint, split_hash, root, outer, inner, dict(rest.params)]
    entropy = int(digest(with_merged_numbers(axes)), 16)
    return int(np.random.SeedSequence(entropy).generate_state(1)[0])


def further_metrics(protocol: Protocol, path: Path) -> tuple[str, ...]:
    """Return the further metrics that the trials of a path record: those of the protocol for refits only.

    Parameters
    ----------
    protocol : Protocol
        Protocol of the trials.
    path : Path
        Trials of one split.
    """
    return protocol.also if path.inner == REFIT else ()


def candidates_by_path(candidates: Iterable[Candidate]) -> tuple[tuple[Candidate, ...], ...]:
    """Group candidates that differ only in C, in ascending order of C.

    Parameters
    ----------
    candidates : iterable of Candidate
        Points of the hyper-parameter space. A candidate whose C is not a number is a group by itself.
    """
    return _by_path(tuple(candidates))


@lru_cache(maxsize=1024)  # a grid is the same for every split of all datasets
def _by_path(candidates: tuple[Candidate, ...]) -> tuple[tuple[Candidate, ...], ...]:
    groups: dict[Candidate, list[Candidate]] = {}
    for candidate in candidates:
        ordered = is_number(candidate.value(PATH_PARAM, 0))
        groups.setdefault(candidate.off_path if ordered else candidate, []).append(candidate)
    return tuple(tuple(sorted(group, key=_path_position)) for group in groups.values())


def _path_position(candidate: Candidate) -> Any:
    return candidate.value(PATH_PARAM, 0)


@dataclass(frozen=True, slots=True)
class WorkerDeaths:
    """Worker deaths that are attributed to a batch.

    Attributes
    ----------
    shared : float
        Share in the deaths of workers that held other batches too; k batches share one death equally.
    alone : int
        Number of workers that died while this batch was their only one.
    seconds : float
        Total time that the workers counted in `alone` had spent on the batch.
    by_memory : int
        Number of further workers that ended because the batch exceeded their memory.
    """

    shared: float = 0.0
    alone: int = 0
    seconds: float = 0.0
    by_memory: int = 0

    def another(self, seconds: float) -> "WorkerDeaths":
        """Return a copy with one more death of a worker that had only this batch.

        Parameters
        ----------
        seconds : float
            Time that the worker had spent on the batch.
        """
        return replace(self, alone=self.alone + 1, seconds=self.seconds + seconds)

    def another_by_memory(self) -> "WorkerDeaths":
        """Return a copy with one more worker that ended because the batch exceeded its memory."""
        return replace(self, by_memory=self.by_memory + 1)


@dataclass(frozen=True, slots=True)
class Batch:
    """Paths of one dataset and one arm that travel to a worker together.

    Attributes
    ----------
    number : int
        Number of the batch, unique within a run.
    dataset, solver : str
        Names of the dataset and of the arm.
    paths : tuple of Path
        Paths to train, in this order.
    attempt : int
        Number of the attempt, from 1; it increases each time a worker dies with the batch.
    base_seconds : float
        Expected cost before any correction by observations of the run, in seconds.
    deaths : WorkerDeaths
        Worker deaths attributed to the batch so far.
    """

    number: int
    dataset: str
    solver: str
    paths: tuple[Path, ...]
    attempt: int
    base_seconds: float
    deaths: WorkerDeaths = field(default_factory=WorkerDeaths)


@dataclass(frozen=True)
class DataSource:
    """Location of a dataset and its folds, small enough to travel with every batch.

    Attributes
    ----------
    spec : DatasetSpec
        Name of the dataset and how to load it, for hosts to which the prepared copy cannot be sent.
    fingerprint, split_hash : str
        Expected hashes of the dataset and of its folds. Every copy is checked against them.
    folder : str
        Folder of the prepared dataset on the client's host or on a shared file system. A host that does not
        see it stores its copy in a folder of the same name in its cache.
    """

    spec: DatasetSpec
    fingerprint: str
    split_hash: str
    folder: str

    def __hash__(self) -> int:
        return hash((self.fingerprint, self.split_hash))


@dataclass(frozen=True, slots=True)
class WorkOrder:
    """A batch with everything that a worker needs to run it: plain data of a few kilobytes.

    Attributes
    ----------
    study, run_id : str
        Name of the study, and identifier of the run.
    source : DataSource
        Location of the prepared dataset.
    arm : Arm
        Solver that is trained.
    identity : str
        Digest of the dataset × arm, which is the column `identity` of its trials.
    shared_gram : bool
        Whether trainings share the Gram matrices of their split.
    protocol : Protocol
        Splits, metric and limits.
    batch : Batch
        Paths to train.
    gram_memory : float
        Memory available for shared Gram matrices, in bytes; unlimited by default.
    predictions : bool
        Whether refits record their predictions for the test rows.
    default_seconds : float
        Time limit of each training, in seconds, where the protocol has none. It is not part of any key.
    repeats : int
        Number of measurements of each training of a timing sample; 0 for a study that is not a sample. It is
        not part of any key.
    """

    study: str
    run_id: str
    source: DataSource
    arm: Arm
    identity: str
    shared_gram: bool
    protocol: Protocol
    batch: Batch
    gram_memory: float = math.inf
    predictions: bool = False
    default_seconds: float = math.inf
    repeats: int = 0


@dataclass(frozen=True, slots=True)
class BatchResult:
    """Result of a batch: its rows, and how the worker spent its time.

    Attributes
    ----------
    records : Records
        One row a trial.
    busy_seconds : float
        Time that the worker spent on the batch, in seconds.
    training_seconds : float
        Part of it spent in preparation, fit and predict, in seconds.
    compile_seconds : float
        Part of it spent in compilation, in seconds.
    """

    records: Records
    busy_seconds: float
    training_seconds: float
    compile_seconds: float
