"""The scores of each dataset and arm: a table for each metric, and a figure."""

from dataclasses import replace
from math import isfinite
from typing import TYPE_CHECKING

import pandas as pd

from orchestrator.analysis import findings
from orchestrator.analysis.findings import Findings
from orchestrator.report import format as fmt
from orchestrator.report.by_dataset import matrix
from orchestrator.report.limits import arms_note, figure_note, shown_in_figures
from orchestrator.report.marks import mark_note, marked_cells
from orchestrator.report.section import Drawing, Section, folded, titled
from orchestrator.report.sections import differences
from orchestrator.report.table import Cell, Row, Table, records

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PUBLISHED = " (published)"
"""Suffix of the name of an arm whose scores come from a publication."""


def section(study: Findings) -> Section | None:
    """Return the section; None before any refit has a score.

    Parameters
    ----------
    study : Findings
        The study of the report.

    Returns
    -------
    Section or None
        The table and figure of the selecting metric, differences, and tables of the other metrics.
    """
    if findings.is_empty(study):
        return None
    metric = study.design.metric
    frame = shown_in_figures(study, findings.scores(study))
    drawing = Drawing(
        "scores",
        f"Left: mean {fmt.metric_name(metric)} over the outer folds, with the corrected standard error. "
        "Right: the same means enlarged, as differences from the mean of all arms on the same dataset"
        f"{fmt.in_unit(metric)}; lines are again the corrected standard error. Whether lines overlap is not "
        f"a test.{figure_note(study)}",
        lambda: _figure(study, frame),
        frame,
    )
    others = [part for name in findings.other_scores(study) for part in titled(table(study, name))]
    printed = table(study)
    parts = [printed, drawing, *titled(differences.table(study)), *others]
    content = folded(study, "Scores of each dataset and arm, and a figure", parts)
    return Section(printed.title, "", content, link="Scores")


def table(study: Findings, metric: str | None = None) -> Table:
    """Print mean ± standard error of a metric, as datasets × arms.

    Parameters
    ----------
    study : Findings
        A study with a score.
    metric : str, optional
        A metric that is recorded beside the selecting one, which is the default.

    Returns
    -------
    Table
        With a column for each arm with published scores, if the metric is the selecting one.
    """
    frame = findings.scores(study) if metric is None else findings.other_scores(study)[metric]
    name = metric or study.design.metric
    marked = marked_cells(study)

    def cell(row: Row) -> Cell:
        if not row["n_folds"]:
            return Cell(fmt.MISSING, tone="quiet")
        mean, corrected, descriptive = (fmt.score(row[key], name) for key in ("mean", "corrected_se", "se"))
        text = f"{mean} ± {corrected} ({descriptive})"
        if (row["dataset"], row["solver"]) in marked:
            text += f" {fmt.MARK}"
        if not row["complete"]:
            n_outer = study.design.n_outer(row["dataset"])
            return Cell(f"{text} ({row['n_folds']} of {n_outer} folds)", tone="warn")
        return Cell(text, strong=row["best"])

    title = f"{fmt.metric_name(name).capitalize()} on the outer folds"
    with_published = metric is None and len(study.published) > 0
    printed = matrix(
        study,
        "scores" if metric is None else f"scores_{metric}",
        f"{title}, per cent" if fmt.is_percent(name) else title,
        frame,
        cell,
        _caption(study, frame, name, with_published),
    )
    return _with_published(printed, study) if with_published else printed


def _caption(study: Findings, frame: pd.DataFrame, metric: str, with_published: bool) -> str:
    known = frame[frame["complete"].eq(True) & (frame["se"] > 0)]
    factor = (known["corrected_se"] / known["se"]).median()
    sizes = {len(splits) for splits in study.design.n_inner.values()}
    folds = fmt.plural(next(iter(sizes)), "outer test fold") if len(sizes) == 1 else "the outer test folds"
    smaller = f", {factor:.2f} times smaller" if isfinite(factor) else ""
    text = (
        f"Mean over {folds} ± standard error, corrected for the training rows that folds "
        "share (Nadeau and Bengio, 2003): s·√(1/n + test rows/training rows). In parentheses the "
        f"descriptive σ/√n that papers print (σ with divisor n){smaller}. Neither error measures "
        "the variation over datasets. Whether two such intervals overlap is not a test."
    )
    if known["repeat_sd"].notna().any():
        text += (
            " The means of the repeats have a standard deviation of "
            f"{fmt.score(known['repeat_sd'].median(), metric)} (median over the table), which measures the "
            "variation from splits and draws."
        )
    text += " Bold: the highest mean of the row. A single dataset does not establish a difference on others."
    if with_published:
        sources = study.published.drop_duplicates(["arm", "source"])
        listed = "; ".join(f"{row['arm']}: {row['source']}" for row in records(sources))
        text += (
            " Published: scores ± standard errors as printed in other publications, with their splits and "
            f"settings. No test, rank or verdict of this report uses them. Sources: {listed}."
        )
    return text + mark_note(study) + arms_note(study)


def _with_published(printed: Table, study: Findings) -> Table:
    """Return the table of scores with a column for each arm with published scores.

    Parameters
    ----------
    printed : Table
        The table without published scores.
    study : Findings
        The study of the report.
    """
    frame, metric = study.published, study.design.metric
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

    rows = zip(printed.rows, study.design.datasets, strict=False)
    published = frame.assign(solver=frame["arm"] + PUBLISHED, metric=metric, mean=frame["score"], best=False)
    return replace(
        printed,
        header=[*printed.header, *(arm + PUBLISHED for arm in arms)],
        rows=[[*cells, *(cell(dataset, arm) for arm in arms)] for cells, dataset in rows],
        data=pd.concat([printed.data, published.drop(columns=["arm", "score", "file"])], ignore_index=True),
    )


def _figure(study: Findings, frame: pd.DataFrame) -> "Figure":
    """Draw bars of mean scores with corrected errors, and the same enlarged about the mean of a dataset.

    Parameters
    ----------
    study : Findings
        The study of the report.
    frame : DataFrame
        The rows that the figure shows.
    """
    # The summary in a terminal prints the table of this file without matplotlib.
    from orchestrator.report.figures import Panel, bar_chart

    metric = study.design.metric
    scale = 100.0 if fmt.is_percent(metric) else 1.0
    centres = findings.scores(study).groupby("dataset")["mean"].mean()  # of all arms, also those not drawn
    frame = frame.assign(
        mean=lambda f: f["mean"] * scale,
        corrected_se=lambda f: f["corrected_se"] * scale,
        centred=lambda f: f["mean"] - f["dataset"].map(centres) * scale,
    )
    unit = " (%)" if fmt.is_percent(metric) else ""
    inside = frame["mean"].dropna().between(0, scale).all()
    enlarged = f"Enlarged: difference from the dataset's mean{unit.replace('%', 'points')}"
    limits = (0, scale) if inside else None
    panels = [
        Panel("mean", f"Mean {fmt.metric_name(metric)}{unit}", "corrected_se", limits=limits),
        Panel("centred", enlarged, "corrected_se", dots=True),
    ]
    return bar_chart(study, frame, panels)
