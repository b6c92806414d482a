"""The modified L2 SVM on many samples, for an ascending path of C, without a Gram matrix.

Its bias b = Σ β_i is penalised by ½ b². This problem equals the L2 problem of `solvers.margin.l1_path`, whose
bias is free, with one additional sample. The kernel of the additional sample with all others is zero. Its
weight -b has no bounds, and its ridge is 1. The constraint that all weights sum to zero then defines b. The
optimality condition of the additional sample makes b the bias.
"""

import numpy as np

from solvers.common.blas import one_blas_thread
from solvers.common.certificate import AIMED_SHARE, FEW_ROUNDINGS, UNIT_ROUNDOFF, certified_gap
from solvers.common.status import CONVERGED, UNRESOLVED
from solvers.gram.outcomes import PAIR_STEPS, SUPPORT_NEWTON
from solvers.kernels.tiles import Samples, error_of_values
from solvers.margin.l1_path import bytes_of_tiles, samples_of
from solvers.margin.subproblem import LargeSubproblem

# ½‖x‖² of a sample whose kernel with all others counts as zero. The kernel is at most exp(-50), which is far
# below any rounding.
FAR = 50.0


class PenalisedBiasSubproblem(LargeSubproblem):
    """L2 subproblem whose last sample has no label, and stands for the bias.

    Parameters
    ----------
    samples : solvers.kernels.tiles.Samples
        Samples of the training set and the sample of the bias, scaled for tiles.
    *others
        Other parameters of `LargeSubproblem`.
    """

    _aimed_share = 0.5 * AIMED_SHARE  # a gap is about twice the violation
    _unknown_gap = 1.0

    def __init__(self, samples, *others):
        super().__init__(samples, *others)
        self._value_error = error_of_values(samples._replace(halves=samples.halves[:-1]))  # without FAR

    def hull_point(self):
        """Return the hull point that belongs to the weights.

        Returns
        -------
        square_norm : float
            ``‖c‖²``; NaN if all weights are zero, because time was over before the first step.
        lowest : float
            Lowest g of all samples; NaN in the same case.
        weights : ndarray of shape (m,)
            Dual weights of the samples, scaled to a margin of 1.
        """
        y, beta = self.y[:-1], self.beta[:-1]
        total, b = np.abs(beta).sum(), beta.sum()
        if total == 0.0:
            return np.nan, np.nan, np.zeros(beta.size)
        product = self.F[:-1] + b + y
        square = beta @ product
        return square / total**2, (y * product).min() / total, np.abs(beta) * (total / square)

    def _gap(self, b, error):
        """Return the gap of the hull point.

        Parameters
        ----------
        b : float
            The bias, which is not used.
        error : float
            Bound on the error of the gradient; with 0, the result is an estimate instead of a bound.

        Returns
        -------
        float
            Upper bound on the relative gap of ‖c‖²; an estimate if `error` is 0.
        """
        square_norm, lowest, _ = self.hull_point()
        total = np.abs(self.beta[:-1]).sum()
        if total == 0.0:
            return self._unknown_gap
        error += (FEW_ROUNDINGS + self.y.size) * UNIT_ROUNDOFF * (total + 1.0) if error > 0.0 else 0.0
        return float(certified_gap(square_norm, lowest, error / total, 1.0))


def large_newton_path(training, start, first=0):
    """Train a subproblem of two classes for every C, each time from the last solution.

    Parameters
    ----------
    training : solvers.newton.training.Training
        Receives the solutions.
    start : ndarray of shape (m,) or None
        Weights to start from; None for a cold start.
    first : int, default=0
        Index of the first C to train for; those before have solutions.
    """
    if first == training.Cs.size:
        return
    problem, tol = training.problem, training.tol
    m, n_samples = problem.rows.size, problem.X.shape[0]
    samples = _with_far_sample(samples_of(problem))
    y = np.zeros(m + 1)
    y[:m] = np.where(np.arange(m) < problem.class_start[1], 1.0, -1.0)
    rows = np.append(problem.rows.astype(np.int64), n_samples)
    left = training.memory - bytes_of_tiles(problem)
    subproblem = PenalisedBiasSubproblem(samples, problem.X.shape[1], rows, y, left, problem.deadline, False)
    with one_blas_thread():
        for k in range(first, training.Cs.size):
            C, limit, n_start = np.ones(m + 1), int(training.iterations_left()[k]), 0
            before = subproblem.evaluations
            C[:m] = training.Cs[k] / training.inverse_weight
            if k > first:
                subproblem.raise_C(C)
            else:
                subproblem.set_C(C)
                n_start = subproblem.start(limit) if start is None else _warm_start(subproblem, start)
            status, gap, _, iterations = subproblem.solve(tol, limit - n_start)
            if status == CONVERGED and not gap <= tol:
                status = UNRESOLVED
            square_norm, _, weights = subproblem.hull_point()
            methods = PAIR_STEPS | (SUPPORT_NEWTON if subproblem.newtons else 0)
            status = CONVERGED if gap <= tol else status
            training.subproblem.evaluations += subproblem.evaluations - before
            training.record(k, weights, square_norm, gap, n_start + iterations, methods, status)


def _with_far_sample(samples):
    """Return the samples and one more, whose kernel with all others counts as zero.

    Parameters
    ----------
    samples : solvers.kernels.tiles.Samples
        Features and squared norms of all training samples.

    Returns
    -------
    solvers.kernels.tiles.Samples
        The extended samples.
    """
    starts, halves = np.append(samples.starts, samples.starts[-1]), np.append(samples.halves, FAR)
    return Samples(starts, samples.features, samples.values, halves)


def _warm_start(subproblem, weights):
    """Start from given weights.

    Parameters
    ----------
    subproblem : PenalisedBiasSubproblem
        Receives the weights.
    weights : ndarray of shape (m,)
        Weights without signs.

    Returns
    -------
    int
        Number of iterations, which is 0.
    """
    beta = subproblem.y.copy()
    beta[:-1] *= weights
    beta[-1] = -beta[:-1].sum()
    subproblem.set_weights(beta)
    return 0
