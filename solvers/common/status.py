"""How a training ended, as a number and in words, and what its loop wants of the caller before."""

import numpy as np

# The first six are `fit_status_`; with the others a loop asks its caller for something and is called again:
# to look at the clock, to make room for more samples, to fetch a kernel row.
CONVERGED, LIMIT, TIMEOUT, NOT_POSITIVE, STALLED, NOT_DRAWN, PAUSED, FULL, ROW_MISSING, GO_ON = range(10)
# Rounding hides what is left of the violation: `fit_status_` is that of STALLED, `stopping_` says which.
UNRESOLVED = 10

# The `fit_status_` of a whole fit is the last of these that a machine has.
BY_SEVERITY = (CONVERGED, NOT_DRAWN, LIMIT, TIMEOUT, NOT_POSITIVE, STALLED)

ADVICE = {
    LIMIT: "max_iter was reached: raise it, or tol",
    TIMEOUT: "max_seconds were over: raise them, or tol",
    NOT_POSITIVE: "the kernel is not positive definite on these samples: use another one, or a smaller C",
    STALLED: "its steps made no more progress, which rounding does at a large C or a small tol: "
    "scale the samples, use a smaller C, or a larger tol",
    NOT_DRAWN: "its draws found no violator, and one is left, or may be: raise draws",
}
PRECISION = "cannot be told apart at this precision"
STOPPING_TEXTS = {
    CONVERGED: PRECISION,
    LIMIT: "max_iter",
    TIMEOUT: "max_seconds",
    NOT_POSITIVE: "‖c‖² is not positive",
    STALLED: "stalled: its steps gain next to nothing",
    UNRESOLVED: PRECISION,
}


def fit_status_of(status, converged, by_draws):
    """Return the `fit_status_` of a machine.

    Parameters
    ----------
    status : int
        What its solver returned.
    converged : bool
    by_draws : bool
        Whether its search may have ended without a look at every sample.
    """
    if converged:
        return CONVERGED
    if status == CONVERGED:  # by its own stop, which nothing certifies
        return NOT_DRAWN if by_draws else STALLED
    return STALLED if status == UNRESOLVED else int(status)


def most_severe(statuses):
    """Return the one `fit_status_` that stands for those of many machines."""
    return max(statuses, key=BY_SEVERITY.index)


def uncertified_text(reason, gap):
    """Text of a machine that is not certified."""
    return f"{reason} (gap {'unknown' if np.isnan(gap) else format(gap, '.2g')})"


def stopping_of(converged, gaps, text_of):
    """Return the text of the machine farthest from its tolerance, and how many missed it.

    Parameters
    ----------
    converged, gaps : ndarrays of shape (n_subproblems,)
    text_of : callable
        Gives the text of machine k.
    """
    missed = np.flatnonzero(~converged)
    among = missed if missed.size else np.arange(gaps.size)
    worst = among[np.where(np.isnan(gaps[among]), np.inf, gaps[among]).argmax()]
    return text_among(text_of(worst), missed.size, gaps.size)


def text_among(text, n_missed, n_subproblems):
    """Add to the text of a machine how many missed their tolerance, if others may have."""
    return f"{text}; {n_missed} of {n_subproblems} machines" if n_missed and n_subproblems > 1 else text


def certified_text(tol):
    """Say what is certified of a machine that converged."""
    return f"certified: violation and gap <= {tol:g}"
