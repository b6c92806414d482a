"""Repeated reports of a study while it runs."""

import math
import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from orchestrator.analysis.findings import Findings
from orchestrator.study.declaration import not_started

POLL_SECONDS = 2.0
"""Time between two listings of the folders of studies, in seconds."""

_REST = 9.0
"""Pause after a report, as a multiple of the time that the report took. Reports compete with trainings."""

Seen = frozenset[tuple[str, int, int]]
"""Paths, sizes and modification times of files."""


def watch(
    folders: Iterable[Path],
    analysed: Callable[[], Findings],
    written: Callable[[Findings, int | None], Path],
    reported: Callable[[Findings, Path], None],
) -> Findings:
    """Write a report whenever trials were stored, until the study is complete, and return the last findings.

    Parameters
    ----------
    folders : iterable of Path
        Folders of the studies.
    analysed : callable
        Reads the studies and returns their findings.
    written : callable
        Takes findings and the number of seconds after which the page reloads itself, or None. Writes the
        report and returns the path of its page.
    reported : callable
        Takes the findings and the path of the page of each report.

    Raises
    ------
    KeyboardInterrupt
        If the user interrupts. The page is written again first, so that it does not reload itself any more.
    """
    folders, findings, due = list(folders), None, -math.inf
    trials: Seen = frozenset()
    runs: Seen = frozenset()
    try:
        while True:
            now = _seen(folders, "trials"), _seen(folders, "provenance")
            # The start and the end of a run are shown without delay.
            if findings is None or now[1] != runs or (now[0] != trials and time.monotonic() >= due):
                started, (trials, runs) = time.monotonic(), now
                findings = analysed()
                ended = _ended(findings)
                reported(findings, written(findings, None if ended else round(5 * POLL_SECONDS)))
                if ended:
                    return findings
                due = time.monotonic() + _REST * (time.monotonic() - started)
            time.sleep(POLL_SECONDS)
    except KeyboardInterrupt:
        if findings is not None:
            written(findings, None)
        raise


def _seen(folders: Iterable[Path], name: str) -> Seen:
    """Return the names, sizes and times of stored files, which differ if anything was stored.

    Parameters
    ----------
    folders : iterable of Path
        Folders of the studies.
    name : str
        Name of a subfolder.
    """
    found = set()
    for folder in folders:
        try:
            for entry in os.scandir(folder / name):
                if entry.name.endswith((".parquet", ".json")):
                    status = entry.stat()
                    found.add((entry.path, status.st_size, status.st_mtime_ns))
        except FileNotFoundError:  # not written yet, or merged into another part
            continue
    return frozenset(found)


def _ended(findings: Findings) -> bool:
    """Return whether the newest run has ended, and the study is complete or ended early as declared.

    Parameters
    ----------
    findings : Findings
        Findings of the study.
    """
    results = findings.results
    finished = not results.provenance or results.provenance[-1].get("finished_at") is not None
    started = {dataset for (dataset, _), state in results.states.items() if state.keys}
    unneeded = not_started(results.provenance, started)
    return finished and all(
        state.complete for (dataset, _), state in results.states.items() if dataset not in unneeded
    )
