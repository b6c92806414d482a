"""The input of a training: parameters, samples, labels, weights, values of C and the kernel, all checked."""

from collections.abc import Callable
from copy import deepcopy
from functools import lru_cache
from numbers import Real
from operator import lt

import numpy as np
from scipy import sparse
from sklearn.utils import compute_class_weight
from sklearn.utils._param_validation import validate_parameter_constraints
from sklearn.utils.validation import check_consistent_length, column_or_1d

from solvers.common.input_checks import checked_table, require_real_numbers
from solvers.common.penalties import require_penalties
from solvers.common.plain import plain
from solvers.common.resources import NO_LIMIT, n_threads, require_memory
from solvers.estimators.common_parameters import CommonParameters
from solvers.kernels.functions import (
    GRAM,
    KINDS,
    LINEAR,
    Kernel,
    as_array,
    for_samples,
    is_table,
    kernel_diagonal,
    require_finite,
    values_of,
    variance_of,
)
from solvers.multiclass import require_labels_of_one_type, sort_by_class, strategy_of, without
from solvers.path.result import PathProblem

_PLAIN = (bool, int, float, str, type(None))
"""Types of values whose check is cached."""


def _check_parameter(estimator, name, kind, value):
    """Raise if the value of a parameter is not valid.

    Parameters
    ----------
    estimator : type
        Class whose `_parameter_constraints` the value must satisfy.
    name : str
        Name of the parameter, as in `get_params`.
    kind : type
        Type of the value, by which the cache distinguishes 1, 1.0 and True.
    value : object
        Value to check, as the user gave it.
    """
    constraints = {name: estimator._parameter_constraints[name]}
    validate_parameter_constraints(constraints, {name: value}, estimator.__name__)


_check_plain = lru_cache(maxsize=10_000)(_check_parameter)


class TrainingInputMixin(CommonParameters):
    """Mixin that adds to a `KernelSVC` the checks of what `fit` and `fit_path` take."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.kernel != "precomputed"
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags

    def _copy(self):
        """Return a copy that shares parameters and fitted attributes.

        Returns
        -------
        KernelSVC
            Copy.
        """
        model = object.__new__(type(self))
        model.__dict__.update(self.__dict__)
        return model

    def _validate_params(self):
        """Raise if a parameter is not valid, or if parameters do not fit together."""
        # The method of scikit-learn reads the signature of `__init__` and checks every value again. Here
        # valid plain values are checked once in a process.
        for name, default in self._checked_defaults.items():
            value = getattr(self, name)
            if value is default:
                continue
            check: Callable = _check_plain if type(value) in _PLAIN else _check_parameter
            check(type(self), name, type(value), value)
        if self.decision_function_shape == "ovo" and self.multiclass != "pairwise":
            raise ValueError(
                f"decision_function_shape='ovo' needs multiclass='pairwise'; got {self.multiclass!r}, which "
                "has no decisions of pairs. Set decision_function_shape='ovr'"
            )
        if self.kernel == "imq" and self.coef0 <= 0:
            raise ValueError(
                f"coef0 must be > 0 for kernel='imq', which is 1/√(γ‖x − z‖² + coef0); got {self.coef0}"
            )

    def _check_training_samples(self, X, y):
        """Return validated training samples and labels.

        Parameters
        ----------
        X : {array-like, CSR}
            Samples as the user passed them.
        y : array-like of shape (n_samples,)
            Labels as the user passed them.

        Returns
        -------
        X : {ndarray, CSR}
            Samples, or the Gram matrix.
        y : ndarray of shape (n_samples,)
            Class label of each sample.
        """
        require_labels_of_one_type(y)
        if self.kernel == "precomputed" and sparse.issparse(X):
            raise TypeError(
                "Sparse precomputed kernels are not supported: kernel='precomputed' needs a dense matrix. "
                "Convert it by toarray()"
            )
        if callable(self.kernel) and not is_table(X):
            check_consistent_length(X, y)
            return as_array(X), column_or_1d(y, warn=True)
        return checked_table(self, X, self.kernel == "precomputed", y=y)

    def _require_cache(self, n):
        """Raise if the cache of kernel values would not fit into memory.

        Parameters
        ----------
        n : int
            Number of training samples.
        """
        require_memory(
            n_threads(self.n_jobs) * min(1e6 * self.cache_size, 8.0 * n**2),
            f"a cache of kernel values for {n:,} samples with cache_size={self.cache_size}",
            "set a smaller cache_size",
        )

    def _weights_of_classes(self, classes, y):
        """Return `class_weight_`.

        Parameters
        ----------
        classes : ndarray of shape (n_classes,)
            Distinct labels.
        y : ndarray of shape (n_samples,)
            Class label of each sample.

        Returns
        -------
        ndarray of shape (n_classes,)
            Factor of C for each class, in the order of `classes`; 1 without a `class_weight`.
        """
        if self.class_weight is None:
            return np.ones(classes.size)
        given = self.class_weight if isinstance(self.class_weight, dict) else {}
        if not all(isinstance(weight, Real) and np.isfinite(float(weight)) for weight in given.values()):
            raise ValueError(f"class_weight: expected finite numbers, found {plain(given)}")
        return compute_class_weight(self.class_weight, classes=classes, y=y)

    def _weights_of_samples(self, sample_weight, rows, class_start):
        """Return the weights of samples, multiplied by those of their classes.

        Parameters
        ----------
        sample_weight : array-like of shape (n,) or None
            Factors of C, one for each sample. None means 1.
        rows : int32 ndarray of shape (n,)
            Row numbers, class by class.
        class_start : int ndarray of shape (n_classes + 1,)
            Boundaries of the classes among `rows`.

        Returns
        -------
        ndarray of shape (n,) or None
            Weights by row; None if all are 1.
        """
        if sample_weight is None and self.class_weight is None:
            return None
        weights = self._check_sample_weight(1.0 if sample_weight is None else sample_weight, rows.size)
        if self.class_weight is not None:
            of_classes = np.empty(rows.size)
            of_classes[rows] = np.repeat(self.class_weight_, np.diff(class_start))
            with np.errstate(over="ignore", under="ignore"):
                product = weights * of_classes
            is_lost = (product == 0.0) & (weights != 0.0) & (of_classes != 0.0)
            if is_lost.any() or not np.isfinite(product).all():
                raise ValueError(
                    "sample_weight times class_weight leaves the range of float64. Scale them: the model "
                    "depends on the product of C and both"
                )
            weights = product
        return None if (weights == 1.0).all() else weights

    def _check_sample_weight(self, sample_weight, n):
        """Return the weights of samples as an array, or raise.

        Parameters
        ----------
        sample_weight : array-like or float
            Weights as the user passed them.
        n : int
            Number of samples.

        Returns
        -------
        ndarray of shape (n,)
            Factor of C for each sample, in float64.
        """
        require_real_numbers(sample_weight, "sample_weight")
        try:
            weights = np.asarray(sample_weight, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"sample_weight: expected one number for each sample; {error}") from None
        if weights.ndim == 0:
            weights = np.full(n, float(weights))
        if weights.shape != (n,):
            raise ValueError(
                f"sample_weight must have shape ({n},), one weight a sample; got {weights.shape}"
            )
        if not np.all(np.isfinite(weights)):
            raise ValueError(
                "sample_weight: expected finite numbers, found a NaN or an infinity. "
                "Correct these weights or drop their samples"
            )
        return weights

    def _check_weights(self, weights, Cs, sample_weight):
        """Raise if penalties leave the range of float64, or differ where they must be equal.

        Parameters
        ----------
        weights : ndarray of shape (n,)
            Positive weights of the samples, multiplied by those of their classes.
        Cs : ndarray of shape (n_C,)
            Values of C.
        sample_weight : array-like or None
            Weights as the user passed them, for messages.
        """
        given = {"sample_weight": sample_weight, "class_weight": self.class_weight}
        names = [name for name, value in given.items() if value is not None]
        require_penalties(Cs, weights, names)
        if self.normalises and (weights != weights[0]).any():
            raise ValueError(
                f"{type(self).__name__} needs the same C for all samples, which must lie on a sphere; "
                "sample_weight has different weights. Use MNSVC, or weights that are all equal (or zero)"
            )

    def _resolve_kernel(self, X, used=None):
        """Return the kernel with its numbers, and the data that it is evaluated on.

        Parameters
        ----------
        X : {ndarray, CSR}
            Validated samples, or the Gram matrix.
        used : bool ndarray of shape (n_samples,), optional
            Samples that have weight; by default all.

        Returns
        -------
        kernel : Kernel
            Kernel with all its parameters.
        X : {ndarray, CSR}
            Prepared samples, or the Gram matrix.
        """
        if callable(self.kernel):
            require_memory(
                8.0 * X.shape[0] ** 2,
                f"the matrix of a callable kernel for {X.shape[0]:,} samples",
                "use a named kernel, which is evaluated in parts, or use fewer samples",
            )
            gram = values_of(self.kernel, X, X)
            require_finite(gram)
            return Kernel(GRAM), gram
        kind = KINDS[self.kernel]
        if kind == GRAM and X.shape[0] != X.shape[1]:
            raise ValueError(
                f"a precomputed kernel must be a square matrix, samples × samples; got shape {X.shape}. "
                "Pass the kernel between all training samples"
            )
        if kind == GRAM:
            return Kernel(GRAM, error=float(self.gram_error)), X
        gamma = 1.0 if kind == LINEAR else self._resolve_gamma(X)
        return for_samples(Kernel(kind, gamma, float(self.coef0), float(self.degree)), X, used)

    def _resolve_gamma(self, X):
        """Return the width γ of the kernel as a number.

        Parameters
        ----------
        X : {ndarray, CSR} of shape (n_samples, n_features)
            Training samples, one a row, with finite float64 features.

        Returns
        -------
        float
            Width γ, positive.
        """
        if self.gamma == "auto":
            return 1.0 / X.shape[1]
        if self.gamma == "scale":
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                variance = variance_of(X)
                gamma = 1.0 / (X.shape[1] * variance) if variance > 0 else 1.0
            if not (0 < gamma < np.inf and np.isfinite(variance)):
                raise ValueError(
                    "gamma='scale' is not a finite number for these samples, whose variance is "
                    f"{variance:g}. Scale them, or set gamma"
                )
            return gamma
        return float(self.gamma)

    def _check_diagonal(self, X, kernel, rows, C):
        """Raise if the stopping rule has no meaning for the kernel or the penalties.

        Parameters
        ----------
        X : {ndarray, CSR}
            Prepared samples, or the Gram matrix.
        kernel : Kernel
            Kernel function with its parameters, as chosen for the training samples.
        rows : int32 ndarray of shape (n,)
            Rows with a positive weight.
        C : ndarray
            Penalties, or weights of the classes.
        """

    def _normalisation(self, X, kernel):
        """Return 1/√k(x, x) if the method needs a constant diagonal and the kernel has none (2.47).

        Parameters
        ----------
        X : {ndarray, CSR} of shape (n_samples, n_features), or ndarray of shape (n_samples, n_samples)
            Prepared samples, or the Gram matrix.
        kernel : Kernel
            Kernel function with its parameters, as chosen for the training samples.

        Returns
        -------
        ndarray of shape (n_samples,), or (0,)
            Factors; empty if the kernel is not scaled.
        """
        self._normalised = False
        if not self.normalises or kernel.has_constant_diagonal:
            return np.empty(0)
        diagonal = kernel_diagonal(X, kernel)
        if kernel.kind == GRAM:
            if not np.allclose(diagonal, diagonal[0], rtol=1e-6, atol=0.0):
                raise ValueError(
                    f"{type(self).__name__} needs a kernel with constant k(x, x); found "
                    f"{diagonal.min():g} to {diagonal.max():g}. Divide the kernel by √(k(x, x) k(z, z)), "
                    "or use MNSVC"
                )
            return np.empty(0)
        self._normalised = True
        if not (diagonal > 0).all():
            raise ValueError(
                f"{type(self).__name__} normalises the {self.kernel} kernel, which needs k(x, x) > 0 for all "
                f"samples; the smallest is {diagonal.min():g}. Use kernel='rbf', or MNSVC"
            )
        return 1.0 / np.sqrt(diagonal)


def detached(estimator):
    """Return a copy of an estimator that may change while a path is trained.

    Parameters are shared, except a random generator, which training would advance.

    Parameters
    ----------
    estimator : KernelSVC
        Estimator, which stays unchanged.

    Returns
    -------
    KernelSVC
        Copy.
    """
    model = estimator._copy()
    if isinstance(getattr(model, "random_state", None), np.random.RandomState):
        model.random_state = deepcopy(model.random_state)
    return model


def check_path_input(estimator, X, y, check_finite):
    """Validate samples and labels as `fit` does. A precomputed Gram matrix takes at most one pass.

    Parameters
    ----------
    estimator : KernelSVC
        Estimator that trains on the samples.
    X : {array-like, CSR}
        Samples or Gram matrix as the user passed them.
    y : array-like of shape (n_samples,)
        Class label of each sample.
    check_finite : bool
        Whether to search a precomputed matrix for values that are not finite.

    Returns
    -------
    X : {ndarray, CSR}
        Validated samples or Gram matrix.
    y : ndarray of shape (n_samples,)
        Class label of each sample.
    """
    require_no_time_limit(estimator)
    if estimator.kernel != "precomputed" or sparse.issparse(X):
        return estimator._check_training_samples(X, y)
    X, y = np.asarray(X), check_labels(y)
    if X.dtype not in (np.float64, np.float32) or X.shape != (y.size, y.size):
        raise ValueError(
            f"fit_path with kernel='precomputed' needs a float Gram matrix of shape {(y.size, y.size)}, "
            f"samples × samples; got shape {X.shape}, {X.dtype}. Pass a float32 or float64 array"
        )
    if check_finite:
        require_finite(X)
    return X, y


def require_no_time_limit(estimator):
    """Raise if an estimator has a time limit, which the trainings of a path would not observe.

    Parameters
    ----------
    estimator : KernelSVC
        Estimator to check.

    Raises
    ------
    ValueError
        `max_seconds` is not None.
    """
    if estimator.max_seconds is not None:
        raise ValueError(
            f"fit_path takes no max_seconds; got max_seconds={estimator.max_seconds}. "
            "Set it to None, or call fit for one C after the other"
        )


def check_labels(y):
    """Return labels as a non-empty one-dimensional array, or raise.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        Class label of each sample.

    Returns
    -------
    ndarray of shape (n_samples,)
        Labels.

    Raises
    ------
    ValueError
        The labels have another shape, or types without a common order.
    """
    require_labels_of_one_type(y)
    y = np.asarray(y)
    if y.ndim != 1 or not y.size:
        raise ValueError(f"fit_path needs labels of shape (n_samples,), at least one; got {y.shape}")
    return y


def check_ascending(Cs):
    """Return the values of C as an ascending array, or raise.

    Parameters
    ----------
    Cs : array-like of shape (n_C,)
        Values of C.

    Returns
    -------
    ndarray of shape (n_C,), float64
        Values of C.

    Raises
    ------
    ValueError
        The values are not ascending finite positive numbers.
    """
    Cs = np.asarray(Cs)
    values = Cs.tolist() if Cs.ndim == 1 and Cs.dtype.kind in "iuf" else []
    if not (values and values[0] > 0 and all(map(lt, values, values[1:])) and values[-1] < np.inf):
        raise ValueError(
            "Cs must be distinct finite numbers > 0 in ascending order, as np.unique returns them; "
            f"got {Cs.tolist()}"
        )
    return np.ascontiguousarray(Cs, dtype=np.float64)


def path_problem(model, y, Cs, sample_weight):
    """Sort samples by class, and return the problem of a path.

    Parameters
    ----------
    model : KernelSVC
        Estimator with its parameters, which receives `class_weight_`.
    y : ndarray of shape (n_samples,)
        Class label of each sample.
    Cs : ndarray of shape (n_C,)
        Values of C, ascending.
    sample_weight : array-like of shape (n_samples,) or None
        Factors of C, one for each sample. None means 1.

    Returns
    -------
    PathProblem
        Data that all subproblems share. Samples without a positive weight are left out.
    """
    classes, rows, class_start = sort_by_class(y)
    model._require_cache(rows.size)
    model.class_weight_ = model._weights_of_classes(classes, y)
    weights = model._weights_of_samples(sample_weight, rows, class_start)
    if weights is None:
        weights = np.ones(rows.size)
    else:
        if not (weights > 0.0).all():
            rows, class_start = without(rows, class_start, weights <= 0.0, classes)
        weights = weights[rows]
        model._check_weights(weights, np.append(Cs, 1.0), sample_weight)  # 1: blocks contain 1/weight
    return PathProblem(
        Cs=Cs,
        classes=classes,
        rows=rows,
        class_start=class_start,
        inverse_weights=1.0 / weights,
        multiclass=strategy_of(model.multiclass, classes.size),
        bias=0.0 if model.bias == "none" else 1.0,
        max_iter=NO_LIMIT if model.max_iter == -1 else int(model.max_iter),
        breaks_ties=bool(model.break_ties),  # True for "auto"
        zero_for_first=model.break_ties not in ("auto", False),
    )
