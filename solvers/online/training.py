"""Training of one subproblem by LASVM: seeds, epochs, choice of samples, finishing and certificate."""

from dataclasses import dataclass, replace

import numpy as np

from solvers.common.certificate import AIMED_SHARE
from solvers.common.status import CONVERGED, TIMEOUT, certified_text, uncertified_text
from solvers.kernels.subproblem_kernel import OutOfTime
from solvers.online.expansion import Expansion
from solvers.smo.certificate import SMO_STOPPING_TEXTS
from solvers.smo.kernel_rows import CachedRows
from solvers.smo.row_training import SmoState

N_SEEDS = 5
"""Number of samples of each label that enter first."""
OUTSIDE = "samples outside the set of LASVM violate the conditions"
"""Reason in `stopping_` if training ended as planned, without a certificate for all samples."""


@dataclass
class Schedule:
    """Order of the samples, and when training ends."""

    tol: float  # largest violation
    epochs: int  # number of passes over the samples
    selection: str  # "random", "gradient" or "margin"
    candidates: int  # number of samples of which the best is learnt next
    finishing: bool  # whether REPROCESS is repeated at the end
    cache_bytes: float  # memory for kernel rows, in bytes


def first_order(labels, generator):
    """Return the order of the first epoch: seeds of both labels, then all other samples.

    Parameters
    ----------
    labels : ndarray of shape (n,)
        Label of each sample, −1 or 1.
    generator : numpy.random.Generator
        Source of the random order.

    Returns
    -------
    order : int64 ndarray of shape (n,)
        Samples in random order, in which the first `N_SEEDS` of each label have moved to the front.
    n_seeds : int
        Number of samples at the front.
    """
    order = generator.permutation(labels.size)
    seeds = np.concatenate([order[labels[order] == sign][:N_SEEDS] for sign in (1.0, -1.0)])
    return np.concatenate((seeds, order[~np.isin(order, seeds)])), seeds.size


def train_online(problem, schedule):
    """Train a subproblem, and bound its violation and gap over all samples.

    Parameters
    ----------
    problem : solvers.problem.Problem
        Subproblem to train, with a seed of its random order.
    schedule : Schedule
        Order of the samples, and when training ends.

    Returns
    -------
    solvers.problem.Solution
        Trained subproblem. Unless it is certified, `by_draws` says that it ended as planned.
    """
    state = SmoState(problem, "l1")
    expansion = Expansion(schedule.cache_bytes, AIMED_SHARE * schedule.tol, problem.max_iter)
    expansion.is_member = np.zeros(state.y.size, np.bool_)
    gap, converged, is_evaluated = np.nan, False, False
    try:
        status = _run_epochs(expansion, state, schedule, np.random.default_rng(problem.seed))
    except OutOfTime:
        status = TIMEOUT
    chosen = expansion.members()
    state.beta[expansion.places.member[chosen]] = expansion.places.beta[chosen]
    state.steps, state.objective, bias = expansion.steps, expansion.objective, expansion.bias()
    state.store = CachedRows(state.kernel, schedule.cache_bytes)
    try:
        state.recompute()
        is_evaluated = True
    except OutOfTime:
        status = TIMEOUT
    if is_evaluated:
        error = state.error()
        gap, bias = state.gap(error), state.bias()
        converged = gap <= schedule.tol and state.largest_violation(error) <= schedule.tol
    solution = replace(state.solution(status, gap, converged, schedule.tol), bias=np.array([bias]))
    by_draws = status == CONVERGED and not converged
    return replace(solution, stopping=text_of(status, converged, gap, schedule.tol), by_draws=by_draws)


def text_of(status, converged, gap, tol):
    """Return the text for `stopping_` of a subproblem.

    Parameters
    ----------
    status : int
        How the training ended, one of the statuses of `solvers.common.status`.
    converged : bool
        Whether violation and gap over all samples are certified.
    gap : float
        Relative duality gap; NaN if it is unknown.
    tol : float
        Largest violation and gap that count as converged.

    Returns
    -------
    str
        Certified bounds, or the reason why the training ended.
    """
    if converged:
        return certified_text(tol)
    return uncertified_text(OUTSIDE if status == CONVERGED else SMO_STOPPING_TEXTS[status], gap)


def _run_epochs(expansion, state, schedule, generator):
    """Learn every sample once an epoch, and finish.

    Parameters
    ----------
    expansion : Expansion
        Set of the samples, changed in place.
    state : solvers.smo.row_training.SmoState
        Labels, penalties and kernel of the subproblem.
    schedule : Schedule
        Order of the samples, and when training ends.
    generator : numpy.random.Generator
        Source of the random order.

    Returns
    -------
    int
        One of the statuses of `solvers.common.status`.

    Raises
    ------
    OutOfTime
        If the deadline passes.
    """
    order, n_seeds = first_order(state.y, generator)
    is_seed = np.arange(order.size) < n_seeds
    status = CONVERGED
    for epoch in range(schedule.epochs):
        if epoch:
            order, n_seeds, is_seed = generator.permutation(order.size), 0, np.zeros(order.size, np.bool_)
        n_first = order.size if schedule.selection == "random" else n_seeds
        first = order[:n_first]
        status = expansion.learn(state.kernel, first, state.y[first], state.C[first], is_seed[:n_first])
        if status == CONVERGED and n_first < order.size:
            status = _learn_best(expansion, state, schedule, order[n_first:], generator)
        if status != CONVERGED:
            return status
    return expansion.finish(state.kernel) if schedule.finishing else status


def _learn_best(expansion, state, schedule, unseen, generator):
    """Learn samples one at a time, each the best of some random ones that were not seen in this epoch.

    Parameters
    ----------
    expansion : Expansion
        Set of the samples, changed in place.
    state : solvers.smo.row_training.SmoState
        Labels, penalties and kernel of the subproblem.
    schedule : Schedule
        How many candidates there are, and which one is the best: "gradient", with the smallest y f(x), or
        "margin", with the smallest |f(x)|.
    unseen : int64 ndarray of shape (m,)
        Samples that are not seen yet.
    generator : numpy.random.Generator
        Source of the candidates.

    Returns
    -------
    int
        CONVERGED, or LIMIT after the last step allowed.

    Raises
    ------
    OutOfTime
        If the deadline passes.
    """
    unseen, kernel = unseen.copy(), state.kernel
    for n in range(unseen.size, 0, -1):
        kernel.check_time()
        drawn = generator.choice(n, min(n, schedule.candidates), replace=False)
        candidates = unseen[drawn]
        decisions, block = expansion.decisions(kernel, candidates)
        score = state.y[candidates] * decisions if schedule.selection == "gradient" else np.abs(decisions)
        best = int(score.argmin())
        k = candidates[best : best + 1]
        unseen[drawn[best]] = unseen[n - 1]
        row = np.append(block[best], state.diagonal[k])[None]
        status = expansion.learn_block(kernel, k, state.y[k], state.C[k], np.zeros(1, np.bool_), row)
        if status != CONVERGED:
            return status
    return CONVERGED
