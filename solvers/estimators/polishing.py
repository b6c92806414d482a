"""Training on all samples from the solution on representatives."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from solvers.common.status import NOT_DRAWN, uncertified_text
from solvers.estimators.reduced_training import weights_of_group
from solvers.estimators.smosvc import SMOSVC, SmoSolver
from solvers.margin.l1_path import takes_large_path
from solvers.margin.rounds import ROUNDS, improve
from solvers.path.driver import solve_for_each_C

EXACT_SHARE = 0.9
"""Share of the weight on samples without error, from which on all weights are a start for the rounds."""
SMALL_WEIGHT = 0.2
"""Smallest weight of another start, as a share of its penalty. Each weight costs kernel values."""


def spread_weights(reduction, weights, Cs):
    """Spread the weights of the representatives over all samples, as a start for the rounds.

    Parameters
    ----------
    reduction : Reduction
        Samples and representatives.
    weights : ndarray of shape (n_C, n_layers, M)
        Weights of the representatives sorted by class, in the layout of `solvers.path.result.PathSolution`.
    Cs : ndarray of shape (n_C,)
        Values of C.

    Yields
    ------
    ndarray of shape (n_C, n)
        Weights ᾰ_i = s_i Σ_t γ_ti α_t/β_t of the next subproblem. Small ones are left out, unless nearly all
        weight is on samples without error. Both labels have the same sum.
    """
    found = reduction.found
    for k, group in enumerate(reduction.groups):
        alpha = weights_of_group(reduction, weights, k, group)
        spread = reduction.weights * (found.gamma @ (alpha / found.beta).T).T
        if spread[:, found.errors == 0.0].sum() < EXACT_SHARE * spread.sum():
            spread[spread < SMALL_WEIGHT * Cs[:, None] * reduction.weights] = 0.0
        is_first = reduction.code == group[0]
        sums = spread[:, is_first].sum(axis=1), spread[:, ~is_first].sum(axis=1)
        less = np.minimum(*sums)
        with np.errstate(invalid="ignore", divide="ignore"):
            first, second = np.nan_to_num([less / sums[0], less / sums[1]])
        yield np.where(is_first, first[:, None], second[:, None]) * spread


class Polisher(SMOSVC):
    """`SMOSVC` that improves given weights of large subproblems for some rounds.

    Other subproblems are solved to their tolerance from scratch. Their kernel values fit into memory.

    Attributes
    ----------
    starts : iterator of ndarray of shape (n_C, n)
        Weights of all samples to start from, for each subproblem in turn.
    rounds : int
        Largest number of rounds for each subproblem and C.
    """

    starts: Any
    rounds: int

    def _improved(self, problem, alpha):
        """Return a subproblem that was improved from given weights.

        Parameters
        ----------
        problem : Problem
            Large subproblem.
        alpha : ndarray of shape (n,)
            Weights of all samples.

        Returns
        -------
        Solution
            Improved weights.
        """
        return improve(problem, alpha[problem.rows], float(self.tol), 1e6 * self.cache_size, self.rounds)

    def _solve(self, problem):
        """Train one subproblem.

        Parameters
        ----------
        problem : Problem
            Subproblem to train.

        Returns
        -------
        Solution
            Trained subproblem.
        """
        (alpha,) = next(self.starts)
        if takes_large_path(problem, 1e6 * self.cache_size):
            return self._improved(problem, alpha)
        return super()._solve(problem)

    def _subproblem_text(self, status, converged, gap, by_draws):
        """Return the text for `stopping_` of a subproblem.

        Parameters
        ----------
        status : int
            How the subproblem ended, one of the statuses of `solvers.common.status`.
        converged : bool
            Whether the tolerance is certified.
        gap : float
            Certified relative duality gap of the subproblem.
        by_draws : bool
            Not used: nothing is drawn.

        Returns
        -------
        str
            Certified bounds, or the reason why the training ended.
        """
        if status == NOT_DRAWN and not converged:
            return uncertified_text(ROUNDS, gap)
        return super()._subproblem_text(status, converged, gap, by_draws)

    def _path_solver(self):
        """Return the block solver of `fit_path`.

        Returns
        -------
        PolishSolver
            Solver with the starts of this estimator.
        """
        memory = 1e6 * self.cache_size
        return PolishSolver(
            True,
            float(self.tol),
            memory,
            super()._solve,
            self._shift(),
            starts=self.starts,
            improve=self._improved,
        )


@dataclass
class PolishSolver(SmoSolver):
    """Block solver of `Polisher`."""

    starts: Any = field(kw_only=True)  # iterator of the weights to start from
    improve: Callable = field(kw_only=True)  # function of a `Problem` and the weights of all samples

    def train(self, problem, path, limits, seed, outcome):
        """Train a subproblem from features, from given weights if it is large.

        Parameters
        ----------
        problem : Problem
            Subproblem with its features.
        path : PathProblem
            Path with the values of C.
        limits : int64 ndarray of shape (n_C,)
            Limits of the iterations for each C.
        seed : uint64 ndarray of shape (1,)
            Seed of the subproblem, not used.
        outcome : Outcomes
            Arrays of one row, which receive the results.

        Returns
        -------
        weights, model : ndarray of shape (n_C, m)
            Weights of margin 1, twice the same array.
        """
        starts = iter(next(self.starts))
        if not takes_large_path(problem, self.memory):
            return super().train(problem, path, limits, seed, outcome)

        def solve(problem):
            return self.improve(replace(problem, start=None), next(starts))

        weights = solve_for_each_C(solve, problem, path.Cs, limits, outcome)
        outcome.biases[0, :, 1] = -outcome.biases[0, :, 0]
        return weights, weights


def polisher_of(trainer, reduction, weights, Cs, rounds):
    """Return the estimator that polishes a model.

    Parameters
    ----------
    trainer : SMOSVC
        Estimator that was trained on the representatives.
    reduction : Reduction
        Samples and representatives.
    weights : ndarray of shape (n_C, n_layers, M)
        Weights of the representatives.
    Cs : ndarray of shape (n_C,)
        Values of C.
    rounds : int
        Largest number of rounds.

    Returns
    -------
    Polisher
        Estimator to train on all samples, with the weights of the samples.
    """
    polisher = Polisher(**trainer.get_params() | {"n_jobs": None, "warm_start": False})
    polisher.starts, polisher.rounds = spread_weights(reduction, weights, Cs), rounds
    return polisher
