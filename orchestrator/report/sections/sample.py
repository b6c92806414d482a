"""Times of a whole nested cross-validation, estimated from a sample of its trainings."""

import math

from orchestrator.analysis import findings
from orchestrator.analysis.findings import Findings
from orchestrator.analysis.sample_totals import LEVEL
from orchestrator.analysis.sampled_times import MAX_DISTURBED, MAX_WIDTH
from orchestrator.analysis.summaries import WAITED_FROM
from orchestrator.report import format as fmt
from orchestrator.report.by_dataset import rows_by_dataset
from orchestrator.report.processor_note import processor_note
from orchestrator.report.section import Paragraph, Part, titled
from orchestrator.report.table import Cell, Row, Table, lower_bound, records
from orchestrator.study.sample import requested_repeats
from orchestrator.study.study import SearchSpec


def parts(study: Findings) -> list[Part]:
    """Return the tables of estimated totals and ratios, behind sentences about what limits them.

    Parameters
    ----------
    study : Findings
        A study with rows of the profile `timing`.

    Returns
    -------
    list of Part
        Empty for a study that is not a sample.
    """
    if findings.estimated_totals(study).empty:
        return []
    notes: list[Part] = [
        Paragraph(sentence) for sentence in (*disturbed(study), *_wide(study), *_mixed(study))
    ]
    return [*notes, *titled(_totals(study)), *titled(_ratios(study))]


def disturbed(study: Findings) -> list[str]:
    """Return a sentence if other processes disturbed the timings of a sample.

    Parameters
    ----------
    study : Findings
        The study of the report.
    """
    rows = [row for row in records(findings.estimated_totals(study)) if row["disturbed"] > MAX_DISTURBED]
    if not rows:
        return []
    return [
        f"{_named(rows)}: the wall time of more than {100 * MAX_DISTURBED:g} % of the trainings exceeded "
        f"{WAITED_FROM} times their CPU time. Compare CPU times only, or measure the sample again on a "
        "machine that does nothing else."
    ]


def _wide(study: Findings) -> list[str]:
    """Return a sentence if intervals of totals are wide or unknown.

    Arms with stopped trainings are left out, because a larger sample has stopped trainings too.

    Parameters
    ----------
    study : Findings
        A study that measures a sample.
    """
    rows = records(findings.estimated_totals(study))
    wide = [row for row in rows if _is_wide(row) and not row["stopped"]]
    if not wide:
        return []
    return [
        f"The interval of {_named(wide)} is unknown or wider than a factor of {MAX_WIDTH:g}. "
        "Run the study again with a larger search.folds; the stored trainings are kept."
    ]


def _mixed(study: Findings) -> list[str]:
    """Return a sentence if runs with different `search.repeats` have measured the sample.

    Parameters
    ----------
    study : Findings
        A study that measures a sample.
    """
    searches = {
        run.get("run_id"): SearchSpec.from_record(run["study"].get("search", ""))
        for run in study.results.provenance
        if run.get("study")
    }
    ran = set(study.trials["run_id"])
    found = sorted({requested_repeats(search) for run, search in searches.items() if run in ran})
    if len(found) < 2:
        return []
    return [
        f"Runs with search.repeats of {fmt.listed([*map(str, found)])} have measured this sample. Medians of "
        "fewer measurements vary more. Run the command under another name to measure all trainings alike."
    ]


def _is_wide(row: Row) -> bool:
    is_narrow = row["cpu_seconds_high"] <= MAX_WIDTH * row["cpu_seconds_low"]  # False if unknown
    return row["measured"] == row["drawn"] and not is_narrow


def _named(rows: list[Row]) -> str:
    return fmt.listed([f"{row['solver']} on {row['dataset']}" for row in rows])


def _totals(study: Findings) -> Table:
    def processor(row: Row) -> Cell:
        tone = "warn" if row["disturbed"] > MAX_DISTURBED else ""
        return Cell(lower_bound(fmt.time(row["cpu_seconds"]), {"n_stopped": row["stopped"]}), tone=tone)

    def interval(row: Row) -> Cell:
        low, high = row["cpu_seconds_low"], row["cpu_seconds_high"]
        text = fmt.time_interval(low, high) if low == low else fmt.MISSING
        return Cell(text, tone="warn" if _is_wide(row) else "")

    def error(row: Row) -> str:
        share = row["cpu_seconds_se"] / row["cpu_seconds"] if row["cpu_seconds"] else 0.0
        return f"{100 * share:.1f} %" if share == share else fmt.MISSING

    def trainings(row: Row) -> Cell:
        text = f"{fmt.count(row['drawn'])} of {fmt.count(row['trainings'])}"
        missing = row["drawn"] - row["measured"]
        return Cell(
            f"{text} ({fmt.count(missing)} missing)" if missing else text, tone="warn" if missing else ""
        )

    source = study.design.search.options["study"]
    return rows_by_dataset(
        study,
        "estimated_times",
        "Time of the whole nested cross-validation, estimated",
        findings.estimated_totals(study),
        {
            "Estimated from trainings": trainings,
            "CPU time, s": processor,
            f"{fmt.level(1 - LEVEL)} interval": interval,
            "Standard error": error,
            "Wall time, s": lambda row: lower_bound(fmt.time(row["seconds"]), {"n_stopped": row["stopped"]}),
        },
        caption=f"The time that all trainings of study {source} take if each runs by itself and starts cold, "
        "with their predictions. Trainings of each candidate were drawn at random without replacement, the "
        "same for all arms with this candidate, and were measured in random order. A candidate contributes "
        "the mean of its drawn trainings times the number of its trainings; all refits were measured. The "
        "standard error takes the drawn share into account. Where one training of each candidate was drawn, "
        "the error is the deviation from a smooth surface over the grid and tends to be too large. The "
        "interval is symmetric on the log scale. ≥: trainings were stopped, so this is a lower bound."
        f"{processor_note(study)}",
    )


def _ratios(study: Findings) -> Table | None:
    frame = findings.estimated_ratios(study)
    if frame.empty:
        return None
    reference = frame["reference"].iloc[0]

    def ratio(row: Row) -> str:
        if row["low"] == 0 and math.isinf(row["high"]):
            return fmt.MISSING  # trainings of both arms were stopped
        bound = ("≥ " if math.isinf(row["high"]) else "≤ ") if row["stopped"] else ""
        estimate, low, high = (fmt.time_ratio(row[name]) for name in ("ratio", "low", "high"))
        return f"{bound}{estimate} [{low}, {high}]"

    return rows_by_dataset(
        study,
        "estimated_ratios",
        f"Estimated time relative to {reference}",
        frame,
        {"CPU time, ratio": ratio, "Trainings on common cells": lambda row: fmt.count(row["common"])},
        caption=f"The estimated CPU time of the arm's whole nested cross-validation divided by that of "
        f"{reference}; values below 1 are faster. In brackets: the {fmt.level(1 - LEVEL)} interval, which is "
        "symmetric on the log scale. It uses that both arms were measured on the same cells."
        f"{processor_note(study)}",
    )
