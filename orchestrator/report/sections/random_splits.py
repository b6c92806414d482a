"""Paired t over random splits that overlap, and scores without the splits that selected; both describe."""

from orchestrator.analysis import findings
from orchestrator.analysis.findings import Findings
from orchestrator.report import format as fmt
from orchestrator.report.limits import arms_note, shown, shown_arms
from orchestrator.report.marks import mark_note, marked_arms, marked_name
from orchestrator.report.pair_cells import pair
from orchestrator.report.section import Section, folded, titled
from orchestrator.report.table import Table, print_table, records

TITLE = "Random splits that overlap"


def section(study: Findings) -> Section | None:
    """Return the section; None without random splits that overlap, and without first splits that selected.

    Parameters
    ----------
    study : Findings
        The study of the report.

    Returns
    -------
    Section or None
        One table or two.
    """
    parts = [*titled(_later_splits(study)), *titled(_split_tests(study))]
    if not parts:
        return None
    content = folded(
        study, "Each dataset without the splits that selected, and with the t of its splits", parts
    )
    return Section(TITLE, "", content, link="Random splits")


def _split_tests(study: Findings) -> Table | None:
    """Print t over the splits of each dataset and its corrected value.

    Parameters
    ----------
    study : Findings
        The study of the report.

    Returns
    -------
    Table or None
        None if no two arms can be compared.
    """
    frame, metric = findings.split_tests(study), study.design.metric
    if frame.empty:
        return None
    return print_table(
        "split_tests",
        "Paired t over the splits of each dataset, which is no test",
        frame,
        {
            "Dataset": lambda row: row["dataset"],
            "Pair, A − B": pair(study),
            "Splits": lambda row: fmt.count(row["n_splits"]),
            "Difference": lambda row: fmt.difference(row["difference"], metric),
            "t over the splits": lambda row: _t(row["t"]),
            "Times too large": lambda row: f"{row['factor']:.2f}",
            "Corrected t": lambda row: _t(row["corrected_t"]),
        },
        caption=(
            f"Mean paired difference{fmt.in_unit(metric)} over all J splits of one dataset. t over the "
            "splits: the difference divided by s/√J, as papers print it. It takes the splits as independent, "
            "but their test rows and training rows overlap. Corrected t: the same divided by √(1 + J·test "
            "rows/training rows) (Nadeau and Bengio, 2003). Both describe one dataset. No verdict of this "
            "report uses them: the tests over datasets take one difference of each."
            + mark_note(study)
            + arms_note(study)
        ),
        rows=[row for row in records(frame) if {row["first"], row["second"]} <= {*shown_arms(study)}],
        text_columns=2,
    )


def _later_splits(study: Findings) -> Table | None:
    """Print mean scores with and without the splits on which hyper-parameters were selected.

    Parameters
    ----------
    study : Findings
        The study of the report.

    Returns
    -------
    Table or None
        None unless the hyper-parameters are medians over the first splits.
    """
    frame, metric = findings.later_splits(study), study.design.metric
    if frame.empty:
        return None
    n_first, marked = int(frame["n_first"].iloc[0]), marked_arms(study)
    return print_table(
        "later_splits",
        "Scores with and without the splits that selected",
        frame,
        {
            "Dataset": lambda row: row["dataset"],
            "Arm": lambda row: marked_name(row["solver"], marked),
            "Splits": lambda row: fmt.count(row["n_splits"]),
            "All splits": lambda row: fmt.score(row["mean"], metric),
            f"Without the first {n_first}": lambda row: fmt.score(row["later_mean"], metric),
            "Difference": lambda row: fmt.difference(row["difference"], metric),
        },
        caption=(
            f"Mean {fmt.metric_name(metric)}: over all splits, and without the first {n_first}, on whose "
            "training rows the hyper-parameters were selected. Difference: the second mean minus the first"
            f"{fmt.in_unit(metric)}. Test rows of the later splits took part in the selection, too, as "
            "training rows of the first ones, so that neither mean is free of it."
            + mark_note(study)
            + arms_note(study)
        ),
        rows=records(shown(study, frame)),
        text_columns=2,
    )


def _t(value: float) -> str:
    """Print a t statistic; a dash if there is none.

    Parameters
    ----------
    value : float
        The statistic.

    Returns
    -------
    str
        Two decimals, with a sign.
    """
    return fmt.MISSING if value != value else f"{value:+.2f}".replace("-", "−")
