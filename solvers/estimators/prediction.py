"""Decisions, labels and probabilities of a fitted estimator."""

import numpy as np
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.utils import _safe_indexing
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _num_samples, check_is_fitted

from solvers.common.input_checks import checked_table, sound_csr
from solvers.common.resources import in_threads
from solvers.estimators.common_parameters import CommonParameters
from solvers.estimators.pair_votes import MANY_CLASSES, SMALL_CLASS, pair_votes
from solvers.estimators.parameters import Samples
from solvers.kernels.functions import (
    GRAM,
    LINEAR,
    as_array,
    is_table,
    kernel_block,
    normalise_rows,
    values_of,
)
from solvers.multiclass import pairwise_decisions, votes

BLOCK_VALUES = 1 << 20
"""Largest number of kernel values of a block of predictions (8 MB)."""
FEW_CLASSES = 10
"""Number of classes above which the decisions of pairs take more memory than kernel values."""
LARGE_BLOCK_VALUES = 1 << 21
"""Largest number of values of a block of predictions for more classes (16 MB), if it has `MIN_SAMPLES`."""
MIN_SAMPLES = 16
"""Least number of samples of a block of predictions for more classes, as far as `cache_size` allows it."""


def _gives_probabilities(model):
    """Raise if an estimator was not asked for probabilities.

    Parameters
    ----------
    model : KernelSVC
        Estimator with its parameters.

    Returns
    -------
    bool
        Always True.

    Raises
    ------
    AttributeError
        `probability` is False.
    """
    if not model.probability:
        raise AttributeError(
            f"class probabilities need {type(model).__name__}(probability=True). Set it before fit"
        )
    return True


class PredictionMixin(CommonParameters):
    """Mixin that adds the predictions of a trained `KernelSVC`."""

    classes_: np.ndarray

    @property
    def coef_(self) -> np.ndarray:
        """Feature weights of the linear kernel."""
        fitted = getattr(self, "_kernel", None)
        is_linear = self.kernel == "linear" if fitted is None else fitted.kind == LINEAR
        if not is_linear or getattr(self, "_normalised", False):
            raise AttributeError(
                f"coef_ holds the weights of features, which {type(self).__name__} has only with "
                "kernel='linear', where that is not normalised"
            )
        if not hasattr(self, "support_vectors_"):
            raise AttributeError(f"{type(self).__name__} has no coef_ before fit")
        coef = self._subproblems_on(self.support_vectors_.T, np.zeros_like(self.intercept_)).T
        coef.flags.writeable = False
        return coef

    def decision_function(self, X: Samples) -> np.ndarray:
        """Evaluate the decisions of the subproblems.

        Parameters
        ----------
        X : {array-like, CSR} of shape (n_samples, n_features), or (n_samples, n_train) if precomputed
            Samples, or their kernel values with all training samples.

        Returns
        -------
        scores : ndarray of shape (n_samples,), (n_samples, n_classes) or (n_samples, n_pairs)
            Two classes: positive for `classes_[1]`. Pairwise: votes, with ties broken by the sum of
            decisions; for ``decision_function_shape="ovo"`` the decisions of the pairs, positive for the
            first class of a pair. One against the rest: the decision of each class. All at once:
            y_t · (W x + b) of each class.
        """
        return self._scores(X, self._vote_rules() if self.decision_function_shape == "ovr" else None)

    def predict(self, X: Samples) -> np.ndarray:
        """Predict the label of every sample.

        Parameters
        ----------
        X : {array-like, CSR} of shape (n_samples, n_features), or (n_samples, n_train) if precomputed
            Samples, or their kernel values with all training samples.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels from `classes_`.
        """
        check_is_fitted(self, "classes_")
        if self.decision_function_shape == "ovo" and self.break_ties not in ("auto", False):
            raise ValueError(
                "break_ties must be False when decision_function_shape is 'ovo', which has no scores of "
                f"classes; got {self.break_ties}. 'auto' breaks ties for both shapes"
            )
        scores = self._scores(X, self._vote_rules() if self.break_ties else {"break_ties": False})
        return self.classes_[(scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)]

    @available_if(_gives_probabilities)
    def predict_proba(self, X: Samples) -> np.ndarray:
        """Estimate the probability of every class.

        Parameters
        ----------
        X : {array-like, CSR} of shape (n_samples, n_features), or (n_samples, n_train) if precomputed
            Samples, or their kernel values with all training samples.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probabilities, in the order of `classes_`.
        """
        check_is_fitted(self, "classes_")
        if self._calibrated is None:
            raise NotFittedError(
                "predict_proba is not available when fitted with probability=False. Call fit again"
            )
        X = sound_csr(X)
        blocks = self._blocks(_num_samples(X))
        return np.concatenate([self._calibrated.predict_proba(_safe_indexing(X, block)) for block in blocks])

    @available_if(_gives_probabilities)
    def predict_log_proba(self, X: Samples) -> np.ndarray:
        """Estimate the logarithm of the probability of every class.

        Parameters
        ----------
        X : {array-like, CSR} of shape (n_samples, n_features), or (n_samples, n_train) if precomputed
            Samples, or their kernel values with all training samples.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Logarithms of the probabilities, in the order of `classes_`.
        """
        return np.log(self.predict_proba(X))

    def _vote_rules(self):
        """Return how `decision_function` counts votes.

        Returns
        -------
        dict of str to bool
            Keywords of `votes`, with the rule of `sklearn.svm.SVC` for decisions of 0 unless `break_ties` is
            "auto".
        """
        return {"zero_for_first": self.break_ties != "auto"}

    def _scores(self, X, rules):
        """Evaluate the decisions of the subproblems, and count votes.

        Parameters
        ----------
        X : {array-like, CSR}
            Samples; for a precomputed kernel, their kernel values with the training samples.
        rules : dict of str to bool, or None
            Keywords of `votes`, which counts the votes of pairs; None returns the decisions.

        Returns
        -------
        ndarray
            Scores, as `decision_function` returns them.
        """
        X = self._check_samples(X)
        n_classes = self.classes_.size
        is_voted = n_classes > 2 and self.dual_coef_.shape[0] < n_classes and rules is not None
        summed_at_once = is_voted and self._has_many_small_classes()

        def evaluate(block):
            K = self._kernel_to_support(X[block])
            if summed_at_once:
                return pair_votes(K, self.dual_coef_, self.intercept_, self._class_start(), **rules)
            decisions = self._subproblems_on(K, self.intercept_)
            return votes(decisions, n_classes, **rules) if is_voted else decisions

        blocks = self._decision_blocks(X, stores_pairs=not summed_at_once)
        scores = np.concatenate(in_threads(evaluate, blocks, self.n_jobs))
        return scores[:, 0] if n_classes == 2 else scores

    def _has_many_small_classes(self):
        """Return whether the votes of pairs are counted without storing their decisions.

        Returns
        -------
        bool
            True if `pair_votes` is the faster way.
        """
        n_classes = self.classes_.size
        return n_classes >= MANY_CLASSES and self.dual_coef_.shape[1] <= SMALL_CLASS * n_classes

    def _class_start(self):
        """Return the boundaries of the classes among the support vectors.

        Returns
        -------
        int ndarray of shape (n_classes + 1,)
            Index of the first support vector of each class, and their number.
        """
        return np.concatenate(([0], np.cumsum(self.n_support_)))

    def _check_samples(self, X):
        """Return validated samples to predict.

        Parameters
        ----------
        X : {array-like, CSR}
            Samples as the user passed them.

        Returns
        -------
        {ndarray, CSR}
            Samples, or kernel values.
        """
        check_is_fitted(self, "classes_")
        if self._callable is not None and not is_table(X):
            return as_array(X)
        if self._is_precomputed() and sparse.issparse(X):
            X = sound_csr(X).toarray()
        return checked_table(self, X, self._is_precomputed(), reset=False)

    def _is_precomputed(self):
        """Return whether the fitted kernel is a matrix that the caller computes.

        Returns
        -------
        bool
            False for a callable kernel.
        """
        return self._kernel.kind == GRAM and self._callable is None

    def _decision_blocks(self, X, stores_pairs=True):
        """Split samples into blocks for the decisions.

        Parameters
        ----------
        X : {ndarray, CSR}
            Validated samples.
        stores_pairs : bool, default=True
            Whether the decisions of all pairs of a block are stored.

        Returns
        -------
        list of slice
            Blocks of consecutive samples.
        """
        # `Kernel.prepare` copies sparse samples if the training samples are dense.
        is_copied = sparse.issparse(X) and not sparse.issparse(self.support_vectors_)
        width = X.shape[1] if is_copied else 0
        return self._blocks(X.shape[0], width if self._samples is None else self._samples.size, stores_pairs)

    def _blocks(self, n, width=0, stores_pairs=True):
        """Split samples into blocks whose kernel values and decisions stay within `cache_size`.

        Parameters
        ----------
        n : int
            Number of samples.
        width : int, default=0
            Number of further values that a block holds for each sample, such as those of a copy.
        stores_pairs : bool, default=True
            Whether the decisions of all pairs of a block are stored.

        Returns
        -------
        list of slice
            Blocks of consecutive samples.
        """
        n_classes, allowed = self.classes_.size, self.cache_size * 1e6 / 16
        if n_classes > FEW_CLASSES:
            of_pairs = 2 * n_classes**2 if stores_pairs else self.support_.size + 2 * n_classes
            n_values = width + self.support_.size + of_pairs  # of one sample
            # A product with few samples reads all coefficients for them.
            step = min(max(LARGE_BLOCK_VALUES // n_values, MIN_SAMPLES), allowed // n_values)
        else:
            n_values = width + self.support_.size + 8 * (n_classes - 2) ** 2
            step = min(BLOCK_VALUES, allowed) // max(1, n_values)
        step = max(1, int(step))
        return [slice(start, min(start + step, n)) for start in range(0, n, step)]

    def _kernel_to_support(self, X):
        """Evaluate the kernel between a block of samples and the support vectors.

        Parameters
        ----------
        X : {ndarray, CSR} of shape (m, n_features)
            Validated samples, or kernel values.

        Returns
        -------
        ndarray of shape (m, n_SV), float64
            Kernel values.
        """
        if self._callable is not None:
            if self._samples is None:
                return values_of(self._callable, X, self.support_vectors_)
            return values_of(self._callable, X, self._samples)[:, self.support_]
        if self._kernel.kind == GRAM:
            return np.asarray(X[:, self.support_], dtype=np.float64)
        X = self._kernel.prepare(X)
        K = kernel_block(X, self._kernel.prepare(self.support_vectors_), self._kernel)
        return normalise_rows(K, X, self._kernel) if self._normalised else K

    def _subproblems_on(self, K, intercept):
        """Evaluate the decisions of all subproblems, or of all classes for all at once.

        Parameters
        ----------
        K : ndarray of shape (m, n_SV)
            Kernel values to the support vectors.
        intercept : ndarray
            Constants of the decisions.

        Returns
        -------
        ndarray of shape (m, n_pairs), or (m, n_classes)
            Decisions.
        """
        if self.dual_coef_.shape[0] == self.classes_.size:
            return K @ self.dual_coef_.T + intercept
        return pairwise_decisions(K, self.dual_coef_, intercept, self._class_start())
