"""How much of a study has been run, in a sentence."""

from collections.abc import Iterator

import pandas as pd

from orchestrator.analysis.findings import Findings
from orchestrator.analysis.summaries import STATUSES
from orchestrator.report import format as fmt

STATUS_TEXTS = {
    "timeout": "out of time",
    "diverged": "diverged",
    "error": "failed",
    "worker_lost": "lost with their worker",
}


def coverage_note(findings: Findings) -> str:
    """Say how many trainings have a score, and what became of the others."""
    frame = findings.coverage
    if frame.empty:
        return "No training is planned."
    stored, scored = int(frame["stored"].sum()), int(frame["scored"].sum())
    bad = [
        f"{number:,} {STATUS_TEXTS[name]} ({_arms(frame, name)})"
        for name in STATUSES[1:]
        if (number := frame[name].sum())
    ]
    if frame["planned"].isna().any():
        planned = f"{fmt.plural(stored, 'training')} stored, {scored:,} with a score"
    else:
        total = int(frame["planned"].sum())
        planned = f"{scored:,} of {fmt.plural(total, 'planned training')} have a score"
        ended = sum(_not_run(frame, findings, ended=True))
        still = sum(_not_run(frame, findings, ended=False))
        bad += [f"{ended:,} never run, for no candidate had a score"] if ended else []
        bad += [f"{still:,} not run yet"] if still else []
    return f"{planned}{'; ' if bad else ''}{', '.join(bad)}."


def _not_run(frame: pd.DataFrame, findings: Findings, ended: bool) -> Iterator[int]:
    """Yield the trainings without a row of each dataset × arm that has ended, or of each that has not."""
    for dataset, arm, number in zip(frame["dataset"], frame["solver"], frame["not_run"], strict=True):
        state = findings.results.states.get((dataset, arm))
        if (state is not None and state.complete) is ended:
            yield int(number)


_MOST_NAMED = 4


def _arms(frame: pd.DataFrame, status: str) -> str:
    """Name the arms with trainings that ended so, or say how many they are."""
    arms = list(frame.loc[frame[status] > 0, "solver"].unique())
    return ", ".join(arms) if len(arms) <= _MOST_NAMED else fmt.plural(len(arms), "arm")
