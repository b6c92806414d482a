"""The times of each arm relative to those of the first, and the tests of training times."""

from orchestrator.analysis import findings
from orchestrator.analysis.findings import Findings
from orchestrator.analysis.ratios import DECIDED
from orchestrator.report import format as fmt
from orchestrator.report.adjusted import is_max_t
from orchestrator.report.marks import mark_note, marked_arms, marked_name
from orchestrator.report.pair_cells import units
from orchestrator.report.processor_note import processor_note
from orchestrator.report.ratio_cells import geometric_mean, typical_ratio
from orchestrator.report.section import Part, titled
from orchestrator.report.table import Cell, Table, print_table, records


def parts(study: Findings) -> list[Part]:
    """Return the table of ratios.

    Parameters
    ----------
    study : Findings
        A study with rows of the profile `timing`.

    Returns
    -------
    list of Part
        Empty if no arm can be compared with the first.
    """
    return titled(_table(study)) if len(findings.time_ratios(study)) else []


def _table(study: Findings) -> Table:
    frame, marked, design = findings.time_ratios(study), marked_arms(study), study.design
    reference = next(iter(design.arms))
    caption = (
        f"The arm's time divided by that of {reference}, both as means over the same outer folds; values "
        f"below 1 are faster. Geometric mean: over {fmt.plural_of(design.unit)}, with a "
        f"{fmt.level(design.alpha)} interval by Student's t on the logarithms. Typical ratio: the "
        "Hodges–Lehmann estimate on the logarithms, with a distribution-free interval. Neither interval is "
        "adjusted for the number of tests. A training that timed "
        "out would have taken longer than its limit, so only a bound of its dataset's ratio is known. All "
        "quantities are computed with all ratios at their lower ends and at their upper ends; ≤ or ≥ marks a "
        "bound. If bounds go in both directions, only the median, or its two ends, is known. p: exact "
        "two-sided Wilcoxon signed-rank test of the logarithms, the larger value of the two ends. Adjusted "
        f"p: {_adjustment(study)} for the {frame['family'].iloc[0]} tests of the family, which includes "
        "those of scores. Prediction times are not tested."
    )
    excluded = [
        f"{row['solver']}: {row['fit_seconds_excluded']}"
        for row in records(frame)
        if row["fit_seconds_excluded"]
    ]
    if excluded:
        caption += (
            " Left out, because one of the two arms has not finished every outer fold: "
            f"{'; '.join(excluded)}."
        )
    return print_table(
        "time_ratios",
        f"Time relative to {marked_name(reference, marked)}",
        frame,
        {
            "Arm": lambda row: marked_name(row["solver"], marked),
            units(study): lambda row: fmt.count(row["fit_seconds_n"]),
            "Training, geometric mean": lambda row: geometric_mean(row, "fit_seconds"),
            "Training, typical ratio": lambda row: typical_ratio(row, "fit_seconds"),
            "p": lambda row: fmt.p_value(row["p"]),
            "Adjusted p": lambda row: fmt.p_value(row["p_adjusted"]),
            "Prediction, geometric mean": lambda row: geometric_mean(row, "predict_seconds"),
            "Training: verdict": lambda row: Cell(row["verdict"], strong=row["verdict"] in DECIDED),
        },
        caption=caption + processor_note(study) + mark_note(study),
        last_is_text=True,
    )


def _adjustment(study: Findings) -> str:
    """Return how p is adjusted.

    Parameters
    ----------
    study : Findings
        The study of the report.
    """
    if is_max_t(study):
        return "by step-down max-t of the mean logarithms, or of their signed ranks if a ratio has no bound,"
    return "by Holm's method"
