"""The modified L2 SVM on many samples, for an ascending path of C, without a Gram matrix.

Its bias b = Σ β_i is penalised by ½ b². That is the L2 problem of `solvers.margin.l1_path`, whose bias is
free, with one more sample: its kernel with all others is zero, its weight -b has no bounds and the ridge 1.
Σ β_i = 0 over all of them then defines b, and the optimality condition of that sample makes b the bias.
"""

import numpy as np

from solvers.common.blas import one_blas_thread
from solvers.common.certificate import AIMED_SHARE, FEW_ROUNDINGS, UNIT_ROUNDOFF, certified_gap
from solvers.common.status import CONVERGED, UNRESOLVED
from solvers.gram.outcomes import PAIR_STEPS, SUPPORT_NEWTON
from solvers.kernels.tiles import Samples, error_of_values, scaled_samples
from solvers.margin.l1_path import LargeSubproblem, bytes_of_tiles

# ½‖x‖² of a sample whose kernel with all others is zero: exp(-50), at most, is far below any rounding.
FAR = 50.0


class PenalisedBiasSubproblem(LargeSubproblem):
    """The L2 machine of which the last sample has no label and stands for the bias."""

    _aimed_share = 0.5 * AIMED_SHARE  # a gap is about twice the violation
    _unknown_gap = 1.0

    def __init__(self, samples, *others):
        super().__init__(samples, *others)
        self._value_error = error_of_values(samples._replace(halves=samples.halves[:-1]))  # of all but FAR

    def hull_point(self):
        """Return ``‖c‖²``, the lowest g, and the weights of margin 1 of the point of the hull.

        Weights that are all zero, for which time was over before the first step, are no point: NaN.
        """
        y, beta = self.y[:-1], self.beta[:-1]
        total, b = np.abs(beta).sum(), beta.sum()
        if total == 0.0:
            return np.nan, np.nan, np.zeros(beta.size)
        product = self.F[:-1] + b + y
        square = beta @ product
        return square / total**2, (y * product).min() / total, np.abs(beta) * (total / square)

    def _gap(self, b, error):
        square_norm, lowest, _ = self.hull_point()
        total = np.abs(self.beta[:-1]).sum()
        if total == 0.0:
            return self._unknown_gap
        error += (FEW_ROUNDINGS + self.y.size) * UNIT_ROUNDOFF * (total + 1.0) if error > 0.0 else 0.0
        return float(certified_gap(square_norm, lowest, error / total, 1.0))


def large_newton_path(training, start, first=0):
    """Train a machine of two classes for every C, each from the solution before it.

    Parameters
    ----------
    training : solvers.newton.training.Training
        Receives the solutions.
    start : ndarray of shape (m,) or None
        Weights to start from.
    first : int
        The first C to train for; those before have solutions.
    """
    if first == training.Cs.size:
        return
    problem, tol = training.problem, training.tol
    m, n_samples = problem.rows.size, problem.X.shape[0]
    samples = _with_far_sample(scaled_samples(problem.X, problem.kernel.gamma))
    y = np.zeros(m + 1)
    y[:m] = np.where(np.arange(m) < problem.class_start[1], 1.0, -1.0)
    rows = np.append(problem.rows.astype(np.int64), n_samples)
    left = training.memory - bytes_of_tiles(problem)
    subproblem = PenalisedBiasSubproblem(samples, problem.X.shape[1], rows, y, left, problem.deadline, False)
    with one_blas_thread():
        for k in range(first, training.Cs.size):
            C, limit, n_start = np.ones(m + 1), int(training.iterations_left()[k]), 0
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
            training.record(k, weights, square_norm, gap, n_start + iterations, methods, status)
    training.subproblem.evaluations += subproblem.evaluations


def _with_far_sample(samples):
    starts, halves = np.append(samples.starts, samples.starts[-1]), np.append(samples.halves, FAR)
    return Samples(starts, samples.features, samples.values, halves)


def _warm_start(subproblem, weights):
    beta = subproblem.y.copy()
    beta[:-1] *= weights
    beta[-1] = -beta[:-1].sum()
    subproblem.set_weights(beta)
    return 0
