"""The L1 support vector machine by online steps, certified on all samples that `fit` has seen."""

from numbers import Real
from typing import Annotated, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import column_or_1d

from solvers.common.clock import clock
from solvers.common.input_checks import checked_table
from solvers.common.plain import plain
from solvers.common.resources import NO_LIMIT, Budget
from solvers.common.status import ADVICE, CONVERGED, NOT_DRAWN, most_severe
from solvers.estimators.base import ClassWeight, KernelSVC
from solvers.estimators.parameters import Count, Positive, Samples, Switch, parameter, with_parameters
from solvers.estimators.stream import Batch, new_stream
from solvers.multiclass import random_seed, require_labels_of_one_type, sort_by_class, strategy_of
from solvers.online.training import Schedule, train_online
from solvers.smo.certificate import SMO_STOPPING_TEXTS

ENDED_AS_PLANNED = 6
"""`fit_status_` if no limit ended the training, but the tolerance is not certified for all samples."""


@with_parameters
class LASVC(KernelSVC):  # numpydoc ignore=PR02
    """Support vector machine that learns one sample after the other (LASVM).

    It minimises the dual objective of `SMOSVC` with the loss "l1" on a set of samples. PROCESS adds a sample
    to the set, and takes a step with it. REPROCESS takes a step within the set, and removes samples that are
    unlikely to become support vectors. After one epoch the model is an approximation: `gap_` says how good it
    is on all samples. It is usually above `tol`, so that `converged_` is false. `partial_fit` learns samples
    that arrive in batches, and keeps those of the set only.

    Parameters
    ----------
    C : float
        Penalty of the slacks, finite.
    tol : float
        Largest violation of the optimality conditions in the set, in units of the margin. `converged_` says
        whether this violation and `gap_` are at most `tol` over all samples.
    multiclass : {"pairwise", "one_vs_rest"}
        One subproblem for every pair of classes, or for every class against all others.
    epochs : int
        Number of times that `fit` learns every sample.
    selection : {"random", "gradient", "margin"}
        Sample that `fit` learns next, of those not yet seen in the epoch: a random one, or the best of random
        `candidates`. "gradient" takes the smallest y f(x), and "margin" the smallest |f(x)|, of the
        decision f.
    candidates : int
        Number of samples among which "gradient" and "margin" choose.
    finishing : bool
        Repeat REPROCESS at the end of `fit`, until no violation in the set exceeds `tol`.
    max_iter : int
        Limit of the steps of a whole `fit`, or of one call of `partial_fit` or `finish`; −1 for no limit.
    max_seconds : float or None
        Limit of the wall time of the steps of `fit`, `partial_fit` or `finish`, in seconds; None for no
        limit.
    random_state : int, RandomState or None
        Source of the order of the samples and of the candidates, and of the folds for `probability`.

    Attributes
    ----------
    support_ : ndarray of shape (n_SV,)
        Indices of the training samples that are support vectors of any subproblem, sorted by class. After
        `partial_fit`, samples are numbered in the order of their arrival over all calls.
    objective_ : float
        Dual objective ½ αᵀQα − Σ α_i, summed over the subproblems, as in `SMOSVC`.
    gap_, duality_gap_ : float
        Primal minus dual objective as a share of the primal one, over all samples of a subproblem and with an
        allowance for all rounding errors: the largest of the subproblems. After `partial_fit` it is the gap
        on the set only. The allowance is then part of it after `finish` only.
    converged_ : bool
        Whether violation and `gap_` are at most `tol` over all samples. Always false after `partial_fit`,
        because samples that have left the set are not known any more.
    fit_status_ : int
        0 exactly if `converged_`. 6: training ended as planned, but the tolerance is not certified for all
        samples. The other numbers are those of `SMOSVC`.

    Raises
    ------
    ValueError
        By `fit` and `partial_fit`: a parameter, a sample, a label or a weight is not valid.
    MemoryError
        By `fit`: the training would not fit into memory.

    Notes
    -----
    The steps are those of the authors' program. A sample that could not take a step does not enter the set.
    The seeds, five samples of each label, enter without a REPROCESS. REPROCESS also removes samples if it
    takes no step. The bias is the mean over the free support vectors, as in `SMOSVC`.

    References
    ----------
    A. Bordes, S. Ertekin, J. Weston and L. Bottou (2005), Fast kernel classifiers with online and active
    learning, Journal of Machine Learning Research 6: PROCESS, REPROCESS and the selections. The gap over all
    samples is not in the paper.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from solvers import LASVC
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LASVC(C=4.0, gamma=0.5, epochs=3, random_state=0).fit(X, y)
    >>> model.predict(X[::50])
    array([0, 1, 2])
    >>> for start in range(0, 150, 50):
    ...     model = model.partial_fit(X[start : start + 50], y[start : start + 50], classes=[0, 1, 2])
    >>> model.finish().predict(X[::50])
    array([0, 1, 2])
    """

    has_no_side_effects = True

    C: Annotated[float, Interval(Real, 0, None, closed="neither")] = parameter(default=1.0, kw_only=False)
    tol: Positive = 1e-3
    epochs: Count = 1
    selection: Annotated[str, StrOptions({"random", "gradient", "margin"})] = "random"
    candidates: Count = 50
    finishing: Switch = True
    class_weight: ClassWeight = None
    multiclass: Annotated[str, StrOptions({"pairwise", "one_vs_rest"})] = "pairwise"

    bias = "none"  # no constant is added to the kernel: the bias of this problem is free

    def fit(self, X: Samples, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Train on samples X with labels y, and forget the samples of earlier calls.

        Parameters
        ----------
        X : {array-like, CSR} of shape (n_samples, n_features), or (n_samples, n_samples) if precomputed
            Training samples, or their Gram matrix.
        y : array-like of shape (n_samples,)
            Class labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples. Sample i has the penalty C · sample_weight[i]. A sample with a weight of 0
            or less is left out.

        Returns
        -------
        self
            The fitted estimator.
        """
        super().fit(X, y, sample_weight)
        self._stream = None
        return self

    def partial_fit(
        self,
        X: Samples,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Learn the samples of a batch, each once and in their order.

        The first call after `fit`, or without a call of `fit`, starts a new training. It fixes the kernel
        with its parameters, `multiclass` and `cache_size`; ``gamma="scale"`` is computed from its samples.
        Its `tol` holds for the steps of all calls until `finish`, which sets that of the later ones, too.

        Parameters
        ----------
        X : {array-like, CSR} of shape (n_samples, n_features)
            Samples.
        y : array-like of shape (n_samples,)
            Class labels.
        classes : array-like of shape (n_classes,), default=None
            All class labels of the training. The first call needs them, unless `fit` was called before, whose
            classes are the default.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples. Sample i has the penalty C · sample_weight[i]. A sample with a weight of 0
            or less is left out.

        Returns
        -------
        self
            The estimator with the model of all calls. If the call fails, it is unchanged.

        Raises
        ------
        ValueError
            A parameter, a sample, a label or a weight is not valid.
        """
        self._learn_batch(X, y, classes, sample_weight)
        return self

    def finish(self) -> Self:
        """Repeat REPROCESS until no violation in the set of `partial_fit` exceeds `tol`.

        Returns
        -------
        self
            The estimator with the finished model.

        Raises
        ------
        NotFittedError
            There was no `partial_fit` since the last `fit`.
        """
        self._finish_stream()
        return self

    def _learn_batch(self, X, y, classes, sample_weight):
        """Learn the samples of a batch, and set the fitted attributes.

        Parameters
        ----------
        X : {array-like, CSR} of shape (n_samples, n_features)
            Samples.
        y : array-like of shape (n_samples,)
            Class labels.
        classes : array-like of shape (n_classes,) or None
            All class labels of the training.
        sample_weight : array-like of shape (n_samples,) or None
            Factors of C, one for each sample. None means 1.
        """
        started = clock()
        model = self._copy()
        model._validate_params()
        model._require_partial()
        stream = getattr(model, "_stream", None)
        X, y = checked_table(model, X, False, y=y, reset=stream is None)
        classes = model._check_classes(classes, stream)
        codes = _codes_of(y, classes)
        model.classes_, model.class_weight_ = classes, model._weights_of_classes(classes, classes)
        weights = model._weights_of_batch(sample_weight, codes)
        if stream is None:
            kernel, _ = model._resolve_kernel(X)
            strategy = strategy_of(model.multiclass, classes.size)
            stream = new_stream(kernel, strategy, classes.size, 1e6 * model.cache_size, float(model.tol))
        else:
            stream = stream.copy()
        if sparse.issparse(X) != stream.kernel.takes_sparse:
            X = sparse.csr_matrix(X) if stream.kernel.takes_sparse else X.toarray()
        stream.adapt_kernel(X)
        numbers, kept = stream.n_seen + np.arange(y.size), weights > 0.0
        stream.n_seen += y.size
        batch = Batch(X[kept], codes[kept], float(model.C) * weights[kept], numbers[kept])
        model._train_stream(
            stream, started, lambda subset, deadline: subset.learn(batch, stream.kernel, deadline)
        )
        model._publish_stream(stream, X[:0], "partial_fit")
        self.__dict__ = model.__dict__

    def _finish_stream(self):
        """Finish the sets of `partial_fit`, and set the fitted attributes."""
        started = clock()
        if getattr(self, "_stream", None) is None:
            raise NotFittedError(
                "finish: expected a call of partial_fit before, found none since the last fit. "
                "Call partial_fit first, or fit with finishing=True"
            )
        model = self._copy()
        model._validate_params()
        stream, tol = model._stream.copy(), float(model.tol)
        model._train_stream(
            stream, started, lambda subset, deadline: subset.finish(stream.kernel, deadline, tol)
        )
        model._publish_stream(stream, model.support_vectors_[:0], "finished")
        self.__dict__ = model.__dict__

    def _seed(self):
        """Return the seed of the order of the samples.

        Returns
        -------
        int
            Seed of at least 0.
        """
        return random_seed(self.random_state)

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
        names = ("epochs", "selection", "candidates", "finishing")
        options = {name: getattr(self, name) for name in names}
        return train_online(problem, Schedule(float(self.tol), **options, cache_bytes=1e6 * self.cache_size))

    def _publish(self, X, samples, trained):
        """Set the fitted attributes.

        Parameters
        ----------
        X : {ndarray, CSR} of shape (n_samples, n_features)
            Training samples, one a row, with finite float64 features.
        samples : TrainingSet
            Samples sorted by class.
        trained : Trained
            Results of the subproblems.
        """
        super()._publish(X, samples, trained)
        if self.fit_status_ == NOT_DRAWN:
            self.fit_status_ = ENDED_AS_PLANNED

    def _warn(self):
        """Warn if a limit or rounding ended the training."""
        if self.fit_status_ in ADVICE:
            super()._warn()

    def _require_partial(self):
        """Raise if a parameter does not fit to samples that arrive in batches.

        Raises
        ------
        ValueError
            A kernel without features, weights that depend on all labels, or probabilities.
        """
        name = "a callable" if callable(self.kernel) else repr(self.kernel)
        if callable(self.kernel) or self.kernel == "precomputed":
            raise ValueError(
                f"partial_fit: expected a named kernel of features, found {name}. Set kernel='rbf', or "
                "call fit"
            )
        if isinstance(self.class_weight, str):
            raise ValueError(
                f"partial_fit: expected class_weight as a dict or None, found {self.class_weight!r}, which "
                "needs the labels of all batches. Pass a dict, or sample_weight"
            )
        if self.probability:
            raise ValueError(
                "partial_fit: expected probability=False, found True, which needs all samples. Call fit, or "
                "set probability=False"
            )

    def _check_classes(self, classes, stream):
        """Return the classes of the training, ascending.

        Parameters
        ----------
        classes : array-like of shape (n_classes,) or None
            Labels as the user passed them.
        stream : Stream or None
            Result of earlier calls; None in the first one.

        Returns
        -------
        ndarray of shape (n_classes,)
            Classes.

        Raises
        ------
        ValueError
            There are no classes, fewer than two, or others than before.
        """
        if classes is None:
            if not hasattr(self, "classes_"):
                raise ValueError(
                    "partial_fit: `classes` is None in the first call, expected all class labels. Pass "
                    "classes=numpy.unique(y) of all labels"
                )
            return self.classes_
        require_labels_of_one_type(classes)
        found = np.unique(column_or_1d(classes))
        found = sort_by_class(found)[0]
        if stream is not None and not np.array_equal(found, self.classes_):
            raise ValueError(
                "partial_fit: expected the classes of the first call, "
                f"{plain(self.classes_.tolist())}, found "
                f"{plain(found.tolist())}. Leave `classes` out, or start a new estimator"
            )
        return found

    def _weights_of_batch(self, sample_weight, codes):
        """Return the weights of the samples of a batch, multiplied by those of their classes.

        Parameters
        ----------
        sample_weight : array-like of shape (n,) or None
            Factors of C, one for each sample. None means 1.
        codes : int64 ndarray of shape (n,)
            Class of each sample.

        Returns
        -------
        ndarray of shape (n,)
            Weights.
        """
        order = np.argsort(codes, kind="stable")
        start = np.searchsorted(codes[order], np.arange(self.classes_.size + 1))
        weights = self._weights_of_samples(sample_weight, order, start)
        if weights is None:
            return np.ones(codes.size)
        if (weights > 0.0).any():
            self._check_weights(weights[weights > 0.0], np.array([float(self.C)]), sample_weight)
        return weights

    def _train_stream(self, stream, started, train):
        """Train the sets of all subproblems within the limits of one call.

        Parameters
        ----------
        stream : Stream
            Sets, changed in place.
        started : float
            Time on `solvers.common.clock.clock` from which `max_seconds` counts.
        train : callable
            Function of a subset and its deadline.
        """
        budget = Budget(self.max_iter, self.max_seconds, len(stream.subsets), started)
        for subset in stream.subsets:
            max_iter, deadline = budget.share()
            before = subset.expansion.steps
            subset.expansion.max_steps = NO_LIMIT if max_iter == NO_LIMIT else before + max_iter
            train(subset, deadline)
            budget.subtract(subset.expansion.steps - before)

    def _publish_stream(self, stream, no_rows, what):
        """Set the fitted attributes from the sets of `partial_fit`, and warn if a limit ended the call.

        Parameters
        ----------
        stream : Stream
            Sets of all subproblems.
        no_rows : {ndarray, CSR} of shape (0, n_features)
            Support vectors of a model without any.
        what : str
            Beginning of `stopping_`.
        """
        subsets = stream.subsets
        self._stream, self._kernel, self._gamma = stream, stream.kernel, stream.kernel.gamma
        self._callable = self._samples = self._calibrated = None
        self._normalised = False
        self.support_, codes, X, self.dual_coef_ = stream.model()
        self.support_vectors_ = no_rows if X is None else X
        self.n_support_ = np.bincount(codes, minlength=self.classes_.size).astype(np.int32)
        bias = np.array([subset.expansion.bias() for subset in subsets])
        self.intercept_ = -bias if self.classes_.size == 2 else bias
        self.n_iter_ = np.array([subset.expansion.steps for subset in subsets], dtype=np.int64)
        self.n_kernel_evals_ = sum(subset.n_kernel_evals for subset in subsets)
        self.objective_ = float(sum(subset.expansion.objective for subset in subsets))
        gaps = np.array([subset.gap for subset in subsets])
        self.gap_ = self.duality_gap_ = float(gaps.max())
        self.converged_ = False
        status = most_severe([subset.status for subset in subsets])
        self.fit_status_ = ENDED_AS_PLANNED if status == CONVERGED else status
        kept = [subset.numbers for subset in subsets if subset.numbers is not None]
        n = np.unique(np.concatenate(kept)).size if kept else 0
        reason = "" if status == CONVERGED else f", {SMO_STOPPING_TEXTS[status]}"
        gap = "unknown" if np.isnan(self.gap_) else format(self.gap_, ".2g")
        self.stopping_ = f"{what}{reason}: gap {gap} on the set of {n} samples only"
        self._warn()


def _codes_of(y, classes):
    """Return the index of the class of each sample.

    Parameters
    ----------
    y : ndarray of shape (n,)
        Labels.
    classes : ndarray of shape (n_classes,)
        Classes, ascending.

    Returns
    -------
    int64 ndarray of shape (n,)
        Indices.

    Raises
    ------
    ValueError
        A label is not one of the classes.
    """
    require_labels_of_one_type(np.concatenate((y.astype(object), classes.astype(object))))
    codes = np.minimum(np.searchsorted(classes, y), classes.size - 1)
    is_new = classes[codes] != y
    if is_new.any():
        raise ValueError(
            f"partial_fit: y contains the class {plain(y[is_new][0])}, expected one of "
            f"{plain(classes.tolist())}. Name all classes in the first call"
        )
    return codes
