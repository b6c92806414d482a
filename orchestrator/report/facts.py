"""What was compared, how, and on which machines: the protocol box and the provenance."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pandas as pd

from orchestrator.analysis.findings import Findings
from orchestrator.report import words
from orchestrator.report.printed import Cell, Table, records
from orchestrator.study import cell

_SCALING = {
    "train": "each feature to [0, 1], fitted on the training rows of the trial at hand",
    "dataset": "each feature to [0, 1], fitted on the whole dataset as in the papers, test rows included; "
    "scores may therefore be slightly too high",
    "none": "features are used as they are",
}
_PROFILES = {
    "timing": "timing: every training alone on a core, cold, sharing nothing with another, so that seconds "
    "can be compared",
    "throughput": "throughput: trainings share kernel matrices and warm starts, so their seconds cannot be "
    "compared",
}


def protocol(findings: Findings) -> list[tuple[str, str]]:
    """Return the protocol as terms and their explanations."""
    design = findings.design
    p = design.protocol
    if not p:
        return [("Protocol", "not recorded: the study's provenance is missing")]
    metric = words.metric_words(design.metric)
    also = [words.metric_words(name) for name in p.get("also", ())]
    entries = [
        (
            "Compared",
            f"{words.plural(len(design.arms), 'arm')} on {words.plural(len(design.datasets), 'dataset')}; an "
            "arm is a solver with its fixed settings",
        ),
        (
            "Evaluation",
            f"nested cross-validation: {p.get('outer')} outer folds give the scores, {p.get('inner')} inner "
            f"folds choose the hyper-parameters; stratified, shuffled with seed {p.get('seed')}; every arm "
            "sees the same folds",
        ),
        ("Search", _search(findings)),
        (
            "Selected by",
            f"mean inner {metric}; ties go to the smaller value of the first hyper-parameter, or to the one "
            "listed first where its values are not all numbers",
        ),
        ("Scored by", metric + (f"; recorded beside it: {words.listed(also)}" if also else "")),
        ("Scaling", _SCALING.get(p.get("scaling", ""), str(p.get("scaling")))),
        ("Profile", _PROFILES.get(p.get("profile", ""), str(p.get("profile")))),
        ("Time limit", f"{p['max_seconds']:g} s per training" if p.get("max_seconds") else "none"),
        ("Trainings", _trainings(findings)),
    ]
    share = findings.results.provenance[-1].get("worker_share")
    if share is not None:
        entries.append(("Worker time", f"{100 * share:.0f} % inside fit and predict, latest run"))
    return entries


def _search(findings: Findings) -> str:
    design = findings.design
    sizes = {design.grid_size(arm) for arm in design.arms}
    if None in sizes:
        return f"{design.search}, the same for every arm"
    if len(sizes) == 1:
        return f"grid of {words.plural(sizes.pop() or 0, 'candidate')} for every arm"
    each = [f"{arm} {design.grid_size(arm)}" for arm in design.arms]
    return f"grid; candidates: {words.listed(each)}"


def _trainings(findings: Findings) -> str:
    frame = findings.coverage
    scored = f"{int(frame['scored'].sum()):,} with a score"
    if frame["planned"].isna().any():
        return scored
    return f"{int(frame['planned'].sum()):,} planned, {scored}"


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
                "fingerprint": facts.get("fingerprint"),
                "source": facts.get("source") or facts.get("target"),
            }
        )
    frame = pd.DataFrame(rows)
    return Table(
        name="datasets",
        title="Datasets",
        caption="Largest and smallest class: their parts of all rows, per cent; a classifier that always "
        "answers the largest class is right that often. Not zero: part of the feature values that differ "
        "from zero, per cent. Fingerprint: first digits of the hash of the content.",
        header=[
            "Dataset",
            "Rows",
            "Features",
            "Classes",
            "Largest class",
            "Smallest class",
            "Not zero",
            "Fingerprint",
        ],
        rows=[
            [
                Cell(row["dataset"]),
                *(Cell(_number(row[name])) for name in ("rows", "features", "classes")),
                *(Cell(_share(row[name])) for name in ("largest_class", "smallest_class", "density")),
                Cell((row["fingerprint"] or words.MISSING)[:8]),
            ]
            for row in rows
        ],
        data=frame,
        last_is_text=True,
    )


def arms(findings: Findings) -> Table:
    """Describe the arms."""
    rows = [
        {
            "solver": name,
            "class": facts.get("target", ""),
            "package": facts.get("identity", ""),
            "fixed": _settings(facts.get("params", {})) or "the defaults of its class",
            "searched": "; ".join(
                f"{param} ∈ {{{', '.join(map(cell, values))}}}"
                for param, values in facts.get("space", {}).items()
            ),
        }
        for name, facts in findings.design.arms.items()
    ]
    return Table(
        name="arms",
        title="Arms",
        caption="The class that was trained, the settings that all its trainings share, and the values the "
        "inner search chose from.",
        header=["Arm", "Class", "Fixed settings", "Searched"],
        rows=[
            [Cell(row[name] or words.MISSING) for name in ("solver", "class", "fixed", "searched")]
            for row in rows
        ],
        data=pd.DataFrame(rows),
        text_columns=4,
    )


def apart(findings: Findings) -> Table:
    """List the stored trials that belong to other declarations than the one in force."""
    frame = findings.results.apart
    return Table(
        name="apart",
        title="Trials of other declarations",
        caption="Stored trials that are used nowhere in this report: the newest run that names their dataset "
        "or solver, or the newest run at all, declared something else. Running a command again with the "
        "former settings brings them back.",
        header=["Dataset", "Arm", "Trials", "Why they do not count"],
        rows=[
            [Cell(row["dataset"]), Cell(row["solver"]), Cell(_number(row["trials"])), Cell(row["why"])]
            for row in records(frame)
        ],
        data=frame,
        text_columns=2,
        last_is_text=True,
    )


def runs(findings: Findings) -> Table:
    """List the runs that made the study."""
    rows = [_run(run) for run in findings.results.provenance]
    frame = pd.DataFrame(rows)
    return Table(
        name="runs",
        title="Runs",
        caption="Every run that added to this study, oldest first; times are in universal time (UTC).",
        header=["Started", "Lasted", "Machines", "Code", "Command"],
        rows=[
            [
                Cell(row["started"] or words.MISSING),
                Cell(row["lasted"]),
                Cell(row["machines"] or words.MISSING),
                Cell(row["code"]),
                Cell(row["command"] or words.MISSING),
            ]
            for row in records(frame)
        ],
        data=frame,
        text_columns=5,
    )


def _run(run: Mapping[str, Any]) -> dict[str, str]:
    started, finished = _time(run.get("started_at")), _time(run.get("finished_at"))
    hosts = run.get("hosts") or []
    machines = "; ".join(
        f"{host.get('cpu', 'unknown processor')}, {words.plural(int(host.get('cores', 0)), 'core')}, "
        f"{host.get('memory_gb', '?')} GB"
        for host in hosts
    )
    cluster = run.get("cluster") or {}
    if cluster.get("workers"):
        machines += f"; {words.plural(int(cluster['workers']), 'worker')}"
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


def software(findings: Findings) -> str:
    """Return the versions of the latest run, and a warning if earlier runs had others."""
    found = [run.get("versions") or {} for run in findings.results.provenance]
    if not found:
        return "Versions were not recorded."
    text = "Software of the latest run: " + ", ".join(
        f"{name} {number}" for name, number in found[-1].items()
    )
    if any(versions != found[-1] for versions in found):
        text += "; earlier runs used other versions, see report.json"
    return text + "."


def _time(text: str | None) -> datetime | None:
    if not text:
        return None
    moment = datetime.fromisoformat(text)
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)


def _duration(seconds: float) -> str:
    if seconds < 0:
        return "unknown: the clock was set back"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02d} min"
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"


def _settings(params: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={cell(value)}" for name, value in params.items())


def _number(value: float | None) -> str:
    return words.MISSING if value is None else f"{value:,}"


def _share(value: float | None) -> str:
    return words.MISSING if value is None else words.share(value)
