"""Parameters and fitted attributes that all estimators have, with their types, defaults and constraints."""

from collections.abc import Callable
from numbers import Integral, Real
from typing import Annotated, cast

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils._param_validation import Interval, Options, StrOptions

from solvers.estimators.parameters import Positive, Switch, declares_parameters, parameter
from solvers.kernels.functions import KINDS

# Integers of any size: scikit-learn's "random_state" refuses those of more than 32 bits.
RandomState = Annotated[
    int | np.integer | np.random.RandomState | None,
    Interval(Integral, 0, None, closed="left"),
    np.random.RandomState,
    None,
]
ClassWeight = Annotated[dict | str | None, StrOptions({"balanced"}), dict, None]


@declares_parameters
class CommonParameters(ClassifierMixin, BaseEstimator):  # numpydoc ignore=PR02
    """Parameters and fitted attributes that all estimators have.

    Parameters
    ----------
    C : float
        Penalty of the squared slacks; with ``SMOSVC(loss="l1")``, of the slacks.
    kernel : {"rbf", "linear", "poly", "sigmoid", "imq", "precomputed"} or callable
        Kernel function: ``rbf`` is exp(−γ ‖x − z‖²), ``linear`` x·z, ``poly`` (γ x·z + coef0)^degree,
        ``sigmoid`` tanh(γ x·z + coef0), ``imq`` 1/√(γ ‖x − z‖² + coef0). A callable takes two arrays of
        samples and returns their kernel matrix. At prediction its second argument is the support vectors. For
        samples that are not rows of numbers, such as strings, it is all training samples, as in
        `sklearn.svm.SVC`. A precomputed float32 Gram matrix is not converted; sums are float64.
    gamma : {"scale", "auto"} or float
        Width γ of the kernel, as in `sklearn.svm.SVC`.
    degree : float
        Degree of the poly kernel.
    coef0 : float
        Constant of the poly, sigmoid and imq kernels; positive for imq.
    gram_error : float
        Bound on the error of a value of a precomputed kernel matrix, which the certificate includes. 0: the
        values are exact, those of a float32 matrix as well.
    cache_size : float
        Megabytes for kernel rows.
    max_iter : int
        Limit of the iterations of a whole `fit`; −1 for no limit.
    max_seconds : float or None
        Limit of the wall time of `fit`, in seconds; None for no limit.
    probability : bool
        Provide `predict_proba` and `predict_log_proba`, by scikit-learn's
        ``CalibratedClassifierCV(self, method="sigmoid", ensemble=False)``. This takes five more trainings, or
        fewer if a class has fewer than five samples.
    class_weight : dict, "balanced" or None
        Class t has the penalty C · class_weight[t], multiplied by `sample_weight` if given. "balanced" is
        n_samples / (n_classes · n_t), as in `sklearn.svm.SVC`.
    decision_function_shape : {"ovr", "ovo"}
        Result of `decision_function` for more than two classes: a score of every class ("ovr"), or the
        decision of every pair ("ovo").
    break_ties : {"auto"} or bool
        Whether `predict` breaks ties of votes by the sum of decisions; if not, the first class wins. True and
        False behave as in `sklearn.svm.SVC`: True is refused for ``decision_function_shape="ovo"``. A
        decision of exactly 0 is a vote for the first class of its pair in `decision_function`, and for the
        second one in `predict` where ties are not broken. "auto" breaks ties for both shapes, and a decision
        of 0 is a vote for the second class.
    verbose : bool
        Print the number of iterations and `stopping_` after `fit`.
    n_jobs : int or None
        Number of threads that train the subproblems of pairs, and that predict; None is one, −1 one for each
        core. Each thread has a cache of `cache_size`. The model is the same for any number, bit for bit. One
        thread trains if `max_iter` or `max_seconds` is set, because the subproblems share them in turn.
        `fit_path` trains in one thread.
    random_state : int, RandomState or None
        Source of the folds for `probability`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels, ascending.
    n_features_in_ : int
        Number of features of the training samples.
    support_ : ndarray of shape (n_SV,)
        Indices of the training samples that are support vectors of any subproblem, sorted by class.
    support_vectors_ : {ndarray, CSR} of shape (n_SV, n_features)
        Support vectors; empty for a precomputed kernel.
    class_weight_ : ndarray of shape (n_classes,)
        Factor of C for each class, in the order of `classes_`.
    coef_ : ndarray of shape (n_pairs, n_features), or (n_classes, n_features) unless pairwise
        Weights of the features; only with ``kernel="linear"``, unless that is normalised. Read-only.
    n_support_ : ndarray of shape (n_classes,), int32
        Number of support vectors of each class.
    dual_coef_ : ndarray of shape (n_classes − 1, n_SV), or (n_classes, n_SV) unless pairwise
        Coefficients of the support vectors: pairwise in the layout of `sklearn.svm.SVC`, else those of each
        class.
    intercept_ : ndarray of shape (n_pairs,), or (n_classes,)
        Constants of the decisions, in the layout of `sklearn.svm.SVC`.
    n_iter_ : int ndarray of shape (n_subproblems,)
        Iterations of each subproblem.
    n_kernel_evals_ : int
        Kernel values that were computed, summed over the subproblems. With ``track_margins=False``, a draw
        counts its values each time, also where they were kept.
    objective_ : float
        Squared norm ‖c‖² of the point of the hull, summed over the subproblems.
    gap_, duality_gap_ : float
        Largest relative gap of a subproblem over all its samples: an upper bound that allows for every
        rounding error (`solvers.common.certificate`). It holds for positive semidefinite kernels only. It is
        NaN if computing it would have taken longer than training, or if `max_seconds` ended first.
    converged_ : bool
        Whether the tolerance `tol` is certified for every subproblem; the table in `solvers` says what that
        means.
    stopping_ : str
        ``"certified: ..."``, or the reason why the subproblem that is farthest from its tolerance ended, and
        its gap: ``"max_iter"``, ``"max_seconds"``, ``"cannot be told apart at this precision"`` (rounding
        hides the remaining violation), ``"stalled: its steps gain next to nothing"`` (the tolerance would
        take far too many steps), or another reason.
    fit_status_ : int
        0 exactly if `converged_`. Otherwise the reason: 1 `max_iter`; 2 `max_seconds`; 3 the kernel is not
        positive definite; 4 the steps made no more progress, or rounding is too large to certify `tol`; 5 the
        draws found no violator, but there may be one. With several subproblems it is the last of their
        statuses in the order 0, 5, 1, 2, 3, 4.
    """

    C: Positive = parameter(default=1.0, kw_only=False)
    kernel: Annotated[str | Callable, StrOptions(set(KINDS)), callable] = "rbf"
    gamma: Annotated[
        str | float, StrOptions({"scale", "auto"}), Interval(Real, 0, None, closed="neither")
    ] = "scale"
    degree: Annotated[float, Interval(Real, 0, None, closed="left")] = 3
    coef0: Annotated[float, Interval(Real, None, None, closed="neither")] = 1.0
    gram_error: Annotated[float, Interval(Real, 0, None, closed="left")] = 0.0
    cache_size: Annotated[float, Interval(Real, 0, None, closed="neither")] = 200
    max_iter: Annotated[int, Options(Integral, {-1}), Interval(Integral, 1, None, closed="left")] = -1
    max_seconds: Annotated[float | None, Interval(Real, 0, None, closed="right"), None] = None
    probability: Switch = False
    decision_function_shape: Annotated[str, StrOptions({"ovr", "ovo"})] = "ovr"
    break_ties: Annotated[bool | str, "boolean", StrOptions({"auto"})] = "auto"
    verbose: Switch = False
    n_jobs: Annotated[
        int | None, Options(Integral, {-1}), Interval(Integral, 1, None, closed="left"), None
    ] = None
    random_state: RandomState = None

    # Values of the estimators that do not have the parameter.
    bias, multiclass, warm_start = "theoretic", "pairwise", False
    class_weight = cast(dict | str | None, None)
    normalises = False  # whether the method needs a constant k(x, x)
