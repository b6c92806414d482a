"""Training on representatives: the estimator that trains, gaps on all samples, and the results of a path."""

import time
from typing import NamedTuple

import numpy as np
from scipy import sparse

from solvers.common.blas import one_blas_thread
from solvers.common.status import (
    CONVERGED,
    LIMIT,
    NOT_DRAWN,
    STOPPING_TEXTS,
    TIMEOUT,
    most_severe,
    text_among,
    uncertified_text,
)
from solvers.estimators.smosvc import SMOSVC
from solvers.kernels.functions import Kernel
from solvers.multiclass import groups_of
from solvers.path.result import FittedPath
from solvers.reduction.certificate import Reduced, bounds_of
from solvers.reduction.representatives import Representatives

TOO_COARSE = 6
"""Value of `fit_status_` if the reduced problem is solved, but the gap on all samples is too large."""

BALL_ONLY = (
    "; epsilon is at least every squared distance within a block, so that only samples on the smallest ball "
    "of each block are left"
)
"""End of `stopping_` if `epsilon` is that large."""


class Trainer(SMOSVC):
    """`SMOSVC` that keeps the solutions of its paths.

    Attributes
    ----------
    solutions : list of solvers.path.result.PathSolution
        Solution of each path, with the weights of all samples.
    """

    solutions: list

    def fit_path(self, X, y, Cs, sample_weight=None, *, check_finite=True):
        """Train for every C of an ascending path, as `SMOSVC.fit_path` does.

        Parameters
        ----------
        X, y, Cs, sample_weight, check_finite
            As in `SMOSVC.fit_path`.

        Returns
        -------
        solvers.path.result.FittedPath
            Trained models, one for every C.
        """
        self.solutions = []
        return super().fit_path(X, y, Cs, sample_weight, check_finite=check_finite)

    def _check_path(self, solution):
        """Keep the solution of a path, before `FittedPath` leaves out the rows without weight.

        Parameters
        ----------
        solution : PathSolution
            Result of training for all values of C.
        """
        if hasattr(self, "solutions"):
            self.solutions.append(solution)


class Reduction(NamedTuple):
    """Training set and its representatives."""

    samples: tuple  # rows of X of the representatives, or their Gram matrix, and their labels
    X: np.ndarray | sparse.csr_matrix  # all samples as `Kernel.prepare` returns them, or the Gram matrix
    kernel: Kernel
    code: np.ndarray  # (n,) int64: index of each sample's class
    weights: np.ndarray  # (n,): weights of the samples, with those of their classes
    found: Representatives
    multiclass: str  # strategy, which `solvers.multiclass.strategy_of` returns

    @property
    def groups(self):
        """Class indices of each subproblem: int64 array (n_subproblems, classes of a subproblem)."""
        return groups_of(int(self.code.max()) + 1, self.multiclass)

    def sizes(self):
        """Return the number of samples of each subproblem, without those of weight 0.

        Returns
        -------
        int64 ndarray of shape (n_subproblems,)
            Numbers of samples.
        """
        counts = np.bincount(self.code[self.weights > 0.0])
        return counts[self.groups].sum(axis=1)


class Certificates(NamedTuple):
    """Gaps on all samples."""

    gaps: np.ndarray  # (n_C, n_subproblems)
    seconds: float  # wall time


def weights_of_fit(trainer, reduction):
    """Return the weights and intercepts of a fit in the layout of `solvers.path.result.PathSolution`.

    Parameters
    ----------
    trainer : Trainer
        Estimator after `fit`.
    reduction : Reduction
        Representatives on which it was trained.

    Returns
    -------
    weights : ndarray of shape (1, n_layers, M)
        Weights, at least 0, of the representatives sorted by class.
    intercepts : ndarray of shape (1, n_subproblems)
        Intercepts, positive for the first class of a subproblem.
    """
    order = np.argsort(reduction.code[reduction.found.rows], kind="stable")
    index = np.empty(order.size, np.int64)
    index[order] = np.arange(order.size)
    weights = np.zeros((1, trainer.dual_coef_.shape[0], order.size))
    weights[0][:, index[trainer.support_]] = np.abs(trainer.dual_coef_)
    sign = -1.0 if trainer.classes_.size == 2 else 1.0
    return weights, sign * trainer.intercept_[None]


def certify(reduction, weights, intercepts, Cs, is_exact, training_evals, memory):
    """Bound the gap of every subproblem on all samples.

    Parameters
    ----------
    reduction : Reduction
        Samples and representatives.
    weights : ndarray of shape (n_C, n_layers, M)
        Weights of the representatives sorted by class, in the layout of `solvers.path.result.PathSolution`.
    intercepts : ndarray of shape (n_C, n_subproblems)
        Intercepts, positive for the first class of a subproblem.
    Cs : ndarray of shape (n_C,)
        Values of C.
    is_exact : bool
        Whether to compute the exact bound whatever it costs.
    training_evals : int or ndarray
        Kernel values of the training, for each C.
    memory : float
        Memory for kernel values, in bytes.

    Returns
    -------
    Certificates
        Gaps of each C and subproblem.
    """
    started = time.perf_counter()
    found, groups = reduction.found, reduction.groups
    budget = (found.n_kernel_evals + np.sum(training_evals)) / len(groups)
    code_of_point = reduction.code[found.rows]
    gaps = np.empty((Cs.size, len(groups)))
    for k, group in enumerate(groups):
        is_point, is_row = np.isin(code_of_point, group), np.isin(reduction.code, group)
        rows = np.flatnonzero(is_row & (reduction.weights > 0.0))
        points = np.flatnonzero(is_point)
        sign = np.where(reduction.code == group[0], 1.0, -1.0)
        alpha = weights_of_group(reduction, weights, k, group)
        reduced = Reduced(
            reduction.X,
            reduction.kernel,
            rows,
            sign[rows],
            reduction.weights[rows],
            found.gamma[rows][:, points],
            found.errors[rows],
            np.searchsorted(rows, found.rows[points]),
        )
        signed = (sign[found.rows] * alpha)[:, points]
        limit = np.inf if is_exact else budget
        with one_blas_thread():
            gaps[:, k] = bounds_of(reduced, signed, intercepts[:, k], Cs, limit, memory).gaps
    return Certificates(gaps, time.perf_counter() - started)


def weights_of_group(reduction, weights, k, group):
    """Return the weights of one subproblem.

    Parameters
    ----------
    reduction : Reduction
        Representatives.
    weights : ndarray of shape (n_C, n_layers, M)
        Weights of the representatives sorted by class, in the layout of `solvers.path.result.PathSolution`.
    k : int
        Index of the subproblem.
    group : int64 ndarray
        Its classes.

    Returns
    -------
    ndarray of shape (n_C, M)
        Weights of the representatives in the order of their rows, 0 for other classes.
    """
    code = reduction.code[reduction.found.rows]
    order = np.argsort(code, kind="stable")
    of_group = np.empty((weights.shape[0], code.size))
    if reduction.multiclass == "one_vs_rest":
        of_group[:, order] = weights[:, k]
        return of_group
    first, second = group
    of_first, of_second = np.empty_like(of_group), of_group
    of_first[:, order], of_second[:, order] = weights[:, second - 1], weights[:, first]
    return np.where(code == first, of_first, 0.0) + np.where(code == second, of_second, 0.0)


def fit_status_of(converged, trained, polished):
    """Return the `fit_status_` of a model.

    Parameters
    ----------
    converged : bool
        Whether the gap on all samples is at most the tolerance.
    trained, polished : int
        `fit_status_` of the training on the representatives, and of that on all samples. The second one is
        `NOT_DRAWN` if its rounds ended as planned, and `CONVERGED` if there was none.

    Returns
    -------
    int
        0 if `converged`, else the more severe status, or `TOO_COARSE` if both ended as planned.
    """
    status = most_severe([int(trained), int(polished)])
    if converged:
        return CONVERGED
    return TOO_COARSE if status in (CONVERGED, NOT_DRAWN) else status


def text_of_all(stopping, gaps, tol, found, polished=CONVERGED):
    """Return the text for `stopping_`.

    Parameters
    ----------
    stopping : str
        Text of the training on the representatives.
    gaps : ndarray of shape (n_subproblems,)
        Gaps on all samples.
    tol : float
        Largest gap that counts as converged.
    found : Representatives
        Representatives.
    polished : int, default=CONVERGED
        `fit_status_` of the training on all samples, if there was one.

    Returns
    -------
    str
        The certified gap on all samples, or the texts of both problems, with `BALL_ONLY` at the end if that
        is so.
    """
    note = BALL_ONLY if found.is_ball_only else ""
    n_missed = int(np.count_nonzero(~(gaps <= tol)))
    if not n_missed:
        return f"certified on all samples: gap <= {tol:g}{note}"
    ended = f": {STOPPING_TEXTS[polished]}" if polished in (LIMIT, TIMEOUT) else ""
    reason = uncertified_text(f"representatives: {stopping}; all samples{ended}", gaps.max())
    return text_among(reason, n_missed, gaps.size) + note


class ReducedPath(FittedPath):
    """Trained models of `AESVC.fit_path`, one for every C.

    Parameters
    ----------
    fitted : FittedPath
        Models that predict samples with all features or with kernel values to all samples.
    reduction : Reduction
        Samples and representatives.
    trained : FittedPath
        Models that were trained on the representatives.
    gaps : ndarray of shape (n_C, n)
        Gaps on all samples, of each subproblem or the largest of them.
    seconds : float
        Wall time of the bounds on all samples.
    tol : float
        Largest gap that counts as converged.

    Attributes
    ----------
    duality_gap_, converged_, fit_status_, stopping_
        As in `FittedPath`, but for the problem on all samples. `fit_status_` is 6 where only that gap is too
        large.
    gap_reduced_ : ndarray of shape (n_C,)
        Gaps of the reduced problem.
    representatives_ : int64 ndarray of shape (n_representatives_,)
        Rows of the representatives, ascending.
    beta_ : ndarray of shape (n_representatives_,)
        Weights of the representatives.
    n_representatives_ : int
        Number of representatives.
    representation_error_ : float
        Largest squared distance of a sample from its combination.
    reduction_seconds_, certificate_seconds_ : float
        Wall times of the reduction and of the bounds on all samples. `fit_seconds_` contains neither.
    """

    def __init__(self, fitted, reduction, trained, gaps, seconds, tol):
        found, gap_reduced, texts = reduction.found, trained.duality_gap_, trained.stopping_
        is_polished = fitted is not trained
        polished = fitted.fit_status_ if is_polished else np.full_like(trained.fit_status_, CONVERGED)
        self.__dict__.update(vars(fitted))
        self._name = "AESVC"
        self.gap_reduced_: np.ndarray = gap_reduced
        self.duality_gap_ = gaps.max(axis=1)
        self.converged_ = (gaps <= tol).all(axis=1)
        if is_polished:
            self.n_iter_ = trained.n_iter_ + fitted.n_iter_
            self.n_kernel_evals_ = trained.n_kernel_evals_ + fitted.n_kernel_evals_
            self.fit_seconds_ = trained.fit_seconds_ + fitted.fit_seconds_
        statuses = zip(self.converged_, trained.fit_status_, polished, strict=True)
        self.fit_status_ = np.array([fit_status_of(*of_C) for of_C in statuses])
        ends = zip(texts, gaps, polished, strict=True)
        self.stopping_ = [text_of_all(text, of_C, tol, found, status) for text, of_C, status in ends]
        self.representatives_: np.ndarray = found.rows
        self.beta_: np.ndarray = found.beta
        self.n_representatives_: int = found.rows.size
        self.representation_error_: float = float(found.errors.max())
        self.reduction_seconds_: float = found.seconds
        self.certificate_seconds_: float = seconds


def on_all_samples(fitted, reduction, solution):
    """Replace the row numbers of a path on representatives by those of all samples.

    Parameters
    ----------
    fitted : FittedPath
        Models that were trained on the representatives, changed in place. A precomputed kernel then takes
        values to all samples at prediction, and `sv_share_` is the share of all samples.
    reduction : Reduction
        Samples and representatives.
    solution : solvers.path.result.PathSolution
        Weights of all representatives.

    Returns
    -------
    FittedPath
        The same object.
    """
    if fitted._vectors is None:
        problem = fitted._solution.problem
        fitted._solution.problem = problem._replace(rows=reduction.found.rows[problem.rows])
        fitted._width = reduction.code.size
    fitted.sv_share_ = (solution.outcomes.supports / reduction.sizes()).mean(axis=1)
    return fitted
