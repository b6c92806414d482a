"""Summarise the state of each dataset × arm, without reading rows that compaction has summarised.

A compacted part's file stores what a replay of the searches finds in its rows. This summary is valid for a
dataset × arm under three conditions. No other part holds rows of the same identity. The search and its space
have not changed. The code of the replay is the same.
"""

import hashlib
import itertools
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from orchestrator.engine.replay import replay_pair
from orchestrator.search.fold_search import (
    Records,
    countable_trials,
    planned_trials,
    record_name,
    selection_key,
)
from orchestrator.store.part_summaries import Group, PairSummary, PartSummary, Rows, Scan
from orchestrator.store.store import Store
from orchestrator.study.declaration import Declaration, current_declaration
from orchestrator.study.failures import KINDS_OF_AN_ARM, Failure, most_common_kinds
from orchestrator.study.records import Status, StoredTrial
from orchestrator.study.study import SearchSpec
from orchestrator.study.trials import Identity, Pair
from orchestrator.study.values import digest

_CODE = ("engine/overview.py", "engine/replay.py", "search", "study")
"""Files and folders of the code that decides which trials a search asks for."""

_MESSAGE_LENGTH = 500
"""Largest length of a stored failure message, in characters."""


@dataclass(frozen=True)
class Overview:
    """State of a study.

    Attributes
    ----------
    pairs : dict of Pair to PairSummary
        Summary of each dataset × arm.
    groups : Counter[Group]
        Numbers of all stored trials, by dataset, solver and identity.
    """

    pairs: dict[Pair, PairSummary]
    groups: Counter[Group]

    def excluded(self, declaration: Declaration) -> list[tuple[str, str, int, str]]:
        """Return the numbers of trials that do not count, and why.

        Parameters
        ----------
        declaration : Declaration
            The current declaration.

        Returns
        -------
        list of (str, str, int, str)
            Dataset, solver, number of trials, and what differs from the declaration.
        """
        remaining = Counter(self.groups)
        for summary in self.pairs.values():
            remaining.subtract({row[:3]: row[3] for row in summary.counted})
        return declaration.reasons({group: number for group, number in sorted(remaining.items()) if number})

    def identities(self) -> Counter[str]:
        """Return the numbers of all stored trials by identity.

        Returns
        -------
        Counter[str]
            Numbers of trials.
        """
        counts: Counter[str] = Counter()
        for (_, _, identity), number in self.groups.items():
            counts[identity] += number
        return counts

    def failures(self) -> list[Failure]:
        """Return the first message of each kind of failure of each dataset × arm.

        Returns
        -------
        list of Failure
            The failures with their numbers.
        """
        return [
            Failure(*pair, status, message, number)
            for pair, summary in sorted(self.pairs.items())
            for status, message, number in summary.failures
        ]


def overview(store: Store, declaration: Declaration) -> Overview:
    """Return the state of each dataset × arm.

    Pairs are omitted if too little is recorded to compute the keys of their trials.

    Parameters
    ----------
    store : Store
        The store of the study.
    declaration : Declaration
        The current declaration.

    Returns
    -------
    Overview
        The state of the study.
    """
    search, records = declaration.search, store.search_records.read
    summary = store.scan(partial(summarise, declaration, records))
    pairs = {
        pair: summary.pairs.get(_summary_key(identity, search, records))
        or PairSummary(planned_trials(identity, search))
        for pair, identity in _identities(declaration)
    }
    return Overview(pairs, summary.groups)


def compact(store: Store, everything: bool = True) -> None:
    """Merge the parts of a store and store the state of each dataset × arm in the merged part.

    Parameters
    ----------
    store : Store
        The store of the study.
    everything : bool, default True
        Merge all parts; otherwise only small ones.
    """
    declaration = current_declaration(store.provenance())
    store.compact(
        everything,
        None if declaration is None else partial(summarise, declaration, store.search_records.read),
    )


def summarise(declaration: Declaration, records: Records, scan: Scan) -> PartSummary:
    """Return the summary of all scanned rows, as if they were stored in one part.

    Parameters
    ----------
    declaration : Declaration
        The current declaration.
    records : Records
        Function that returns the recorded proposals of a custom search.
    scan : Scan
        The scanned parts.

    Returns
    -------
    PartSummary
        Numbers of rows, and progress of each dataset × arm.
    """
    search = declaration.search
    identities = {_summary_key(each, search, records): each for _, each in _identities(declaration)}
    key_of = {name: key for key, each in reversed(identities.items()) for name in each.digests}
    summaries = scan.summaries(lambda summary: _is_possible(summary, identities, search))
    known = {key: pair for summary in summaries for key, pair in summary.pairs.items()}
    # Rows of several identities may count for one dataset × arm, whose key names their group. The rows of an
    # undeclared identity are a group, too. A group is read if it has no summary, or rows in several parts.
    stored = [*(summary.identities for summary in summaries), scan.identities()]
    held = [{key_of.get(name, name) for name in names} for names in stored]
    parts_with = Counter(itertools.chain.from_iterable(held))
    lacking = {group for group in parts_with if group in identities and group not in known}
    needed = {group for group, number in parts_with.items() if number > 1} | lacking | held[-1]
    wanted = {name for names in stored for name in names if key_of.get(name, name) in needed}
    runs = scan.runs()  # called before the rows, which can be read only once
    groups: Counter[Group] = Counter()
    for summary in summaries:
        groups.update({group: n for group, n in summary.groups.items() if group[2] not in wanted})
    pairs = {key: known[key] for key in identities if key not in needed and key in known}
    rows_of: dict[str, dict[str, Rows]] = {}
    for name, rows in scan.rows(wanted):
        groups.update(rows.groups(name))
        if name in key_of:
            rows_of.setdefault(key_of[name], {})[name] = rows
    for key, found in rows_of.items():
        pairs[key] = _pair_summary(identities[key], search, records, found)
    return PartSummary(code_digest(), groups, pairs, runs)


def _is_possible(summary: PartSummary, identities: Mapping[str, Identity], search: SearchSpec) -> bool:
    """Return whether this code can have computed a summary from its numbers of rows.

    Parameters
    ----------
    summary : PartSummary
        Stored summary of a part.
    identities : mapping of str to Identity
        Declared identities, by summary key.
    search : SearchSpec
        The declared search.

    Returns
    -------
    bool
        False if the summary is outdated or contradicts itself.
    """
    for key, pair in summary.pairs.items():
        if (identity := identities.get(key)) is None:
            continue
        least = 0 if pair.complete else planned_trials(identity, search)
        if not least <= pair.planned <= countable_trials(identity, search):
            return False
        if any(row[3] > summary.groups[row[:3]] for row in pair.counted):
            return False
    return summary.code == code_digest()


def _identities(declaration: Declaration) -> Iterator[tuple[Pair, Identity]]:
    """Yield each declared dataset × arm with its identity, if that is known.

    Parameters
    ----------
    declaration : Declaration
        The current declaration.

    Yields
    ------
    (Pair, Identity)
        Names of dataset and arm, and the identity of their rows.
    """
    for pair, declared in declaration.pairs.items():
        if declared.identity is not None:
            yield pair, declared.identity


def _pair_summary(
    identity: Identity, search: SearchSpec, records: Records, rows_of: Mapping[str, Rows]
) -> PairSummary:
    """Replay the searches of a dataset × arm on its rows and return the summary.

    Parameters
    ----------
    identity : Identity
        All inputs that change the results of the dataset × arm.
    search : SearchSpec
        The declared search.
    records : Records
        Function that returns the recorded proposals of a custom search.
    rows_of : mapping of str to Rows
        Rows of the identity and of the older ones whose rows count, by digest.

    Returns
    -------
    PairSummary
        Numbers of planned, stored and failed trials, and their time.
    """
    rows = Rows.joined(rows_of.values())
    names = [name for name, found in rows_of.items() for _ in found.keys]
    stored = dict(zip(rows.keys, map(StoredTrial, rows.statuses, rows.scores), strict=True))
    state = replay_pair(identity, search, stored, records)
    index_of = {key: index for index, key in enumerate(rows.keys)}
    indices = [index_of[key] for key in state.keys]
    counted = Counter((rows.datasets[index], rows.solvers[index], names[index]) for index in indices)
    return PairSummary(
        planned=state.planned,
        stored=len(indices),
        failed=state.failed,
        complete=state.complete,
        seconds=math.fsum(rows.seconds[index] for index in indices),
        counted=[(*group, number) for group, number in counted.items()],
        failures=_failures(rows, (index for index in indices if math.isnan(rows.scores[index]))),
    )


def _failures(rows: Rows, indices: Iterator[int]) -> list[tuple[str, str, int]]:
    """Return the most common kinds of failure, and the number of all others.

    Parameters
    ----------
    rows : Rows
        Rows of one dataset × arm.
    indices : iterator of int
        Indices of the failed trials.

    Returns
    -------
    list of (str, str, int)
        Status, message and number of each kind.
    """
    found = (Failure("", "", rows.statuses[index], rows.messages[index], 1) for index in sorted(indices))
    kinds = [(kind.status, kind.message[:_MESSAGE_LENGTH], kind.number) for kind in most_common_kinds(found)]
    shown = kinds[: 20 * KINDS_OF_AN_ARM]
    rest = sum(number for _, _, number in kinds[len(shown) :])
    return [*shown, (Status.ERROR, "failures of further kinds", rest)] if rest else shown


def _summary_key(identity: Identity, search: SearchSpec, records: Records) -> str:
    """Return a hash of everything besides its rows that decides the state of a dataset × arm.

    Parameters
    ----------
    identity : Identity
        All inputs that change the results of the dataset × arm.
    search : SearchSpec
        The declared search.
    records : Records
        Function that returns the recorded proposals of a custom search.

    Returns
    -------
    str
        The hash, in hexadecimal digits.
    """
    space = [[name, values] for name, values in identity.arm.space.items()]
    if not search.is_custom:
        return digest([identity.digests, search.to_record(), space, identity.arm.space_identities])
    key, folds = selection_key(identity, search), range(len(identity.n_inner))
    return digest([key, identity.digests, space, [records(record_name(key, outer)) for outer in folds]])


@cache
def code_digest() -> str:
    """Return a hash of the code that decides which trials count.

    Returns
    -------
    str
        32 hexadecimal digits.
    """
    here = Path(__file__).parents[1]
    files = (sorted((here / name).glob("*.py")) or [here / name] for name in _CODE)
    content = b"\0".join(path.read_bytes() for path in itertools.chain.from_iterable(files))
    return hashlib.sha256(content).hexdigest()[:32]
