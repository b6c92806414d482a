"""How far each dataset × arm of a study is, without its rows where compaction has summed them up.

What a replay of the searches finds in the rows of a part is kept in that part's own file, so that it is never
older or younger than the rows. It stands for a dataset × arm as long as no other part holds rows of the same
identity, the search and its space are those in force, and the code that would replay it is the same.
"""

import hashlib
import itertools
import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from orchestrator.declaration import Declaration, Pair
from orchestrator.failures import KINDS_OF_AN_ARM, Failure, kind_of
from orchestrator.fold_search import planned_trials
from orchestrator.records import StoredTrial
from orchestrator.replay import replay_pair
from orchestrator.study import Identity, digest

Group = tuple[str, str, str]
"""Dataset, solver and identity, as rows name them."""

_CODE = ("fold_search.py", "overview.py", "replay.py", "search", "study.py")
"""What decides which trials a search asks for."""

_MESSAGE_LENGTH = 500


@dataclass(frozen=True)
class Rows:
    """The stored trials of one identity, one row a key, by columns.

    Attributes
    ----------
    keys, statuses, messages, datasets, solvers : sequence of str
    scores : sequence of float
        nan for a failure.
    seconds : sequence of float
        Of training and prediction.
    """

    keys: Sequence[str] = ()
    statuses: Sequence[str] = ()
    scores: Sequence[float] = ()
    messages: Sequence[str] = ()
    datasets: Sequence[str] = ()
    solvers: Sequence[str] = ()
    seconds: Sequence[float] = ()

    def groups(self, identity: str) -> Counter[Group]:
        """Count rows by the names in them."""
        pairs = Counter(zip(self.datasets, self.solvers, strict=True))
        return Counter({(*pair, identity): number for pair, number in pairs.items()})


class _Trials(Mapping[str, StoredTrial]):
    """The rows of an identity by key, as a replay asks for them."""

    def __init__(self, rows: Rows):
        self._rows = rows
        self.places = {key: place for place, key in enumerate(rows.keys)}

    def __contains__(self, key: object) -> bool:
        return key in self.places

    def __getitem__(self, key: str) -> StoredTrial:
        place = self.places[key]
        return StoredTrial(self._rows.statuses[place], self._rows.scores[place])

    def __iter__(self) -> Iterator[str]:
        return iter(self.places)

    def __len__(self) -> int:
        return len(self.places)


@dataclass(frozen=True)
class PairSummary:
    """How far one dataset × arm is, by the trials that its search asks for.

    Attributes
    ----------
    planned, stored, failed : int
    complete : bool
        Whether nothing is left to run.
    seconds : float
        Of all stored trainings and predictions that count.
    counted : list of (dataset, solver, number)
        The trials that count, by the names in their rows.
    failures : list of (status, message, number)
        The first message of each kind of failure.
    """

    planned: int
    stored: int = 0
    failed: int = 0
    complete: bool = False
    seconds: float = 0.0
    counted: list[tuple[str, str, int]] = field(default_factory=list)
    failures: list[tuple[str, str, int]] = field(default_factory=list)


def summarise(identity: Identity, search: str, rows: Rows) -> PairSummary:
    """Replay the searches of a dataset × arm on its rows."""
    trials = _Trials(rows)
    state = replay_pair(identity, search, trials)
    places = [trials.places[key] for key in state.keys]
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
    counts: Counter[tuple[str, str, str]] = Counter()
    first: dict[tuple[str, str, str], tuple[str, str]] = {}
    for place in sorted(places):
        status, message = rows.statuses[place], rows.messages[place]
        kind = kind_of("", status, message)
        counts[kind] += 1
        first.setdefault(kind, (status, message[:_MESSAGE_LENGTH]))
    most = [(*first[kind], number) for kind, number in counts.most_common()]
    shown = most[: 20 * KINDS_OF_AN_ARM]
    rest = sum(number for _, _, number in most[len(shown) :])
    return [*shown, ("error", "failures of further kinds", rest)] if rest else shown


@dataclass(frozen=True)
class PartSummary:
    """What is in one part.

    Attributes
    ----------
    groups : Counter of (dataset, solver, identity)
        Its rows.
    pairs : dict of str to PairSummary
        By `state_key`: how far each dataset × arm is by this part alone.
    runs : set of str
        The ids of the runs that left its rows.
    """

    groups: Counter[Group]
    pairs: dict[str, PairSummary]
    runs: set[str]

    @property
    def identities(self) -> set[str]:
        """The identities that it has rows of."""
        return {identity for _, _, identity in self.groups}

    def to_json(self) -> bytes:
        """Return the summary as it is kept in a part's file."""
        content = {
            "code": code_digest(),
            "runs": sorted(self.runs),
            "groups": [[*group, number] for group, number in self.groups.items()],
            "pairs": {key: list(asdict(pair).values()) for key, pair in self.pairs.items()},
        }
        return json.dumps(content, separators=(",", ":")).encode()

    @classmethod
    def from_json(cls, text: bytes | None) -> "PartSummary | None":
        """Return what `to_json` wrote; None if that was nothing, or other code wrote it."""
        try:
            content = json.loads(text or b"null")
            if content is None or content["code"] != code_digest():
                return None
            groups = Counter({(str(d), str(s), str(i)): int(n) for d, s, i, n in content["groups"]})
            pairs = {key: _pair_summary(*values) for key, values in content["pairs"].items()}
            runs = set(map(str, content["runs"]))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return None
        return cls(groups, pairs, runs)


def _pair_summary(*values: Any) -> PairSummary:
    summary = PairSummary(*values)
    return replace(
        summary,
        counted=[(dataset, solver, number) for dataset, solver, number in summary.counted],
        failures=[(status, message, number) for status, message, number in summary.failures],
    )


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

    def apart(self, declaration: Declaration) -> list[tuple[str, str, int, str]]:
        """Count the trials that do not count: dataset, solver, number, and what was declared otherwise."""
        left = Counter(self.groups)
        for pair, summary in self.pairs.items():
            identity = declaration.pairs[pair].digest
            left.subtract({(dataset, solver, identity): n for dataset, solver, n in summary.counted})
        return declaration.reasons({group: number for group, number in sorted(left.items()) if number})

    def failures(self) -> list[Failure]:
        """Return the first message of each kind of failure of each dataset × arm."""
        return [
            Failure(*pair, status, message, number)
            for pair, summary in sorted(self.pairs.items())
            for status, message, number in summary.failures
        ]


class Survey:
    """Finds out which rows an overview has to look at, and makes it of those and of parts' summaries.

    Parameters
    ----------
    declaration : Declaration
    summaries : sequence of PartSummary
        Of the parts that have one.
    others : set of str
        The identities of the rows in parts that have none.
    """

    def __init__(self, declaration: Declaration, summaries: Sequence[PartSummary], others: set[str]):
        self._declaration = declaration
        self._states = {
            pair: (declared.identity, state_key(declared.identity, declaration.search))
            for pair, declared in declaration.pairs.items()
            if declared.identity is not None
        }
        number_of_parts = Counter(identity for summary in summaries for identity in summary.identities)
        self._known = {key: pair for summary in summaries for key, pair in summary.pairs.items()}
        unknown = {
            identity.digest
            for identity, key in self._states.values()
            if identity.digest in number_of_parts and key not in self._known
        }
        several = {identity for identity, number in number_of_parts.items() if number > 1}
        self.wanted = unknown | several | others
        """Identities whose rows have to be read, from whichever part."""
        self._groups: Counter[Group] = Counter()
        for summary in summaries:
            self._groups += Counter({g: n for g, n in summary.groups.items() if g[2] not in self.wanted})

    def overview(self, rows: Iterable[tuple[str, Rows]]) -> Overview:
        """Return the overview, from the rows of the identities that are wanted."""
        pairs = {
            pair: self._known[key]
            if key in self._known and identity.digest not in self.wanted
            else PairSummary(planned_trials(identity))
            for pair, (identity, key) in self._states.items()
        }
        names = {identity.digest: pair for pair, (identity, _) in self._states.items()}
        groups = Counter(self._groups)
        for identity, found in rows:
            groups += found.groups(identity)
            if pair := names.get(identity):
                declared = self._states[pair][0]
                pairs[pair] = summarise(declared, self._declaration.search, found)
        return Overview(pairs, groups)

    def part_summary(self, overview: Overview, runs: set[str]) -> PartSummary:
        """Return what a part keeps that holds all the rows of an overview."""
        pairs = {key: overview.pairs[pair] for pair, (_, key) in self._states.items()}
        return PartSummary(overview.groups, {key: pair for key, pair in pairs.items() if pair.counted}, runs)


def state_key(identity: Identity, search: str) -> str:
    """Return what the state of a dataset × arm depends on besides its rows."""
    return digest([identity.digest, search, [[name, values] for name, values in identity.arm.space.items()]])


@cache
def code_digest() -> str:
    """Return a hash of the code that decides which trials count."""
    here = Path(__file__).parent
    files = (sorted((here / name).glob("*.py")) or [here / name] for name in _CODE)
    content = b"\0".join(path.read_bytes() for path in itertools.chain.from_iterable(files))
    return hashlib.sha256(content).hexdigest()[:32]
