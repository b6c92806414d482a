"""Statuses of a training loop as numbers, and their descriptions."""

import numpy as np

CONVERGED, LIMIT, TIMEOUT, NOT_POSITIVE, STALLED, NOT_DRAWN, PAUSED, FULL, ROW_MISSING, GO_ON = range(10)
"""Statuses of a training loop. The first six are values of `fit_status_`.

PAUSED, FULL and ROW_MISSING are requests to the caller, which then calls the loop again: to check the
clock, to enlarge the workspace, to compute a kernel row. GO_ON: nothing stops the next iteration.
"""
UNRESOLVED = 10
"""Status of a violation that rounding hides. Its `fit_status_` is `STALLED`, and `stopping_` names it."""

BY_SEVERITY = (CONVERGED, NOT_DRAWN, LIMIT, TIMEOUT, NOT_POSITIVE, STALLED)
"""Values of `fit_status_` in ascending severity. A fit has the most severe status of its subproblems."""

ADVICE = {
    LIMIT: "max_iter was reached: raise max_iter or tol",
    TIMEOUT: "max_seconds was reached: raise max_seconds or tol",
    NOT_POSITIVE: "the kernel is not positive definite on these samples: use another kernel or a smaller C",
    STALLED: "the steps made no more progress, because rounding limits them at a large C or a small tol: "
    "scale the samples, use a smaller C, or a larger tol",
    NOT_DRAWN: "the draws found no violator, but there may be one: raise draws",
}
"""Reason of an uncertified fit, and what the user can do, by `fit_status_`."""
PRECISION = "cannot be told apart at this precision"
STOPPING_TEXTS = {
    CONVERGED: PRECISION,
    LIMIT: "max_iter",
    TIMEOUT: "max_seconds",
    NOT_POSITIVE: "‖c‖² is not positive",
    STALLED: "stalled: its steps gain next to nothing",
    UNRESOLVED: PRECISION,
}
"""Reasons in `stopping_`, which is a column of the results, by status."""


def fit_status_of(status, converged, by_draws):
    """Return the `fit_status_` of a subproblem.

    Parameters
    ----------
    status : int
        Status that its solver returned.
    converged : bool
        Whether the tolerance is certified.
    by_draws : bool
        Whether the search may have ended without a check of every sample.

    Returns
    -------
    int
        One of `BY_SEVERITY`.
    """
    if converged:
        return CONVERGED
    if status == CONVERGED:  # the solver's stopping rule holds, but the tolerance is not certified
        return NOT_DRAWN if by_draws else STALLED
    return STALLED if status == UNRESOLVED else int(status)


def most_severe(statuses):
    """Return the `fit_status_` of a fit from those of its subproblems.

    Parameters
    ----------
    statuses : sequence of int
        Statuses of the subproblems, at least one.

    Returns
    -------
    int
        The status that comes last in `BY_SEVERITY`.
    """
    return max(statuses, key=BY_SEVERITY.index)


def uncertified_text(reason, gap):
    """Return the text of a subproblem that is not certified.

    Parameters
    ----------
    reason : str
        Reason why the training ended.
    gap : float
        Relative gap; NaN if it is unknown.

    Returns
    -------
    str
        Reason and gap.
    """
    return f"{reason} (gap {'unknown' if np.isnan(gap) else format(gap, '.2g')})"


def stopping_of(converged, gaps, text_of):
    """Describe the subproblem farthest from its tolerance, and count those that missed their tolerance.

    Parameters
    ----------
    converged : bool ndarray of shape (n_subproblems,)
        Whether each tolerance is certified.
    gaps : ndarray of shape (n_subproblems,)
        Certified relative duality gap of each subproblem.
    text_of : callable
        Function that returns the text of the subproblem of an index.

    Returns
    -------
    str
        Text for `stopping_`.
    """
    missed = np.flatnonzero(~converged)
    among = missed if missed.size else np.arange(gaps.size)
    worst = among[np.where(np.isnan(gaps[among]), np.inf, gaps[among]).argmax()]
    return text_among(text_of(worst), missed.size, gaps.size)


def text_among(text, n_missed, n_subproblems):
    """Append the number of subproblems that missed their tolerance, if there are several subproblems.

    Parameters
    ----------
    text : str
        Text of the subproblem farthest from its tolerance.
    n_missed : int
        Number of subproblems that missed their tolerance.
    n_subproblems : int
        Number of all subproblems.

    Returns
    -------
    str
        Text for `stopping_`.
    """
    return f"{text}; {n_missed} of {n_subproblems} subproblems" if n_missed and n_subproblems > 1 else text


def certified_text(tol):
    """Return the text of a subproblem whose violation and gap are certified.

    Parameters
    ----------
    tol : float
        Largest violation and relative duality gap that count as converged.

    Returns
    -------
    str
        Text for `stopping_`.
    """
    return f"certified: violation and gap <= {tol:g}"
