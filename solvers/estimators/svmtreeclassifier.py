"""Decision lists of linear machines, with an optional Gaussian machine at their end: the SVM tree."""

import warnings
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import StratifiedKFold
from sklearn.utils import compute_class_weight
from sklearn.utils._param_validation import Interval, Options, StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from solvers.common.blas import one_blas_thread
from solvers.common.clock import clock
from solvers.common.input_checks import checked_table
from solvers.common.resources import Budget
from solvers.common.status import CONVERGED, LIMIT, STALLED, TIMEOUT, most_severe
from solvers.estimators.calibration import codes_of, folds_of_kept
from solvers.estimators.parameters import Samples
from solvers.estimators.prediction import _gives_probabilities
from solvers.estimators.sample_weights import checked_sample_weight
from solvers.estimators.smosvc import SMOSVC
from solvers.multiclass import (
    groups_of,
    random_seed,
    require_labels_of_one_type,
    sort_by_class,
    strategy_of,
    subproblem_seeds,
    votes,
    without,
)
from solvers.tree.decision_list import FEW, Node, grow
from solvers.tree.decision_list import Options as GrowthOptions
from solvers.tree.prune import exit_matrix, kept_nodes
from solvers.tree.scoring import Lists, walk
from solvers.tree.tail import held_out, n_nodes_before, share_by_accuracy

FOLDS = 5
"""Largest number of folds of the calibration."""
SAMPLES_AT_A_TIME = 1 << 16
"""Number of samples that walk the lists together, so that their decisions need little memory."""
REASONS = {
    CONVERGED: "complete: the remaining samples have one label",
    LIMIT: "max_nodes",
    TIMEOUT: "max_seconds",
    STALLED: "rounding ended the growth or a tail",
}
"""Ends of a list in words, by `fit_status_`."""
REMEDIES = {
    LIMIT: "max_nodes was reached: raise max_nodes",
    TIMEOUT: "max_seconds was reached: raise max_seconds",
    STALLED: "rounding hides the differences of samples: scale the features",
}
"""What the user can do about an incomplete list, by `fit_status_`."""


class NodeRecord(NamedTuple):
    """Description of a plane of a fitted model."""

    subproblem: int  # index of its list
    solver: str  # "h": H1; "c": C-SVM; "m": mean of the samples, less the one farthest from it
    hard_class: Any  # label of the class without errors; None for several classes
    exit_class: Any  # label of the samples that leave; None for several classes
    sign: int  # −1 if the direction of the solver was reversed
    is_perpendicular: bool  # whether the plane is perpendicular to that of the solver
    n_cut: int  # training samples that it cut when it was added
    gap: float  # distance between the hard samples and the cut sample next to them


class _Subproblem(NamedTuple):
    """Samples of a list."""

    X: np.ndarray | sparse.csr_matrix
    codes: np.ndarray  # labels from 0
    weights: np.ndarray
    n_labels: int


class _Trained(NamedTuple):
    """Decision list with its tail."""

    nodes: list[Node]
    default: int
    status: int
    notes: tuple[str, ...]
    n_grown: int  # nodes before pruning
    tail: SMOSVC | None
    tail_share: float  # share of the training samples that reach the tail


class SVMTreeClassifier(ClassifierMixin, BaseEstimator):
    """Decision lists of linear machines that make no training error on one class: the SVM tree.

    A node is a plane with samples of one class only on one side, which get its label. The others pass on to
    the next node. Directions are those of H1 (`H1SVC`) and of the C-SVM with nearly hard margins on one
    class. The plane that cuts most samples becomes a node. A prediction takes one product of the sample with
    each plane, in place of thousands of kernel values.

    Parameters
    ----------
    C : float, default=1.0
        Penalty of the slacks of the soft class in the C-SVM. That of the hard class is its product with the
        number of soft samples, from which on the margin is hard.
    gamma : {"scale", "auto"}, float or None, default=None
        Width γ of the Gaussian kernel of the tail, as in `sklearn.svm.SVC`. ``tail="rbf"`` needs it.
    greedy : bool, default=False
        Whether the planes perpendicular to the candidates are candidates of every node. If not, they are
        tried only where no other plane cuts a sample.
    candidates : {"both", "h1", "csvm"}, default="both"
        Machines whose directions are candidates.
    prune : bool, default=True
        Whether nodes are removed, from the last to the first, if that adds no training errors.
    prune_error : float, default=0.0
        Share of the training samples of a list, by weight, that pruning may add to its errors, from 0 to 1.
        One node is always kept.
    tail : {"rbf"} or None, default=None
        Machine that labels the samples which pass the first nodes. "rbf": `SMOSVC` with the loss "l1" and the
        Gaussian kernel, trained on all samples of the list.
    tail_share : {"auto"} or float, default="auto"
        Largest share of the training samples that reach the tail, from 0 to 1. 1 leaves no node. 0 keeps all
        nodes; the samples that no node cuts still reach the tail. "auto": the list is cut
        where the accuracy on a quarter of the samples that is held out is within 0.002 of the best, and the
        share that reaches the tail there is used for the list of all samples.
    tail_C : float, default=1.0
        Penalty of the slacks of the tail.
    multiclass : {"pairwise", "one_vs_rest", "list"}, default="pairwise"
        A list for every pair of classes, which vote; a list for each class against all others; or one list,
        in which a node cuts samples of one class and makes no error on all others.
    min_cut : int, default=1
        Smallest number of training samples that a node cuts. The growth ends at a smaller one, and the
        remaining samples get the label of their majority. `fit_status_` is 0 then, because the user asked
        for it.
    max_nodes : int, default=-1
        Limit of the nodes of a list; −1 for no limit.
    max_seconds : float or None, default=None
        Limit of the wall time of `fit`, in seconds; None for no limit.
    class_weight : dict, "balanced" or None, default=None
        Weight of the samples of each class, multiplied by `sample_weight` if given. "balanced" is
        n_samples / (n_classes · n_t), as in `sklearn.svm.SVC`.
    probability : bool, default=False
        Provide `predict_proba` and `predict_log_proba`, by scikit-learn's
        ``CalibratedClassifierCV(self, method="sigmoid", ensemble=False)``. This takes five more trainings.
    random_state : int, RandomState or None, default=None
        Source of the samples that are held out for ``tail_share="auto"``, and of the folds for `probability`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels, ascending.
    n_features_in_ : int
        Number of features of the training samples.
    n_nodes_ : int
        Number of nodes of all lists.
    mean_depth_ : float
        Mean number of nodes that a training sample passes in a list, where the tail counts as one.
    n_support_ : ndarray of shape (n_classes,), int32
        Number of nodes by the label of the samples that leave, plus the support vectors of the tails by their
        class. Nodes that cut the rest count for the class of their list.
    tail_share_ : ndarray of shape (n_subproblems,)
        Share of the training samples of each list that reach its tail; 0 without a tail.
    nodes_ : list of NodeRecord
        Description of each node: its list, solver, hard class, sign, the samples that it cut.
    n_iter_ : ndarray of shape (n_subproblems,)
        Number of nodes of each list before pruning.
    n_model_values_ : int
        Number of floats that a prediction may read: planes, thresholds, and the support vectors and
        coefficients of the tails.
    class_weight_ : ndarray of shape (n_classes,)
        Weight of each class, in the order of `classes_`.
    converged_ : bool
        Whether `fit_status_` is 0.
    fit_status_ : int
        0: all lists are complete, or ended by `min_cut`; 1: `max_nodes`; 2: `max_seconds`; 4: rounding hides
        the differences of samples. A list that is not complete has the label of the majority of the remaining
        samples as its default. The most severe of the lists.
    stopping_ : str
        `fit_status_` in words.

    Raises
    ------
    ValueError
        By `fit`: a parameter, a sample, a label or a weight is not valid.
    MemoryError
        By `fit`: the training would not fit into memory.

    Notes
    -----
    With ``min_cut=1`` and ``prune_error=0``, a complete list without a tail makes no training error, unless
    equal samples have different labels: these have the label of their majority. With more features than
    samples, a list usually has one node.

    References
    ----------
    K. Zapién, J. Fehr and H. Burkhardt (2007), Fast support vector machine classification of very large
    datasets, technical report 2/07, University of Freiburg. The order of equal cuts by their gaps, the last
    resort that always cuts, the share of the tail and ``multiclass="list"`` are not in the paper.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from solvers import SVMTreeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SVMTreeClassifier().fit(X, y)
    >>> model.predict(X[::50])
    array([0, 1, 2])
    """

    has_no_side_effects = True

    _parameter_constraints: ClassVar[dict] = {
        "C": [Interval(Real, 0, None, closed="neither")],
        "gamma": [StrOptions({"scale", "auto"}), Interval(Real, 0, None, closed="neither"), None],
        "greedy": ["boolean"],
        "candidates": [StrOptions({"both", "h1", "csvm"})],
        "prune": ["boolean"],
        "prune_error": [Interval(Real, 0, 1, closed="both")],
        "tail": [StrOptions({"rbf"}), None],
        "tail_share": [StrOptions({"auto"}), Interval(Real, 0, 1, closed="both")],
        "tail_C": [Interval(Real, 0, None, closed="neither")],
        "multiclass": [StrOptions({"pairwise", "one_vs_rest", "list"})],
        "min_cut": [Interval(Integral, 1, None, closed="left")],
        "max_nodes": [Interval(Integral, 1, None, closed="left"), Options(Integral, {-1})],
        "max_seconds": [Interval(Real, 0, None, closed="neither"), None],
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "probability": ["boolean"],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        C=1.0,
        *,
        gamma=None,
        greedy=False,
        candidates="both",
        prune=True,
        prune_error=0.0,
        tail=None,
        tail_share="auto",
        tail_C=1.0,
        multiclass="pairwise",
        min_cut=1,
        max_nodes=-1,
        max_seconds=None,
        class_weight=None,
        probability=False,
        random_state=None,
    ):
        self.C = C
        self.gamma = gamma
        self.greedy = greedy
        self.candidates = candidates
        self.prune = prune
        self.prune_error = prune_error
        self.tail = tail
        self.tail_share = tail_share
        self.tail_C = tail_C
        self.multiclass = multiclass
        self.min_cut = min_cut
        self.max_nodes = max_nodes
        self.max_seconds = max_seconds
        self.class_weight = class_weight
        self.probability = probability
        self.random_state = random_state

    def fit(self, X: Samples, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Train on samples X with labels y.

        Parameters
        ----------
        X : {array-like, CSR} of shape (n_samples, n_features)
            Training samples.
        y : array-like of shape (n_samples,)
            Class labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples, nonnegative. A sample of weight 2 counts as two. Samples of weight 0 are
            left out.

        Returns
        -------
        self
            The fitted estimator.
        """
        started = clock()
        model = object.__new__(type(self))  # a fit that fails leaves the estimator unchanged
        model.__dict__.update(self.__dict__)
        model._validate_params()
        if model.tail is not None and model.gamma is None:
            raise ValueError(
                "tail='rbf': expected gamma as a number, 'scale' or 'auto', found None. Set the width gamma "
                "of the Gaussian kernel, or tail=None"
            )
        if model.probability:
            model._fit_with_probabilities(X, y, sample_weight)
        else:
            with one_blas_thread():
                model._fit(X, y, sample_weight, started)
            if not model.converged_:
                warnings.warn(
                    f"SVMTreeClassifier stopped before its lists were complete: "
                    f"{REMEDIES[model.fit_status_]} (stopping_: {model.stopping_})",
                    ConvergenceWarning,
                    stacklevel=2,
                )
        self.__dict__ = model.__dict__
        return self

    def _fit_with_probabilities(self, X, y, sample_weight):
        """Train on all samples and once more for each fold of the calibration.

        Parameters
        ----------
        X : {array-like, CSR}
            Training samples.
        y : array-like of shape (n_samples,)
            Class labels.
        sample_weight : array-like of shape (n_samples,) or None
            Weights of the samples; None means 1.
        """
        require_labels_of_one_type(y)
        X, y = checked_table(self, X, False, y=y)
        classes, _, _ = sort_by_class(y)
        kept = checked_sample_weight(sample_weight, y.size) > 0.0
        fewest = int(np.unique(y[kept], return_counts=True)[1].min(initial=FOLDS))
        if fewest < 2:
            raise ValueError(
                "probability=True needs at least 2 of every class, because it holds samples out; one class "
                "has a single sample: add samples to it, or set probability=False"
            )
        seed = random_seed(self.random_state) % 2**32
        n_folds = min(FOLDS, fewest)
        folds: Any = StratifiedKFold(n_folds, shuffle=True, random_state=seed)
        if kept.any() and not kept.all():
            folds = folds_of_kept(folds, y, kept)
        plain = clone(self).set_params(probability=False, random_state=seed)
        if self.max_seconds is not None:
            plain.set_params(max_seconds=self.max_seconds / (n_folds + 1))
        if has_weights := isinstance(self.class_weight, dict):
            weights = compute_class_weight(self.class_weight, classes=classes, y=y)
            y = codes_of(plain, weights, y, classes)
        calibrated = CalibratedClassifierCV(plain, method="sigmoid", cv=folds, ensemble=False)
        calibrated.fit(X, y, sample_weight)
        trained = calibrated.calibrated_classifiers_[0].estimator
        parameters = trained.get_params(deep=False)
        self.__dict__.update({k: value for k, value in vars(trained).items() if k not in parameters})
        self._calibrated = calibrated
        if has_weights:
            labels = dict(enumerate(classes.tolist()))
            self.classes_ = classes
            self.nodes_ = [
                node._replace(hard_class=labels.get(node.hard_class), exit_class=labels.get(node.exit_class))
                for node in trained.nodes_
            ]

    def _fit(self, X, y, sample_weight, started):
        """Grow all lists, and set the fitted attributes.

        Parameters
        ----------
        X : {array-like, CSR}
            Training samples as the user passed them.
        y : array-like of shape (n_samples,)
            Class labels.
        sample_weight : array-like of shape (n_samples,) or None
            Weights of the samples; None means 1.
        started : float
            Time on `solvers.common.clock.clock` from which `max_seconds` counts.
        """
        require_labels_of_one_type(y)
        X, y = checked_table(self, X, False, y=y)
        self.classes_, rows, class_start = sort_by_class(y)
        self._trained_multiclass = self.multiclass
        self.class_weight_ = compute_class_weight(self.class_weight, classes=self.classes_, y=y)
        codes = np.searchsorted(self.classes_, y)
        weights = checked_sample_weight(sample_weight, y.size) * self.class_weight_[codes]
        if not (np.isfinite(weights).all() and (weights >= 0.0).all()):
            raise ValueError(
                "class_weight: expected numbers of at least 0 whose products with sample_weight are finite, "
                f"found {self.class_weight_.tolist()}. Correct the weights"
            )
        rows, _ = without(rows, class_start, weights == 0.0, self.classes_)
        rows = np.sort(rows)
        if rows.size < y.size:
            X, codes, weights = X[rows], codes[rows], weights[rows]
        if sparse.issparse(X):
            X = X.copy()
            X.sum_duplicates()
            X.eliminate_zeros()
        n_groups = 1 if self._is_one_list() else len(self._groups())
        budget = Budget(-1, self.max_seconds, n_groups, started)
        seeds = [0] * n_groups
        if self.tail is not None and self.tail_share == "auto":
            seeds = subproblem_seeds(random_seed(self.random_state), n_groups).tolist()
        trained = []
        for k, seed in enumerate(seeds):
            trained.append(self._train(self._subproblem(X, codes, weights, k), seed, budget.share()[1]))
            budget.subtract(0)
        self._publish(X, codes, weights, trained)

    def _is_one_list(self):
        """Return whether there is one list for more than two classes.

        Returns
        -------
        bool
            False for two classes, which are one pair.
        """
        return self._trained_multiclass == "list" and self.classes_.size > 2

    def _groups(self):
        """Return the classes of each subproblem, the class of label 0 first.

        Returns
        -------
        int64 ndarray of shape (n_subproblems, classes of a subproblem)
            Indices of classes.
        """
        strategy = strategy_of(self.multiclass, self.classes_.size)
        return groups_of(self.classes_.size, strategy)

    def _subproblem(self, X, codes, weights, k):
        """Return the samples of a list.

        Parameters
        ----------
        X : {ndarray, CSR} of shape (n_samples, n_features)
            Samples with weight.
        codes : int64 ndarray of shape (n_samples,)
            Indices of their classes.
        weights : ndarray of shape (n_samples,)
            Weights, positive.
        k : int
            Index of the list.

        Returns
        -------
        _Subproblem
            Samples in the order of X, with the label 0 for the first class of the group and 1 for the others.
        """
        if self._is_one_list():
            return _Subproblem(X, codes, weights, self.classes_.size)
        group = self._groups()[k]
        if group.size == self.classes_.size:
            return _Subproblem(X, (codes != group[0]).astype(np.int64), weights, 2)
        rows = np.flatnonzero(np.isin(codes, group))
        return _Subproblem(X[rows], (codes[rows] != group[0]).astype(np.int64), weights[rows], 2)

    def _train(self, subproblem, seed, deadline):
        """Grow, prune and complete a list.

        Parameters
        ----------
        subproblem : _Subproblem
            Samples.
        seed : int
            Seed of the samples that are held out.
        deadline : float
            Time on `solvers.common.clock.clock` at which the growth stops.

        Returns
        -------
        _Trained
            List with its tail.
        """
        if self.tail is None:
            return self._grown(subproblem, deadline)
        share = self.tail_share
        if share == "auto":
            now = clock()
            share = self._share_of_tail(subproblem, seed, now + 0.5 * (deadline - now))
        trained = self._grown(subproblem, deadline)
        lists = lists_of([trained], subproblem.X.shape[1])
        exits = walk(subproblem.X, lists).exits[:, 0]
        k = n_nodes_before(exits, subproblem.weights, len(trained.nodes), float(share))
        tail = self._fitted_tail(subproblem, deadline)
        reaching = float(subproblem.weights[exits >= k].sum() / subproblem.weights.sum())
        return trained._replace(nodes=trained.nodes[:k], tail=tail, tail_share=reaching)

    def _grown(self, subproblem, deadline):
        """Grow and prune a list.

        Parameters
        ----------
        subproblem : _Subproblem
            Samples.
        deadline : float
            Time on `solvers.common.clock.clock` at which the growth stops.

        Returns
        -------
        _Trained
            List without a tail.
        """
        X, codes, weights, n_labels = subproblem
        options = GrowthOptions(
            *(float(self.C), self.candidates, bool(self.greedy), int(self.min_cut)),
            *(int(self.max_nodes), deadline),
        )
        grown = grow(X, codes, weights, n_labels, options)
        nodes = grown.nodes
        if self.prune and len(nodes) > 1:
            lists = lists_of([_Trained(nodes, grown.default, 0, (), 0, None, 0.0)], X.shape[1])
            leaves = exit_matrix(X, lists.directions, lists.thresholds)
            allowed = float(self.prune_error) * float(weights.sum())
            kept = kept_nodes(leaves, lists.labels, grown.default, codes, weights, allowed)
            nodes = [node for node, is_kept in zip(nodes, kept, strict=True) if is_kept]
        return _Trained(nodes, grown.default, grown.status, grown.notes, len(grown.nodes), None, 0.0)

    def _fitted_tail(self, subproblem, deadline):
        """Train the tail on all samples of a list.

        Parameters
        ----------
        subproblem : _Subproblem
            Samples.
        deadline : float
            Time on `solvers.common.clock.clock` at which the training stops.

        Returns
        -------
        SMOSVC
            Fitted machine, whose classes are the labels of the list.
        """
        seconds = None if deadline == np.inf else max(deadline - clock(), 1e-3)
        tail = SMOSVC(float(self.tail_C), loss="l1", gamma=self.gamma, max_seconds=seconds)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # `fit_status_` says it
            return tail.fit(subproblem.X, subproblem.codes, subproblem.weights)

    def _share_of_tail(self, subproblem, seed, deadline):
        """Choose the share of samples that reach the tail by samples that are held out.

        Parameters
        ----------
        subproblem : _Subproblem
            Samples.
        seed : int
            Seed of the choice of samples.
        deadline : float
            Time on `solvers.common.clock.clock` at which the trainings stop.

        Returns
        -------
        float
            Share from 0 to 1; 1 if there are too few samples to hold any out.
        """
        X, codes, weights, n_labels = subproblem
        is_held = held_out(codes, np.random.default_rng(seed))
        if not is_held.any():
            return 1.0
        rows, others = np.flatnonzero(~is_held), np.flatnonzero(is_held)
        part = _Subproblem(X[rows], codes[rows], weights[rows], n_labels)
        trained, tail = self._grown(part, deadline), self._fitted_tail(part, deadline)
        test = X[others]
        walks = walk(test, lists_of([trained], X.shape[1]))
        list_is_right = walks.labels[:, 0] == codes[others]
        tail_is_right = tail.predict(test) == codes[others]
        return share_by_accuracy(
            walks.exits[:, 0], list_is_right, tail_is_right, weights[others], len(trained.nodes)
        )

    def _publish(self, X, codes, weights, trained):
        """Set the fitted attributes.

        Parameters
        ----------
        X : {ndarray, CSR} of shape (n_samples, n_features)
            Samples with weight.
        codes : int64 ndarray of shape (n_samples,)
            Indices of their classes.
        weights : ndarray of shape (n_samples,)
            Weights, positive.
        trained : list of _Trained
            Lists.
        """
        self._calibrated = None
        self._lists = lists_of(trained, X.shape[1])
        self._tails = [each.tail for each in trained]
        self.nodes_ = [record for k, each in enumerate(trained) for record in self._records(k, each.nodes)]
        self.n_nodes_ = len(self.nodes_)
        self.tail_share_ = np.array([each.tail_share for each in trained])
        self.n_iter_ = np.array([each.n_grown for each in trained], dtype=np.int64)
        self.mean_depth_ = self._mean_depth(X, weights)
        self.n_support_ = self._counts(codes, trained)
        self.n_model_values_ = self._lists.directions.size + self._lists.thresholds.size
        for tail in self._tails:
            if tail is not None:
                vectors = tail.support_vectors_
                n_values = vectors.nnz if sparse.issparse(vectors) else vectors.size
                self.n_model_values_ += n_values + tail.dual_coef_.size + tail.intercept_.size
        of_tails = [tail.fit_status_ for tail in self._tails if tail is not None]
        self.fit_status_ = most_severe([*(each.status for each in trained), *of_tails])
        self.converged_ = self.fit_status_ == CONVERGED
        self.stopping_ = _stopping_of(trained, self.fit_status_)

    def _records(self, k, nodes):
        """Describe the nodes of a list.

        Parameters
        ----------
        k : int
            Index of the list.
        nodes : list of Node
            Nodes.

        Yields
        ------
        NodeRecord
            Description.
        """
        labels = [*self.classes_.tolist()]
        if not self._is_one_list():
            group = self._groups()[k]
            labels = [labels[group[0]], labels[group[1]] if group.size == 2 else None]
        for node in nodes:
            hard = None if self._is_one_list() else labels[1 - node.label]
            yield NodeRecord(
                *(k, node.solver, hard, labels[node.label], node.sign, node.is_perpendicular),
                *(node.n_cut, node.gap),
            )

    def _mean_depth(self, X, weights):
        """Return the mean number of nodes that a sample passes in a list.

        Parameters
        ----------
        X : {ndarray, CSR} of shape (n_samples, n_features)
            Samples.
        weights : ndarray of shape (n_samples,)
            Weights, positive.

        Returns
        -------
        float
            Mean over samples and lists.
        """
        n_nodes = np.diff(self._lists.start)
        has_tail = np.array([tail is not None for tail in self._tails])
        total = 0.0
        for first in range(0, X.shape[0], SAMPLES_AT_A_TIME):
            part = slice(first, first + SAMPLES_AT_A_TIME)
            exits = walk(X[part], self._lists).exits
            depth = np.minimum(exits + 1, n_nodes) + (has_tail & (exits == n_nodes))
            total += float(weights[part] @ depth.mean(axis=1))
        return total / float(weights.sum())

    def _counts(self, codes, trained):
        """Return the nodes and support vectors of each class.

        Parameters
        ----------
        codes : int64 ndarray of shape (n_samples,)
            Indices of the classes of the samples.
        trained : list of _Trained
            Lists.

        Returns
        -------
        int32 ndarray of shape (n_classes,)
            Counts.
        """
        counts = np.zeros(self.classes_.size, dtype=np.int32)
        for k, each in enumerate(trained):
            classes, rows = np.arange(self.classes_.size), np.arange(codes.size)
            if not self._is_one_list():
                group = self._groups()[k]
                classes = np.array([group[0], group[1] if group.size == 2 else group[0]])
                rows = np.flatnonzero(np.isin(codes, group))
            for node in each.nodes:
                counts[classes[node.label]] += 1
            if each.tail is not None:
                counts += np.bincount(codes[rows[each.tail.support_]], minlength=counts.size).astype(np.int32)
        return counts

    @property
    def planes_(self) -> tuple[np.ndarray, np.ndarray]:
        """Unit normals w and thresholds r of all nodes, one list after the other, for drawings.

        A node labels the samples with w·x < r.

        Returns
        -------
        directions : ndarray of shape (n_nodes, n_features)
            Normals.
        thresholds : ndarray of shape (n_nodes,)
            Thresholds.
        """
        if not hasattr(self, "_lists"):
            raise AttributeError(f"{type(self).__name__} has no planes_ before fit")
        return self._lists.directions.copy(), self._lists.thresholds.copy()

    def decision_function(self, X: Samples) -> np.ndarray:
        """Evaluate the signed distances to the planes where the samples leave their lists.

        Parameters
        ----------
        X : {array-like, CSR} of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            Distance to the threshold of the node where a sample leaves; that of the last node if it leaves
            nowhere, and 1 for a list without nodes; the decision of the tail if it reaches that. Two classes:
            positive for `classes_[1]`. Pairwise: votes, with ties broken by the sum of decisions. One against
            the rest: the decision of each class. One list: the distance for the label, and its negative for
            all others.
        """
        check_is_fitted(self)
        X = checked_table(self, X, False, reset=False)
        n, step = X.shape[0], SAMPLES_AT_A_TIME
        if n <= step:
            return self._scores(X)
        return np.concatenate([self._scores(X[first : first + step]) for first in range(0, n, step)])

    def _scores(self, X):
        """Evaluate the scores of a block of samples.

        Parameters
        ----------
        X : {ndarray, CSR} of shape (m, n_features)
            Validated samples.

        Returns
        -------
        ndarray of shape (m,) or (m, n_classes)
            Scores, as `decision_function` returns them.
        """
        walks, n_classes = walk(X, self._lists), self.classes_.size
        if self._is_one_list():
            return self._scores_of_list(X, walks)
        decisions = np.where(walks.labels == 0, walks.distances, -walks.distances)
        for k, tail in enumerate(self._tails):
            if tail is not None:
                rows = np.flatnonzero(walks.exits[:, k] == self._lists.start[k + 1] - self._lists.start[k])
                if rows.size:
                    decisions[rows, k] = -tail.decision_function(X[rows])
        if n_classes == 2:
            return -decisions[:, 0]
        return decisions if self._trained_multiclass == "one_vs_rest" else votes(decisions, n_classes)

    def _scores_of_list(self, X, walks):
        """Evaluate the scores of a list with more than two labels.

        Parameters
        ----------
        X : {ndarray, CSR} of shape (m, n_features)
            Validated samples.
        walks : Walks
            Walks of the samples.

        Returns
        -------
        ndarray of shape (m, n_classes)
            Scores.
        """
        scores = np.repeat(-walks.distances, self.classes_.size, axis=1)
        np.put_along_axis(scores, walks.labels, walks.distances, axis=1)
        tail = self._tails[0]
        if tail is not None:
            rows = np.flatnonzero(walks.exits[:, 0] == self._lists.thresholds.size)
            if rows.size:
                scores[rows] = tail.decision_function(X[rows])
        return scores

    def predict(self, X: Samples) -> np.ndarray:
        """Predict the label of every sample.

        Parameters
        ----------
        X : {array-like, CSR} of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels from `classes_`.
        """
        scores = self.decision_function(X)
        return self.classes_[(scores > 0.0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)]

    @available_if(_gives_probabilities)
    def predict_proba(self, X: Samples) -> np.ndarray:
        """Estimate the probability of every class.

        Parameters
        ----------
        X : {array-like, CSR} of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probabilities, in the order of `classes_`.
        """
        check_is_fitted(self)
        if self._calibrated is None:
            raise NotFittedError(
                "predict_proba is not available when fitted with probability=False. Call fit again"
            )
        return self._calibrated.predict_proba(checked_table(self, X, False, reset=False))

    @available_if(_gives_probabilities)
    def predict_log_proba(self, X: Samples) -> np.ndarray:
        """Estimate the logarithm of the probability of every class.

        Parameters
        ----------
        X : {array-like, CSR} of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Logarithms of the probabilities, in the order of `classes_`.
        """
        return np.log(self.predict_proba(X))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def lists_of(trained, n_features):
    """Return the planes of all lists as arrays.

    Parameters
    ----------
    trained : list of _Trained
        Lists.
    n_features : int
        Number of features.

    Returns
    -------
    Lists
        Arrays.
    """
    nodes = [node for each in trained for node in each.nodes]
    ends = np.cumsum([len(each.nodes) for each in trained])
    return Lists(
        np.array([node.direction for node in nodes]).reshape(len(nodes), n_features),
        np.array([node.threshold for node in nodes], dtype=np.float64),
        np.array([node.label for node in nodes], dtype=np.int64),
        np.concatenate(([0], ends)).astype(np.int64),
        np.array([each.default for each in trained], dtype=np.int64),
    )


def _stopping_of(trained, status):
    """Describe how the growth ended.

    Parameters
    ----------
    trained : list of _Trained
        Lists.
    status : int
        The most severe of their statuses.

    Returns
    -------
    str
        Text for `stopping_`.
    """
    n_of_status = sum(each.status == status for each in trained)
    notes = dict.fromkeys(note for each in trained for note in each.notes)
    text = "complete" if status == CONVERGED and FEW in notes else REASONS[status]
    if status != CONVERGED and len(trained) > 1:
        text += f"; {n_of_status} of {len(trained)} lists"
    if status == CONVERGED and all(each.n_grown == 1 and not each.notes for each in trained):
        text += "; one plane separates all training samples of a list"
    return "; ".join([text, *notes])
