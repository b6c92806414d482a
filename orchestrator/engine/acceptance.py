"""Accept stored trials of older code after a sample of them, trained again with today's code, was the same.

The rows keep the identities they were made with. The record of an acceptance holds an equivalence for each
arm. By it, runs, reports and `status` take the rows as current.
"""

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from orchestrator.engine.changed_sources import FILES
from orchestrator.engine.older_trials import counting_older_trials
from orchestrator.engine.prepare import PreparedStudy, prepare_study
from orchestrator.engine.retraining import LEVEL, Difference, Unit, bound, retrain, sample, stored_units
from orchestrator.engine.stale_code import AT_LEAST, SHARE, acceptance_sentence
from orchestrator.engine.work_orders import work_order
from orchestrator.execution.serial import SerialExecutor
from orchestrator.store.files import StoreError, naming_errors
from orchestrator.store.store import Store
from orchestrator.study.changed_meanings import OTHER_CODE
from orchestrator.study.declaration import Declaration, DeclaredPair, current_declaration
from orchestrator.study.equivalences import EQUIVALENCES, SameCode
from orchestrator.study.settings import Settings
from orchestrator.study.study import SAMPLE, SELECTED, Arm, Protocol, SearchSpec
from orchestrator.study.text import format_share
from orchestrator.study.trials import Batch, Identity, Pair
from orchestrator.training.environment import git_state, versions
from orchestrator.training.source_hash import with_code

_JOURNAL = ".accepting"
"""File in the study's folder with the trials that an unfinished acceptance has found to be the same."""


@dataclass(frozen=True)
class Choice:
    """Size and seed of the samples.

    Attributes
    ----------
    share : float
        Share of the trials of each dataset × arm to train again.
    at_least : int
        Smallest number of trials, or of paths with warm starts, to train again.
    seed : int
        Seed of the draws.
    """

    share: float = SHARE
    at_least: int = AT_LEAST
    seed: int = 0


@dataclass(frozen=True)
class StalePair:
    """A dataset × arm with stored trials of older code, and the sample to train again.

    Attributes
    ----------
    pair : Pair
        Names of the dataset and the arm.
    before : Identity
        Identity under which its trials count, with the older code.
    now : Identity
        Its identity with today's code.
    units : list of Unit
        All stored trials that count and can be repeated.
    drawn : list of Unit
        Those to train again.
    """

    pair: Pair
    before: Identity
    now: Identity
    units: list[Unit]
    drawn: list[Unit]

    @property
    def codes(self) -> dict[str, str]:
        """Mapping from the identities of older code to those of today's code."""
        found: dict[str, str] = {}
        for identity in (self.before, *self.before.older):
            found[identity.arm.identity] = self.now.arm.identity
            for name, code in identity.arm.space_identities.items():
                found[code] = self.now.arm.space_identities.get(name, code)
            if identity.protocol.prepare is not None and self.now.protocol.prepare is not None:
                found[identity.protocol.prepare.identity] = self.now.protocol.prepare.identity
        return {before: now for before, now in found.items() if before and before != now}


@dataclass(frozen=True)
class Stale:
    """Stored trials of older code.

    Attributes
    ----------
    pairs : dict of str to list of StalePair
        Dataset × arm whose trials can be compared, by arm.
    problems : dict of str to str
        Arms that cannot be accepted, and why.
    rows : dict of str to dict of str to object
        Stored rows of the drawn trials, by key.
    """

    pairs: dict[str, list[StalePair]]
    problems: dict[str, str]
    rows: dict[str, dict[str, Any]]

    def seconds(self, pair: StalePair) -> float:
        """Return the CPU time that the drawn trials of a dataset × arm took, in seconds.

        Parameters
        ----------
        pair : StalePair
            The dataset × arm.

        Returns
        -------
        float
            Time of training and prediction.
        """
        return sum(unit.seconds(self.rows) for unit in pair.drawn)

    def sentence(self, study: str) -> str:
        """Return what an acceptance would train; empty if nothing is stale.

        Parameters
        ----------
        study : str
            Name of the study.

        Returns
        -------
        str
            Sentence with numbers of trials and the expected CPU time.
        """
        pairs = [pair for of_arm in self.pairs.values() for pair in of_arm]
        if not pairs:
            return ""
        stored = sum(len(unit.keys) for pair in pairs for unit in pair.units)
        drawn = sum(len(unit.keys) for pair in pairs for unit in pair.drawn)
        seconds = sum(map(self.seconds, pairs))
        return acceptance_sentence(study, list(self.pairs), stored, drawn, seconds)


def prepare_acceptance(settings: Settings, store: Store) -> tuple[PreparedStudy, Declaration]:
    """Prepare a stored study as its records declare it, with today's code.

    Parameters
    ----------
    settings : Settings
        Settings whose study contains the datasets of the stored one.
    store : Store
        The store of the study.

    Returns
    -------
    PreparedStudy
        The study with its datasets and today's identities.
    Declaration
        The current declaration.

    Raises
    ------
    StoreError
        If the study has no declaration.
    ConfigError
        If a dataset or a solver cannot be used.
    """
    runs = store.provenance()
    declaration = current_declaration(runs)
    if declaration is None:
        raise StoreError(f"study {store.folder.name!r} has no recorded declaration. Run it first")
    # The stored spaces hold the candidates from another study, which may be gone, or may have grown.
    has_candidates = declaration.search.target in (SELECTED, SAMPLE)
    named = {*declaration.datasets, *(dataset for dataset, _ in superseded_by_code(runs, declaration))}
    study = replace(
        settings.study,
        datasets=tuple(spec for spec in settings.study.datasets if spec.name in named),
        arms=tuple(with_code(Arm.from_dict(description)) for description in declaration.arms.values()),
        search=SearchSpec("grid") if has_candidates else declaration.search,
        protocol=Protocol.from_dict(declaration.protocol),
    )
    return counting_older_trials(prepare_study(replace(settings, study=study)), runs), declaration


def superseded_by_code(
    runs: Sequence[Mapping[str, Any]], declaration: Declaration
) -> dict[Pair, DeclaredPair]:
    """Return the dataset × arm that only runs of older code have declared, after a run with newer code.

    Parameters
    ----------
    runs : sequence of mapping of str to object
        Provenance of every run, oldest first.
    declaration : Declaration
        The current declaration.

    Returns
    -------
    dict of Pair to DeclaredPair
        Their newest declarations.
    """
    codes = {key for key, why in declaration.superseded.items() if why == OTHER_CODE}
    found: dict[Pair, DeclaredPair] = {}
    for end in range(len(runs) - 1 if codes else 0, 0, -1):
        if (older := current_declaration(runs[:end])) is None:
            continue
        for pair, declared in older.pairs.items():
            is_left = pair not in declaration.pairs and pair[1] in declaration.arms
            if is_left and (*pair, declared.digest) in codes:
                found.setdefault(pair, declared)
    return found


def stale_trials(prepared: PreparedStudy, declaration: Declaration, store: Store, choice: Choice) -> Stale:
    """Return the stored trials of older code, and the samples to train again.

    Parameters
    ----------
    prepared : PreparedStudy
        The study with today's identities.
    declaration : Declaration
        The current declaration.
    store : Store
        The store of the study.
    choice : Choice
        Size and seed of the samples.

    Returns
    -------
    Stale
        Dataset × arm with samples, and arms that cannot be accepted.
    """
    runs = store.provenance()
    same_code = SameCode([*runs, {EQUIVALENCES: prepared.equivalences}])
    pairs: dict[str, list[StalePair]] = {}
    problems: dict[str, str] = {}
    empty: dict[str, str] = {}
    stored = store.stored()
    arms = {arm.name: arm for arm in prepared.study.arms}
    declared_pairs = {**declaration.pairs, **superseded_by_code(runs, declaration)}
    for pair, declared in declared_pairs.items():
        dataset, arm = pair
        before, now = declared.identity, prepared.identities.get(pair)
        same = same_code.of(arm)
        if before is None:
            problems[arm] = f"an older version recorded {dataset} without its identity"
        elif now is None:
            if arm not in arms or not _same_arm(before.arm, arms[arm], same):
                names = ",".join(dict.fromkeys(name for name, of_arm in declared_pairs if of_arm == arm))
                problems[arm] = f"dataset {dataset} is not in this command. Name all: datasets=[{names}]"
        elif before.meaning(same) == now.meaning(same):
            continue
        elif before.meaning(lambda _: "") != now.meaning(lambda _: ""):
            problems[arm] = f"on {dataset}, more than the code differs: its content, splits or preparation"
        else:
            units = stored_units(before, declaration.search, stored, store.search_records.read)
            if not units:
                empty.setdefault(arm, dataset)
                continue
            drawn = sample(units, choice.share, choice.at_least, choice.seed)
            pairs.setdefault(arm, []).append(StalePair(pair, before, now, units, drawn))
    for arm, dataset in empty.items():
        if arm not in pairs:
            problems.setdefault(arm, f"on {dataset}, no stored trial can be repeated")
    drawn_units = [unit for of_arm in pairs.values() for pair in of_arm for unit in pair.drawn]
    keys = {key for unit in drawn_units for key in unit.keys}
    return Stale(pairs, problems, store.rows(keys) if keys else {})


def _same_arm(before: Arm, now: Arm, same: Callable[[str], str]) -> bool:
    """Return whether the code of an arm gives the same numbers as the recorded one.

    Parameters
    ----------
    before, now : Arm
        The arm as recorded, and with the identities of today's code.
    same : callable
        Function from the identity of a code to that of one version of those with the same numbers.

    Returns
    -------
    bool
        Whether its class and the classes of its space are the same.
    """
    codes = ([arm.identity, *arm.space_identities.values()] for arm in (before, now))
    return len({tuple(map(same, each)) for each in codes}) == 1


def cost_of_acceptance(prepared: PreparedStudy, store: Store) -> list[str]:
    """Return a sentence with the number of stale trials and the cost of accepting them, if there are any.

    Parameters
    ----------
    prepared : PreparedStudy
        The study with today's identities.
    store : Store
        The store of the study.

    Returns
    -------
    list of str
        At most one sentence.
    """
    declaration = current_declaration(store.provenance())
    if declaration is None:
        return []
    sentence = stale_trials(prepared, declaration, store, Choice()).sentence(store.folder.name)
    return [sentence] if sentence else []


def accept(
    prepared: PreparedStudy,
    stale: Stale,
    store: Store,
    choice: Choice,
    command: Sequence[str],
    say: Callable[[str], None],
) -> list[str]:
    """Train the samples again, and record an equivalence for each arm whose trials are all the same.

    Parameters
    ----------
    prepared : PreparedStudy
        The study with today's identities.
    stale : Stale
        Stored trials of older code, with their samples.
    store : Store
        The store of the study. The caller holds its lock.
    choice : Choice
        Size and seed of the samples.
    command : sequence of str
        The command, for the record.
    say : callable
        Shows a line.

    Returns
    -------
    list of str
        Names of the arms that are not accepted.
    """
    started = datetime.now(UTC).isoformat()
    journal = _Journal(store.folder / _JOURNAL)
    equivalences, refused = [], []
    with closing(SerialExecutor(store.folder / ".under-way")) as executor:
        for arm in dict.fromkeys([*stale.problems, *stale.pairs]):
            if problem := stale.problems.get(arm):
                say(f"{arm}: not accepted: {problem}")
                refused.append(arm)
                continue
            pairs = sorted(stale.pairs[arm], key=stale.seconds)
            compared = (_compared(prepared, pair, stale.rows, journal, executor) for pair in pairs)
            if (difference := next(filter(None, compared), None)) is not None:
                say(f"{arm}: not accepted. A trial differs: {difference}")
                refused.append(arm)
                continue
            equivalences.append(_equivalence(arm, pairs, stale.rows, choice))
            for name, found in equivalences[-1]["datasets"].items():
                say(f"{name} × {arm}: {_in_words(found)}")
    if equivalences:
        _record(store, started, command, equivalences)
    journal.close()
    return refused


def _compared(
    prepared: PreparedStudy,
    pair: StalePair,
    rows: Mapping[str, Mapping[str, Any]],
    journal: "_Journal",
    executor: SerialExecutor,
) -> Difference | None:
    """Train the sample of a dataset × arm again, without the trials that the journal names.

    Parameters
    ----------
    prepared : PreparedStudy
        The study with today's identities.
    pair : StalePair
        The sample.
    rows : mapping of str to mapping of str to object
        Its stored rows, by key.
    journal : _Journal
        Receives the trials that are the same.
    executor : SerialExecutor
        Runs the batches.

    Returns
    -------
    Difference or None
        The first trial that differs.
    """
    remaining = [unit for unit in pair.drawn if (pair.now.digest, unit.keys[0]) not in journal.same]
    whole = work_order(prepared, "", Batch(0, *pair.pair, (), attempt=1, base_seconds=0.0))
    order = replace(whole, repeats=0)  # times are not compared, so each trial is trained once
    for batch, difference in retrain(remaining, rows, order, executor):
        if difference is not None:
            return difference
        journal.add((pair.now.digest, unit.keys[0]) for unit in batch)
    return None


def _equivalence(
    arm: str, pairs: Sequence[StalePair], rows: Mapping[str, Mapping[str, Any]], choice: Choice
) -> dict[str, Any]:
    """Return the record of an accepted arm.

    Parameters
    ----------
    arm : str
        Name of the arm.
    pairs : sequence of StalePair
        Its datasets, whose samples are all the same.
    rows : mapping of str to mapping of str to object
        Stored rows of the samples, by key.
    choice : Choice
        Size and seed of the samples.

    Returns
    -------
    dict of str to object
        The equivalence of its code, with the samples and their bounds by dataset.
    """
    found = [rows[key] for pair in pairs for unit in pair.drawn for key in unit.keys]
    return {
        "solver": arm,
        "codes": {before: now for pair in pairs for before, now in pair.codes.items()},
        "why": "a sample of trials that was trained again",
        "versions": {
            "before": sorted({row["versions"] for row in found if row["versions"]}),
            "now": versions(),
        },
        "choice": asdict(choice),
        "datasets": {
            pair.pair[0]: {
                "trials": sum(len(unit.keys) for unit in pair.units),
                "units": len(pair.units),
                "drawn": len(pair.drawn),
                "bound": bound(len(pair.units), len(pair.drawn)),
            }
            for pair in pairs
            if pair.units
        },
    }


def _in_words(found: Mapping[str, Any]) -> str:
    """Return the result of an accepted dataset × arm as text.

    Parameters
    ----------
    found : mapping of str to object
        Its numbers, as `_equivalence` returns them.

    Returns
    -------
    str
        For example `100 of 1,605 trials are the same: at 95 %, fewer than 3.0 % can differ`.
    """
    what = "trials" if found["units"] == found["trials"] else "paths"
    if found["drawn"] >= found["units"]:
        return f"all {found['units']:,} {what} are the same"
    limit = f"at {format_share(LEVEL)}, fewer than {format_share(found['bound'], 1)} can differ"
    return f"{found['drawn']:,} of {found['units']:,} {what} are the same: {limit}"


def _record(
    store: Store, started: str, command: Sequence[str], equivalences: Sequence[Mapping[str, Any]]
) -> None:
    """Write the record of an acceptance, which repeats the declaration of the newest run.

    Parameters
    ----------
    store : Store
        The store of the study.
    started : str
        Time of the start, in ISO 8601 format.
    command : sequence of str
        The command.
    equivalences : sequence of mapping
        Records of the accepted arms.
    """
    run_id = f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{uuid.uuid4().hex[:6]}"
    newest = store.provenance()[-1]
    repeated = {name: newest[name] for name in _REPEATED if name in newest}
    own = {
        "run_id": run_id,
        "number": store.next_run_number(),
        "started_at": started,
        "finished_at": datetime.now(UTC).isoformat(),
        "command": list(command),
        "versions": versions(),
        "git": git_state("orchestrator"),
        EQUIVALENCES: list(equivalences),
    }
    store.write_provenance(run_id, repeated | own)


_REPEATED = (
    *("study", "identities", "shared_gram", "planned", "preparations", "prepared_columns", "baseline"),
    *(FILES, "report", "not_begun", "worker_share"),
)
"""Keys of the newest record that an acceptance repeats, because readers expect them in the newest one."""


class _Journal:
    """File with the trials that were found to be the same, so that an interrupted acceptance resumes.

    Parameters
    ----------
    path : Path
        Path of the file, which is removed in the end.

    Attributes
    ----------
    same : set of (str, str)
        Digests of today's identity, and keys of stored trials.
    """

    def __init__(self, path: Path):
        self._path = path
        self.same: set[tuple[str, str]] = set()
        with suppress(OSError):
            for line in path.read_text().splitlines():
                with suppress(ValueError):
                    digest, key = line.split()
                    self.same.add((digest, key))

    def add(self, found: Iterable[tuple[str, str]]) -> None:
        """Record trials that are the same.

        Parameters
        ----------
        found : iterable of (str, str)
            Digests of today's identity, and keys of stored trials.

        Raises
        ------
        StoreError
            If the file cannot be written.
        """
        with naming_errors(self._path.parent, self._path), self._path.open("a") as file:
            file.writelines(f"{digest} {key}\n" for digest, key in found)

    def close(self) -> None:
        """Remove the file."""
        self._path.unlink(missing_ok=True)
