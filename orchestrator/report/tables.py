"""The printed tables of a report, each with a caption that explains every number in it."""

from collections.abc import Callable, Iterable
from typing import Any

import pandas as pd

from orchestrator.analysis.findings import Findings
from orchestrator.analysis.tables import STATUSES
from orchestrator.report import captions, comparison, words
from orchestrator.report.printed import Cell, Table, records


def coverage(findings: Findings) -> Table:
    """Arms × datasets with the number of trials that have a score."""
    known = bool(findings.coverage["planned"].notna().all())

    def cell(row: dict[str, Any]) -> Cell:
        planned = row["planned"] if known else None
        text = f"{row['scored']:,}" + ("" if planned is None else f" of {planned:,}")
        bad = [f"{row[status]:,} {_STATUS_WORDS[status]}" for status in STATUSES[1:] if row[status]]
        missing = 0 if planned is None else planned - row["stored"]
        if missing > 0:
            bad.append(f"{missing:,} not run yet")
        if bad:
            return Cell(f"{text} ({', '.join(bad)})", tone="bad" if row["scored"] < row["stored"] else "warn")
        return Cell(text, tone="good" if planned is not None else "")

    return _matrix(
        findings,
        findings.coverage,
        cell,
        name="coverage",
        title="What was run",
        caption=captions.coverage(known),
    )


_STATUS_WORDS = {
    "timeout": "out of time",
    "diverged": "diverged",
    "error": "failed",
    "worker_lost": "lost with their worker",
}


def scores(findings: Findings, metric: str | None = None) -> Table:
    """Datasets × arms with mean ± standard error of a metric."""
    frame = findings.scores if metric is None else findings.other_scores[metric]
    name = metric or findings.design.metric
    unit = ", per cent" if words.is_percent(name) else ""
    n_outer = findings.design.n_outer

    def cell(row: dict[str, Any]) -> Cell:
        if not row["n_folds"]:
            return Cell(words.MISSING, tone="quiet")
        text = f"{words.score(row['mean'], name)} ± {words.score(row['se'], name)}"
        if not row["complete"]:
            return Cell(f"{text} ({row['n_folds']} of {n_outer} folds)", tone="warn")
        return Cell(text + (f" {captions.NEAR_BEST}" if row["near_best"] else ""), strong=row["best"])

    return _matrix(
        findings,
        frame,
        cell,
        name="scores" if metric is None else f"scores_{metric}",
        title=f"{words.metric_words(name).capitalize()} on the outer folds{unit}",
        caption=captions.scores(frame, n_outer),
    )


def effort(findings: Findings) -> Table:
    """Support vectors, iterations and kernel evaluations of the refits."""
    frame = findings.effort
    return Table(
        name="effort",
        title="Size of the models and work to train them",
        caption=captions.EFFORT,
        header=[
            "Dataset",
            "Arm",
            "Support-vector share, %",
            "Support vectors",
            "Iterations",
            "Kernel evaluations",
            "Not converged",
        ],
        rows=[
            [
                *_names(row, previous),
                Cell(words.share(row["sv_share"])),
                Cell(words.count(row["n_sv"])),
                Cell(words.count(row["n_iter"])),
                Cell(words.count(row["n_kernel_evals"])),
                Cell(
                    f"{row['not_converged']} of {row['n_fits']}",
                    tone="warn" if row["not_converged"] else "quiet",
                ),
            ]
            for row, previous in _with_previous(frame)
        ],
        data=frame,
        text_columns=2,
    )


def timing(findings: Findings) -> Table:
    """Training and prediction time of the refits, from the profile `timing` alone."""
    frame = findings.timing
    unit, scale = time_unit(frame)
    return Table(
        name="timing",
        title="Training and prediction time",
        caption=captions.TIMING,
        header=[
            "Dataset",
            "Arm",
            f"Training, wall clock, {unit}",
            f"Training, processor, {unit}",
            f"Prediction, {unit}",
            "Whole search, s",
            "Trainings",
        ],
        rows=[
            [
                *_names(row, previous),
                Cell(_with_error(scale * row["fit_seconds"], scale * row["fit_se"])),
                Cell(words.time(scale * row["fit_cpu_seconds"])),
                Cell(words.time(scale * row["predict_seconds"])),
                Cell(words.time(row["study_seconds"])),
                Cell(words.count(row["n_trainings"])),
            ]
            for row, previous in _with_previous(frame)
        ],
        data=frame,
        text_columns=2,
    )


def _with_error(mean: float, error: float) -> str:
    return f"{words.time(mean)} ± {words.time(error, like=mean)}"


def time_unit(frame: pd.DataFrame) -> tuple[str, float]:
    """Return the unit in which the times of a table are read most easily, and how many make a second."""
    slowest = frame[["fit_seconds", "predict_seconds"]].to_numpy(dtype=float).max()
    return ("ms", 1e3) if slowest < 1 else ("s", 1.0)


def time_ratios(findings: Findings) -> Table:
    """Geometric-mean time ratios to the first arm."""
    frame = findings.time_ratios
    reference = next(iter(findings.design.arms))
    return Table(
        name="time_ratios",
        title=f"Time relative to {reference}",
        caption=captions.time_ratios(reference),
        header=["Arm", "Training", "Prediction", "Datasets"],
        rows=[
            [
                Cell(row["solver"]),
                Cell(words.ratio(row["fit_seconds_ratio"])),
                Cell(words.ratio(row["predict_seconds_ratio"])),
                Cell(words.count(row["fit_seconds_n"])),
            ]
            for row in records(frame)
        ],
        data=frame,
    )


def selections(findings: Findings) -> Table:
    """Candidates the inner search chose, and how often they lie on the border."""
    frame, metric = findings.selections, findings.design.metric
    return Table(
        name="selections",
        title="Chosen hyper-parameters",
        caption=captions.selections(metric),
        header=[
            "Dataset",
            "Arm",
            f"Inner {words.metric_words(metric)}{', %' if words.is_percent(metric) else ''}",
            "On the border",
            "Tied",
            "Without a score",
            "Chosen",
        ],
        rows=[
            [
                *_names(row, previous),
                Cell(words.score(row["inner_score"], metric)),
                Cell(
                    f"{row['at_edge']} of {row['n_folds']}",
                    tone="warn" if 2 * row["at_edge"] > row["n_folds"] else "",
                ),
                Cell(words.count(row["n_tied"])),
                Cell(
                    f"{row['n_failed']:,} of {row['n_candidates']:,}",
                    tone="warn" if row["n_failed"] else "quiet",
                ),
                # A line may break between choices, not within one.
                Cell(row["chosen"].replace(" ", "\u00a0").replace(";\u00a0", "; ")),
            ]
            for row, previous in _with_previous(frame)
        ],
        data=frame,
        text_columns=2,
        last_is_text=True,
    )


def failures(findings: Findings) -> Table:
    """Every kind of failure with its first message."""
    frame = findings.failures
    return Table(
        name="failures",
        title="Failures",
        caption=captions.FAILURES,
        header=["Kind", "Arms", "Datasets", "Trials", "With a score", "First seen, and what it said"],
        rows=[
            [
                Cell(_STATUS_WORDS.get(row["status"], row["status"])),
                Cell(row["solvers"]),
                Cell(row["datasets"]),
                Cell(words.count(row["count"])),
                Cell(words.count(row["scored"])),
                Cell(f"{row['first']}: {row['message']}"),
            ]
            for row in records(frame)
        ],
        data=frame,
        text_columns=3,
        last_is_text=True,
    )


def sweep(findings: Findings) -> Table:
    """One row for every swept setting, against its reference."""
    frame, metric = findings.sweep_summary, findings.design.metric
    timed = frame["fit_seconds_ratio"].notna().any()
    return Table(
        name="sweep",
        title="Sweeps: each setting against the first one",
        caption=captions.sweep(metric),
        header=[
            "Sweep",
            "Setting",
            "Reference",
            "Datasets",
            "Higher / same / lower",
            "Median difference",
            "Range of differences",
            "Iterations, ratio",
            "Kernel evaluations, ratio",
            *(["Training time, ratio"] if timed else []),
        ],
        rows=[
            [
                Cell(f"{row['sweep']}: {row['axis']}"),
                Cell(str(row["setting"])),
                Cell(str(row["reference"])),
                Cell(words.count(row["n"])),
                Cell(f"{row['higher']} / {row['equal']} / {row['lower']}"),
                Cell(words.difference(row["median_difference"], metric)),
                Cell(
                    f"{words.difference(row['lowest_difference'], metric)} to "
                    f"{words.difference(row['highest_difference'], metric)}"
                ),
                Cell(words.ratio(row["n_iter_ratio"])),
                Cell(words.ratio(row["n_kernel_evals_ratio"])),
                *([Cell(words.ratio(row["fit_seconds_ratio"]))] if timed else []),
            ]
            for row in records(frame)
            if row["setting"] != row["reference"]
        ],
        data=frame,
    )


def all_tables(findings: Findings) -> dict[str, Table]:
    """Return the tables that this study has something to say in, by name, in the report's order."""
    build: list[tuple[bool, Callable[[Findings], Table]]] = [
        (len(findings.coverage) > 0, coverage),
        (not findings.is_empty, scores),
        (not findings.is_empty and len(findings.tests) > 0, comparison.tests),
        (not findings.is_empty and len(findings.tests) > 0, comparison.details),
        (not findings.is_empty and len(findings.tests) > 0, comparison.sensitivity),
        (len(findings.ranks) > 0 and len(findings.means.columns) > 2, comparison.ranks),
        (len(findings.timing) > 0, timing),
        (len(findings.time_ratios) > 0, time_ratios),
        (not findings.is_empty, effort),
        (len(findings.selections) > 0, selections),
        (len(findings.failures) > 0, failures),
        (len(findings.sweep_summary) > 0 and not findings.is_empty, sweep),
    ]
    tables = [make(findings) for wanted, make in build if wanted]
    tables += [scores(findings, metric) for metric in findings.other_scores if not findings.is_empty]
    return {table.name: table for table in tables}


def _matrix(
    findings: Findings,
    frame: pd.DataFrame,
    cell: Callable[[dict[str, Any]], Cell],
    *,
    name: str,
    title: str,
    caption: str,
) -> Table:
    """Lay a long frame out as datasets (rows) × arms (columns)."""
    cells = {(row["dataset"], row["solver"]): cell(row) for row in records(frame)}
    arms = list(findings.design.arms)
    nothing = Cell("another protocol", tone="quiet")
    return Table(
        name=name,
        title=title,
        caption=caption,
        header=["Dataset", *arms],
        rows=[
            [Cell(dataset), *(cells.get((dataset, arm), nothing) for arm in arms)]
            for dataset in findings.design.datasets
        ],
        data=frame,
    )


def _with_previous(frame: pd.DataFrame) -> Iterable[tuple[dict[str, Any], dict[str, Any]]]:
    rows = records(frame)
    return zip(rows, [{}, *rows[:-1]], strict=True)


def _names(row: dict[str, Any], previous: dict[str, Any]) -> list[Cell]:
    """Name the dataset once for all its arms."""
    return [Cell("" if row["dataset"] == previous.get("dataset") else row["dataset"]), Cell(row["solver"])]
