"""The declared pairwise tests over datasets, and the rank sums and effect sizes behind them."""

import pandas as pd

from orchestrator.analysis import findings
from orchestrator.analysis.findings import Findings
from orchestrator.analysis.pairwise import ALL_PAIRS_UP_TO, HIGHER, LOWER
from orchestrator.analysis.signed_rank import datasets_needed
from orchestrator.report import format as fmt
from orchestrator.report.adjusted import (
    difference_of,
    difference_title,
    interval_note,
    is_max_t,
    patterns,
    test_name,
    tests_all_pairs,
)
from orchestrator.report.marks import mark_note
from orchestrator.report.pair_cells import pair, units
from orchestrator.report.section import Section, titled
from orchestrator.report.sections import practical, ranks, sequence
from orchestrator.report.table import Cell, Row, Table, print_table, records


def section(study: Findings) -> Section | None:
    """Return the section; None for a single arm, or before any refit has a score.

    Parameters
    ----------
    study : Findings
        The study of the report.

    Returns
    -------
    Section or None
        The tests, those after each dataset, the practical comparison, and mean ranks.
    """
    printed = table(study)
    if printed is None:
        return None
    details = [*titled(sequence.table(study)), *titled(_details(study))]
    return Section(
        printed.title, "", [printed, *details, *practical.parts(study), *ranks.parts(study)], link="Tests"
    )


def table(study: Findings) -> Table | None:
    """Print the family of pairwise tests, a row for each pair.

    Parameters
    ----------
    study : Findings
        The study of the report.

    Returns
    -------
    Table or None
        None for a single arm, or before any refit has a score.
    """
    frame, metric = findings.tests(study), study.design.metric
    if findings.is_empty(study) or frame.empty:
        return None

    def significant(row: Row) -> bool:
        return row["verdict"] in (HIGHER, LOWER)

    def verdict(row: Row) -> Cell:
        text = {HIGHER: "A is higher", LOWER: "B is higher"}.get(row["verdict"]) or row["verdict"]
        return Cell(text, strong=significant(row))

    return print_table(
        "tests",
        "Pairwise tests over datasets",
        frame,
        {
            "Pair, A − B": pair(study),
            units(study): lambda row: fmt.count(row["n"]),
            "A higher / same / lower": lambda row: f"{row['wins']} / {row['n_zero']} / {row['losses']}",
            difference_title(study): lambda row: difference_of(row, metric),
            "P(A higher)": _improved,
            "p": lambda row: fmt.p_value(row["p_flips"] if "p_flips" in row else row["p"]),
            "Smallest possible p": lambda row: fmt.p_value(row["smallest_p"]),
            "Adjusted p": lambda row: Cell(fmt.p_value(row["p_adjusted"]), strong=significant(row)),
            "Verdict": verdict,
        },
        caption=_caption(study, frame),
        last_is_text=True,
    )


def _caption(study: Findings, frame: pd.DataFrame) -> str:
    design, units = study.design, fmt.plural_of(study.design.unit)
    arms, size = list(findings.means(study).columns), frame["family"].iloc[0]
    family = "all pairs of arms"
    if not tests_all_pairs(study):
        family = (
            f"every arm against the first, {arms[0]}; with more than {ALL_PAIRS_UP_TO[design.adjustment]} "
            "arms, testing all pairs would cost too much power"
        )
    in_place = "; their mean replaces the datasets of a family, and the table of datasets lists the families"
    few = ""
    if not is_max_t(study):
        needed = datasets_needed(1, design.alpha)
        few = f"; fewer than {needed} {units} allow no {fmt.level(design.alpha)} interval."
    text = (
        f"The declaration of the study determines the family of tests, not its scores: {family}. Each test "
        f"is the {_kind(study)}, ties included, on one number per dataset and arm, "
        f"the mean over outer folds{in_place if design.families else ''}. {interval_note(study)}{few} "
        f"P(A higher): the share of {units} on which A is higher, with its exact {fmt.level(design.alpha)} "
        "binomial interval, not adjusted for the number of tests. It estimates the probability that A is "
        f"higher on a new {design.unit}, if all of them are drawn from one source. "
        f"Smallest possible p: 2/2ⁿ for n {units} with a difference. "
        f"Adjusted p: {_adjustment(study, size, len(findings.time_ratios(study)))}; a value of at most "
        f"{design.alpha:g} counts as evidence of a difference. “No evidence of a difference” does not mean "
        "that the arms are equal."
    )
    excluded = [
        f"{row['first']} − {row['second']}: {row['excluded']}" for row in records(frame) if row["excluded"]
    ]
    if excluded:
        text += (
            " Left out, because one of the two arms has not completed every outer fold: "
            f"{'; '.join(excluded)}."
        )
    return text + _after_each(study) + mark_note(study)


def _after_each(study: Findings) -> str:
    """Return a sentence on a study that is tested after each dataset; empty for another study.

    Parameters
    ----------
    study : Findings
        The study of the report.
    """
    if not study.design.choices.sequential:
        return ""
    unit = study.design.unit
    return (
        f" These tests assume a number of {fmt.plural_of(unit)} that was fixed in advance. The short answer "
        f"follows the tests after each {unit} instead."
    )


def _improved(row: Row) -> str:
    """Print the probability that the first arm of a pair is higher on a new dataset, with its interval.

    Parameters
    ----------
    row : dict
        A row of `findings.tests`.
    """
    if not row["n"]:
        return fmt.MISSING
    share, low, high = (f"{row[name]:.2f}" for name in ("improved", "improved_low", "improved_high"))
    return f"{share} [{low}, {high}]"


def _kind(study: Findings) -> str:
    """Return the name of the test with its two sides.

    Parameters
    ----------
    study : Findings
        The study of the report.
    """
    return (
        test_name(study).replace("Wilcoxon", "two-sided Wilcoxon").replace("sign-flip", "two-sided sign-flip")
    )


def _adjustment(study: Findings, size: int, n_times: int) -> str:
    """Return how p is adjusted in a family of tests, some of which may be of times.

    Parameters
    ----------
    study : Findings
        The study of the report.
    size : int
        Number of tests of the family.
    n_times : int
        Number of those that are of times.
    """
    if size == 1:
        return "equal to p, because the family has one test"
    kinds = ""
    if n_times:
        kinds = f" ({fmt.plural(size - n_times, 'pair')} and {fmt.plural(n_times, 'comparison')} of times)"
    if is_max_t(study):
        return (
            f"by step-down max-t for the {size} tests of the family{kinds}: the share of sign patterns in "
            "which the largest statistic of the tests that are not yet rejected reaches the observed one. "
            f"The signs of whole {fmt.plural_of(study.design.unit)} are flipped in {patterns(study)}, which "
            "assumes that the differences of all pairs are symmetric together if no arms differ"
        )
    return f"by Holm's method for the {size} tests of the family{kinds}"


def _details(study: Findings) -> Table:
    """Print the rank sums and effect sizes behind the pairwise tests.

    Parameters
    ----------
    study : Findings
        The study of the report.
    """
    metric, plural = study.design.metric, fmt.plural_of(study.design.unit)
    names = ["first", "second", "n", "n_zero", "w_plus", "w_minus", "rank_biserial", "median_difference"]
    return print_table(
        "test_details",
        "Details of the tests",
        findings.tests(study)[names],
        {
            "Pair, A − B": pair(study),
            f"{units(study)} that differ": lambda row: fmt.count(row["n"] - row["n_zero"]),
            "W⁺": lambda row: f"{row['w_plus']:g}",
            "W⁻": lambda row: f"{row['w_minus']:g}",
            "r": lambda row: fmt.correlation(row["rank_biserial"]) if row["n"] else fmt.MISSING,
            "Median difference": lambda row: fmt.difference(row["median_difference"], metric),
        },
        caption="W⁺ and W⁻: the sums of the ranks of the differences in favour of A and of B. Ties have the "
        f"mean of their ranks, and {plural} without a difference are left out. r: the rank-biserial "
        f"correlation (W⁺ − W⁻)/(W⁺ + W⁻), from −1 (B is higher on all {plural}) to +1 (A is higher on all). "
        f"Median difference: over all {plural}{fmt.in_unit(metric)}.",
    )
