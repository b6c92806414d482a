"""Sensitivity of the p-values to single datasets, and to the treatment of datasets without a difference."""

from collections.abc import Callable

from orchestrator.analysis import findings
from orchestrator.analysis.findings import Findings
from orchestrator.analysis.signed_rank import smallest_p
from orchestrator.report import format as fmt
from orchestrator.report.adjusted import is_max_t
from orchestrator.report.pair_cells import pair, units
from orchestrator.report.section import Section
from orchestrator.report.table import Row, Table, print_table


def section(study: Findings) -> Section | None:
    """Return the section; None for a single arm, or before any refit has a score.

    Parameters
    ----------
    study : Findings
        The study of the report.

    Returns
    -------
    Section or None
        Section with one table.
    """
    if findings.is_empty(study) or findings.tests(study).empty:
        return None
    printed = _table(study)
    return Section(printed.title, "", [printed], link="Sensitivity")


def _table(study: Findings) -> Table:
    """Print p, and its range when one dataset at a time is left out.

    Parameters
    ----------
    study : Findings
        The study of the report.
    """
    names = ["first", "second", "n", "n_zero", "p", "loo_p_low", "loo_p_high", "p_pratt"]
    frame, unit = findings.tests(study)[names], study.design.unit
    plural = fmt.plural_of(unit)
    columns: dict[str, Callable[[Row], str]] = {
        "Pair, A − B": pair(study),
        units(study): lambda row: fmt.count(row["n"]),
        "p": lambda row: fmt.p_value(row["p"]),
        "Lowest p": lambda row: fmt.p_value(row["loo_p_low"]),
        "Highest p": lambda row: fmt.p_value(row["loo_p_high"]),
        "Smallest possible p": lambda row: (
            fmt.p_value(smallest_p(row["n"] - 1)) if row["n"] > 1 else fmt.MISSING
        ),
    }
    title = f"Sensitivity: leaving one {unit} out"
    caption = (
        "The unadjusted p-value of the signed-rank test of each pair, and its lowest and highest value when "
        f"one {unit} at a time is left out. Ends on both sides of {study.design.alpha:g} mean that the "
        f"unadjusted p depends on one {unit}; verdicts follow the adjusted p of the table of tests. With one "
        f"{unit} less, p is larger even for equal differences. "
        f"Smallest possible p: 2/2ⁿ with one {unit} less."
    )
    if frame["n_zero"].any():
        title += f", or ranking {plural} without a difference"
        columns["No difference"] = lambda row: fmt.count(row["n_zero"])
        columns["p, Pratt"] = lambda row: fmt.p_value(row["p_pratt"])
        caption += (
            f" {plural.capitalize()} without a difference are dropped from the test. p, Pratt: the same "
            f"exact test with these {plural} ranked before they are dropped, so that the others keep higher "
            f"ranks (Pratt, 1959). It equals p if all {plural} differ. The verdicts do not depend on it."
        )
    if is_max_t(study):
        caption += (
            " The signed-rank test decides nothing here: verdicts follow the tests of mean differences."
        )
    return print_table("sensitivity", title, frame, columns, caption=caption)
