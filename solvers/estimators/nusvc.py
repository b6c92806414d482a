"""The ν support vector machine of scikit-learn, with an error that names the largest ν."""

from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn import svm

from solvers.estimators.parameters import Samples

OF_NU = ("specified nu is infeasible", "coefficients or intercepts are not finite")
"""Beginnings of scikit-learn's errors for a ν above the limit, and for one that equals it."""


class NuSVC(svm.NuSVC):
    """Support vector machine with a parameter ν instead of C: `sklearn.svm.NuSVC`, with a clear error for ν.

    It minimises ½‖w‖² − ν ρ + 1/n Σ ξ_i subject to y_i (w·φ(x_i) + b) ≥ ρ − ξ_i, ξ_i ≥ 0 and ρ ≥ 0. LIBSVM
    trains it, for every pair of classes. A solution exists for ν ≤ 2 min(n₊, n₋)/(n₊ + n₋) of each pair with
    n₊ and n₋ samples. At this limit the bias is not bounded, so ν must be below it.

    The parameter `probability` of scikit-learn, which is deprecated, is left out. Use
    `CalibratedClassifierCV`.

    Parameters
    ----------
    nu : float, default=0.5
        Upper bound on the share of margin errors, and lower bound on the share of support vectors. It is
        above 0, and below the limit that the classes set.
    kernel : {"linear", "poly", "rbf", "sigmoid", "precomputed"} or callable, default="rbf"
        Kernel function, or ``"precomputed"`` for a Gram matrix in place of samples.
    degree : int, default=3
        Degree of the kernel "poly", at least 0.
    gamma : {"scale", "auto"} or float, default="scale"
        Factor γ of the kernels "rbf", "poly" and "sigmoid". "scale" is 1 over the number of features times
        the variance of all values, "auto" is 1 over the number of features.
    coef0 : float, default=0.0
        Constant of the kernels "poly" and "sigmoid".
    shrinking : bool, default=True
        Whether LIBSVM leaves out samples during the training whose weights are at a bound.
    tol : float, default=0.001
        Largest violation of the optimality conditions at which LIBSVM stops.
    cache_size : float, default=200
        Memory for kernel values, in MB.
    class_weight : dict, "balanced" or None, default=None
        Not used by LIBSVM for ν.
    verbose : bool, default=False
        Whether LIBSVM prints its progress.
    max_iter : int, default=-1
        Largest number of iterations of each subproblem; −1 means no limit.
    decision_function_shape : {"ovr", "ovo"}, default="ovr"
        Whether decisions are those of each class, or those of each pair of classes.
    break_ties : bool, default=False
        Whether decisions of each class break the ties of votes.
    random_state : int, RandomState or None, default=None
        Not used for decisions.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels, ascending.
    dual_coef_ : ndarray of shape (n_classes − 1, n_SV)
        Coefficients of the support vectors, in the layout of `sklearn.svm.SVC`.
    intercept_ : ndarray of shape (n_subproblems,)
        Constants of the decisions.
    support_ : int ndarray of shape (n_SV,)
        Rows of the support vectors.
    support_vectors_ : {ndarray, CSR} of shape (n_SV, n_features)
        Support vectors.
    n_support_ : int ndarray of shape (n_classes,)
        Number of support vectors of each class.
    n_iter_ : int ndarray of shape (n_subproblems,)
        Number of iterations of each subproblem.
    fit_status_ : int
        0 if LIBSVM reached `tol`, else 1.

    Raises
    ------
    ValueError
        By `fit`: a parameter, a sample, a label or a weight is not valid, or ν is not below its limit. The
        message names the limit.

    References
    ----------
    B. Schölkopf, A. J. Smola, R. C. Williamson and P. L. Bartlett (2000), New support vector algorithms,
    Neural Computation 12. D. J. Crisp and C. J. C. Burges (2000), A geometric interpretation of ν-SVM
    classifiers, Advances in Neural Information Processing Systems 12: the limit of ν.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from solvers import NuSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> NuSVC(nu=0.1, gamma=0.5).fit(X, y).predict(X[::50])
    array([0, 1, 2])
    >>> NuSVC(nu=0.9).fit(X[:75], y[:75])
    Traceback (most recent call last):
        ...
    ValueError: NuSVC(nu=0.9): expected nu below 0.666667, which is 2 min(n₊, n₋)/(n₊ + n₋) of the classes 1 \
(n = 25) and 0 (n = 50). Set a smaller nu
    """

    _parameter_constraints: ClassVar[dict] = {
        name: values for name, values in svm.NuSVC._parameter_constraints.items() if name != "probability"
    }

    def __init__(
        self,
        *,
        nu=0.5,
        kernel="rbf",
        degree=3,
        gamma="scale",
        coef0=0.0,
        shrinking=True,
        tol=1e-3,
        cache_size=200,
        class_weight=None,
        verbose=False,
        max_iter=-1,
        decision_function_shape="ovr",
        break_ties=False,
        random_state=None,
    ):
        super().__init__(
            nu=nu,
            kernel=kernel,
            degree=degree,
            gamma=gamma,
            coef0=coef0,
            shrinking=shrinking,
            tol=tol,
            cache_size=cache_size,
            class_weight=class_weight,
            verbose=verbose,
            max_iter=max_iter,
            decision_function_shape=decision_function_shape,
            break_ties=break_ties,
            random_state=random_state,
        )

    def fit(self, X: Samples, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Train on samples X with labels y.

        Parameters
        ----------
        X : {array-like, CSR} of shape (n_samples, n_features), or (n_samples, n_samples) if precomputed
            Training samples, or their Gram matrix.
        y : array-like of shape (n_samples,)
            Class labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples. A sample with a weight of 0 or less is left out.

        Returns
        -------
        self
            The fitted estimator.
        """
        try:
            return super().fit(X, y, sample_weight)
        except ValueError as error:
            if not any(text in str(error) for text in OF_NU):
                raise
            message = self._problem_of_nu(np.asarray(y).ravel(), sample_weight)
            if message is None:
                raise
            raise ValueError(message) from error

    def _problem_of_nu(self, y, sample_weight):
        """Return the message for a ν that is not below its limit, or for a single class.

        Parameters
        ----------
        y : ndarray of shape (n_samples,)
            Class labels that scikit-learn has accepted.
        sample_weight : array-like of shape (n_samples,) or None
            Weights of the samples.

        Returns
        -------
        str or None
            Message with the smallest limit over the pairs of classes, which is that of the smallest and the
            largest class. None if ν is below it.
        """
        weights = np.ones(y.size) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        measure = "n =" if sample_weight is None else "total weight"
        classes, codes = np.unique(y[weights > 0.0], return_inverse=True)
        sizes = np.bincount(codes, weights[weights > 0.0])
        if classes.size == 1:
            return (
                "NuSVC: expected at least two classes of samples with positive weights, found one class: "
                f"{classes[0]}. Give a sample of another class a positive weight"
            )
        least, most = int(sizes.argmin()), int(sizes.size - 1 - sizes[::-1].argmax())
        limit = 2.0 * sizes[least] / (sizes[least] + sizes[most])
        if self.nu < limit * (1.0 - 1e-9):
            return None
        of_each = [f"{classes[k]} ({measure} {sizes[k]:.9g})" for k in (least, most)]
        return (
            f"NuSVC(nu={self.nu:g}): expected nu below {limit:.6g}, which is 2 min(n₊, n₋)/(n₊ + n₋) of the "
            f"classes {of_each[0]} and {of_each[1]}. Set a smaller nu"
        )
