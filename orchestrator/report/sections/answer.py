"""The answer on each dataset of a study of few: a table with intervals and the baseline, and a figure."""

from math import isfinite
from typing import TYPE_CHECKING, Any

import pandas as pd

from orchestrator.analysis import findings
from orchestrator.analysis.dataset_answer import DatasetAnswer
from orchestrator.analysis.findings import Findings
from orchestrator.analysis.pairwise import HIGHER, LOWER
from orchestrator.report import format as fmt
from orchestrator.report.one_dataset import comparison_decimals, has_no_width, header, mean_text
from orchestrator.report.section import Drawing, Glance, Heading, Part, Section
from orchestrator.report.table import Cell, Row, Table, print_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def section(study: Findings) -> Section | None:
    """Return the section; None for a study of many datasets, or before any refit has a score.

    Parameters
    ----------
    study : Findings
        The study of the report.

    Returns
    -------
    Section or None
        A table for each dataset, and one figure.
    """
    answers = findings.dataset_answers(study)
    if not answers or findings.is_empty(study):
        return None
    tables = [_table(study, answer, number) for number, answer in enumerate(answers.values())]
    parts: list[Part] = [part for each in tables for part in (Heading(each.title), Glance(each))]
    frame = pd.concat([each.arms.assign(dataset=name) for name, each in answers.items()], ignore_index=True)
    drawing = Drawing(
        "answer",
        f"Mean {fmt.metric_name(study.design.metric)} of each solver and its {fmt.level(study.design.alpha)} "
        f"interval, corrected for the training rows that splits share.{_dashed([*answers.values()])} Whether "
        "lines overlap is not a test.",
        lambda: _figure(study, list(answers.values())),
        frame,
    )
    return Section("Scores, intervals and baseline", "", [*parts, drawing], link="Answer")


def _dashed(answers: list[DatasetAnswer]) -> str:
    """Explain the line of the baseline; empty if no dataset has a baseline.

    Parameters
    ----------
    answers : list of DatasetAnswer
        The answers that the figure shows.
    """
    if not any(isfinite(answer.baseline) for answer in answers):
        return ""
    return " Dashed: the baseline, which always answers the most frequent class."


def _table(study: Findings, answer: DatasetAnswer, number: int) -> Table:
    """Print a row for each solver: its mean, its gain over the baseline, and its paired difference.

    Parameters
    ----------
    study : Findings
        The study of the report.
    answer : DatasetAnswer
        The answer for the dataset.
    number : int
        Position of the dataset, for the name of the table.
    """
    metric, compared = study.design.metric, answer.against_reference()
    rows = answer.arms.to_dict("records")
    reference = answer.reference or "the control"

    def of(name: str) -> Any:
        def printer(row: Row) -> Cell:
            found = compared.get(row["solver"])
            if found is None:
                return Cell(
                    "the reference" if row["solver"] == answer.reference else fmt.MISSING, tone="quiet"
                )
            if name == "difference":
                ends = {name: found[f"holm_{name}"] for name in ("low", "high")}
                return Cell(_interval({**found, **ends}, "", metric, comparison_decimals(found, metric)))
            if name == "p_holm":
                return Cell(fmt.p_value(found["p_holm"]), strong=found["verdict"] in (HIGHER, LOWER))
            words = {HIGHER: "better", LOWER: "worse"}
            return Cell(words.get(found["verdict"], "cannot be told apart"), strong=found["verdict"] in words)

        return printer

    def mean(row: Row) -> Cell:
        if row["complete"]:
            return Cell(mean_text(row, metric), strong=row["solver"] == next(iter(answer.complete)))
        return Cell(f"{mean_text(row, metric)} ({row['n_folds']} of {answer.n_splits} splits)", tone="warn")

    columns = {
        "Solver": lambda row: row["solver"],
        "Mean ± standard error": mean,
        "Over the baseline": lambda row: _interval(row, "baseline_", metric),
        f"Paired difference from {reference}": of("difference"),
        "Adjusted p": of("p_holm"),
        "Finding": of("verdict"),
    }
    if not compared:
        columns = dict(list(columns.items())[:3])
    suffix = fmt.file_suffix(number)
    return print_table(
        f"answer{suffix}",
        header(study, answer.dataset),
        _rows_and_baseline(answer),
        columns,
        rows=[{str(key): value for key, value in row.items()} for row in rows],
        caption=_caption(study, answer),
        last_is_text=bool(compared),
    )


def _interval(row: Row, prefix: str, metric: str, digits: int = 1) -> str:
    mean, low, high = (
        fmt.difference(row[f"{prefix}{name}"], metric, digits) for name in ("difference", "low", "high")
    )
    if has_no_width(row[f"{prefix}low"], row[f"{prefix}high"]):
        return f"{mean} in every split"
    return f"{mean} [{low}, {high}]" if isfinite(row[f"{prefix}low"]) else mean


def _rows_and_baseline(answer: DatasetAnswer) -> pd.DataFrame:
    """Return the numbers of the table, with those of the baseline in a last row.

    Parameters
    ----------
    answer : DatasetAnswer
        The answer for the dataset.
    """
    names = ["difference", "low", "high", "p", "p_holm", "holm_low", "holm_high", "verdict"]
    compared = pd.DataFrame.from_dict(answer.against_reference(), orient="index").reindex(columns=names)
    frame = answer.arms.join(compared, on="solver").assign(reference=answer.reference)
    baseline = {"solver": "(baseline)", "mean": answer.baseline, "n_folds": answer.n_splits, "complete": True}
    rows = [*frame.to_dict("records"), *([baseline] if isfinite(answer.baseline) else [])]
    return pd.DataFrame(rows, columns=["dataset", *frame.columns]).assign(dataset=answer.dataset)


def _caption(study: Findings, answer: DatasetAnswer) -> str:
    """Explain the columns of the table.

    Parameters
    ----------
    study : Findings
        The study of the report.
    answer : DatasetAnswer
        The answer for the dataset.
    """
    metric = study.design.metric
    unit = " %" if fmt.is_percent(metric) else ""
    if isfinite(answer.baseline):
        baseline = (
            "The baseline always answers the most frequent class and reaches "
            f"{fmt.score(answer.baseline, metric, 1)}{unit}; it is no solver of the study and in no test."
        )
    else:
        baseline = "The baseline was not trained in the stored runs; run the same command again to add it."
    if answer.n_splits < 2:
        return f"{baseline} A single split has no standard error, no interval and no test."
    number = len(answer.comparisons)
    family = (
        "all pairs of solvers"
        if answer.control is None
        else f"every solver against {answer.control}, the control"
    )
    holm = f", Holm's method over {number} comparisons ({family})" if number > 1 else ""
    errors = (
        f"{baseline} Standard errors, and {fmt.level(study.design.alpha)} intervals in brackets"
        f"{fmt.in_unit(metric)}, are corrected for the training rows that the {answer.n_splits} outer splits "
        "share (Nadeau and Bengio, 2003)."
    )
    if not answer.against_reference():
        return f"{errors} All of it speaks of new data of this size; it says nothing of other datasets."
    return (
        f"{errors} Paired difference: the mean of the differences on the same splits. "
        f"Adjusted p: corrected resampled t-test{holm}; it takes differences as normally distributed. "
        f"{_adjusted(number)}All of it speaks of new data of this size, and is conservative for "
        "differences; it says nothing of other datasets."
    )


def _adjusted(number: int) -> str:
    """Explain which intervals are adjusted for the number of comparisons; empty for a single one.

    Parameters
    ----------
    number : int
        Number of comparisons.
    """
    if number < 2:
        return ""
    return (
        "The interval of a paired difference belongs to the level at which Holm's method tests the pair, so "
        "that it includes 0 exactly if the pair cannot be told apart. The other intervals are not adjusted. "
    )


def _figure(study: Findings, answers: list[DatasetAnswer]) -> "Figure":
    """Draw a dot with its interval for each solver, a panel for each dataset, the baseline as a line.

    Parameters
    ----------
    study : Findings
        The study of the report.
    answers : list of DatasetAnswer
        The answers, in the order of the datasets.
    """
    # The answer in a terminal is printed without matplotlib.
    from matplotlib.figure import Figure

    from orchestrator.report.figures import INK, MUTED, ROW, WIDTH, colours, literal, plain_axis, wrapped

    metric = study.design.metric
    scale = 100.0 if fmt.is_percent(metric) else 1.0
    colour = colours(list(study.design.arms))
    heights = [1.5 * len(answer.arms) + 1 for answer in answers]
    figure = Figure(figsize=(WIDTH, 0.6 * len(answers) + ROW * sum(heights)))
    panels = figure.subplots(len(answers), 1, squeeze=False, gridspec_kw={"height_ratios": heights})[:, 0]
    for ax, answer in zip(panels, answers, strict=True):
        plain_axis(ax)
        for at, row in enumerate(answer.arms.to_dict("records")):
            ends = (row["mean"] - row["mean_low"], row["mean_high"] - row["mean"])
            errors = [[scale * max(0.0, end) if isfinite(end) else 0.0] for end in ends]
            shade = colour[row["solver"]] if row["complete"] else MUTED
            ax.errorbar(
                scale * row["mean"], at, xerr=errors, fmt="o", color=shade, markersize=5, linewidth=1.4
            )
        if isfinite(answer.baseline):
            ax.axvline(scale * answer.baseline, color=INK, linestyle="--", linewidth=0.9)
            ax.text(scale * answer.baseline, -0.75, " baseline", color=INK, va="center")
        ax.set_yticks(range(len(answer.arms)), [literal(wrapped(arm, 30)) for arm in answer.arms["solver"]])
        ax.set_ylim(len(answer.arms) - 0.5, -1)
        if len(answers) > 1:
            ax.set_title(literal(answer.dataset), loc="left", fontweight="bold")
    unit = " (%)" if fmt.is_percent(metric) else ""
    panels[-1].set_xlabel(literal(f"Mean {fmt.metric_name(metric)}{unit}"))
    return figure
