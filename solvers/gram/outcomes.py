"""Outcomes of the subproblems of a path for every C, and their totals over the subproblems."""

from typing import NamedTuple

import numpy as np

from solvers.common.compile import njit
from solvers.common.status import BY_SEVERITY, CONVERGED, NOT_DRAWN, STALLED, UNRESOLVED

# Bits of the methods that reached a point. They are combined over the blocks of one training.
PAIR_STEPS, SUPPORT_NEWTON, LOW_RANK = 1, 2, 4
METHOD_NAMES = {LOW_RANK: "low_rank", PAIR_STEPS: "pair_steps", SUPPORT_NEWTON: "support_newton"}


class Outcomes(NamedTuple):
    """Results of block solvers: arrays of shape (n_subproblems, n_C)."""

    objectives: np.ndarray  # ‖c‖² of a hull point, or ½ βᵀKβ − Σ α_i of SMO; both are minimised
    gaps: np.ndarray  # certified gaps
    iterations: np.ndarray  # int64: pair steps and Newton rounds
    clipped: np.ndarray  # int64: steps on the hull that were shortened by the available weight
    full_updates: np.ndarray  # int64: steps on the hull that were not shortened, or additions to a core set
    statuses: np.ndarray  # int64: statuses of `solvers.common.status`
    converged: np.ndarray  # bool: whether the tolerance is certified to hold
    supports: np.ndarray  # int64: numbers of support vectors
    evaluations: np.ndarray  # int64: numbers of kernel values
    methods: np.ndarray  # int64: bits of `METHOD_NAMES`
    costs: np.ndarray  # cost of the work, in a unit that the solver chooses
    biases: np.ndarray  # (n_subproblems, n_C, labels of a subproblem): y_t·b, or 0 if the solver has none

    def of_subproblem(self, k):
        """Return views of the k-th rows of the arrays.

        Parameters
        ----------
        k : int
            Index of the subproblem.

        Returns
        -------
        Outcomes
            Arrays of shape (n_C,).
        """
        return Outcomes(*(values[k] for values in self))


def new_outcomes(n_subproblems, n_C, n_members, order="C", n_matrices=None):
    """Allocate outcomes that are all zero.

    Parameters
    ----------
    n_subproblems : int
        Number of binary problems of the training.
    n_C : int
        Number of values of C.
    n_members : int
        Number of different labels in a subproblem; 0 if the caller reads no biases.
    order : {"C", "F"}, default="C"
        Memory layout of the arrays.
    n_matrices : int, optional
        Number of Gram matrices, which adds a first axis. By default there is no such axis.

    Returns
    -------
    Outcomes
        Arrays of shape (n_subproblems, n_C), or (n_matrices, n_subproblems, n_C).
    """
    shape = (n_subproblems, n_C) if n_matrices is None else (n_matrices, n_subproblems, n_C)
    biases = np.zeros((*shape, n_members))
    types = {"objectives": float, "gaps": float, "costs": float, "converged": np.bool_}
    names = (name for name in Outcomes._fields if name != "biases")
    arrays = {name: np.zeros(shape, types.get(name, np.int64), order) for name in names}
    return Outcomes(**arrays, biases=biases)


def method_names(methods):
    """Return the names of methods, as in ``"pair_steps+support_newton"``.

    Parameters
    ----------
    methods : int
        Bits of `METHOD_NAMES`.

    Returns
    -------
    str
        The names, joined by ``+``.
    """
    return "+".join(name for bit, name in METHOD_NAMES.items() if methods & bit)


class Totals(NamedTuple):
    """Totals of the subproblems of one training: arrays of shape (n_C,)."""

    iterations: np.ndarray  # int64: sum of the iterations
    evaluations: np.ndarray  # int64: sum of the kernel evaluations
    n_support: np.ndarray  # int64: number of samples that are support vectors of any subproblem
    gaps: np.ndarray  # largest gap; NaN if a gap is NaN
    converged: np.ndarray  # bool: whether all subproblems converged
    fit_status: np.ndarray  # int64: most severe status, see `solvers.common.status`
    n_missed: np.ndarray  # int64: number of subproblems that missed their tolerance
    worst: np.ndarray  # int64: subproblem with the largest gap, among those that missed their tolerance


def rows_used(weights):
    """Return which rows have weight in any subproblem, for every C.

    Parameters
    ----------
    weights : float64 ndarray of shape (n_C, n_layers, n)
        Weights in the layout of `PathSolution.weights`.

    Returns
    -------
    used : bool ndarray of shape (n_C, n)
        Whether a row has weight.
    """
    used = np.zeros((weights.shape[0], weights.shape[2]), np.bool_)
    _mark_used(weights, used)
    return used


@njit(allocates=False)
def _mark_used(weights, used):
    """Mark the rows that have weight in any subproblem.

    Parameters
    ----------
    weights : float64 array (n_C, n_layers, n)
        Weights in the layout of `PathSolution.weights`.
    used : bool array (n_C, n)
        Entries of rows with weight become True.
    """
    for j in range(weights.shape[0]):
        for s in range(weights.shape[1]):
            row = weights[j, s]
            for i in range(row.size):
                used[j, i] |= row[i] != 0.0


def totals_of(outcomes, used, by_draws):
    """Return the totals of the subproblems of each training.

    Parameters
    ----------
    outcomes : solvers.gram.outcomes.Outcomes
        Arrays of shape (n_C, n_subproblems).
    used : bool array (n_C, n)
        Rows that have weight in any subproblem.
    by_draws : bool
        Whether a search may have ended before it examined every sample.

    Returns
    -------
    Totals
        Arrays of shape (n_C,).
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
    """Compute the totals that `totals_of` returns.

    Parameters
    ----------
    iterations, evaluations, gaps, converged, statuses : arrays (n_subproblems, n_C), C-contiguous
        Fields of `Outcomes`.
    used : bool array (n_C, n)
        Rows that have weight in any subproblem.
    by_draws : bool
        Whether a search may have ended before it examined every sample.
    sums : int64 array (6, n_C)
        Receives iterations, evaluations, support vectors, status, missed subproblems and worst subproblem.
    farthest : array (n_C,)
        Receives the gap of the worst subproblem; minus infinity at the start.
    largest : array (n_C,)
        Receives the largest gap; minus infinity at the start.
    all_converged : bool array (n_C,)
        Receives whether all subproblems converged; True at the start.
    """
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
                if status == CONVERGED:  # the solver stopped by its rule, but no certificate holds
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
