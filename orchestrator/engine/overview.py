"""How far each dataset × arm of a study is, without its rows where compaction has summed them up.

What a replay of the searches finds in the rows of a part is kept in that part's file. It stands for a
dataset × arm as long as no other part holds rows of the same identity, the search and its space are those
in force, and the code that would replay it is the same.
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
from orchestrator.search.fold_search import Records, planned_trials, record_name, selection_key
from orchestrator.store.part_summaries import Group, PairSummary, PartSummary, Rows, Scan
from orchestrator.store.store import Store
from orchestrator.study.declaration import Declaration, current_declaration
from orchestrator.study.failures import KINDS_OF_AN_ARM, Failure, most_common_kinds
from orchestrator.study.records import Status, StoredTrial
from orchestrator.study.study import SearchSpec
from orchestrator.study.trials import Identity, Pair
from orchestrator.study.values import digest

_CODE = ("engine/overview.py", "engine/replay.py", "search", "study")
"""What decides which trials a search asks for."""

_MESSAGE_LENGTH = 500


@dataclass(frozen=True)
class Overview:
    """How far a study is.

    Attributes
    ----------
    pairs : dict of (dataset, arm) to PairSummary
    groups : Counter of (dataset, solver, identity)
        All stored trials.
    """

    pairs: dict[Pair, PairSummary]
    groups: Counter[Group]

    def excluded(self, declaration: Declaration) -> list[tuple[str, str, int, str]]:
        """Count the trials that do not count: dataset, solver, number, and what was declared otherwise."""
        left = Counter(self.groups)
        for pair, summary in self.pairs.items():
            identity = declaration.pairs[pair].digest
            left.subtract({(dataset, solver, identity): n for dataset, solver, n in summary.counted})
        return declaration.reasons({group: number for group, number in sorted(left.items()) if number})

    def identities(self) -> Counter[str]:
        """Count all stored trials by identity."""
        counts: Counter[str] = Counter()
        for (_, _, identity), number in self.groups.items():
            counts[identity] += number
        return counts

    def failures(self) -> list[Failure]:
        """Return the first message of each kind of failure of each dataset × arm."""
        return [
            Failure(*pair, status, message, number)
            for pair, summary in sorted(self.pairs.items())
            for status, message, number in summary.failures
        ]


def overview(store: Store, declaration: Declaration) -> Overview:
    """Return how far each dataset × arm is.

    Those of which too little is recorded to tell their trials' keys are left out.
    """
    search, records = declaration.search, store.search_record
    summary = store.scan(partial(summarise, declaration, records))
    pairs = {
        pair: summary.pairs.get(_summary_key(identity, search, records))
        or PairSummary(planned_trials(identity, search))
        for pair, identity in _identities(declaration)
    }
    return Overview(pairs, summary.groups)


def compact(store: Store, everything: bool = True) -> None:
    """Merge the parts of a store, see `Store.compact`, and keep how far each dataset × arm is."""
    declaration = current_declaration(store.provenance())
    store.compact(
        everything, None if declaration is None else partial(summarise, declaration, store.search_record)
    )


def summarise(declaration: Declaration, records: Records, scan: Scan) -> PartSummary:
    """Return what a part keeps that holds all scanned rows; see `PartSummary`."""
    search = declaration.search
    declared = {
        identity.digest: (identity, _summary_key(identity, search, records))
        for _, identity in _identities(declaration)
    }
    identities = {key: identity for identity, key in declared.values()}
    summaries = scan.summaries(lambda summary: _is_possible(summary, identities, search))
    known = {key: pair for summary in summaries for key, pair in summary.pairs.items()}
    parts_with = Counter(identity for summary in summaries for identity in summary.identities)
    # Rows are read of identities without a summary, or with rows in more than one part.
    wanted = {
        identity
        for identity, number in parts_with.items()
        if number > 1 or (identity in declared and declared[identity][1] not in known)
    }
    wanted |= scan.identities()
    runs = scan.runs()  # before the rows, which are read once
    groups: Counter[Group] = Counter()
    for summary in summaries:
        groups.update({group: n for group, n in summary.groups.items() if group[2] not in wanted})
    pairs = {
        key: known[key] for identity, (_, key) in declared.items() if identity not in wanted and key in known
    }
    for identity, rows in scan.rows(wanted):
        groups.update(rows.groups(identity))
        if identity in declared:
            pairs[declared[identity][1]] = _pair_summary(declared[identity][0], search, records, rows)
    return PartSummary(code_digest(), groups, pairs, runs)


def _is_possible(summary: PartSummary, identities: Mapping[str, Identity], search: SearchSpec) -> bool:
    """Whether this code can have found a summary in rows that are as many by dataset, solver and identity."""
    for key, pair in summary.pairs.items():
        if (identity := identities.get(key)) is None:
            continue
        most = planned_trials(identity, search)
        if not (pair.planned <= most if pair.complete else pair.planned == most):
            return False
        if any(n > summary.groups[dataset, solver, identity.digest] for dataset, solver, n in pair.counted):
            return False
    return summary.code == code_digest()


def _identities(declaration: Declaration) -> Iterator[tuple[Pair, Identity]]:
    for pair, declared in declaration.pairs.items():
        if declared.identity is not None:
            yield pair, declared.identity


def _pair_summary(identity: Identity, search: SearchSpec, records: Records, rows: Rows) -> PairSummary:
    """Replay the searches of a dataset × arm on its rows."""
    stored = dict(zip(rows.keys, map(StoredTrial, rows.statuses, rows.scores), strict=True))
    state = replay_pair(identity, search, stored, records)
    places_of = {key: place for place, key in enumerate(rows.keys)}
    places = [places_of[key] for key in state.keys]
    counted = Counter((rows.datasets[place], rows.solvers[place]) for place in places)
    return PairSummary(
        planned=state.planned,
        stored=len(places),
        failed=state.failed,
        complete=state.complete,
        seconds=math.fsum(rows.seconds[place] for place in places),
        counted=[(*names, number) for names, number in counted.items()],
        failures=_failures(rows, (place for place in places if math.isnan(rows.scores[place]))),
    )


def _failures(rows: Rows, places: Iterator[int]) -> list[tuple[str, str, int]]:
    found = (Failure("", "", rows.statuses[place], rows.messages[place], 1) for place in sorted(places))
    most = [(kind.status, kind.message[:_MESSAGE_LENGTH], kind.number) for kind in most_common_kinds(found)]
    shown = most[: 20 * KINDS_OF_AN_ARM]
    rest = sum(number for _, _, number in most[len(shown) :])
    return [*shown, (Status.ERROR, "failures of further kinds", rest)] if rest else shown


def _summary_key(identity: Identity, search: SearchSpec, records: Records) -> str:
    """Return what the state of a dataset × arm depends on besides its rows."""
    space = [[name, values] for name, values in identity.arm.space.items()]
    if not search.is_own:
        return digest([identity.digest, search.facts(), space, identity.arm.space_identities])
    key, folds = selection_key(identity, search), range(len(identity.n_inner))
    return digest([key, space, [records(record_name(key, outer)) for outer in folds]])


@cache
def code_digest() -> str:
    """Return a hash of the code that decides which trials count."""
    here = Path(__file__).parents[1]
    files = (sorted((here / name).glob("*.py")) or [here / name] for name in _CODE)
    content = b"\0".join(path.read_bytes() for path in itertools.chain.from_iterable(files))
    return hashlib.sha256(content).hexdigest()[:32]
