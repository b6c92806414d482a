"""Report a study again and again while it runs."""

import math
import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from orchestrator.analysis.findings import Findings

POLL_SECONDS = 2.0
"""How often the folders of studies are listed."""

_REST = 9.0
"""A report is followed by so many times the time that it took, or trainings would wait for it."""

Seen = frozenset[tuple[str, int, int]]


def watch(
    folders: Iterable[Path],
    analysed: Callable[[], Findings],
    written: Callable[[Findings, int | None], Path],
    told: Callable[[Findings, Path], None],
) -> Findings:
    """Write a report whenever something was stored, until the study is complete; return what was found last.

    Parameters
    ----------
    folders : iterable of Path
        Those of the studies.
    analysed : callable
        Reads the studies as they are.
    written : callable
        Writes the report of findings, whose page reloads itself every so many seconds, if any are given.
    told : callable
        Is given the findings of each report and the path of its page.

    Raises
    ------
    KeyboardInterrupt
        As it came, when the page no longer reloads itself.
    """
    folders, findings, due = list(folders), None, -math.inf
    trials: Seen = frozenset()
    runs: Seen = frozenset()
    try:
        while True:
            now = _seen(folders, "trials"), _seen(folders, "provenance")
            # What begins or ends a run is shown at once.
            if findings is None or now[1] != runs or (now[0] != trials and time.monotonic() >= due):
                begun, (trials, runs) = time.monotonic(), now
                findings = analysed()
                ended = _ended(findings)
                told(findings, written(findings, None if ended else round(5 * POLL_SECONDS)))
                if ended:
                    return findings
                due = time.monotonic() + _REST * (time.monotonic() - begun)
            time.sleep(POLL_SECONDS)
    except KeyboardInterrupt:
        if findings is not None:
            written(findings, None)
        raise


def _seen(folders: Iterable[Path], name: str) -> Seen:
    """Return what tells whether anything was stored: names, sizes and times of files."""
    found = set()
    for folder in folders:
        try:
            for entry in os.scandir(folder / name):
                if entry.name.endswith((".parquet", ".json")):
                    facts = entry.stat()
                    found.add((entry.path, facts.st_size, facts.st_mtime_ns))
        except FileNotFoundError:  # not made yet, or merged into another part
            continue
    return frozenset(found)


def _ended(findings: Findings) -> bool:
    """Whether nothing is left to run, and the newest run says that it has ended."""
    results = findings.results
    finished = not results.provenance or results.provenance[-1].get("finished_at") is not None
    return finished and all(state.complete for state in results.states.values())
