"""Results of a fit, from solutions of single subproblems or from a path that trained all of them together."""

from typing import NamedTuple

import numpy as np

from solvers.common.status import most_severe, stopping_of
from solvers.multiclass import coefficients_of, signed_coefficients


class Trained(NamedTuple):
    """Coefficients of a fit in scikit-learn's layout, and the results of its subproblems."""

    used: np.ndarray  # (n,) bool: samples, class by class, that are support vectors
    dual_coef: np.ndarray  # (n_classes − 1 or n_classes, n_SV)
    intercept: np.ndarray  # (n_pairs or n_classes,)
    n_iter: np.ndarray  # (n_subproblems,) int64: iterations
    n_kernel_evals: int  # kernel values of all subproblems
    objective: float  # sum over the subproblems
    gap: float  # largest gap of a subproblem
    converged: bool  # whether the tolerance is certified for all subproblems
    fit_status: int  # most severe status
    stopping: str  # text for `stopping_`
    n_clipped: np.ndarray  # (n_subproblems,) int64: iterations whose step took all the weight of a sample
    n_full_updates: np.ndarray  # (n_subproblems,) int64: other iterations, or additions to a core set
    methods: int  # bits of `solvers.gram.outcomes.METHOD_NAMES`


def trained_one_by_one(samples, solutions, members, n_samples, multiclass):
    """Collect the results of subproblems that were trained one by one.

    Parameters
    ----------
    samples : TrainingSet
        Samples sorted by class.
    solutions : list of Solution
        Trained subproblems.
    members : list of ndarray
        Rows of X that each subproblem was trained on.
    n_samples : int
        Number of rows of X.
    multiclass : {"pairwise", "one_vs_rest", "all_at_once"}
        Result of `solvers.multiclass.strategy_of`.

    Returns
    -------
    Trained
        Results.
    """
    rows, class_start, scale = samples.rows, samples.class_start, samples.scale
    n_classes = class_start.size - 1
    used = np.zeros(n_samples, dtype=bool)
    for solution, member in zip(solutions, members, strict=True):
        used[member[solution.support]] = True
    chosen = used[rows]
    support = rows[chosen]
    n_support = np.add.reduceat(chosen, class_start[:-1], dtype=np.int32)
    class_of_support = np.repeat(np.arange(n_classes), n_support)
    index = np.empty(n_samples if support.size else 0, dtype=np.int32)
    index[support] = np.arange(support.size, dtype=np.int32)
    weights = [
        (index[member[s.support]], s.alpha if scale.size == 0 else s.alpha * scale[member[s.support]])
        for s, member in zip(solutions, members, strict=True)
    ]
    intercept = np.concatenate([s.bias for s in solutions])
    gaps, certified = np.array([s.gap for s in solutions]), np.array([s.converged for s in solutions])
    return Trained(
        used=chosen,
        dual_coef=coefficients_of(n_classes, multiclass, class_of_support, weights),
        intercept=-intercept if n_classes == 2 else intercept,
        n_iter=np.array([s.n_iter for s in solutions], dtype=np.int64),
        n_kernel_evals=sum(s.n_kernel_evals for s in solutions),
        objective=float(sum(s.objective for s in solutions)),
        gap=float(gaps.max()),
        converged=bool(certified.all()),
        fit_status=most_severe([s.fit_status for s in solutions]),
        stopping=stopping_of(certified, gaps, lambda k: solutions[k].stopping),
        n_clipped=np.array([s.n_clipped for s in solutions], dtype=np.int64),
        n_full_updates=np.array([s.n_full_updates for s in solutions], dtype=np.int64),
        methods=int(np.bitwise_or.reduce([getattr(s, "methods", 0) for s in solutions])),
    )


def trained_together(samples, solution, totals, stopping):
    """Collect the results of pairs that a path of one C has trained together.

    Parameters
    ----------
    samples : TrainingSet
        Samples sorted by class.
    solution : solvers.path.result.PathSolution
        Trained pairs, of at least three classes.
    totals : solvers.gram.outcomes.Totals
        Totals over the pairs.
    stopping : str
        Text for `stopping_`.

    Returns
    -------
    Trained
        Results.
    """
    used, outcomes = solution.used[0], solution.outcomes
    n_support = np.add.reduceat(used, samples.class_start[:-1], dtype=np.int64)
    weights = solution.weights[0][:, used]
    if samples.scale.size:
        weights *= samples.scale[samples.rows[used]]
    return Trained(
        used=used,
        dual_coef=signed_coefficients(weights, np.concatenate(([0], np.cumsum(n_support)))),
        intercept=solution.intercepts[0].copy(),
        n_iter=outcomes.iterations[0].copy(),
        n_kernel_evals=int(totals.evaluations[0]),
        objective=float(outcomes.objectives.sum()),
        gap=float(totals.gaps[0]),
        converged=bool(totals.converged[0]),
        fit_status=int(totals.fit_status[0]),
        stopping=stopping,
        n_clipped=outcomes.clipped[0].copy(),
        n_full_updates=outcomes.full_updates[0].copy(),
        methods=int(np.bitwise_or.reduce(outcomes.methods[0])),
    )
