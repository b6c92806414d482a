"""The captions of a report's tables: how each number in them is to be read."""

from math import isfinite

import pandas as pd

from orchestrator.analysis.findings import Findings
from orchestrator.analysis.pairwise import ALL_PAIRS_UP_TO, ALPHA
from orchestrator.analysis.tables import GAP_LEVEL
from orchestrator.report.printed import records
from orchestrator.report.words import MARK, MISSING, difference_unit, flow, metric_words, p_value, plural

_MARKED = flow(f"""
    {MARK}: a refit claims a relative duality gap above {GAP_LEVEL:g}, or did not converge. The objective may
    then be more than one per cent off its optimum (machines are commonly trained to a tenth of that), and
    scores and times are those of the model at which the training stopped.
""")


def with_mark(caption: str, findings: Findings) -> str:
    """Explain the mark where some arm carries it."""
    return f"{caption} {_MARKED}" if len(findings.marked) else caption


SENSITIVITY = flow("""
    The unadjusted p-value of each pair, and the lowest and the highest it takes when one dataset at a time
    is left out. A conclusion that hangs on one dataset shows here as a wide range. Smallest possible p:
    2/2ⁿ with one dataset less.
""")

EFFORT = flow(f"""
    Means over the refits, one for each outer fold, with the chosen hyper-parameters. Support-vector share:
    support vectors as a part of the training rows, averaged over the two-class machines of a model where
    there are several. Iterations and kernel evaluations are exact counts, the same on any machine, but an
    iteration of one solver may cost more than one of another. Gap: the relative duality gap that a refit
    claims, a bound of how far its objective is from the optimum. Not converged: refits that stopped before
    their tolerance was met, of those that gave a model. Stopped by: which promise was kept, and by how many
    refits. ≥: some refits ran out of time, so counts are lower bounds. {MISSING} marks a number that the
    solver does not publish.
""")

TIMING = flow("""
    Means over the refits, each trained alone on one core, cold, sharing nothing (profile “timing”);
    compilation is not included. ±: the standard error corrected for the training rows that folds share
    (Nadeau and Bengio, 2003), and in parentheses the descriptive σ/√n. ≥: a training that ran out of time
    counts with the time at which it was stopped, so the mean is a lower bound without an error, and the
    prediction time of the finished model is unknown. Whole search: all trainings and predictions of the
    nested cross-validation added up, as if run one after another.
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
    factor = (known["corrected_se"] / known["se"]).median() if len(known) else float("nan")
    times = f", {factor:.2f} times smaller" if isfinite(factor) else ""
    return flow(f"""
        Mean over {n_outer} outer test folds ± standard error, corrected for the training rows that folds
        share (Nadeau and Bengio, 2003): s·√(1/n + test rows/training rows). In parentheses the descriptive
        σ/√n that papers print (σ with divisor n){times}. Neither is variation over datasets, and overlap of
        two of them is no test. Bold: the highest mean of the row; one dataset alone decides nothing.
    """)


def tests(findings: Findings) -> str:
    """Caption of the pairwise tests: the family, the test, every column, what was left out."""
    arms = list(findings.means.columns)
    unit = _in_unit(findings.design.metric)
    family = (
        "all pairs of arms"
        if len(arms) <= ALL_PAIRS_UP_TO
        else "every arm against the first, {first}; with more than "
        f"{ALL_PAIRS_UP_TO} arms, testing all pairs would cost too much power"
    )
    size = int(findings.tests["family"].iloc[0])
    times = len(findings.time_ratios)
    members = f" ({plural(size - times, 'pair')} and {plural(times, 'comparison')} of times)" if times else ""
    adjusted = (
        f"by Holm's method for the {size} tests of the family{members}"
        if size > 1
        else "p itself, for one test"
    )
    text = flow(f"""
        The family of tests follows from the study's declaration, not from its scores: {family}. Each is the
        exact two-sided Wilcoxon signed-rank test, ties included, on one number per dataset and arm, the
        mean over outer folds. Typical difference: the Hodges–Lehmann estimate{unit}, with a
        distribution-free interval at the confidence level it attains; fewer than 6 datasets allow no 95 %
        interval. Smallest possible p: 2/2ⁿ for n datasets that differ at all. Adjusted p: {adjusted}; up to
        {ALPHA:g} it counts as evidence. “No evidence of a difference” does not mean that the arms are equal.
    """)
    # Names come last, for they are to stay as they are.
    return " ".join(filter(None, (text.format(first=next(iter(arms), "")), _excluded(findings))))


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
    pairs = "; ".join(f"{row['first']} − {row['second']}: {row['excluded']}" for row in records(excluded))
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


def time_ratios(findings: Findings, reference: str) -> str:
    """Caption of the time ratios."""
    frame = findings.time_ratios
    left_out = "; ".join(
        f"{row['solver']}: {row['fit_seconds_excluded']}"
        for row in records(frame)
        if row["fit_seconds_excluded"]
    )
    text = flow(f"""
        The arm's time divided by that of {{reference}}, means over the same outer folds; below 1 is faster.
        Geometric mean over datasets, with a 95 % interval by Student's t on the logarithms; typical ratio:
        the Hodges–Lehmann estimate on the logarithms, with a distribution-free interval. A training that
        ran out of time took longer than it had: its dataset's ratio has one end only, everything is
        evaluated with all ratios at their lower and at their upper ends, and ≤ or ≥ marks a bound; where
        bounds go both ways only a median, or its two ends, can be told. p: exact two-sided Wilcoxon
        signed-rank test of the logarithms, the larger of the two ends. Adjusted p: by Holm's method for the
        {int(frame["family"].iloc[0])} tests of the family, those of scores among them. Prediction times
        are described and not tested.
    """).format(reference=reference)
    if left_out:
        text += f" Left out, because one of the two arms has not finished every outer fold: {left_out}."
    return text


def selections(metric: str) -> str:
    """Caption of the chosen hyper-parameters."""
    return flow(f"""
        For each outer fold the inner search picks the candidate with the highest mean inner
        {metric_words(metric)}; ties go to the smaller value of the first hyper-parameter (the one listed
        first where its values are not all numbers), then of the next.
        On the border: outer folds whose winner lies at an end of a searched range; if they are many, a
        wider range may do better. Tied: mean number of candidates that share the highest score, the winner
        included. Without a score: candidates that failed, over all outer folds. Chosen: the winners, and
        how many outer folds picked each.
    """)


def sweep(metric: str) -> str:
    """Caption of the sweeps."""
    return flow(f"""
        Paired differences{_in_unit(metric)}, on the same folds, draws and seeds, over the datasets that both
        settings completed. Ratios: geometric means of setting / reference over the datasets where both have
        finished every outer fold, below 1 is less work; ≤ and ≥: bounds, because some trainings ran out of
        time.
        Exploratory: a setting picked here because it looks best needs fresh data to be tested.
    """)


def _in_unit(metric: str) -> str:
    unit = difference_unit(metric)
    return f", in{unit}" if unit else ""
