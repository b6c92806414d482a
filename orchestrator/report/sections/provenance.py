"""The runs of a study, with their times, machines, code and software."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import pandas as pd

from orchestrator.analysis.findings import Findings
from orchestrator.report import format as fmt
from orchestrator.report.section import Paragraph, Part, Section
from orchestrator.report.table import Printer, Table, print_table
from orchestrator.study.equivalences import EQUIVALENCES
from orchestrator.study.processors import mixed_note
from orchestrator.study.text import format_seconds

TITLE = "Provenance"


def section(study: Findings) -> Section:
    """Return the section.

    Parameters
    ----------
    study : Findings
        The study of the report.

    Returns
    -------
    Section
        The table of runs, and the software of the latest one.
    """
    printed = runs(study)
    listed: Part = printed if printed.rows else Paragraph("No run of this study is recorded.")
    accepted = [Paragraph(sentence, small=True) for sentence in _accepted(study)]
    return Section(TITLE, "", [listed, *accepted, Paragraph("".join(_software(study)), small=True)])


def runs(study: Findings) -> Table:
    """Print the runs of the study, or of each of several merged ones.

    Parameters
    ----------
    study : Findings
        The study of the report.

    Returns
    -------
    Table
        Oldest run first.
    """
    columns = dict[str, Printer]()
    rows = [_run(run) for run in study.provenance]
    if study.studies:
        columns["Study"] = lambda row: row["study"]
        rows = [
            _run(run) | {"study": name} for name, each in study.studies.items() for run in each.provenance
        ]
    return print_table(
        "runs",
        "Runs",
        pd.DataFrame(rows),
        columns
        | {
            "Started": lambda row: row["started"] or fmt.MISSING,
            "Duration": lambda row: row["lasted"],
            "Machines": lambda row: row["machines"] or fmt.MISSING,
            "Code": lambda row: row["code"],
            "Command": lambda row: row["command"] or fmt.MISSING,
        },
        caption="All commands that added or accepted trials, the oldest first. Times are in UTC.",
        text_columns=5 + len(columns),
    )


def _run(run: Mapping[str, Any]) -> dict[str, str]:
    started, finished = _time(run.get("started_at")), _time(run.get("finished_at"))
    hosts = run.get("hosts") or []
    machines = "; ".join(map(fmt.machine, hosts))
    if mixed := mixed_note(hosts):
        machines += f"; {mixed}"
    cluster = run.get("cluster") or {}
    if cluster.get("workers"):
        machines += f"; {fmt.plural(int(cluster['workers']), 'worker')}"
    git = run.get("git") or {}
    code = f"svmbench {(run.get('versions') or {}).get('svmbench', '?')}{_commit(git)}"
    others = {name: state for name, state in (run.get("git_of") or {}).items() if state and state != git}
    return {
        "run_id": str(run.get("run_id", "")),
        "started": f"{started:%Y-%m-%d %H:%M}" if started else "",
        "lasted": _duration((finished - started).total_seconds()) if started and finished else "not finished",
        "machines": machines,
        "code": "; ".join([code, *(f"{name}{_commit(state)}" for name, state in others.items())]),
        "command": " ".join(run.get("command") or []),
    }


def _commit(git: Mapping[str, Any]) -> str:
    return f", commit {git['commit'][:10]}{' with local changes' if git.get('dirty') else ''}" if git else ""


def _time(text: str | None) -> datetime | None:
    if not text:
        return None
    moment = datetime.fromisoformat(text)
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)


def _duration(seconds: float) -> str:
    return format_seconds(seconds) if seconds >= 0 else "unknown, because the clock was set back"


def _accepted(study: Findings) -> Iterator[str]:
    """Yield a sentence for each arm whose trials of older code were accepted by a sample.

    Parameters
    ----------
    study : Findings
        The study of the report.

    Yields
    ------
    str
        The size of the sample and the bound.
    """
    for run in study.provenance:
        for each in run.get(EQUIVALENCES) or ():
            if samples := list((each.get("datasets") or {}).values()):
                drawn, units = (sum(sample[name] for sample in samples) for name in ("drawn", "units"))
                bound = max(sample["bound"] for sample in samples)
                limit = ""
                if bound:
                    limit = (
                        f" At a confidence of 95 %, fewer than {100 * bound:.1f} % of a dataset's can differ."
                    )
                yield (
                    f"Trials of {each['solver']} were made by older code. {drawn:,} of {units:,} were "
                    f"trained again, with the same scores and counts.{limit}"
                )


def _software(study: Findings) -> Iterator[str]:
    runs = study.provenance
    if not runs:
        yield "Versions were not recorded."
        return
    versions = runs[-1].get("versions") or {}
    yield f"Software of the latest run: {', '.join(f'{name} {number}' for name, number in versions.items())}"
    if any((run.get("versions") or {}) != versions for run in runs):
        yield "; earlier runs used other versions, which report.json lists"
    yield "."
