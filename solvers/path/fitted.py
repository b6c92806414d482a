"""What `fit_path` gives back."""

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_array

from solvers.common.number_types import require_real_numbers
from solvers.common.sparse_structure import sound_csr
from solvers.gram.gather import class_sizes, groups_of
from solvers.gram.outcomes import method_names
from solvers.kernels.functions import (
    GRAM,
    as_array,
    is_table,
    kernel_block,
    normalise_rows,
    require_finite,
    values_of,
)

BLOCK_VALUES = 1 << 22  # of a block of predictions, at most (32 MB)


class FittedTrainings:
    """What is known of trainings that were fitted together, by attributes with a value for each.

    Parameters
    ----------
    solution : solvers.path.result.PathSolution
        Of the same problem by the same solver.
    outcomes : solvers.gram.outcomes.Outcomes
        Arrays of shape (n_trainings, n_subproblems).
    totals : solvers.path.totals.Totals
    stopping : list of str
    seconds : ndarray of shape (n_trainings,)
    """

    def __init__(self, solution, outcomes, totals, stopping, seconds):
        problem = solution.problem
        groups = groups_of(problem.classes.size, problem.at_once)
        sizes = class_sizes(problem.class_start)[groups].sum(axis=1)
        self.classes_ = problem.classes
        self.n_iter_ = totals.iterations
        self.n_kernel_evals_ = totals.evaluations
        self.n_support_ = totals.n_support
        self.sv_share_ = (outcomes.supports / sizes).sum(axis=1) / len(groups)
        self.objective_ = outcomes.objectives.sum(axis=1)
        self.duality_gap_ = totals.gaps
        self.converged_ = totals.converged
        self.fit_status_ = totals.fit_status
        self.stopping_ = stopping
        self.fit_seconds_ = seconds
        if solution.has_clipped:
            self.n_clipped_ = outcomes.clipped.sum(axis=1)
        if solution.has_methods:
            self.method_ = [method_names(bits) for bits in np.bitwise_or.reduce(outcomes.methods, axis=1)]


class FittedPath(FittedTrainings):
    """The machines of a `fit_path` for every C.

    Parameters
    ----------
    estimator : KernelSVC
        That `fit_path` was called on.
    solution : PathSolution
    totals : solvers.path.totals.Totals
    stopping : list of str
    kernel : solvers.kernels.functions.Kernel
    X : {ndarray, CSR}
        Training samples, as the kernel takes them; as they are for a callable or precomputed kernel.
    normalised : bool
        Whether the kernel is normalised to k(x, x) = 1.

    Attributes
    ----------
    Cs_ : ndarray of shape (n_C,)
    classes_ : ndarray of shape (n_classes,)
    n_iter_, n_kernel_evals_, n_support_ : int ndarrays of shape (n_C,)
        As a fitted estimator has them; `n_support_` is the number of support vectors of any machine.
    sv_share_ : ndarray of shape (n_C,)
        Mean over the machines of support vectors / samples.
    converged_ : bool ndarray of shape (n_C,)
    objective_ : ndarray of shape (n_C,)
        ``||c||²`` summed over the machines.
    duality_gap_ : ndarray of shape (n_C,)
        The largest certified gap of a machine.
    fit_status_ : int ndarray of shape (n_C,)
        As a fitted estimator has it.
    stopping_ : list of str
        As a fitted estimator has it.
    n_clipped_ : int ndarray of shape (n_C,)
        As the solvers have it that move a point of the hull; absent for others.
    method_ : list of str
        As `NewtonSVC` has it; absent for other solvers.
    fit_seconds_ : ndarray of shape (n_C,)
        Wall seconds of the whole path, shared out by counted work.
    """

    def __init__(self, estimator, solution, totals, stopping, kernel, X, normalised):
        super().__init__(solution, solution.outcomes, totals, stopping, solution.seconds)
        self.Cs_ = solution.problem.Cs
        self._kernel, self._normalised = kernel, normalised
        self._name, self._width = type(estimator).__name__, X.shape[-1]
        self._workspace = values_of_predictions(estimator)
        self._callable = estimator.kernel if callable(estimator.kernel) else None
        if kernel.kind == GRAM and (self._callable is None or not is_table(X)):
            self._solution, self._vectors = solution, None if self._callable is None else X
        else:
            self._solution, kept = solution.on_used_rows()
            self._vectors = X[kept]

    def predict_path(self, X):
        """Predict labels for every C.

        Parameters
        ----------
        X : {array-like, CSR} of shape (n_test, n_features), or (n_test, n_train) if precomputed

        Returns
        -------
        labels : ndarray of shape (n_C, n_test)
        """
        X = self._check_samples(X)
        width = X.shape[1] if sparse.issparse(X) and not sparse.issparse(self._vectors) else 0  # of a copy
        blocks = blocks_of(X.shape[0], self._solution.weights, self.classes_.size, self._workspace, width)
        labels = np.empty((self.Cs_.size, X.shape[0]), self.classes_.dtype)
        for block in blocks:
            K = X[block] if self._vectors is None else self._kernel_to(X[block])
            labels[:, block] = self._solution.predict_path(K)
        return labels

    def _check_samples(self, X):
        if self._callable is not None and not is_table(X):
            return as_array(X)
        X = sound_csr(X)
        require_real_numbers(X)
        if self._vectors is None:
            X = np.asarray(X.toarray() if sparse.issparse(X) else X)
            if X.dtype.kind not in "iufb":
                raise ValueError(f"kernel values must be real numbers; got {X.dtype}")
            require_finite(X)
        else:
            X = check_array(X, accept_sparse="csr", dtype=np.float64, order="C")
        if X.ndim != 2 or X.shape[1] != self._width:
            raise ValueError(
                f"X has {X.shape[-1] if X.ndim else 0} features, but {self._name} is expecting "
                f"{self._width} features as input"
            )
        return X

    def _kernel_to(self, X):
        if self._callable is not None:
            return values_of(self._callable, X, self._vectors)
        X = self._kernel.place(X)
        K = kernel_block(X, self._vectors, self._kernel)
        return normalise_rows(K, X, self._kernel) if self._normalised else K


def values_of_predictions(estimator):
    """Return how many values a block of predictions may have."""
    return min(BLOCK_VALUES, 1e6 * estimator.cache_size / 24)


def blocks_of(n_samples, weights, n_classes, room, width=0):
    """Cut samples into blocks whose predictions, and `width` more values for each, have room."""
    n_C, depth, n = weights.shape
    step = max(1, int(room // max(1, n + width + 2 * n_C * depth * n_classes)))
    return [slice(start, start + step) for start in range(0, n_samples, step)]
