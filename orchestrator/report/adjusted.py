"""Words on the adjustment of p-values, and cells of the differences that it concerns."""

from math import isnan

from orchestrator.analysis import findings
from orchestrator.analysis.findings import Findings
from orchestrator.analysis.pairwise import all_pairs
from orchestrator.analysis.sign_flips import ALL_FLIPS_UP_TO, FLIPS
from orchestrator.report import format as fmt
from orchestrator.report.pair_cells import estimate
from orchestrator.report.table import Row
from orchestrator.study.report_choices import HOLM, MAX_T

NAMES = {HOLM: "Holm's method", MAX_T: "step-down max-t"}
"""Names of the procedures that adjust p-values, by the value of `report.adjust`."""


def is_max_t(study: Findings) -> bool:
    """Return whether the tests of mean differences decide, adjusted by max-t.

    Parameters
    ----------
    study : Findings
        The study of the report.
    """
    return study.design.adjustment == MAX_T


def tests_all_pairs(study: Findings) -> bool:
    """Return whether all pairs of arms are tested, and not only those with the control.

    Parameters
    ----------
    study : Findings
        The study of the report.
    """
    return all_pairs(len(findings.means(study).columns), study.design.adjustment)


def after_adjustment(study: Findings) -> str:
    """Return the words that name the procedure behind a verdict.

    Parameters
    ----------
    study : Findings
        The study of the report.
    """
    return "by step-down max-t over sign flips" if is_max_t(study) else "after Holm's adjustment"


def if_fixed(study: Findings) -> str:
    """Return the condition under which a verdict holds whose test assumes a fixed number of datasets.

    Parameters
    ----------
    study : Findings
        The study of the report.

    Returns
    -------
    str
        A clause. Empty unless the study is also tested after each dataset (`report.sequential`), so that its
        number of datasets may depend on results.
    """
    if not study.design.choices.sequential:
        return ""
    return f", if the number of {fmt.plural_of(study.design.unit)} had been fixed in advance"


def test_name(study: Findings) -> str:
    """Return the name of the test of a pair.

    Parameters
    ----------
    study : Findings
        The study of the report.
    """
    if not is_max_t(study):
        return "exact Wilcoxon signed-rank test"
    n = len(findings.compared_means(study).means)
    return f"{'exact ' if n <= ALL_FLIPS_UP_TO else ''}sign-flip test of the mean difference"


def patterns(study: Findings) -> str:
    """Return which sign patterns max-t counts.

    Parameters
    ----------
    study : Findings
        The study of the report.
    """
    n = len(findings.compared_means(study).means)
    if n <= ALL_FLIPS_UP_TO:
        return f"all 2{fmt.superscript(max(0, n - 1))} ways"
    return f"{FLIPS:,} random ways with a fixed seed"


def difference_title(study: Findings) -> str:
    """Return the heading of the differences of pairs.

    Parameters
    ----------
    study : Findings
        The study of the report.
    """
    return "Mean difference" if is_max_t(study) else "Typical difference"


def difference_of(row: Row, metric: str) -> str:
    """Print the difference of a pair: the mean with its simultaneous interval, or the typical one.

    Parameters
    ----------
    row : dict
        A row of `findings.tests`.
    metric : str
        Name of the scorer.
    """
    if "mean_low" not in row:
        return estimate(row, metric)
    if not row["n"]:
        return fmt.MISSING
    middle, low, high = (
        fmt.difference(row[f"mean_{name}"], metric) for name in ("difference", "low", "high")
    )
    return middle if isnan(row["mean_low"]) else f"{middle} [{low}, {high}]"


def interval_note(study: Findings) -> str:
    """Return a sentence on the interval of a difference: whether it is adjusted for the number of tests.

    Parameters
    ----------
    study : Findings
        The study of the report.
    """
    design = study.design
    confidence, unit = fmt.level(design.alpha), fmt.in_unit(design.metric)
    if is_max_t(study):
        return (
            f"Mean difference{unit}, with intervals that hold together with {confidence} confidence, by "
            "the sign patterns of the differences from their means. They reach to 0 where the adjusted p "
            "exceeds the level. Step-down p-values may find a difference whose interval includes 0."
        )
    return (
        f"Typical difference: the Hodges–Lehmann estimate{unit}, with a distribution-free interval at the "
        "confidence level it attains, not adjusted for the number of tests"
    )
