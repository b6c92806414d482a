"""Outcomes of the subproblems of a path for every C, and their totals over the subproblems."""

from typing import NamedTuple

import numpy as np

from solvers.common.compile import njit
from solvers.common.status import BY_SEVERITY, CONVERGED, NOT_DRAWN, STALLED, UNRESOLVED

# What a point was reached by; the bits of `method` add up over the blocks of one training.
PAIR_STEPS, SUPPORT_NEWTON, LOW_RANK = 1, 2, 4
METHOD_NAMES = {LOW_RANK: "low_rank", PAIR_STEPS: "pair_steps", SUPPORT_NEWTON: "support_newton"}


class Outcomes(NamedTuple):
    """Arrays of shape (n_subproblems, n_C), which the block solvers fill."""

    objectives: np.ndarray
    gaps: np.ndarray
    iterations: np.ndarray  # int64: pair steps and Newton rounds
    clipped: np.ndarray  # int64: steps of the hull that the weight at hand cut short
    statuses: np.ndarray  # int64, of those of `solvers.common.status`
    converged: np.ndarray  # bool: whether the tolerance is certified to hold
    supports: np.ndarray  # int64
    evaluations: np.ndarray  # int64
    methods: np.ndarray  # int64: bits of `METHOD_NAMES`
    costs: np.ndarray  # of the work, in any unit
    biases: (
        np.ndarray
    )  # (n_subproblems, n_C, classes of a machine): y_t·b of each, where the solver finds them

    def of_subproblem(self, k):
        """Return views of the arrays' k-th rows."""
        return Outcomes(*(values[k] for values in self))


def new_outcomes(n_subproblems, n_C, n_members, order="C", n_matrices=None):
    """Allocate them, in C or Fortran order; with `n_matrices` one after the other, for that many."""
    shape = (n_subproblems, n_C) if n_matrices is None else (n_matrices, n_subproblems, n_C)
    biases = np.zeros((*shape, n_members))
    types = {"objectives": float, "gaps": float, "costs": float, "converged": np.bool_}
    names = (name for name in Outcomes._fields if name != "biases")
    arrays = {name: np.zeros(shape, types.get(name, np.int64), order) for name in names}
    return Outcomes(**arrays, biases=biases)


def method_names(methods):
    """Spell out the bits of `methods`, as in ``"pair_steps+support_newton"``."""
    return "+".join(name for bit, name in METHOD_NAMES.items() if methods & bit)


class Totals(NamedTuple):
    """Arrays of shape (n_C,)."""

    iterations: np.ndarray  # int64
    evaluations: np.ndarray  # int64
    n_support: np.ndarray  # int64: support vectors of any machine
    gaps: np.ndarray  # the largest; NaN if one is
    converged: np.ndarray  # bool: whether all are
    fit_status: np.ndarray  # int64, the most severe, see `solvers.common.status`
    n_missed: np.ndarray  # int64: machines that missed their tolerance
    worst: np.ndarray  # int64: the machine farthest from its tolerance, among those that missed it if any did


def rows_used(weights):
    """Tell which rows any machine uses, for every C.

    Parameters
    ----------
    weights : float64 ndarray of shape (n_C, n_classes - 1 or 1, n)

    Returns
    -------
    used : bool ndarray of shape (n_C, n)
    """
    used = np.zeros((weights.shape[0], weights.shape[2]), np.bool_)
    _mark_used(weights, used)
    return used


@njit(allocates=False)
def _mark_used(weights, used):
    for j in range(weights.shape[0]):
        for s in range(weights.shape[1]):
            row = weights[j, s]
            for i in range(row.size):
                used[j, i] |= row[i] != 0.0


def totals_of(outcomes, used, by_draws):
    """Sum up the machines of each training.

    Parameters
    ----------
    outcomes : solvers.gram.outcomes.Outcomes
        Arrays of shape (n_C, n_subproblems).
    used : bool array (n_C, n)
        The rows that any machine uses.
    by_draws : bool
        Whether a search may have ended without a look at every sample.

    Returns
    -------
    Totals
    """
    names = ("iterations", "evaluations", "gaps", "converged", "statuses")
    arrays = (np.ascontiguousarray(getattr(outcomes, name).T) for name in names)
    n_C = used.shape[0]
    sums, farthest, largest = np.zeros((6, n_C), np.int64), np.full(n_C, -np.inf), np.full(n_C, -np.inf)
    all_converged = np.ones(n_C, np.bool_)
    _sum_up(*arrays, used, by_draws, sums, farthest, largest, all_converged)
    n_iterations, n_evaluations, n_support, status, n_missed, worst = sums
    return Totals(n_iterations, n_evaluations, n_support, largest, all_converged, status, n_missed, worst)


@njit(allocates=False)
def _sum_up(
    iterations, evaluations, gaps, converged, statuses, used, by_draws, sums, farthest, largest, all_converged
):
    """Fill the rows of `sums` with what `totals_of` names, and the other arrays of shape (n_C,)."""
    n_iterations, n_evaluations, n_support = sums[0], sums[1], sums[2]
    severity, n_missed, worst = sums[3], sums[4], sums[5]
    n_subproblems, n_C = gaps.shape
    for k in range(n_subproblems):
        for j in range(n_C):
            n_iterations[j] += iterations[k, j]
            n_evaluations[j] += evaluations[k, j]
            gap = gaps[k, j]
            if not gap <= largest[j]:  # or it is NaN
                largest[j] = gap if not np.isnan(largest[j]) else largest[j]
            distance = np.inf if np.isnan(gap) else gap
            status = statuses[k, j]
            if converged[k, j]:
                status = CONVERGED
            else:
                if status == CONVERGED:  # by its own stop, which nothing certifies
                    status = NOT_DRAWN if by_draws else STALLED
                elif status == UNRESOLVED:
                    status = STALLED
                if n_missed[j] == 0:
                    farthest[j] = -np.inf
                n_missed[j] += 1
                all_converged[j] = False
            if (n_missed[j] == 0 or not converged[k, j]) and distance > farthest[j]:
                farthest[j], worst[j] = distance, k
            for rank in range(len(BY_SEVERITY)):
                if BY_SEVERITY[rank] == status:
                    severity[j] = max(severity[j], rank)
    for j in range(n_C):
        severity[j] = BY_SEVERITY[severity[j]]
        for i in range(used.shape[1]):
            n_support[j] += used[j, i]
