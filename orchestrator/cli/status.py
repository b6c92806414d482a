"""The verb `status`. It starts quickly, because it imports neither scikit-learn nor scipy."""

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from rich.console import Console
from rich.table import Table

from orchestrator.cli.request import Request
from orchestrator.cli.terminal import as_text, say
from orchestrator.engine.changed_sources import changed_files
from orchestrator.engine.load import declared_runs, find_study, read_results
from orchestrator.engine.lost_trials import lost_trials
from orchestrator.engine.overview import Overview, overview
from orchestrator.engine.planning import PlanLine, expected_numbers, remaining
from orchestrator.engine.stale_code import stale_code
from orchestrator.engine.time_left import time_left
from orchestrator.store.part_summaries import PairSummary
from orchestrator.store.store import Store
from orchestrator.study.declaration import Declaration, current_declaration, not_started
from orchestrator.study.failures import lines_of
from orchestrator.study.report_choices import ReportChoices
from orchestrator.study.sample import requested_repeats
from orchestrator.study.schemes import described
from orchestrator.study.study import SELECTED
from orchestrator.study.text import format_seconds

Excluded = list[tuple[str, str, int, str]]
"""Trials that do not count: dataset, solver, number and reason."""


def status(request: Request, console: Console) -> None:
    """Show the progress of a study.

    Parameters
    ----------
    request : Request
        Arguments of the command, which name the study.
    console : Console
        Terminal for the output.
    """
    store = find_study(*request.study())
    runs = declared_runs(store)
    declaration = current_declaration(runs)
    if declaration is None or not declaration.pairs:
        number = len(store.stored())  # raises for damaged parts and for a run whose record is lost
        if request.as_json:
            _write_json(_for_json(store.folder.name, Overview({}, Counter()), [], []), console)
            return
        rows = f"{number:,} trials without a recorded declaration" if number else "no run has started"
        say(console, f"{store.folder.name}: {rows}")
        return
    found, excluded, lost = _overview(store, declaration, runs)
    found, never = started_pairs(found, runs)
    lines = remaining(found, requested_repeats(declaration.search), expected_numbers(found, declaration))
    if request.as_json:
        _write_json(_for_json(store.folder.name, found, lines, excluded), console)
        return
    print_lines(f"Study {store.folder.name}", lines, console)
    n_inner = [declared.n_inner for declared in declaration.pairs.values()]
    if splitters := described(declaration.protocol, n_inner, declaration.search.target != SELECTED):
        say(console, splitters)
    workers = max(1, int(runs[-1].get("cluster", {}).get("workers", 1)))
    say(console, _total(found, lines, workers))
    if never:
        say(console, _ended_early(found, never, runs[-1], store.folder.name))
    stored = Counter[str]()
    for (dataset, _), pair in found.pairs.items():
        stored[dataset] += pair.stored
    stale = stale_code(store.folder.name, runs, declaration, found.pairs)
    for sentence in [*lost, *changed_files(runs, declaration, stored), *stale]:
        say(console, sentence, wrap=False)
    for dataset, solver, number, why in excluded:
        say(console, f"Not counted: {number:,} trials of {dataset} × {solver} ({why})")
    print_failures(lines_of(found.failures()), console)


def _write_json(summary: Mapping[str, Any], console: Console) -> None:
    console.file.write(json.dumps(summary, ensure_ascii=False) + "\n")


def _for_json(study: str, found: Overview, lines: Sequence[PlanLine], excluded: Excluded) -> dict[str, Any]:
    """Return the progress of a study as values that JSON can hold; times are core time in seconds.

    Parameters
    ----------
    study : str
        Name of the study.
    found : Overview
        Progress of the study.
    lines : sequence of PlanLine
        The same progress, with the time left.
    excluded : list of tuple
        Trials that do not count.
    """
    return {
        "study": study,
        "complete": bool(found.pairs) and all(pair.complete for pair in found.pairs.values()),
        "pairs": [_line_for_json(line) for line in lines],
        "failures": [failure._asdict() for failure in found.failures()],
        "not_counted": [
            {"dataset": dataset, "solver": solver, "trials": number, "reason": reason}
            for dataset, solver, number, reason in excluded
        ],
    }


def _line_for_json(line: PlanLine) -> dict[str, Any]:
    """Return a line as values that JSON can hold, with null for what is not known.

    Parameters
    ----------
    line : PlanLine
        Progress of a dataset × arm.
    """
    values = {**asdict(line), "left": line.left}
    return {
        name: None if isinstance(value, float) and math.isnan(value) else value
        for name, value in values.items()
    }


def started_pairs(found: Overview, runs: Sequence[Mapping[str, Any]]) -> tuple[Overview, tuple[str, ...]]:
    """Separate the datasets that the study does not need because it ended early.

    Parameters
    ----------
    found : Overview
        Progress of the study.
    runs : sequence of mapping
        Provenance of every run, oldest first.

    Returns
    -------
    found : Overview
        Progress without these datasets.
    never : tuple of str
        Names of these datasets.
    """
    never = not_started(runs, {dataset for (dataset, _), pair in found.pairs.items() if pair.stored})
    pairs = {pair: summary for pair, summary in found.pairs.items() if pair[0] not in never}
    return replace(found, pairs=pairs), never


def _ended_early(found: Overview, never: Sequence[str], run: Mapping[str, Any], study: str) -> str:
    number = len({dataset for dataset, _ in found.pairs})
    level = ReportChoices.of(run.get("report") or {}).alpha
    return (
        f"Ended early after {number} of {number + len(never)} datasets: report.sequential=true, and every "
        f"declared pair is decided at level {level:g}. For the evidence: svmbench report study={study}. "
        f"Not started: {', '.join(never)}; the same command with report.sequential=false runs them."
    )


def _overview(
    store: Store, declaration: Declaration, runs: Sequence[Mapping[str, Any]]
) -> tuple[Overview, Excluded, list[str]]:
    """Return the progress of a study, the trials that do not count, and sentences about lost trials.

    Parameters
    ----------
    store : Store
        Store of the study.
    declaration : Declaration
        Declaration in force.
    runs : sequence of mapping
        Provenance of every run, oldest first.
    """
    if all(declared.identity is not None for declared in declaration.pairs.values()):
        found = overview(store, declaration)
        return found, found.excluded(declaration), lost_trials(store, runs, declaration, found.identities())
    return _overview_of_rows(store)


def _overview_of_rows(store: Store) -> tuple[Overview, Excluded, list[str]]:
    """Return the same as `_overview`, from all rows, for a study with an incomplete record of a run.

    Parameters
    ----------
    store : Store
        Store of the study.
    """
    results = read_results(store)
    trials = results.trials
    seconds = trials["fit_seconds"].fillna(0.0) + trials["predict_seconds"].fillna(0.0)
    pairs = {}
    for pair, state in results.states.items():
        counts = trials["key"].isin(state.keys)
        failed = trials.loc[counts & trials["score"].isna(), ["status", "message"]].fillna("")
        pairs[pair] = PairSummary(
            planned=state.planned,
            stored=len(state.keys),
            failed=state.failed,
            complete=state.complete,
            seconds=float(seconds[counts].sum()),
            failures=[(*row, 1) for row in failed.itertuples(index=False, name=None)],
        )
    excluded = list(results.excluded.itertuples(index=False, name=None))
    return Overview(pairs, Counter()), excluded, results.lost


def _total(found: Overview, lines: Sequence[PlanLine], workers: int) -> str:
    done, planned = sum(line.stored for line in lines), sum(line.planned for line in lines)
    left = {(line.dataset, line.solver): line.seconds_left / workers for line in lines if line.left}
    ending = f"on {workers} worker{'s' if workers > 1 else ''}: {time_left(left)}"
    if not done:
        ending = "time left unknown: no trial has finished yet"
    if all(pair.complete for pair in found.pairs.values()):
        ending = "complete"
    failed = sum(line.failed for line in lines)
    return f"{done:,} of {planned:,} trials, {failed:,} failed, {ending}"


def print_lines(title: str, lines: Sequence[PlanLine], console: Console) -> None:
    """Print a table with the progress of each dataset × arm.

    Parameters
    ----------
    title : str
        Title of the table.
    lines : sequence of PlanLine
        Progress of each dataset × arm.
    console : Console
        Terminal for the output.
    """
    table = Table(title=as_text(title), title_justify="left")
    for name in ("dataset", "solver"):
        table.add_column(name, overflow="fold")
    for quantity in ("trials", "stored", "failed", "left", "core time"):
        table.add_column(quantity, justify="right", overflow="fold")
    for line in lines:
        counts = (line.planned, line.stored, line.failed, line.left)
        time = format_seconds(line.seconds_left) if line.seconds_left > 0 else "unknown" if line.left else "–"
        table.add_row(as_text(line.dataset), as_text(line.solver), *(f"{n:,}" for n in counts), time)
    console.print(table)


def print_failures(lines: Sequence[str], console: Console) -> None:
    """Print the first failure of each kind.

    Parameters
    ----------
    lines : sequence of str
        One line for each kind of failure.
    console : Console
        Terminal for the output.
    """
    if lines:
        say(console, "Failed trainings, the first of each kind:")
    for line in lines:
        say(console, f"  {line}")
