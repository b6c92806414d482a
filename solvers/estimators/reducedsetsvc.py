"""Support vector machines whose decisions are replaced by sums on fewer vectors, with a certified error."""

from numbers import Integral, Real
from typing import Annotated, Any

import numpy as np
from scipy import sparse
from sklearn.utils import _safe_indexing
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from solvers.common.blas import one_blas_thread
from solvers.common.certificate import UNIT_ROUNDOFF
from solvers.common.clock import clock
from solvers.common.input_checks import checked_table
from solvers.estimators.base import ClassWeight, KernelSVC
from solvers.estimators.kept_labels import certain_labels, fewest, held_out_rows
from solvers.estimators.machine_sums import machine_of
from solvers.estimators.parameters import Positive, Samples, Switch, parameter, with_parameters
from solvers.estimators.platt import SigmoidCalibration
from solvers.estimators.smosvc import SMOSVC
from solvers.kernels.functions import GRAM, RBF
from solvers.multiclass import random_seed, votes
from solvers.reduction.reduced_set.bound import bounds_at, error_bound
from solvers.reduction.reduced_set.choice import reduce_expansion, require_usable
from solvers.reduction.reduced_set.decisions import decisions_at
from solvers.reduction.reduced_set.expansion import dense, sums_at_vectors, weights_of
from solvers.reduction.reduced_set.gaussian_values import gaussian_values, gaussian_vectors

HELD_OUT = 0.25
"""Share of the samples of each class that ``n_vectors="auto"`` holds out."""

TAKEN_OVER = (
    *("C", "loss", "kernel", "gamma", "degree", "coef0", "gram_shift", "gram_error", "cache_size"),
    *("probability", "decision_function_shape", "break_ties"),
)
"""Parameters of a model that `reduce` takes over, as far as the model has them."""


@with_parameters
class ReducedSetSVC(KernelSVC):  # numpydoc ignore=PR02
    """Support vector machine with few vectors, for fast predictions.

    `SMOSVC` trains the whole machine. Its decisions f_p = Σ a_ip k(x_i, x) + c_p are then replaced by
    f'_p = Σ b_jp k(z_j, x) + c_p on `n_vectors` vectors z_j, which all subproblems share. The coefficients
    are the best ones in the space of the kernel, or for the decisions at the training samples. A certificate
    bounds the change of every decision.

    Parameters
    ----------
    C : float
        Penalty of the slacks (l1) or of their squares (l2), as in `SMOSVC`.
    loss : {"l1", "l2"}
        Loss of the whole machine, as in `SMOSVC`.
    tol : float
        Largest violation and gap of the whole machine, as in `SMOSVC`.
    multiclass : {"pairwise", "one_vs_rest"}
        One subproblem for every pair of classes, or for every class against all others.
    shrinking : bool
        Leave out samples whose weights are likely to stay at a bound.
    selection : {"second", "first"}
        Weight that shrinks in a step of the training, as in `SMOSVC`.
    working_set : int
        Number of weights over which a step of the training minimises, even, at least 2, as in `SMOSVC`.
    warm_start : bool
        Start the training on the same samples and labels from the weights of the last one.
    gram_shift : float
        Number that was subtracted from all values of a precomputed kernel, as in `SMOSVC`.
    n_vectors : float, int or "auto"
        Number of vectors if it is an integer; share of the support vectors if it is a float, rounded to at
        least one vector. The whole machine remains if the number is at least that of its support vectors.
        "auto": the share is found with a machine that is trained without a quarter of the samples of each
        class. It is the smallest one with which at most a share `tolerance` of these samples changes its
        label. Then the machine of all samples is reduced to this share.
    method : {"greedy", "backward", "l1", "fixed_point", "merge", "exact"}
        Method that finds the vectors. Chosen support vectors: added one by one ("greedy"), removed one by one
        ("backward") or kept by an l1 penalty ("l1"). New vectors, for the Gaussian kernel: at fixed points of
        the residual ("fixed_point"), or by merging pairs of one class ("merge"), which leaves at least one
        vector of each class. "exact" changes no decision beyond rounding and ignores `n_vectors`: one vector
        for each subproblem of the linear kernel, eigenvectors for poly of degree 2 with ``coef0=0``, and
        independent support vectors for other kernels.
    refine : bool
        Move all vectors together after the method, by L-BFGS. Not used by "exact", and not available for
        precomputed and callable kernels.
    max_refine : int
        Largest number of iterations of L-BFGS.
    fitted_to : {"norm", "decisions"}
        What the coefficients are fitted to, and the vectors if they are moved. "norm": the sums in the space
        of the kernel, whose distance the certificate bounds. "decisions": then also the decisions at the
        training samples, by least squares, each subproblem on its own classes. Few vectors keep more labels
        so, but fewer of these are certified. At most 10,000 samples are drawn, besides the support vectors.
        Not used by "exact", and not available for precomputed and callable kernels.
    tolerance : float
        Share of the held-out samples whose label may change, for ``n_vectors="auto"``.
    max_seconds : float or None
        Limit of the wall time of the training, in seconds; None for no limit. The reduction is not limited.

    Attributes
    ----------
    n_vectors_ : int
        Number of vectors.
    n_whole_ : int
        Number of support vectors of the whole machine.
    error_bound_ : ndarray of shape (n_subproblems,)
        Upper bounds on ‖Ψ_p − Ψ'_p‖ in the space of the kernel. A decision changes by at most this times
        √k(x, x), in exact arithmetic.
    residual_ : float
        Mean over the subproblems of the squared bound, relative to ‖Ψ_p‖².
    certified_ : float
        Share of the training samples whose label cannot have changed; NaN for precomputed and callable
        kernels.
    reduction_ : str
        Result of the reduction in words.
    reduction_seconds_, certificate_seconds_ : float
        Wall times of the reduction and of the bounds, in seconds.
    support_ : int ndarray
        Training rows of the vectors if they are support vectors; empty if they are new.
    support_vectors_ : {ndarray, CSR} of shape (n_vectors_, n_features)
        Vectors; empty for a precomputed kernel.
    n_support_ : ndarray of shape (n_classes,), int32
        Number of vectors by the class of the support vector that each one was made from. The vectors of
        "exact" that belong to no class count for the first one.
    dual_coef_ : ndarray of shape (n_subproblems, n_vectors_)
        Coefficients b_jp of every vector in every subproblem.
    objective_ : float
        Dual objective of the whole machine, as in `SMOSVC`.
    gap_, duality_gap_ : float
        Gap of the whole machine, as in `SMOSVC`.

    Raises
    ------
    ValueError
        By `fit`: a parameter, a sample or a label is not valid, or the method does not fit to the kernel.
    MemoryError
        By `fit`: the training or the reduction would not fit into memory.

    References
    ----------
    C. J. C. Burges (1996), Simplified support vector decision rules, ICML: reduced sets, and the refinement.
    B. Schölkopf et al. (1999), Input space versus feature space in kernel-based methods, IEEE Transactions on
    Neural Networks 10: "backward", "l1" and "fixed_point". D. Nguyen and T. Ho (2005), An efficient method
    for simplifying support vector machines, ICML: "merge". T. Downs, K. E. Gates and A. Masters (2001), Exact
    simplification of support vector solutions, Journal of Machine Learning Research 2: "exact". The bounds on
    the decisions are not in these papers.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from solvers import ReducedSetSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> model = ReducedSetSVC(C=4.0, gamma=0.5, n_vectors=0.3).fit(X, y)
    >>> model.predict(X[::50])
    array([0, 1, 2])
    >>> model.n_vectors_ < 0.5 * model.n_whole_
    True
    """

    has_no_side_effects = True

    n_vectors: Annotated[
        float | int | str,
        Interval(Integral, 1, None, closed="left"),
        Interval(Real, 0, 1, closed="right"),
        StrOptions({"auto"}),
    ] = 0.1
    method: Annotated[str, StrOptions({"greedy", "backward", "l1", "fixed_point", "merge", "exact"})] = (
        "greedy"
    )
    refine: Switch = True
    max_refine: Annotated[int, Interval(Integral, 0, None, closed="left")] = 100
    fitted_to: Annotated[str, StrOptions({"norm", "decisions"})] = "norm"
    tolerance: Annotated[float, Interval(Real, 0, 1, closed="left")] = 1e-3

    # Parameters of the machine before its reduction, with the defaults of `SMOSVC`.
    C: Annotated[float, Interval(Real, 0, None, closed="right")] = parameter(default=1.0, kw_only=False)
    multiclass: Annotated[str, StrOptions({"pairwise", "one_vs_rest"})] = "pairwise"
    loss: Annotated[str, StrOptions({"l1", "l2"})] = "l1"
    class_weight: ClassWeight = None
    tol: Positive = 1e-3
    selection: Annotated[str, StrOptions({"second", "first"})] = "second"
    shrinking: Switch = True
    working_set: Annotated[int, Interval(Integral, 2, None, closed="left")] = 2
    gram_shift: Annotated[float, Interval(Real, 0, None, closed="left")] = 0.0
    warm_start: Switch = False

    bias = "none"  # no constant is added to the kernel: the bias of this problem is free

    def predict(self, X: Samples, return_certified: bool = False) -> Any:
        """Predict the label of every sample, and say which labels the reduction cannot have changed.

        Parameters
        ----------
        X : {array-like, CSR} of shape (n_samples, n_features), or (n_samples, n_train) if precomputed
            Samples, or their kernel values with all training samples.
        return_certified : bool, default=False
            Whether to return the certificate, too.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Labels from `classes_`.
        is_certified : bool ndarray of shape (n_samples,)
            Whether the whole machine has the same label for sure. Only with `return_certified`.

        Raises
        ------
        ValueError
            `return_certified` with a precomputed or callable kernel, whose k(x, x) is not known.
        """
        labels = super().predict(X)
        if not return_certified:
            return labels
        if self._kernel.kind == GRAM:
            raise ValueError(
                "return_certified: expected a named kernel, whose k(x, x) is known, found a precomputed or "
                "callable one. Use kernel='rbf', or predict without return_certified"
            )
        return labels, self._is_certified(X)

    def _is_certified(self, X):
        """Return whether the reduction cannot have changed the label of each sample.

        Parameters
        ----------
        X : {array-like, CSR} of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        bool ndarray of shape (n_samples,)
            Whether each label is certain.
        """
        X = self._check_samples(X)
        certain = []
        for block in self._decision_blocks(X):
            decisions = self._subproblems_on(self._kernel_to_support(X[block]), self.intercept_)
            bounds = bounds_at(self._kernel.prepare(X[block]), self._kernel, self._bound)
            bounds += 4.0 * UNIT_ROUNDOFF * (np.abs(decisions) + np.abs(self.intercept_))
            certain.append(
                certain_labels(decisions, bounds, self.classes_.size, self._is_voted, bool(self.break_ties))
            )
        return np.concatenate(certain)

    def _validate_params(self):
        """Raise if a parameter is not valid, or if parameters do not fit together."""
        super()._validate_params()
        if self.working_set % 2:
            raise ValueError(
                f"working_set={self.working_set}: expected an even number. Set it to {self.working_set + 1}"
            )

    def _trainer(self):
        """Return the estimator that trains the whole machine.

        Returns
        -------
        SMOSVC
            Estimator with the parameters of this one.
        """
        params = {name: getattr(self, name) for name in SMOSVC._get_param_names()}
        return SMOSVC(**params | {"probability": False, "verbose": False})

    def _max_refine(self):
        """Return the largest number of iterations that move the vectors.

        Returns
        -------
        int
            `max_refine`; 0 without `refine`.
        """
        return self.max_refine if self.refine else 0

    def _fit(self, X, y, sample_weight, started):
        """Train the whole machine, and reduce it.

        Parameters
        ----------
        X : {array-like, CSR}
            Training samples.
        y : array-like of shape (n_samples,)
            Class label of each sample.
        sample_weight : array-like of shape (n_samples,) or None
            Factors of C, one for each sample. None means 1.
        started : float
            Time on `solvers.common.clock.clock` from which `max_seconds` counts.
        """
        X, y = self._check_training_samples(X, y)
        trainer = self._trainer()
        if self.warm_start and getattr(self, "_last", None) is not None:
            trainer._last = self._last
        trainer._fit(X, y, sample_weight, started)
        parameters = trainer.get_params(deep=False)
        self.__dict__.update({k: value for k, value in vars(trainer).items() if k not in parameters})
        require_usable(self._kernel, self.method, self._max_refine(), self.fitted_to)
        began = clock()
        share = self._share_of_held_out(X, y, sample_weight) if self._finds_number() else self.n_vectors
        machine = machine_of(trainer, X if self._is_precomputed() else None)
        self._reduce(machine, share, began, self._decisions(machine, X, y))
        self._certify_rows(X)
        if self.verbose:
            name, n_iter = type(self).__name__, self.n_iter_.sum()
            print(f"[{name}] {n_iter} iterations; {self.stopping_}; {self.reduction_}")

    def _finds_number(self):
        """Return whether held-out samples decide on the number of vectors.

        Returns
        -------
        bool
            True for ``n_vectors="auto"``, unless the method finds the number.
        """
        return self.n_vectors == "auto" and self.method != "exact"

    def _share_of_held_out(self, X, y, sample_weight):
        """Return the share of the support vectors that keeps the labels of held-out samples.

        Parameters
        ----------
        X : {ndarray, CSR}
            Validated training samples, or the Gram matrix.
        y : ndarray of shape (n_samples,)
            Label of each sample.
        sample_weight : array-like of shape (n_samples,) or None
            Factors of C.

        Returns
        -------
        float
            Share, in (0, 1].
        """
        n, generator = y.size, np.random.default_rng(random_seed(self.random_state))
        weights = self._check_sample_weight(1.0 if sample_weight is None else sample_weight, n)
        used = np.flatnonzero(weights > 0.0)  # the others have no part in the machine
        out = used[held_out_rows(y[used], HELD_OUT, generator)]
        kept = np.setdiff1d(np.arange(n), out)
        is_gram = self.kernel == "precomputed"
        of_kept = X[np.ix_(kept, kept)] if is_gram else _safe_indexing(X, kept)
        of_out = X[np.ix_(out, kept)] if is_gram else _safe_indexing(X, out)
        trainer = self._trainer()
        trainer._fit(of_kept, y[kept], weights[kept], clock())
        machine = machine_of(trainer, of_kept if is_gram else None)
        if not machine.expansion.size:
            return 1.0
        model = self._copy()
        model.n_features_in_ = trainer.n_features_in_  # a Gram matrix has a column for each sample
        decisions = self._decisions(machine, of_kept, y[kept])
        number = model._fewest_vectors(machine, trainer.predict(of_out), of_out, decisions)
        return number / machine.expansion.size

    def _decisions(self, machine, X, y):
        """Return the decisions that a reduced set is fitted to.

        Parameters
        ----------
        machine : Machine
            Whole machine.
        X : {ndarray, CSR} of shape (n_samples, n_features)
            Validated samples.
        y : ndarray of shape (n_samples,)
            Label of each sample.

        Returns
        -------
        Decisions or None
            Decisions at the samples; None if the reduced set is fitted to the norm, or has no vectors.
        """
        if self.fitted_to == "norm" or self.method == "exact" or not machine.expansion.size:
            return None
        codes = np.searchsorted(machine.classes, y)
        return decisions_at(machine.expansion, dense(machine.kernel.prepare(X)), codes, machine.is_voted)

    def _fewest_vectors(self, machine, labels, held_out, decisions):
        """Return the least number of vectors that keeps the labels of held-out samples.

        Parameters
        ----------
        machine : Machine
            Whole machine.
        labels : ndarray of shape (n,)
            Its labels of the held-out samples.
        held_out : {array-like, CSR}
            Held-out samples.
        decisions : Decisions or None
            Decisions that the reduced sets are fitted to.

        Returns
        -------
        int
            Number of vectors.
        """
        options = self.method, self._max_refine(), decisions

        def keeps_labels(number):
            reduced = reduce_expansion(machine.expansion, number, *options)
            self._publish_reduced(machine, reduced)
            return np.mean(self.predict(held_out) != labels) <= self.tolerance

        return fewest(keeps_labels, machine.expansion.size)

    def _reduce(self, machine, n_vectors, began, decisions):
        """Reduce a machine, and set the fitted attributes of the reduction.

        Parameters
        ----------
        machine : Machine
            Whole machine.
        n_vectors : float or int
            Share or number of the vectors.
        began : float
            Time on `solvers.common.clock.clock` at which the reduction began.
        decisions : Decisions or None
            Decisions that the reduced set is fitted to.
        """
        size = machine.expansion.size
        number = _number_of(n_vectors, size)
        reduced = reduce_expansion(machine.expansion, number, self.method, self._max_refine(), decisions)
        self._publish_reduced(machine, reduced)
        self.n_whole_: int = size
        self.reduction_seconds_: float = clock() - began
        began = clock()
        with one_blas_thread():
            sums = sums_at_vectors(machine.expansion, machine.expansion.coefficients)
            self._bound = error_bound(machine.expansion, self._stored(machine, reduced))
        squares = (machine.expansion.coefficients * sums).sum(axis=0)
        self.error_bound_: np.ndarray = self._bound.norms
        self.residual_: float = float(weights_of(squares) @ self.error_bound_**2)
        self.certified_: float = np.nan
        self.certificate_seconds_: float = clock() - began
        self.reduction_: str = _text_of(self.n_vectors_, size, number, self.method)

    def _stored(self, machine, reduced):
        """Return a reduced set with its vectors as predictions read them, which may be rounded.

        Parameters
        ----------
        machine : Machine
            Whole machine.
        reduced : Reduced
            Reduced set.

        Returns
        -------
        Reduced
            Reduced set whose vectors were stored.
        """
        if reduced.rows is not None:
            return reduced
        vectors = machine.kernel.prepare(self.support_vectors_)
        vectors = vectors.toarray() if sparse.issparse(vectors) else vectors
        return reduced._replace(vectors=vectors, coefficients=np.ascontiguousarray(self.dual_coef_.T))

    def _publish_reduced(self, machine, reduced):
        """Set the attributes that predictions read.

        Parameters
        ----------
        machine : Machine
            Whole machine.
        reduced : Reduced
            Its reduced set.
        """
        order = np.argsort(reduced.labels if reduced.rows is None else reduced.rows, kind="stable")
        kernel, n_classes = machine.kernel, machine.classes.size
        self._kernel, self._gamma, self._callable = kernel, kernel.gamma, machine.function
        self._normalised, self._is_voted = False, machine.is_voted
        self.classes_ = machine.classes
        self.dual_coef_: np.ndarray = np.ascontiguousarray(reduced.coefficients[order].T)
        self.intercept_: np.ndarray = machine.intercept + machine.shift * self.dual_coef_.sum(axis=1)
        self.n_support_: np.ndarray = np.bincount(reduced.labels, minlength=n_classes).astype(np.int32)
        self.n_vectors_: int = order.size
        if reduced.rows is None:
            vectors = reduced.vectors[order]
            vectors = vectors if kernel.center is None else vectors + kernel.center
            self.support_vectors_ = sparse.csr_matrix(vectors) if kernel.takes_sparse else vectors
            self.support_: np.ndarray = np.empty(0, dtype=machine.support.dtype)
        else:
            rows = reduced.rows[order]
            self.support_ = machine.support[rows]
            is_gram = kernel.kind == GRAM and machine.function is None
            self.support_vectors_ = machine.support_vectors[:0] if is_gram else machine.support_vectors[rows]
        is_fast = kernel.kind == RBF and not (kernel.by_differences or kernel.takes_sparse)
        prepared = kernel.prepare(self.support_vectors_) if is_fast else None
        self._gaussian = gaussian_vectors(prepared, kernel.gamma) if is_fast else None

    def _certify_rows(self, X):
        """Set the share of samples whose label cannot have changed.

        Parameters
        ----------
        X : {ndarray, CSR}
            Training samples, or the Gram matrix.
        """
        began = clock()
        if self._kernel.kind != GRAM:
            self.certified_ = float(self._is_certified(X).mean())
        self.certificate_seconds_ += clock() - began

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
        check_is_fitted(self, "classes_")
        X, n_classes = self._check_samples(X), self.classes_.size
        scores = []
        for block in self._decision_blocks(X):
            decisions = self._subproblems_on(self._kernel_to_support(X[block]), self.intercept_)
            is_voted = self._is_voted and rules is not None
            scores.append(votes(decisions, n_classes, **rules) if is_voted else decisions)
        joined = scores[0] if len(scores) == 1 else np.concatenate(scores)
        return joined[:, 0] if n_classes == 2 else joined

    def _kernel_to_support(self, X):
        """Evaluate the kernel between a block of samples and the vectors.

        Parameters
        ----------
        X : {ndarray, CSR} of shape (m, n_features)
            Validated samples, or kernel values.

        Returns
        -------
        ndarray of shape (m, n_vectors_), float64
            Kernel values.
        """
        if self._gaussian is None:
            return super()._kernel_to_support(X)
        return gaussian_values(self._kernel.prepare(X), self._gaussian)

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
        return super()._blocks(n, width + self.support_vectors_.shape[0], stores_pairs)

    def _subproblems_on(self, K, intercept):
        """Evaluate the decisions of all subproblems.

        Parameters
        ----------
        K : ndarray of shape (m, n_vectors_)
            Kernel values to the vectors.
        intercept : ndarray of shape (n_subproblems,)
            Constants of the decisions.

        Returns
        -------
        ndarray of shape (m, n_subproblems)
            Decisions.
        """
        decisions = np.asarray(K @ self.dual_coef_.T)
        decisions += intercept
        return decisions


def reduce(
    model,
    n_vectors=0.1,
    method="greedy",
    *,
    refine=True,
    max_refine=100,
    fitted_to="norm",
    tolerance=1e-3,
    X=None,
    y=None,
    held_out=None,
):
    """Reduce a fitted machine to few vectors.

    Parameters
    ----------
    model : KernelSVC, sklearn.svm.SVC or sklearn.svm.NuSVC
        Fitted machine with a positive semidefinite kernel, of any strategy for several classes. It is not
        changed.
    n_vectors : float, int or "auto", default=0.1
        Share or number of the vectors, as in `ReducedSetSVC`. "auto": the fewest vectors with which at most a
        share `tolerance` of the samples `held_out` changes its label.
    method : str, default="greedy"
        Method that finds the vectors, as in `ReducedSetSVC`.
    refine : bool, default=True
        Move all vectors together after the method.
    max_refine : int, default=100
        Largest number of iterations that move the vectors.
    fitted_to : {"norm", "decisions"}, default="norm"
        What the sums are fitted to, as in `ReducedSetSVC`. "decisions" requires `X`, whose classes are those
        that the model predicts.
    tolerance : float, default=1e-3
        Share of the samples `held_out` whose label may change.
    X : {array-like, CSR}, default=None
        Samples whose labels are certified (`certified_`), such as those of the training, and whose decisions
        ``fitted_to="decisions"`` keeps; for a precomputed kernel the Gram matrix of the training samples,
        which is then required.
    y : array-like of shape (n_samples,), default=None
        Labels of `X`. A model with probabilities is calibrated on them again, by `solvers.estimators.platt`.
    held_out : {array-like, CSR}, default=None
        Samples for ``n_vectors="auto"``, which the model was not trained on. For a precomputed kernel, their
        kernel values with the training samples.

    Returns
    -------
    ReducedSetSVC
        Fitted estimator with the parameters of the model, as far as it has them.

    Raises
    ------
    TypeError
        The model is of another class.
    ValueError
        A parameter is not valid, the method does not fit to the kernel, or samples are missing.
    """
    machine = machine_of(model, X)
    if not machine.expansion.size:
        raise ValueError("reduce: expected a model with support vectors, found none. Set a larger C")
    theirs = model.get_params(deep=False)
    params = {name: theirs[name] for name in TAKEN_OVER if name in theirs}
    params["probability"] = theirs["probability"] is True  # "deprecated" stands for False in `SVC`
    options = {"n_vectors": n_vectors, "method": method, "refine": refine, "max_refine": max_refine}
    options |= {"fitted_to": fitted_to, "tolerance": tolerance}
    multiclass = "pairwise" if machine.is_voted or machine.classes.size == 2 else "one_vs_rest"
    reduced = ReducedSetSVC(**params | options | {"multiclass": multiclass})
    reduced._validate_params()
    reduced._samples, reduced._calibrated, began = None, None, clock()
    for name in ("n_features_in_", "feature_names_in_", "class_weight_"):
        if hasattr(model, name):
            setattr(reduced, name, getattr(model, name))
    require_usable(machine.kernel, method, reduced._max_refine(), fitted_to)
    decisions = None
    if fitted_to == "decisions" and method != "exact":
        if X is None:
            raise ValueError(
                "fitted_to='decisions': expected X, samples whose decisions are kept, found None. Pass the "
                "training samples, or set fitted_to='norm'"
            )
        samples = checked_table(reduced, X, False, reset=False)
        decisions = reduced._decisions(machine, samples, model.predict(X))
    if reduced._finds_number():
        if held_out is None:
            raise ValueError(
                "n_vectors='auto': expected held_out, samples on which labels are compared, found None. Pass "
                "samples that the model was not trained on, or a number of vectors"
            )
        n_vectors = reduced._fewest_vectors(machine, model.predict(held_out), held_out, decisions)
    if reduced.probability and (X is None or y is None):
        raise ValueError(
            "reduce: expected X and y to calibrate probabilities again, which the reduction changes, found "
            f"{'no X' if X is None else 'no y'}. Pass samples with labels, or call "
            "model.set_params(probability=False) first"
        )
    reduced._reduce(machine, n_vectors, began, decisions)
    if X is not None:
        reduced._certify_rows(X)
    if reduced.probability:
        reduced._calibrated = SigmoidCalibration(reduced, X, y)
    return reduced


def _number_of(n_vectors, size):
    """Return the number of vectors.

    Parameters
    ----------
    n_vectors : float, int or "auto"
        Share or number. "auto" stands for all, for a method that finds the number.
    size : int
        Number of support vectors.

    Returns
    -------
    int
        Number, at least 1.
    """
    if isinstance(n_vectors, str):
        return size
    if isinstance(n_vectors, Integral):
        return int(n_vectors)
    return max(1, int(np.floor(n_vectors * size + 0.5)))


def _text_of(found, size, wanted, method):
    """Return the result of a reduction in words.

    Parameters
    ----------
    found, size, wanted : int
        Numbers of vectors: of the reduced set, of the machine, and as asked for.
    method : str
        Method.

    Returns
    -------
    str
        Text for `reduction_`.
    """
    if not size:
        return "the whole machine has no vectors"
    text = f"{found:,} of {size:,} vectors"
    if method == "exact":
        return f"{text}, the same decisions but for rounding"
    if wanted >= size:
        return f"{text}: the whole machine, because {wanted:,} vectors were asked for"
    if found < wanted:
        return f"{text}: the others depend on them, {wanted:,} were asked for"
    if found > wanted:
        return f"{text}: one of each class remains, {wanted:,} were asked for"
    return text
