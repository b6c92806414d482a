"""The trials of a study and their identity: everything that can change a number is in a trial's key.

Nothing else is in it: the key decides what a resumed run may skip.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from orchestrator.study.study import PATH_PARAM, Arm, Candidate, Protocol
from orchestrator.study.targets import targets_in
from orchestrator.study.values import canonical_json, digest, is_number, with_merged_numbers

REFIT = -1
"""The `inner` index of the training on the whole outer training set."""


Pair = tuple[str, str]
"""The names of a dataset and of an arm."""


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


class Identity:
    """What all trials of one dataset × arm have in common, as far as numbers depend on it.

    Trial keys and seeds are hashes over this and the trial's own axes; the common part is hashed once.

    Parameters
    ----------
    dataset : str
        Name of the dataset, for the records; its identity is `fingerprint`.
    fingerprint, split_hash : str
        Hashes of the dataset's content and of its splits.
    arm : Arm
    protocol : Protocol
    shared_gram : bool
        Whether trainings share their split's Gram matrices, which are rounded.
    n_inner : sequence of int, optional
        The number of inner splits of each outer split, where the protocol's numbers of folds do not say it;
        it follows from what `split_hash` is the hash of.
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
        self.arm = arm
        self.protocol = protocol
        self.shared_gram = shared_gram
        common = {
            "dataset": fingerprint,
            "splits": split_hash,
            "target": arm.target,
            "params": arm.params,
            "package": arm.identity,
            "protocol": with_merged_numbers(protocol.facts()),
            "shared_gram": shared_gram,
        }
        if arm.of_search:  # or arms that differ in it would be one
            common["search"] = arm.of_search
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
        """Return the paths of each split; see `candidates_by_path`."""
        ascending = candidates_by_path(candidates)
        return [self._path(outer, inner, group) for inner in inners for group in ascending]

    def _path(self, outer: int, inner: int, candidates: tuple[Candidate, ...]) -> Path:
        # A warm-started training depends on those before it: keyed together, a path is one unit of resume.
        together = ";".join([candidate.text for candidate in candidates]) if self.arm.warm_starts else ""
        keys = []
        for candidate in candidates:
            sources = self._sources(candidate) if self.arm.space_identities else ""
            key = self._hash.copy()
            key.update(f"{outer}|{inner}|{candidate.text}|{together}{sources}".encode())
            keys.append(key.hexdigest()[:32])
        seed = self._seed(outer, inner, candidates[0].off_path)
        pair = self.dataset, self.arm.name
        return Path(*pair, outer, inner, candidates, tuple(keys), seed, self.arm.warm_starts)

    def _sources(self, candidate: Candidate) -> str:
        """Return what the classes that a candidate names consist of, beside those of the whole arm."""
        known = self.arm.space_identities
        found = {known[name] for name in targets_in(dict(candidate.params)) if name in known}
        return f"|{canonical_json(sorted(found))}" if found else ""

    def search_seed(self, outer: int, root: int) -> int:
        """Return what the search of an outer fold draws from, the same for every arm."""
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


def candidates_by_path(candidates: Iterable[Candidate]) -> tuple[tuple[Candidate, ...], ...]:
    """Group candidates that differ only in C, in ascending order of it.

    A candidate whose C is not a number has no place in an order, and a path of its own.
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
