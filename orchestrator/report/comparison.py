"""The printed comparison of arms: pairwise tests, their sensitivity, mean ranks."""

from collections.abc import Callable
from math import isfinite

import pandas as pd

from orchestrator.analysis.findings import Findings
from orchestrator.analysis.pairwise import ALL_PAIRS_UP_TO, ALPHA, HIGHER, LOWER
from orchestrator.analysis.signed_rank import smallest_p
from orchestrator.report import format as fmt
from orchestrator.report.marks import marked_arms, marked_name, with_mark_note
from orchestrator.report.table import Cell, Row, Table, print_table, records


def tests(findings: Findings) -> Table:
    """The family of pairwise tests, one row a pair."""
    frame, metric = findings.tests, findings.design.metric
    arms = list(findings.means.columns)
    family = (
        "all pairs of arms"
        if len(arms) <= ALL_PAIRS_UP_TO
        else "every arm against the first, {first}; with more than "
        f"{ALL_PAIRS_UP_TO} arms, testing all pairs would cost too much power"
    )
    size, times = int(frame["family"].iloc[0]), len(findings.time_ratios)
    pairs, comparisons = fmt.plural(size - times, "pair"), fmt.plural(times, "comparison")
    members = f" ({pairs} and {comparisons} of times)" if times else ""
    adjusted = f"by Holm's method for the {size} tests of the family{members}"
    caption = fmt.flow(f"""
        The family of tests follows from the study's declaration, not from its scores: {family}. Each is the
        exact two-sided Wilcoxon signed-rank test, ties included, on one number per dataset and arm, the
        mean over outer folds. Typical difference: the Hodges–Lehmann estimate{fmt.in_unit(metric)}, with a
        distribution-free interval at the confidence level it attains; fewer than 6 datasets allow no 95 %
        interval. Smallest possible p: 2/2ⁿ for n datasets that differ at all. Adjusted p:
        {adjusted if size > 1 else "p itself, for one test"}; up to {ALPHA:g} it counts as evidence. “No
        evidence of a difference” does not mean that the arms are equal.
    """)
    # Names come last, for they are to stay as they are.
    caption = caption.format(first=next(iter(arms), ""))
    if len(excluded := frame[frame["excluded"] != ""]):
        named = "; ".join(f"{row['first']} − {row['second']}: {row['excluded']}" for row in records(excluded))
        caption += f" Left out, because one of the two arms has not completed every outer fold: {named}."

    def significant(row: Row) -> bool:
        return row["verdict"] in (HIGHER, LOWER)

    def verdict(row: Row) -> Cell:
        text = {HIGHER: "A is higher", LOWER: "B is higher"}.get(row["verdict"]) or row["verdict"]
        return Cell(text, strong=significant(row))

    return print_table(
        "tests",
        "Is the difference real? Pairwise tests over datasets",
        with_mark_note(caption, findings),
        frame,
        {
            "Pair, A − B": _pair(findings),
            "Datasets": lambda row: fmt.count(row["n"]),
            "A higher / same / lower": lambda row: f"{row['wins']} / {row['n_zero']} / {row['losses']}",
            "Typical difference": lambda row: _estimate(row, metric),
            "p": lambda row: fmt.p_value(row["p"]),
            "Smallest possible p": lambda row: fmt.p_value(row["smallest_p"]),
            "Adjusted p": lambda row: Cell(fmt.p_value(row["p_holm"]), strong=significant(row)),
            "Verdict": verdict,
        },
        last_is_text=True,
    )


def _estimate(row: Row, metric: str) -> str:
    if not row["n"]:
        return fmt.MISSING
    estimate = fmt.difference(row["estimate"], metric)
    if pd.isna(row["confidence"]):
        return f"{estimate} (no interval)"
    low, high = fmt.difference(row["low"], metric), fmt.difference(row["high"], metric)
    return f"{estimate} [{low}, {high}] at {100 * row['confidence']:.1f} %"


def _pair(findings: Findings) -> Callable[[Row], str]:
    marked = marked_arms(findings)
    return lambda row: f"{marked_name(row['first'], marked)} − {marked_name(row['second'], marked)}"


def details(findings: Findings) -> Table:
    """Rank sums and effect sizes behind the pairwise tests."""
    metric = findings.design.metric
    names = ["first", "second", "n", "n_zero", "w_plus", "w_minus", "rank_biserial", "median_difference"]
    return print_table(
        "test_details",
        "Behind the tests",
        fmt.flow(f"""
        W⁺ and W⁻: the sums of the ranks of the differences in favour of A and of B, ties sharing their ranks
        and datasets without a difference left out. r: the rank-biserial correlation (W⁺ − W⁻)/(W⁺ + W⁻),
        from −1 (B ahead everywhere) to +1 (A ahead everywhere). Median difference: over all
        datasets{fmt.in_unit(metric)}.
        """),
        findings.tests[names],
        {
            "Pair, A − B": _pair(findings),
            "Datasets that differ": lambda row: fmt.count(row["n"] - row["n_zero"]),
            "W⁺": lambda row: f"{row['w_plus']:g}",
            "W⁻": lambda row: f"{row['w_minus']:g}",
            "r": lambda row: fmt.correlation(row["rank_biserial"]) if row["n"] else fmt.MISSING,
            "Median difference": lambda row: fmt.difference(row["median_difference"], metric),
        },
    )


def sensitivity(findings: Findings) -> Table:
    """How the p-values move when one dataset is left out."""
    return print_table(
        "sensitivity",
        "Sensitivity: leaving one dataset out",
        fmt.flow("""
        The unadjusted p-value of each pair, and the lowest and the highest it takes when one dataset at a
        time is left out. A conclusion that hangs on one dataset shows here as a wide range. Smallest possible
        p: 2/2ⁿ with one dataset less.
        """),
        findings.tests[["first", "second", "n", "p", "loo_p_low", "loo_p_high"]],
        {
            "Pair, A − B": _pair(findings),
            "Datasets": lambda row: fmt.count(row["n"]),
            "p": lambda row: fmt.p_value(row["p"]),
            "Lowest p": lambda row: fmt.p_value(row["loo_p_low"]),
            "Highest p": lambda row: fmt.p_value(row["loo_p_high"]),
            "Smallest possible p": lambda row: (
                fmt.p_value(smallest_p(row["n"] - 1)) if row["n"] > 1 else fmt.MISSING
            ),
        },
    )


def ranks(findings: Findings) -> Table:
    """Mean ranks over complete datasets."""
    frame, marked, test = findings.ranks, marked_arms(findings), findings.friedman
    caption = fmt.flow(f"""
        Rank 1 is the highest score on a dataset, ties share their ranks; means over
        {fmt.plural(int(frame["n"].iloc[0]), "dataset")} that every arm completed. Ranks depend on which arms
        take part; the pairwise tests do not.
    """)
    if test is not None:
        all_alike = "∞ (all datasets order the arms alike)"
        how = (
            "exact, over all permutations"
            if test.n_permutations is None
            else f"from {test.n_permutations:,} random permutations"
        )
        caption += " " + fmt.flow(f"""
            Whether any arms differ at all: Friedman test, {fmt.p_equals(test.p)}, {how} of the ranks within
            datasets. For description: χ² = {test.chi2:.2f}, corrected for ties, and F({test.df[0]},
            {test.df[1]}) = {f"{test.statistic:.2f}" if isfinite(test.statistic) else all_alike} in the form
            of Iman and Davenport. No other test waits for this one.
        """)
    return print_table(
        "ranks",
        "Mean ranks",
        with_mark_note(caption, findings),
        frame,
        {
            "Arm": lambda row: marked_name(row["solver"], marked),
            "Mean rank": lambda row: f"{row['mean_rank']:.2f}",
        },
    )
