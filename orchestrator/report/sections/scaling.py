"""Power laws of training time in the size of datasets and models."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from orchestrator.analysis import findings
from orchestrator.analysis.findings import Findings
from orchestrator.analysis.scaling import MIN_RANGE, MIN_SIZES
from orchestrator.report import format as fmt
from orchestrator.report.figures import ROW, WIDTH, colours, few_ticks, literal, wrapped
from orchestrator.report.limits import first_note
from orchestrator.report.marks import mark_note, marked_arms, marked_name
from orchestrator.report.section import Drawing, Part, titled
from orchestrator.report.table import Row, Table, print_table, records

_ARMS_FITTED = 12
"""Largest number of arms that a figure of fits distinguishes by colour."""


def parts(study: Findings) -> list[Part]:
    """Return the table and the figure.

    Parameters
    ----------
    study : Findings
        The study of the report.

    Returns
    -------
    list of Part
        Empty if there are too few sizes.
    """
    fits, points = findings.power_laws(study), findings.sizes(study)
    if fits.empty:
        return []
    drawing = Drawing(
        "scaling",
        "Each point is a dataset, with the mean size and the mean training time of its refits. Lines are "
        f"the fitted power laws.{first_note(_ARMS_FITTED, fits['solver'].nunique(), 'arm')}",
        lambda: _figure(study, points, fits),
        points,
    )
    return [*titled(_table(study, fits)), drawing]


def _table(study: Findings, frame: pd.DataFrame) -> Table:
    """Print the exponents with which training time grows.

    Parameters
    ----------
    study : Findings
        The study of the report.
    frame : DataFrame
        The rows of the table.
    """
    names = {"n_train": "training rows", "n_sv": "support vectors"}
    marked = marked_arms(study)

    def exponent(row: Row) -> str:
        middle, low, high = (fmt.correlation(row[name]).lstrip("+") for name in ("exponent", "low", "high"))
        return f"{middle} [{low}, {high}]"

    return print_table(
        "scaling",
        "How does training time grow?",
        frame,
        {
            "Arm": lambda row: marked_name(row["solver"], marked),
            "Predictor": lambda row: names[row["predictor"]],
            "Datasets": lambda row: fmt.count(row["n"]),
            "Smallest": lambda row: fmt.count(row["smallest"]),
            "Largest": lambda row: fmt.count(row["largest"]),
            "Exponent": exponent,
            "R²": lambda row: fmt.MISSING if pd.isna(row["r2"]) else f"{row['r2']:.2f}",
        },
        caption="Power laws, fitted by least squares to the logarithms of mean training times and mean sizes "
        "of the refits. Each dataset without a stopped refit is one point. A fit requires at least "
        f"{MIN_SIZES} sizes, the largest at least {MIN_RANGE:g} times the smallest. Training time grows as "
        f"size to the power of the exponent, which has a {fmt.level(study.design.alpha)} interval by "
        "Student's t; an exponent of 1 means proportional growth. Datasets differ in more than size, so the "
        "fit describes these datasets and is not the complexity of an algorithm. Datasets of one family are "
        f"not independent points.{mark_note(study)}",
        text_columns=2,
    )


def _figure(study: Findings, points: pd.DataFrame, fits: pd.DataFrame) -> Figure:
    """Draw training times against sizes, with the power laws that were fitted to them.

    Parameters
    ----------
    study : Findings
        The study of the report.
    points : DataFrame
        Sizes and times of the datasets.
    fits : DataFrame
        The fitted power laws.
    """
    labels = {"n_train": "Training rows", "n_sv": "Support vectors"}
    arms = list(fits["solver"].unique())[:_ARMS_FITTED]
    colour = colours(list(study.design.arms))
    shown = [name for name in labels if (fits["predictor"] == name).any()]
    names = {arm: wrapped(arm, 30) for arm in arms}
    lines = sum(1.3 + name.count("\n") for name in names.values())
    figure = Figure(figsize=(WIDTH, max(3.0, 0.8 + ROW * lines)))
    axes = figure.subplots(1, len(shown), sharey=True, squeeze=False)[0]
    for ax, predictor in zip(axes, shown, strict=True):
        for row in records(fits[(fits["predictor"] == predictor) & fits["solver"].isin(arms)]):
            arm, ends = row["solver"], np.array([row["smallest"], row["largest"]])
            of_arm = points[(points["solver"] == arm) & (points[predictor] > 0)]
            ax.scatter(
                of_arm[predictor], of_arm["fit_seconds"], s=14, color=colour[arm], linewidths=0, zorder=3
            )
            law = row["factor"] * ends ** row["exponent"]
            ax.plot(ends, law, color=colour[arm], linewidth=1.2, label=literal(names[arm]))
        ax.set(xscale="log", yscale="log", xlabel=f"{labels[predictor]}, logarithmic")
        ax.grid(axis="both")
        ax.tick_params(length=0, which="both")
        few_ticks(ax)
    axes[0].set_ylabel("Training time (s), logarithmic")
    legends = [zip(*ax.get_legend_handles_labels(), strict=True) for ax in axes]
    handles = {label: line for pairs in legends for line, label in pairs}
    position: dict[str, Any] = {"loc": "outside right center", "fontsize": 7, "frameon": False}
    figure.legend([*handles.values()], [*handles], **position)
    return figure
