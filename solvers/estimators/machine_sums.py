"""The sums of kernel functions of a fitted machine, of this package or of `sklearn.svm`."""

from itertools import combinations, pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.svm import SVC, NuSVC
from sklearn.utils.validation import check_is_fitted

from solvers.estimators.base import KernelSVC
from solvers.kernels.functions import GRAM, KINDS, Kernel, for_samples, values_of
from solvers.reduction.reduced_set.expansion import Expansion, dense


class Machine(NamedTuple):
    """Fitted machine as sums of kernel functions with constants."""

    expansion: Expansion
    kernel: Kernel  # kernel that predictions evaluate
    intercept: np.ndarray  # (P,): constants of the decisions
    classes: np.ndarray  # (n_classes,)
    support: np.ndarray  # (N,): rows of the training samples
    support_vectors: np.ndarray | sparse.csr_matrix  # (N, d) as published; empty for a precomputed kernel
    is_voted: bool  # whether the sums are pairs of at least three classes
    shift: float  # number that predictions subtract from the kernel values of the expansion
    function: Any  # callable kernel, or None


def machine_of(model, X=None):
    """Return a fitted machine as sums of kernel functions.

    Parameters
    ----------
    model : KernelSVC, sklearn.svm.SVC or sklearn.svm.NuSVC
        Fitted machine.
    X : array-like, optional
        Training samples, or for a precomputed kernel the Gram matrix, which is then required.

    Returns
    -------
    Machine
        Sums.

    Raises
    ------
    TypeError
        The model is of another class.
    NotFittedError
        The model is not fitted.
    ValueError
        The model has no sums of kernel values.
    """
    if not isinstance(model, (KernelSVC, SVC, NuSVC)):
        raise TypeError(
            f"reduce: expected a support vector machine of this package or sklearn.svm.SVC, found "
            f"{type(model).__name__}. Pass such a machine"
        )
    check_is_fitted(model, "classes_")
    if getattr(model, "_normalised", False):
        raise ValueError(
            f"reduce: expected kernel values as they are, found {type(model).__name__} with samples "
            "normalised to k(x, x) = 1. Use kernel='rbf', or SMOSVC"
        )
    dual_coef: Any = model.dual_coef_
    dual_coef = dual_coef.toarray() if sparse.issparse(dual_coef) else dual_coef
    n_classes = model.classes_.size
    coefficients = _coefficients(np.asarray(dual_coef), np.asarray(model.n_support_), n_classes)
    labels = np.repeat(np.arange(n_classes), model.n_support_)
    kernel, function = _kernel_of(model)
    shift = float(getattr(model, "gram_shift", 0.0)) if model.kernel == "precomputed" else 0.0
    vectors = _vectors_of(model, kernel, function, X)
    if shift:
        vectors = vectors + shift
    return Machine(
        Expansion(vectors, kernel, coefficients, labels),
        kernel,
        np.array(model.intercept_, dtype=np.float64),
        model.classes_,
        model.support_,
        model.support_vectors_,
        n_classes > 2 and dual_coef.shape[0] < n_classes,
        shift,
        function,
    )


def _coefficients(dual_coef, n_support, n_classes):
    """Return the coefficients of all support vectors in each subproblem.

    Parameters
    ----------
    dual_coef : ndarray of shape (n_classes − 1, N) or (n_classes, N)
        Coefficients in the layout of `sklearn.svm.SVC`, or those of each class.
    n_support : ndarray of shape (n_classes,)
        Number of support vectors of each class.
    n_classes : int
        Number of classes.

    Returns
    -------
    ndarray of shape (N, P)
        Coefficients.
    """
    if n_classes == 2 or dual_coef.shape[0] == n_classes:
        return np.ascontiguousarray(dual_coef.T)
    start = np.concatenate(([0], np.cumsum(n_support)))
    classes = [slice(a, b) for a, b in pairwise(start.tolist())]
    coefficients = np.zeros((dual_coef.shape[1], n_classes * (n_classes - 1) // 2))
    for k, (i, j) in enumerate(combinations(range(n_classes), 2)):
        coefficients[classes[i], k] = dual_coef[j - 1, classes[i]]
        coefficients[classes[j], k] = dual_coef[i, classes[j]]
    return coefficients


def _kernel_of(model):
    """Return the kernel of a model as it evaluates it, and the callable kernel if it has one.

    Parameters
    ----------
    model : KernelSVC, sklearn.svm.SVC or sklearn.svm.NuSVC
        Fitted machine.

    Returns
    -------
    kernel : Kernel
        Kernel.
    function : callable or None
        Callable kernel.
    """
    if isinstance(model, KernelSVC):
        return model._kernel, model._callable
    if callable(model.kernel) or model.kernel == "precomputed":
        return Kernel(GRAM), model.kernel if callable(model.kernel) else None
    kernel = Kernel(KINDS[model.kernel], float(model._gamma), float(model.coef0), float(model.degree))
    return for_samples(kernel, model.support_vectors_)[0], None


def _vectors_of(model, kernel, function, X):
    """Return the support vectors as an expansion holds them.

    Parameters
    ----------
    model : KernelSVC, sklearn.svm.SVC or sklearn.svm.NuSVC
        Fitted machine.
    kernel : Kernel
        Kernel of the model.
    function : callable or None
        Callable kernel.
    X : array-like or None
        Training samples or the Gram matrix.

    Returns
    -------
    ndarray of shape (N, d) or (N, N)
        Prepared dense vectors; for the kind `GRAM` their kernel matrix.
    """
    if kernel.kind != GRAM:
        return dense(kernel.prepare(model.support_vectors_))
    if not model.support_.size:
        return np.empty((0, 0))
    if function is not None:
        if getattr(model, "_samples", None) is not None or not isinstance(model, KernelSVC):
            raise ValueError(
                "reduce: expected samples that are rows of numbers and a machine of this package for a "
                f"callable kernel, found {type(model).__name__}. Pass the Gram "
                "matrix with kernel='precomputed'"
            )
        return values_of(function, model.support_vectors_, model.support_vectors_)
    if X is None:
        raise ValueError(
            "reduce: expected X, the Gram matrix of the training samples, for kernel='precomputed'. Pass X"
        )
    gram = np.asarray(X)
    if gram.ndim != 2 or gram.shape[0] != gram.shape[1] or gram.shape[0] <= model.support_.max():
        raise ValueError(
            f"X: expected the square Gram matrix of the training samples, found shape {gram.shape}. Pass the "
            "matrix of fit"
        )
    return gram[np.ix_(model.support_, model.support_)].astype(np.float64)
