"""The printed tables of a report, each with a caption that explains every number in it."""

from collections.abc import Callable, Iterable
from typing import Any

import pandas as pd

from orchestrator.analysis.findings import Findings
from orchestrator.analysis.ratios import BETWEEN, EXACT, WORDS
from orchestrator.analysis.tables import STATUSES
from orchestrator.report import captions, comparison, words
from orchestrator.report.limits import arms_note, limited, shown, shown_arms
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
    n_outer, marked = findings.design.n_outer, _marked_cells(findings)

    def cell(row: dict[str, Any]) -> Cell:
        if not row["n_folds"]:
            return Cell(words.MISSING, tone="quiet")
        mean, corrected, descriptive = (words.score(row[key], name) for key in ("mean", "corrected_se", "se"))
        text = f"{mean} ± {corrected} ({descriptive})"
        if (row["dataset"], row["solver"]) in marked:
            text += f" {words.MARK}"
        if not row["complete"]:
            return Cell(f"{text} ({row['n_folds']} of {n_outer} folds)", tone="warn")
        return Cell(text, strong=row["best"])

    return _matrix(
        findings,
        frame,
        cell,
        name="scores" if metric is None else f"scores_{metric}",
        title=f"{words.metric_words(name).capitalize()} on the outer folds{unit}",
        caption=captions.with_mark(captions.scores(frame, n_outer), findings),
    )


def effort(findings: Findings) -> Table:
    """Size and work of the refits, and how near the optimum they ended."""
    frame = findings.effort
    return Table(
        name="effort",
        title="Size of the models and work to train them",
        caption=captions.with_mark(captions.EFFORT, findings) + arms_note(findings),
        header=[
            "Dataset",
            "Arm",
            "Support-vector share, %",
            "Support vectors",
            "Iterations",
            "Kernel evaluations",
            "Median gap",
            "Largest gap",
            "Not converged",
            "Stopped by",
        ],
        rows=[
            [
                *_names(row, previous, row["marked"]),
                Cell(words.share(row["sv_share"])),
                Cell(words.count(row["n_sv"])),
                *(Cell(_lower_bound(words.count(row[name]), row)) for name in ("n_iter", "n_kernel_evals")),
                Cell(words.gap(row["gap_median"])),
                Cell(words.gap(row["gap_max"]), tone="warn" if row["n_gap_above"] else ""),
                Cell(
                    f"{row['not_converged']} of {row['n_fits']}",
                    tone="warn" if row["not_converged"] else "quiet",
                ),
                Cell(row["stopping"] or words.MISSING),
            ]
            for row, previous in _with_previous(shown(findings, frame))
        ],
        data=frame,
        text_columns=2,
        last_is_text=True,
    )


def _lower_bound(text: str, row: dict[str, Any]) -> str:
    """Print a mean cost, as a lower bound if some of the refits were stopped."""
    return f"≥ {text}" if row["n_stopped"] and text != words.MISSING else text


def timing(findings: Findings) -> Table:
    """Training and prediction time of the refits, from the profile `timing` alone."""
    frame, marked = findings.timing, _marked_cells(findings)
    unit, scale = time_unit(frame)
    return Table(
        name="timing",
        title="Training and prediction time",
        caption=captions.with_mark(captions.TIMING, findings) + arms_note(findings),
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
                *_names(row, previous, (row["dataset"], row["solver"]) in marked),
                Cell(
                    _fit_time(row, scale, findings.design.n_outer),
                    tone="" if row["complete"] and not row["n_stopped"] else "warn",
                ),
                Cell(_lower_bound(words.time(scale * row["fit_cpu_seconds"]), row)),
                Cell(words.time(scale * row["predict_seconds"])),
                Cell(("≥ " if row["n_trainings_stopped"] else "") + words.time(row["study_seconds"])),
                Cell(words.count(row["n_trainings"])),
            ]
            for row, previous in _with_previous(shown(findings, frame))
        ],
        data=frame,
        text_columns=2,
    )


def _fit_time(row: dict[str, Any], scale: float, n_outer: int) -> str:
    mean = scale * row["fit_seconds"]
    if row["n_stopped"]:
        text = f"≥ {words.time(mean)} ({row['n_stopped']} of {row['n_fits']} stopped)"
    else:
        corrected, descriptive = (
            words.time(scale * row[name], like=mean) for name in ("fit_corrected_se", "fit_se")
        )
        text = f"{words.time(mean)} ± {corrected} ({descriptive})"
    return text if row["complete"] else f"{text} ({row['n_fits']} of {n_outer} folds)"


def time_unit(frame: pd.DataFrame) -> tuple[str, float]:
    """Return the unit in which the times of a table are read most easily, and how many make a second."""
    slowest = frame[["fit_seconds", "predict_seconds"]].max().max()
    return ("ms", 1e3) if slowest < 1 else ("s", 1.0)


def time_ratios(findings: Findings) -> Table:
    """Time ratios to the first arm, and what may be said of them."""
    frame, marked = findings.time_ratios, comparison.marked_arms(findings)
    reference = next(iter(findings.design.arms))
    return Table(
        name="time_ratios",
        title=f"Time relative to {comparison.with_mark(reference, marked)}",
        caption=captions.with_mark(captions.time_ratios(findings, reference), findings),
        header=[
            "Arm",
            "Datasets",
            "Training, geometric mean",
            "Training, typical ratio",
            "p",
            "Adjusted p",
            "Prediction, geometric mean",
            "Training: verdict",
        ],
        rows=[
            [
                Cell(comparison.with_mark(row["solver"], marked)),
                Cell(words.count(row["fit_seconds_n"])),
                Cell(_geometric_mean(row, "fit_seconds")),
                Cell(_typical_ratio(row, "fit_seconds")),
                Cell(words.p_value(row["p"])),
                Cell(words.p_value(row["p_holm"])),
                Cell(_geometric_mean(row, "predict_seconds")),
                Cell(row["verdict"], strong=row["verdict"] in WORDS),
            ]
            for row in records(frame)
        ],
        data=frame,
        last_is_text=True,
    )


def _geometric_mean(row: dict[str, Any], cost: str) -> str:
    text = words.bounded_ratio(
        *(row[f"{cost}_{key}"] for key in ("bound", "ratio", "median_low", "median_high"))
    )
    low, high = row[f"{cost}_ratio_low"], row[f"{cost}_ratio_high"]
    return text if pd.isna(low) else f"{text} [{words.ratio(low)}, {words.ratio(high)}]"


def _typical_ratio(row: dict[str, Any], cost: str) -> str:
    estimate, low, high = (row[f"{cost}_{key}"] for key in ("typical", "typical_low", "typical_high"))
    bound = (
        "" if row[f"{cost}_bound"] in (EXACT, BETWEEN) or pd.isna(estimate) else f"{row[f'{cost}_bound']} "
    )
    text = f"{bound}{words.ratio(estimate)}"
    if pd.isna(low):
        return f"{text} (no interval)" if row[f"{cost}_n"] else words.MISSING
    return f"{text} [{words.ratio(low)}, {words.ratio(high)}] at {100 * row[f'{cost}_confidence']:.1f} %"


def selections(findings: Findings) -> Table:
    """Candidates the inner search chose, and how often they lie on the border."""
    frame, metric = findings.selections, findings.design.metric
    return Table(
        name="selections",
        title="Chosen hyper-parameters",
        caption=captions.selections(metric) + arms_note(findings),
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
                Cell(row["chosen"]),
            ]
            for row, previous in _with_previous(shown(findings, frame))
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
    timed = (frame["fit_seconds_n"] > 0).any()
    marked = comparison.marked_arms(findings)

    def cost(row: dict[str, Any], name: str) -> Cell:
        keys = ("bound", "ratio", "median_low", "median_high")
        return Cell(words.bounded_ratio(*(row[f"{name}_{key}"] for key in keys)))

    return Table(
        name="sweep",
        title="Sweeps: each setting against the first one",
        caption=captions.with_mark(captions.sweep(metric), findings),
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
                Cell(str(row["setting"]) + (words.MARK if row["solver"] in marked else "")),
                Cell(str(row["reference"])),
                Cell(words.count(row["n"])),
                Cell(f"{row['higher']} / {row['equal']} / {row['lower']}"),
                Cell(words.difference(row["median_difference"], metric)),
                Cell(
                    f"{words.difference(row['lowest_difference'], metric)} to "
                    f"{words.difference(row['highest_difference'], metric)}"
                ),
                cost(row, "n_iter"),
                cost(row, "n_kernel_evals"),
                *([cost(row, "fit_seconds")] if timed else []),
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
        (len(findings.timing) > 0 and len(findings.time_ratios) > 0, time_ratios),
        (not findings.is_empty, effort),
        (len(findings.selections) > 0, selections),
        (len(findings.failures) > 0, failures),
        (len(findings.sweep_summary) > 0 and not findings.is_empty, sweep),
    ]
    tables = [make(findings) for wanted, make in build if wanted]
    tables += [scores(findings, metric) for metric in findings.other_scores if not findings.is_empty]
    return {table.name: limited(table) for table in tables}


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
    arms = shown_arms(findings)
    nothing = Cell("another protocol", tone="quiet")
    return Table(
        name=name,
        title=title,
        caption=caption + arms_note(findings),
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


def _names(row: dict[str, Any], previous: dict[str, Any], marked: bool = False) -> list[Cell]:
    """Name the dataset once for all its arms."""
    dataset = "" if row["dataset"] == previous.get("dataset") else row["dataset"]
    return [Cell(dataset), Cell(row["solver"] + (words.MARK if marked else ""))]


def _marked_cells(findings: Findings) -> frozenset[tuple[str, str]]:
    """Return the dataset × arm whose refits are not known to be near their optimum."""
    marked = findings.marked
    return frozenset(zip(marked["dataset"], marked["solver"], strict=True)) if len(marked) else frozenset()
