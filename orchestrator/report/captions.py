"""The captions of a report's tables: how each number in them is to be read."""

from math import isfinite

import pandas as pd

from orchestrator.analysis.findings import Findings
from orchestrator.analysis.pairwise import ALL_PAIRS_UP_TO, ALPHA
from orchestrator.report.words import MISSING, difference_unit, flow, metric_words, p_value, plural

NEAR_BEST = "†"

SENSITIVITY = flow("""
    The unadjusted p-value of each pair, and the lowest and the highest it takes when one dataset at a time
    is left out. A conclusion that hangs on one dataset shows here as a wide range. Smallest possible p:
    2/2ⁿ with one dataset less.
""")

EFFORT = flow(f"""
    Means over the refits, one for each outer fold, with the chosen hyper-parameters. Support-vector share:
    support vectors as a part of the training rows, averaged over the two-class machines of a model where
    there are several. Iterations and kernel evaluations are exact counts, the same on any machine, but an
    iteration of one solver may cost more than one of another. Not converged: refits that stopped before
    their tolerance was met. {MISSING} marks a number that the solver does not publish.
""")

TIMING = flow("""
    Means over the refits, each trained alone on one core, cold, sharing nothing (profile “timing”);
    compilation is not included. ± is the descriptive standard error σ/√n over outer folds. Whole search: all
    trainings and predictions of the nested cross-validation added up, as if run one after another.
""")

FAILURES = flow("""
    One row for each kind; messages that differ only in numbers are one kind. With a score: trials that gave
    a usable model all the same, and count.
""")


def coverage(planned: bool) -> str:
    """Caption of the coverage matrix, whose plan is known for a grid search only."""
    formula = (
        "Planned for each dataset and arm: outer folds × (inner folds × grid points + 1 refit) trainings."
        if planned
        else "The search decides as it goes, so the number of trainings is not known beforehand."
    )
    return flow(f"""
        Trainings that gave a score. {formula} A training that reached its time limit but still gave a model
        has a score and counts.
    """)


def scores(frame: pd.DataFrame, n_outer: int) -> str:
    """Caption of a score table, with the correction of its standard errors."""
    known = frame[(frame["se"] > 0) & frame["complete"]] if len(frame) else frame
    correction = "and too small"
    if len(known):
        factor = (known["corrected_se"] / known["se"]).median()
        correction += (
            f"; corrected for the overlap (Nadeau and Bengio, 2003) it would be {factor:.2f} times as large"
        )
    return flow(f"""
        Mean over {n_outer} outer test folds ± standard error σ/√n (σ with divisor n). The folds share
        training rows, so this error is descriptive {correction}. Bold: the highest mean of the row.
        {NEAR_BEST}: within one corrected standard error of it.
    """)


def tests(findings: Findings) -> str:
    """Caption of the pairwise tests: the family, the test, every column, what was left out."""
    arms = list(findings.means.columns)
    unit = _in_unit(findings.design.metric)
    family = (
        "all pairs of arms"
        if len(arms) <= ALL_PAIRS_UP_TO
        else f"every arm against the first, {arms[0]}; with more than {ALL_PAIRS_UP_TO} arms, testing all "
        "pairs would cost too much power"
    )
    size = len(findings.tests)
    adjusted = (
        f"by Holm's method for the {size} tests of the family" if size > 1 else "p itself, for one test"
    )
    return flow(f"""
        The family of tests follows from the study's declaration, not from its scores: {family}. Each is the
        exact two-sided Wilcoxon signed-rank test, ties included, on one number per dataset and arm, the
        mean over outer folds. Typical difference: the Hodges–Lehmann estimate{unit}, with a
        distribution-free interval at the confidence level it attains; fewer than 6 datasets allow no 95 %
        interval. Smallest possible p: 2/2ⁿ for n datasets that differ at all. Adjusted p: {adjusted}; up to
        {ALPHA:g} it counts as evidence. “No evidence of a difference” does not mean that the arms are equal.
        {_excluded(findings)}
    """)


def details(metric: str) -> str:
    """Caption of the rank sums and effect sizes."""
    return flow(f"""
        W⁺ and W⁻: the sums of the ranks of the differences in favour of A and of B, ties sharing their ranks
        and datasets without a difference left out. r: the rank-biserial correlation (W⁺ − W⁻)/(W⁺ + W⁻),
        from −1 (B ahead everywhere) to +1 (A ahead everywhere). Median difference: over all
        datasets{_in_unit(metric)}.
    """)


def _excluded(findings: Findings) -> str:
    excluded = findings.tests[findings.tests["excluded"] != ""]
    if excluded.empty:
        return ""
    pairs = "; ".join(f"{row.first} − {row.second}: {row.excluded}" for row in excluded.itertuples())
    return f"Left out, because one of the two arms has not completed every outer fold: {pairs}."


def ranks(findings: Findings) -> str:
    """Caption of the mean ranks, with the omnibus test."""
    n = int(findings.ranks["n"].iloc[0])
    text = f"""
        Rank 1 is the highest score on a dataset, ties share their ranks; means over {plural(n, "dataset")}
        that every arm completed. Ranks depend on which arms take part; the pairwise tests do not.
    """
    test = findings.friedman
    if test is None:
        return flow(text)
    statistic = (
        f"{test.statistic:.2f}" if isfinite(test.statistic) else "∞ (all datasets order the arms alike)"
    )
    p = p_value(test.p)
    p = p if p.startswith("<") else f"= {p}"
    how = (
        "exact, over all permutations"
        if test.n_permutations is None
        else f"from {test.n_permutations:,} random permutations"
    )
    return flow(f"""
        {text} Whether any arms differ at all: Friedman test, p {p}, {how} of the ranks within datasets. For
        description: χ² = {test.chi2:.2f}, corrected for ties, and F({test.df[0]}, {test.df[1]}) =
        {statistic} in the form of Iman and Davenport. No other test waits for this one.
    """)


def time_ratios(reference: str) -> str:
    """Caption of the time ratios."""
    return flow(f"""
        Geometric mean over datasets of the arm's time divided by that of {reference}; below 1 is faster. It
        describes these datasets on this machine and tests nothing.
    """)


def selections(metric: str) -> str:
    """Caption of the chosen hyper-parameters."""
    return flow(f"""
        For each outer fold the inner search picks the candidate with the highest mean inner
        {metric_words(metric)}; ties go to the smaller value of the first hyper-parameter, then of the next.
        On the border: outer folds whose winner lies at an end of a searched range; if they are many, a
        wider range may do better. Tied: mean number of candidates that share the highest score, the winner
        included. Without a score: candidates that failed, over all outer folds. Chosen: the winners, and
        how many outer folds picked each.
    """)


def sweep(metric: str) -> str:
    """Caption of the sweeps."""
    return flow(f"""
        Paired differences{_in_unit(metric)}, on the same folds, draws and seeds, over the datasets that both
        settings completed. Ratios: geometric means of setting / reference, below 1 is less work.
        Exploratory: a setting picked here because it looks best needs fresh data to be tested.
    """)


def _in_unit(metric: str) -> str:
    unit = difference_unit(metric)
    return f", in{unit}" if unit else ""
