"""The printed tables of a report, each with a caption that explains every number in it."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pandas as pd

from orchestrator.analysis.findings import Findings
from orchestrator.analysis.profiles import share_within
from orchestrator.analysis.ratios import DECIDED
from orchestrator.analysis.summaries import STATUSES, WAITED_FROM
from orchestrator.report import facts
from orchestrator.report import format as fmt
from orchestrator.report.comparison import (
    details,
    differences,
    practical,
    ranks,
    same_arms,
    sensitivity,
    sequence,
    tests,
)
from orchestrator.report.coverage import STATUS_TEXTS
from orchestrator.report.limits import shown, shown_arms
from orchestrator.report.marks import marked_arms, marked_cells, marked_name
from orchestrator.report.matrices import comparison_matrix, heat_map
from orchestrator.report.ratio_cells import geometric_mean, ratio, typical_ratio
from orchestrator.report.standings import standings
from orchestrator.report.table import Cell, Row, Table, print_table, records


def coverage(findings: Findings) -> Table:
    """Arms × datasets with the number of trials that have a score."""
    known = bool(findings.coverage["planned"].notna().all())

    def cell(row: Row) -> Cell:
        planned = row["planned"] if known else None
        text = f"{row['scored']:,}" + ("" if planned is None else f" of {planned:,}")
        bad = [f"{row[status]:,} {STATUS_TEXTS[status]}" for status in STATUSES[1:] if row[status]]
        missing = 0 if planned is None else planned - row["stored"]
        if missing > 0:
            bad.append(f"{missing:,} not run yet")
        if bad:
            return Cell(f"{text} ({', '.join(bad)})", tone="bad" if row["scored"] < row["stored"] else "warn")
        return Cell(text, tone="good" if planned is not None else "")

    return _matrix(findings, "coverage", "What was run", findings.coverage, cell)


def scores(findings: Findings, metric: str | None = None) -> Table:
    """Datasets × arms with mean ± standard error of a metric."""
    frame = findings.scores if metric is None else findings.other_scores[metric]
    name = metric or findings.design.metric
    marked = marked_cells(findings)

    def cell(row: Row) -> Cell:
        if not row["n_folds"]:
            return Cell(fmt.MISSING, tone="quiet")
        mean, corrected, descriptive = (fmt.score(row[key], name) for key in ("mean", "corrected_se", "se"))
        text = f"{mean} ± {corrected} ({descriptive})"
        if (row["dataset"], row["solver"]) in marked:
            text += f" {fmt.MARK}"
        if not row["complete"]:
            return Cell(
                f"{text} ({row['n_folds']} of {findings.design.n_outer(row['dataset'])} folds)", tone="warn"
            )
        return Cell(text, strong=row["best"])

    title = f"{fmt.metric_name(name).capitalize()} on the outer folds"
    table = _matrix(
        findings,
        "scores" if metric is None else f"scores_{metric}",
        f"{title}, per cent" if fmt.is_percent(name) else title,
        frame,
        cell,
    )
    return _with_published(table, findings) if metric is None and len(findings.published) else table


def _with_published(table: Table, findings: Findings) -> Table:
    """Return the table of scores with a column for each arm that others have published scores of."""
    frame, metric = findings.published, findings.design.metric
    found = {(row["dataset"], row["arm"]): row for row in records(frame)}
    arms = list(dict.fromkeys(frame["arm"]))

    def cell(dataset: str, arm: str) -> Cell:
        row = found.get((dataset, arm))
        if row is None:
            return Cell(fmt.MISSING, tone="quiet")
        error = fmt.score(row["standard_error"], metric)
        return Cell(
            fmt.score(row["score"], metric) + (f" ± {error}" if error != fmt.MISSING else ""), tone="quiet"
        )

    rows = zip(table.rows, findings.design.datasets, strict=False)
    published = frame.assign(solver=frame["arm"] + PUBLISHED, metric=metric, mean=frame["score"], best=False)
    return replace(
        table,
        header=[*table.header, *(arm + PUBLISHED for arm in arms)],
        rows=[[*cells, *(cell(dataset, arm) for arm in arms)] for cells, dataset in rows],
        data=pd.concat([table.data, published.drop(columns=["arm", "score", "file"])], ignore_index=True),
    )


PUBLISHED = " (published)"
"""Follows the name of an arm of which others have published scores."""


def effort(findings: Findings) -> Table:
    """Size and work of the refits, and how near the optimum they ended."""

    def not_converged(row: Row) -> Cell:
        number = row["not_converged"]
        return Cell(f"{number} of {row['n_fits']}", tone="warn" if number else "quiet")

    return _by_dataset(
        findings,
        "effort",
        "Size of the models and work to train them",
        findings.effort,
        {
            "Support-vector share, %": lambda row: fmt.share(row["sv_share"]),
            "Support vectors": lambda row: fmt.count(row["n_sv"]),
            "Iterations": lambda row: _lower_bound(fmt.count(row["n_iter"]), row),
            "Kernel evaluations": lambda row: _lower_bound(fmt.count(row["n_kernel_evals"]), row),
            "Median gap": lambda row: fmt.gap(row["gap_median"]),
            "Largest gap": lambda row: Cell(
                fmt.gap(row["gap_max"]), tone="warn" if row["n_gap_above"] else ""
            ),
            "Not converged": not_converged,
            "Stopped by": lambda row: row["stopping"] or fmt.MISSING,
        },
        last_is_text=True,
    )


def _lower_bound(text: str, row: Row) -> str:
    """Print a mean cost, as a lower bound if some of the refits were stopped."""
    return f"≥ {text}" if row["n_stopped"] and text != fmt.MISSING else text


def timing(findings: Findings) -> Table:
    """Training and prediction time of the refits, from the profile `timing` alone."""
    frame = findings.timing
    unit, scale = time_unit(frame)

    def training(row: Row) -> Cell:
        mean = scale * row["fit_seconds"]
        if row["n_stopped"]:
            text = f"≥ {fmt.time(mean)} ({row['n_stopped']} of {row['n_fits']} stopped)"
        else:
            errors = (fmt.time(scale * row[name], like=mean) for name in ("fit_corrected_se", "fit_se"))
            text = "{} ± {} ({})".format(fmt.time(mean), *errors)
        if row["complete"]:
            return Cell(text, tone="warn" if row["n_stopped"] else "")
        return Cell(
            f"{text} ({row['n_fits']} of {findings.design.n_outer(row['dataset'])} folds)", tone="warn"
        )

    def processor(row: Row) -> Cell:
        text = _lower_bound(fmt.time(scale * row["fit_cpu_seconds"]), row)
        return Cell(text, tone="warn" if row["wall_per_cpu"] > WAITED_FROM else "")

    return _by_dataset(
        findings,
        "timing",
        "Training and prediction time",
        frame,
        {
            f"Training, wall clock, {unit}": training,
            f"Training, processor, {unit}": processor,
            f"Prediction, {unit}": lambda row: fmt.time(scale * row["predict_seconds"]),
            "Whole search, s": lambda row: (
                ("≥ " if row["n_trainings_stopped"] else "") + fmt.time(row["study_seconds"])
            ),
            "Trainings": lambda row: fmt.count(row["n_trainings"]),
        },
    )


def time_unit(frame: pd.DataFrame) -> tuple[str, float]:
    """Return the unit in which the times of a table are read most easily, and how many make a second."""
    slowest = frame[["fit_seconds", "predict_seconds"]].max().max()
    return ("ms", 1e3) if slowest < 1 else ("s", 1.0)


def time_ratios(findings: Findings) -> Table:
    """Time ratios to the first arm, and what may be said of them."""
    frame, marked = findings.time_ratios, marked_arms(findings)
    reference = next(iter(findings.design.arms))
    return print_table(
        "time_ratios",
        f"Time relative to {marked_name(reference, marked)}",
        frame,
        {
            "Arm": lambda row: marked_name(row["solver"], marked),
            fmt.plural_of(findings.design.unit).capitalize(): lambda row: fmt.count(row["fit_seconds_n"]),
            "Training, geometric mean": lambda row: geometric_mean(row, "fit_seconds"),
            "Training, typical ratio": lambda row: typical_ratio(row, "fit_seconds"),
            "p": lambda row: fmt.p_value(row["p"]),
            "Adjusted p": lambda row: fmt.p_value(row["p_holm"]),
            "Prediction, geometric mean": lambda row: geometric_mean(row, "predict_seconds"),
            "Training: verdict": lambda row: Cell(row["verdict"], strong=row["verdict"] in DECIDED),
        },
        last_is_text=True,
    )


def scaling(findings: Findings) -> Table:
    """Print the exponents with which training time grows."""
    names = {"n_train": "training rows", "n_sv": "support vectors"}
    marked = marked_arms(findings)

    def exponent(row: Row) -> str:
        middle, low, high = (fmt.correlation(row[name]).lstrip("+") for name in ("exponent", "low", "high"))
        return f"{middle} [{low}, {high}]"

    return print_table(
        "scaling",
        "How does training time grow?",
        findings.scaling,
        {
            "Arm": lambda row: marked_name(row["solver"], marked),
            "In": lambda row: names[row["predictor"]],
            "Datasets": lambda row: fmt.count(row["n"]),
            "Smallest": lambda row: fmt.count(row["smallest"]),
            "Largest": lambda row: fmt.count(row["largest"]),
            "Exponent": exponent,
            "R²": lambda row: fmt.MISSING if pd.isna(row["r2"]) else f"{row['r2']:.2f}",
        },
        text_columns=2,
    )


_FACTORS = (1, 2, 5, 10, 100)


def profile(findings: Findings) -> Table:
    """Print on how many datasets each arm's training is within some factors of the fastest one."""
    frame, marked = findings.profile, marked_arms(findings)

    def within(factor: float) -> Callable[[Row], str]:
        return lambda row: f"{100 * share_within(frame, row['solver'], factor):.0f}"

    factors = {f"Within {factor}×, %" if factor > 1 else "Fastest, %": within(factor) for factor in _FACTORS}
    return print_table(
        "profile",
        "How often is an arm near the fastest?",
        frame,
        {"Arm": lambda row: marked_name(row["solver"], marked)} | factors,
        rows=[{"solver": arm} for arm in frame["solver"].unique() if arm in shown_arms(findings)],
    )


def selections(findings: Findings) -> Table:
    """Candidates the inner search chose, and how often they lie on the border."""
    metric = findings.design.metric
    inner = f"Inner {fmt.metric_name(metric)}{', %' if fmt.is_percent(metric) else ''}"

    def border(row: Row) -> Cell:
        text = f"{row['at_edge']} of {row['n_folds']}"
        return Cell(text, tone="warn" if 2 * row["at_edge"] > row["n_folds"] else "")

    def failed(row: Row) -> Cell:
        text = f"{row['n_failed']:,} of {row['n_candidates']:,}"
        return Cell(text, tone="warn" if row["n_failed"] else "quiet")

    return _by_dataset(
        findings,
        "selections",
        "Chosen hyper-parameters",
        findings.selections,
        {
            inner: lambda row: fmt.score(row["inner_score"], metric),
            "On the border": border,
            "Tied": lambda row: fmt.count(row["n_tied"]),
            "Without a score": failed,
            "Chosen": lambda row: row["chosen"],
        },
        last_is_text=True,
    )


def failures(findings: Findings) -> Table:
    """Every kind of failure with its first message."""
    return print_table(
        "failures",
        "Failures",
        findings.failures,
        {
            "Kind": lambda row: STATUS_TEXTS.get(row["status"]) or row["status"],
            "Arms": lambda row: row["solvers"],
            "Datasets": lambda row: row["datasets"],
            "Trials": lambda row: fmt.count(row["count"]),
            "With a score": lambda row: fmt.count(row["scored"]),
            "First seen, and what it said": lambda row: f"{row['first']}: {row['message']}",
        },
        text_columns=3,
        last_is_text=True,
    )


def sweep(findings: Findings) -> Table:
    """One row for every swept setting, against its reference."""
    frame, metric = findings.sweep_summary, findings.design.metric
    marked = marked_arms(findings)

    def extremes(row: Row) -> str:
        ends = (row["lowest_difference"], row["highest_difference"])
        return " to ".join(fmt.difference(end, metric) for end in ends)

    columns: dict[str, Callable[[Row], str]] = {
        "Sweep": lambda row: f"{row['sweep']}: {row['axis']}",
        "Setting": lambda row: str(row["setting"]) + (fmt.MARK if row["solver"] in marked else ""),
        "Reference": lambda row: str(row["reference"]),
        "Datasets": lambda row: fmt.count(row["n"]),
        "Higher / same / lower": lambda row: f"{row['higher']} / {row['equal']} / {row['lower']}",
        "Median difference": lambda row: fmt.difference(row["median_difference"], metric),
        "Range of differences": extremes,
        "Iterations, ratio": lambda row: ratio(row, "n_iter"),
        "Kernel evaluations, ratio": lambda row: ratio(row, "n_kernel_evals"),
    }
    if (frame["fit_seconds_n"] > 0).any():
        columns["Training time, ratio"] = lambda row: ratio(row, "fit_seconds")
    return print_table(
        "sweep",
        "Sweeps: each setting against the first one",
        frame,
        columns,
        rows=[row for row in records(frame) if row["setting"] != row["reference"]],
    )


def _band(row: Row, metric: str) -> str:
    low, high = (fmt.difference(row[name], metric) for name in ("low", "high"))
    return fmt.MISSING if pd.isna(row["confidence"]) else f"[{low}, {high}]"


def sweep_curves(findings: Findings) -> Table:
    """Print the tests of all settings of each sweep at once."""
    metric = findings.design.metric
    return print_table(
        "sweep_curves",
        "Sweeps: all settings at once",
        findings.sweep_curves,
        {
            "Sweep": lambda row: f"{row['sweep']}: {row['axis']}",
            "Setting": lambda row: str(row["setting"]),
            "Datasets": lambda row: fmt.count(row["n"]),
            "Typical difference": lambda row: fmt.difference(row["estimate"], metric),
            "Band": lambda row: _band(row, metric),
            "T": lambda row: fmt.MISSING if pd.isna(row["t"]) else f"{row['t']:.2f}",
            "p, one step": lambda row: fmt.p_value(row["p_single_step"]),
            "p, step-down": lambda row: fmt.p_value(row["p"]),
        },
        text_columns=2,
    )


def sweep_selected(findings: Findings) -> Table:
    """Print the comparison of each sweep's selected setting with the one declared first."""
    metric = findings.design.metric

    def estimate(row: Row) -> str:
        names = ("estimate", "low", "high")
        middle, low, high = (fmt.difference(row[name], metric) for name in names)
        return fmt.with_interval(middle, low, high, row["confidence"])

    return print_table(
        "sweep_selected",
        "Sweeps: the setting that the inner scores choose",
        findings.sweep_selected,
        {
            "Arm": lambda row: row["solver"],
            "Reference": lambda row: row["reference"],
            "Datasets": lambda row: fmt.count(row["n"]),
            f"Mean{', %' if fmt.is_percent(metric) else ''}": lambda row: fmt.score(row["mean"], metric),
            "Higher / same / lower": lambda row: f"{row['wins']} / {row['n_zero']} / {row['losses']}",
            "Typical difference": lambda row: estimate(row) if row["n"] else fmt.MISSING,
            "p": lambda row: fmt.p_value(row["p"]) if row["n"] else fmt.MISSING,
            "Adjusted p": lambda row: fmt.p_value(row["p_holm"]) if row["n"] else fmt.MISSING,
            "Verdict": lambda row: row["verdict"],
        },
        text_columns=2,
        last_is_text=True,
    )


def all_tables(findings: Findings) -> dict[str, Table]:
    """Return the tables that this study has something to say in, by name, in the report's order."""
    scored, tested = not findings.is_empty, not findings.is_empty and len(findings.tests) > 0
    several = scored and len(findings.standings) > 0
    build: list[tuple[bool, Callable[[Findings], Table]]] = [
        (several, standings),
        (several, comparison_matrix),
        (several and len(findings.differences) > 0, heat_map),
        (len(findings.coverage) > 0, coverage),
        (scored, scores),
        (len(findings.differences) > 0, differences),
        (tested, tests),
        (tested, details),
        (tested and len(findings.sequence) > 0, sequence),
        (len(findings.practical) > 0, practical),
        (tested, sensitivity),
        (len(findings.ranks) > 0 and len(findings.means.columns) > 2, ranks),
        (len(findings.timing) > 0, timing),
        (len(findings.timing) > 0 and len(findings.time_ratios) > 0, time_ratios),
        (len(findings.profile) > 0, profile),
        (len(findings.scaling) > 0, scaling),
        (scored, effort),
        (len(findings.selections) > 0, selections),
        (len(findings.failures) > 0, failures),
        (len(findings.sweep_summary) > 0 and scored, sweep),
        (len(findings.sweep_curves) > 0 and scored, sweep_curves),
        (len(findings.sweep_selected) > 0 and scored, sweep_selected),
        (len(findings.same_arms) > 0, same_arms),
    ]
    tables = [make(findings) for wanted, make in build if wanted]
    tables += [scores(findings, metric) for metric in findings.other_scores if scored]
    tables += [facts.datasets(findings), facts.arms(findings), facts.runs(findings)]
    tables += [facts.apart(findings)] if len(findings.results.excluded) else []
    return {table.name: table for table in tables}


def _matrix(
    findings: Findings, name: str, title: str, frame: pd.DataFrame, cell: Callable[[Row], Cell]
) -> Table:
    """Lay a long frame out as datasets (rows) × arms (columns)."""
    cells = {(row["dataset"], row["solver"]): cell(row) for row in records(shown(findings, frame))}
    nothing = Cell("another protocol", tone="quiet")

    def of(arm: str) -> Callable[[Row], Cell]:
        return lambda row: cells.get((row["dataset"], arm), nothing)

    arms = shown_arms(findings)
    return print_table(
        name,
        title,
        frame,
        {"Dataset": lambda row: row["dataset"]} | {arm: of(arm) for arm in arms},
        rows=[{"dataset": dataset} for dataset in findings.design.datasets],
    )


def _by_dataset(
    findings: Findings,
    name: str,
    title: str,
    frame: pd.DataFrame,
    columns: dict[str, Callable[[Row], Any]],
    last_is_text: bool = False,
) -> Table:
    """Print a row for each dataset × arm that is shown, and name the dataset once for all its arms."""
    marked = marked_cells(findings) if name != "selections" else ()
    datasets = shown(findings, frame)["dataset"]
    rows = records(shown(findings, frame).assign(heading=datasets.mask(datasets == datasets.shift(), "")))

    def arm(row: Row) -> str:
        return row["solver"] + (fmt.MARK if (row["dataset"], row["solver"]) in marked else "")

    return print_table(
        name,
        title,
        frame,
        {"Dataset": lambda row: row["heading"], "Arm": arm} | columns,
        rows=rows,
        text_columns=2,
        last_is_text=last_is_text,
    )
