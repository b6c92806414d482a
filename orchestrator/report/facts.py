"""What was compared, and on which machines: datasets, arms and runs."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pandas as pd

from orchestrator.analysis.findings import Findings
from orchestrator.analysis.merged_studies import MergedStudies
from orchestrator.report import format as fmt
from orchestrator.report.table import Printer, Table, print_table
from orchestrator.study.processors import mixed_note
from orchestrator.study.text import format_seconds
from orchestrator.study.values import cell


def datasets(findings: Findings) -> Table:
    """Describe the datasets, so that a reader can tell whether they are the ones they know."""
    rows: list[dict[str, Any]] = []
    for name, facts in findings.design.datasets.items():
        counts = facts.get("class_counts") or {}
        total = sum(counts.values())
        rows.append(
            {
                "dataset": name,
                "rows": facts.get("n"),
                "features": facts.get("d"),
                "classes": facts.get("classes"),
                "largest_class": max(counts.values()) / total if total else None,
                "smallest_class": min(counts.values()) / total if total else None,
                "density": facts.get("density"),
                "distinct_rows": facts.get("distinct_rows"),
                "tested_copies": facts.get("tested_copies"),
                "dropped_copies": facts.get("dropped_copies"),
                "fingerprint": facts.get("fingerprint"),
                "source": facts.get("source") or facts.get("target"),
            }
        )
    return print_table(
        "datasets",
        "Datasets",
        pd.DataFrame(rows),
        {
            "Dataset": lambda row: row["dataset"],
            "Rows": lambda row: fmt.count(row["rows"]),
            "Features": lambda row: fmt.count(row["features"]),
            "Classes": lambda row: fmt.count(row["classes"]),
            "Largest class": lambda row: fmt.share(row["largest_class"]),
            "Smallest class": lambda row: fmt.share(row["smallest_class"]),
            "Not zero": lambda row: fmt.share(row["density"]),
            "Copies tested": lambda row: fmt.share(row["tested_copies"]),
            "Fingerprint": lambda row: (row["fingerprint"] or fmt.MISSING)[:8],
        },
        rows=rows,
        last_is_text=True,
    )


def arms(findings: Findings) -> Table:
    """Describe the arms."""
    rows = [
        {
            "solver": name,
            "class": facts.get("target", ""),
            "package": " + ".join(
                dict.fromkeys([facts.get("identity", ""), *facts.get("space_identities", {}).values()])
            ),
            "fixed": _settings(facts.get("params", {})) or "the defaults of its class",
            "searched": "; ".join(
                f"{param} ∈ {_searched(values)}" for param, values in facts.get("space", {}).items()
            ),
        }
        for name, facts in findings.design.arms.items()
    ]
    columns: dict[str, Printer] = {
        "Arm": lambda row: row["solver"] or fmt.MISSING,
        "Class": lambda row: row["class"] or fmt.MISSING,
        "Fixed settings": lambda row: row["fixed"],
    }
    if len({row["searched"] for row in rows}) > 1:  # otherwise the caption says it once
        columns["Searched"] = lambda row: row["searched"] or fmt.MISSING
    return print_table("arms", "Arms", pd.DataFrame(rows), columns, text_columns=len(columns))


def _searched(values: Any) -> str:
    if not isinstance(values, Mapping):
        return f"{{{', '.join(map(cell, values))}}}"
    kinds = {"log": "logarithmic", "integer": "whole numbers"}
    ends = f"[{cell(values.get('low'))}, {cell(values.get('high'))}]"
    return ", ".join([ends, *(word for key, word in kinds.items() if values.get(key))])


def apart(findings: Findings) -> Table:
    """List the stored trials that belong to other declarations than the one in force."""
    return print_table(
        "apart",
        "Trials of other declarations",
        findings.results.excluded,
        {
            "Dataset": lambda row: row["dataset"],
            "Arm": lambda row: row["solver"],
            "Trials": lambda row: fmt.count(row["trials"]),
            "Why they do not count": lambda row: row["why"],
        },
        text_columns=2,
        last_is_text=True,
    )


def runs(findings: Findings) -> Table:
    """List the runs that made the study, or each of several."""
    results, columns = findings.results, dict[str, Printer]()
    rows = [_run(run) for run in results.provenance]
    if isinstance(results, MergedStudies):
        columns["Study"] = lambda row: row["study"]
        rows = [
            _run(run) | {"study": name} for name, study in results.studies.items() for run in study.provenance
        ]
    return print_table(
        "runs",
        "Runs",
        pd.DataFrame(rows),
        columns
        | {
            "Started": lambda row: row["started"] or fmt.MISSING,
            "Lasted": lambda row: row["lasted"],
            "Machines": lambda row: row["machines"] or fmt.MISSING,
            "Code": lambda row: row["code"],
            "Command": lambda row: row["command"] or fmt.MISSING,
        },
        text_columns=5 + len(columns),
    )


def _run(run: Mapping[str, Any]) -> dict[str, str]:
    started, finished = _time(run.get("started_at")), _time(run.get("finished_at"))
    hosts = run.get("hosts") or []
    machines = "; ".join(
        f"{host.get('cpu', 'unknown processor')}, {fmt.plural(int(host.get('cores', 0)), 'core')}, "
        f"{host.get('memory_gb', '?')} GB"
        for host in hosts
    )
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
    return format_seconds(seconds) if seconds >= 0 else "unknown: the clock was set back"


def _settings(params: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={cell(value)}" for name, value in params.items())
