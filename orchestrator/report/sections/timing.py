"""Training and prediction times of the refits that ran under the profile `timing`."""

import pandas as pd
from matplotlib.figure import Figure

from orchestrator.analysis import findings
from orchestrator.analysis.findings import Findings
from orchestrator.analysis.sample_totals import LEVEL
from orchestrator.analysis.summaries import WAITED_FROM
from orchestrator.report import format as fmt
from orchestrator.report.by_dataset import rows_by_dataset
from orchestrator.report.figures import Panel, bar_chart
from orchestrator.report.limits import arms_note, figure_note, shown_in_figures
from orchestrator.report.marks import mark_note, marked_cells
from orchestrator.report.processor_note import processor_note
from orchestrator.report.section import Drawing, Part, folded, titled
from orchestrator.report.table import Cell, Row, Table, lower_bound


def parts(study: Findings) -> list[Part]:
    """Return the table of times and its figure.

    Parameters
    ----------
    study : Findings
        A study with rows of the profile `timing`.

    Returns
    -------
    list of Part
        Folded away if there are many dataset × arm.
    """
    rows = findings.timing(study)
    frame = shown_in_figures(study, rows)
    caption = (
        "Mean times of the refits. If times span decades, the axis is logarithmic and dots replace bars. "
        "Lines on the training times are corrected standard errors. A triangle marks a lower bound, because "
        "trainings were stopped."
    )
    drawing = Drawing("timing", caption + figure_note(study), lambda: _figure(study, frame), frame)
    each = [*titled(_table(study, rows)), drawing]
    return [*folded(study, "Times of each dataset and arm, and a figure", each)]


def _unit(frame: pd.DataFrame) -> tuple[str, float]:
    """Return a suitable unit for the times of a frame, and the number of such units in a second.

    Parameters
    ----------
    frame : DataFrame
        Times, as `findings.timing` returns them.
    """
    slowest = frame[["fit_seconds", "predict_seconds"]].max().max()
    return ("ms", 1e3) if slowest < 1 else ("s", 1.0)


def _table(study: Findings, frame: pd.DataFrame) -> Table:
    unit, scale = _unit(frame)

    def training(row: Row) -> Cell:
        mean = scale * row["fit_seconds"]
        if row["n_stopped"]:
            text = f"≥ {fmt.time(mean)} ({row['n_stopped']} of {row['n_fits']} stopped)"
        else:
            errors = (fmt.time(scale * row[name], like=mean) for name in ("fit_corrected_se", "fit_se"))
            text = "{} ± {} ({})".format(fmt.time(mean), *errors)
        if row["complete"]:
            return Cell(text, tone="warn" if row["n_stopped"] else "")
        return Cell(f"{text} ({row['n_fits']} of {study.design.n_outer(row['dataset'])} folds)", tone="warn")

    def processor(row: Row) -> Cell:
        text = lower_bound(fmt.time(scale * row["fit_cpu_seconds"]), row)
        return Cell(text, tone="warn" if row["wall_per_cpu"] > WAITED_FROM else "")

    def whole_search(row: Row) -> str:
        text = ("≥ " if row["n_trainings_stopped"] else "") + fmt.time(row["study_seconds"])
        if pd.isna(row.get("search_low")):
            return text
        return f"{text} ({fmt.time_interval(row['search_low'], row['search_high'])})"

    def trainings(row: Row) -> str:
        number = fmt.count(row["n_trainings"])
        return f"{number} of {fmt.count(row['represented'])}" if "represented" in row else number

    return rows_by_dataset(
        study,
        "timing",
        "Training and prediction time",
        frame,
        {
            f"Training, wall time, {unit}": training,
            f"Training, CPU time, {unit}": processor,
            f"Prediction, {unit}": lambda row: fmt.time(scale * row["predict_seconds"]),
            "Whole search, s": whole_search,
            "Trainings": trainings,
        },
        caption="Means over the refits. Each refit ran by itself on one core, started cold and shared "
        "nothing with other trainings (profile “timing”). Compilation time is excluded. ±: the standard "
        "error, corrected for the training rows that folds share (Nadeau and Bengio, 2003); in parentheses "
        "the descriptive σ/√n. ≥: a training that timed out counts with the time at which it was stopped. "
        "The mean is then a lower bound without an error, and the prediction time of the finished model is "
        "unknown. Whole search: the total time of all trainings and predictions of the nested "
        f"cross-validation{_estimated(study)}. A CPU time is highlighted if wall time exceeded "
        f"{WAITED_FROM} times the CPU time, which suggests that another process was using the core."
        f"{processor_note(study, has_ratios=False)}{mark_note(study)}{arms_note(study)}",
        marked=marked_cells(study),
    )


def _estimated(study: Findings) -> str:
    """Return the end of the sentence on the times of whole searches, if they are estimated.

    Parameters
    ----------
    study : Findings
        The study of the report.
    """
    if findings.estimated_totals(study).empty:
        return ""
    return (
        f" of study {study.design.search.options['study']}, estimated from a sample of its trainings, with a "
        f"{fmt.level(1 - LEVEL)} interval in parentheses and the numbers of measured and of all trainings "
        "beside it"
    )


def _figure(study: Findings, frame: pd.DataFrame) -> Figure:
    """Draw bars of training and prediction times.

    Parameters
    ----------
    study : Findings
        The study of the report.
    frame : DataFrame
        The rows that the figure shows.
    """
    unit, scale = _unit(frame)
    times = ["fit_seconds", "fit_corrected_se", "predict_seconds"]
    frame = frame.assign(**{name: frame[name] * scale for name in times})
    panels = [
        Panel("fit_seconds", f"Training ({unit})", "fit_corrected_se", lower_bounds=True),
        Panel("predict_seconds", f"Prediction ({unit})"),
    ]
    return bar_chart(study, frame, panels)
