"""Subproblems of several classes: their classes and labels, votes, seeds, and the layout of coefficients.

The three strategies of the parameter `multiclass` are "pairwise", "one_vs_rest" and "all_at_once". Only this
file and `solvers.gram.subproblems` know which samples a subproblem has and which label each of them has.
"""

from functools import lru_cache
from itertools import combinations, pairwise
from numbers import Integral

import numpy as np
from sklearn.utils import check_random_state

from solvers.common.compile import njit
from solvers.common.plain import plain


def pairs_of(n_classes):
    """Return the pairs (i, j), i < j, of classes in the order of `decision_function_shape="ovo"`.

    Parameters
    ----------
    n_classes : int
        Number of classes, at least 2.

    Returns
    -------
    list of tuple
        Pairs of class indices.
    """
    return list(combinations(range(n_classes), 2))


def index_of_pair(first, second, n_classes):
    """Return the index of a pair of classes in the order of `pairs_of`.

    Parameters
    ----------
    first, second : int or int ndarray
        Class indices, first < second.
    n_classes : int
        Number of classes of the training set.

    Returns
    -------
    int or int ndarray
        Index of the pair.
    """
    return first * (2 * n_classes - first - 1) // 2 + second - first - 1


def signed_coefficients(weights, class_start):
    """Give the weights of a path the signs of `sklearn.svm.SVC.dual_coef_`, in place.

    Parameters
    ----------
    weights : ndarray of shape (n_classes − 1, n)
        Weights in the layout of `solvers.path.result.PathSolution.weights`, for one C.
    class_start : int ndarray of shape (n_classes + 1,)
        Boundaries of the classes among the n samples.

    Returns
    -------
    ndarray of shape (n_classes − 1, n)
        The same array, in the layout of `pairwise_coefficients`.
    """
    n_classes = class_start.size - 1
    for t, (a, b) in enumerate(pairwise(class_start.tolist())):
        second = weights[:t, a:b]  # class t is the second one in its pairs with classes 0 … t − 1
        np.subtract(0.0, second, out=second)
    return -weights if n_classes == 2 else weights


def strategy_of(multiclass, n_classes):
    """Return the strategy for a number of classes.

    Parameters
    ----------
    multiclass : {"pairwise", "one_vs_rest", "all_at_once"}
        Parameter of the estimator.
    n_classes : int
        Number of classes, at least 2.

    Returns
    -------
    str
        The same, or "pairwise" for two classes, which are one pair with any strategy.
    """
    return multiclass if n_classes > 2 else "pairwise"


def groups_of(n_classes, multiclass):
    """Return the classes of every subproblem, in the order of its samples.

    Parameters
    ----------
    n_classes : int
        Number of distinct labels.
    multiclass : {"pairwise", "one_vs_rest", "all_at_once"}
        Result of `strategy_of`.

    Returns
    -------
    int64 ndarray of shape (n_subproblems, classes of a subproblem)
        Classes of each subproblem. One against the rest: the class first, then the others.
    """
    if multiclass == "pairwise":
        return np.ascontiguousarray(np.transpose(np.triu_indices(n_classes, 1)), dtype=np.int64)
    every = np.arange(n_classes, dtype=np.int64)
    if multiclass == "all_at_once":
        return every[None, :]
    return np.array([[t, *every[every != t]] for t in range(n_classes)], dtype=np.int64)


def n_labels_of(n_classes, multiclass):
    """Return the number of different labels in a subproblem.

    Parameters
    ----------
    n_classes : int
        Number of distinct labels.
    multiclass : {"pairwise", "one_vs_rest", "all_at_once"}
        Result of `strategy_of`.

    Returns
    -------
    int
        Number of classes for all at once; else 2, because the rest has one label.
    """
    return n_classes if multiclass == "all_at_once" else 2


def n_layers_of(n_classes, multiclass):
    """Return the number of subproblems that a sample belongs to.

    Parameters
    ----------
    n_classes : int
        Number of distinct labels.
    multiclass : {"pairwise", "one_vs_rest", "all_at_once"}
        Result of `strategy_of`.

    Returns
    -------
    int
        Number of subproblems, and so of weights of each sample.
    """
    return {"pairwise": n_classes - 1, "one_vs_rest": n_classes, "all_at_once": 1}[multiclass]


def label_start_of(class_start, group, multiclass):
    """Return the boundaries of the labels among the samples of a subproblem.

    Parameters
    ----------
    class_start : int ndarray of shape (n_classes + 1,)
        Index of the first sample of each class, and the number of samples.
    group : int ndarray of shape (classes of the subproblem,)
        Indices of the classes that the subproblem separates, from `groups_of`.
    multiclass : {"pairwise", "one_vs_rest", "all_at_once"}
        Result of `strategy_of`.

    Returns
    -------
    int ndarray of shape (n_labels + 1,)
        Index of the first sample of each label, then their number.
    """
    ends = np.cumsum((class_start[1:] - class_start[:-1])[group])
    return np.array([0, ends[0], ends[-1]]) if multiclass == "one_vs_rest" else np.concatenate(([0], ends))


def coefficients_of(n_classes, multiclass, class_of_support, subproblems):
    """Arrange the weights of subproblems as `dual_coef_`.

    Parameters
    ----------
    n_classes : int
        Number of classes, at least 2.
    multiclass : {"pairwise", "one_vs_rest", "all_at_once"}
        Result of `strategy_of`.
    class_of_support : ndarray of shape (n_SV,)
        Class of every support vector of the model, ascending.
    subproblems : list of (indices, alpha)
        For every subproblem: indices of its support vectors among those of the model, and their weights of
        either sign.

    Returns
    -------
    dual_coef : ndarray of shape (n_classes − 1, n_SV), or (n_classes, n_SV)
        Coefficients; see `pairwise_coefficients`, `one_vs_rest_coefficients` and `all_at_once_coefficients`.
    """
    if multiclass == "all_at_once":
        return all_at_once_coefficients(class_of_support, subproblems[0][1], n_classes)
    if multiclass == "one_vs_rest":
        return one_vs_rest_coefficients(class_of_support, subproblems, n_classes)
    return pairwise_coefficients(n_classes, class_of_support, subproblems)


def one_vs_rest_coefficients(class_of_support, subproblems, n_classes):
    """Return the coefficients of every class against the rest.

    Parameters
    ----------
    class_of_support : ndarray of shape (n_SV,)
        Class of every support vector.
    subproblems : list of (indices, alpha)
        For every class: indices of the support vectors of its subproblem, and their weights of either sign.
    n_classes : int
        Number of classes, at least 3.

    Returns
    -------
    ndarray of shape (n_classes, n_SV)
        Coefficients. A positive weight has a positive coefficient for the class of the support vector, and
        negative ones for the other classes.
    """
    dual_coef = np.zeros((n_classes, class_of_support.size))
    for t, (indices, alpha) in enumerate(subproblems):
        dual_coef[t, indices] = np.where(class_of_support[indices] == t, alpha, -alpha)
    return dual_coef


def one_vs_rest_labels(class_start):
    """Return the label of each sample in the subproblem of each class.

    Parameters
    ----------
    class_start : int ndarray of shape (n_classes + 1,)
        Index of the first sample of each class, and the number of samples.

    Returns
    -------
    ndarray of shape (n_classes, n)
        1 for the samples of the class, -1 for all others.
    """
    n_classes = class_start.size - 1
    return np.repeat(2.0 * np.eye(n_classes) - 1.0, np.diff(class_start), axis=1)


def pairwise_coefficients(n_classes, class_of_support, subproblems):
    """Arrange the weights of pairwise subproblems as `sklearn.svm.SVC.dual_coef_` does.

    Parameters
    ----------
    n_classes : int
        Number of classes, at least 2.
    class_of_support : ndarray of shape (n_SV,)
        Class of every support vector of the model, ascending.
    subproblems : list of (indices, alpha)
        For every pair (i, j): indices of its support vectors among those of the model, and their weights of
        either sign.

    Returns
    -------
    dual_coef : ndarray of shape (n_classes − 1, n_SV)
        A support vector of class t has its coefficient against class s in row s if s < t, else in row s − 1.
        The coefficient of a positive weight is positive in the first class of a pair. With two classes it is
        positive in the second class.
    """
    dual_coef = np.zeros((n_classes - 1, class_of_support.size))
    for (i, j), (indices, alpha) in zip(pairs_of(n_classes), subproblems, strict=True):
        first = class_of_support[indices] == i
        dual_coef[j - 1, indices[first]] = alpha[first]
        dual_coef[i, indices[~first]] = -alpha[~first]
    return -dual_coef if n_classes == 2 else dual_coef


def pairwise_decisions(K, dual_coef, intercept, class_start):
    """Evaluate the decisions of all pairs.

    Parameters
    ----------
    K : ndarray of shape (m, n_SV)
        Kernel values between samples and the support vectors of the model, which are sorted by class.
    dual_coef, intercept : ndarray
        Coefficients and intercepts in the layout of `sklearn.svm.SVC`.
    class_start : ndarray of shape (n_classes + 1,)
        Boundaries of the classes: class t has the support vectors class_start[t] … class_start[t + 1] − 1.

    Returns
    -------
    decisions : ndarray of shape (m, n_pairs)
        Decisions, positive for the first class of a pair. With two classes: positive for the second class.
    """
    n_classes = class_start.size - 1
    if n_classes == 2:
        return K @ dual_coef.T + intercept
    parts = np.empty((n_classes, K.shape[0], n_classes - 1))
    for part, (a, b) in zip(parts, pairwise(class_start.tolist()), strict=True):
        part[:] = K[:, a:b] @ dual_coef[:, a:b].T
    decisions = np.empty((K.shape[0], intercept.size))
    _add_parts(parts, np.ascontiguousarray(intercept), decisions)
    return decisions


@njit(allocates=False)
def _add_parts(parts, intercept, decisions):
    """Add the parts of the two classes of each pair, and its intercept.

    Parameters
    ----------
    parts : array (n_classes, m, n_classes - 1)
        Sum over the support vectors of each class, against each other class.
    intercept : array (n_pairs,)
        Constant of the decision function of each pair.
    decisions : array (m, n_pairs)
        Receives the decisions.
    """
    n_classes = parts.shape[0]
    for x in range(decisions.shape[0]):
        k = 0
        for i in range(n_classes):
            for j in range(i + 1, n_classes):
                decisions[x, k] = parts[i, x, j - 1] + parts[j, x, i] + intercept[k]
                k += 1


def votes(decisions, n_classes, zero_for_first=False, break_ties=True):
    """Count the votes of the pairs for each class.

    The sum of a class's decisions breaks ties: it is scaled to less than half a vote and added.

    Parameters
    ----------
    decisions : ndarray of shape (m, n_pairs)
        Decisions, positive for the first class of a pair.
    n_classes : int
        Number of classes, at least 2.
    zero_for_first : bool, default=False
        Whether a decision of exactly 0 is a vote for the first class of its pair; if not, for the second.
    break_ties : bool, default=True
        Whether the sum of decisions is added to the votes.

    Returns
    -------
    scores : ndarray of shape (m, n_classes)
        Votes, with the scaled sums if `break_ties`.
    """
    count = np.zeros((decisions.shape[0], n_classes))
    evidence = np.zeros_like(count)
    _count_votes(np.ascontiguousarray(decisions), zero_for_first, count, evidence)
    return with_ties_broken(count, evidence) if break_ties else count


def with_ties_broken(count, evidence):
    """Return votes to which the sums of decisions are added, scaled to less than half a vote.

    Parameters
    ----------
    count, evidence : ndarray of shape (m, n_classes)
        Votes and sums of the decisions.

    Returns
    -------
    scores : ndarray of shape (m, n_classes)
        Scores, whose order is that of the votes and, among equal votes, that of the sums.
    """
    return count + evidence / (3.0 * (np.abs(evidence) + 1.0))


@njit(allocates=False)
def _count_votes(decisions, zero_for_first, count, evidence):
    """Add up the votes and the decisions of the pairs for each class.

    Parameters
    ----------
    decisions : array (m, n_pairs)
        Decisions, positive for the first class of a pair.
    zero_for_first : bool
        Whether a decision of exactly 0 is a vote for the first class of its pair; if not, for the second.
    count, evidence : array (m, n_classes)
        Receive the votes and the sums of the decisions; 0 at the start.
    """
    for x in range(count.shape[0]):
        of_sample, of_classes = count[x], evidence[x]
        k = 0
        for i in range(count.shape[1]):
            for j in range(i + 1, count.shape[1]):
                d = decisions[x, k]
                k += 1
                wins = 1.0 if d > 0.0 or (zero_for_first and d == 0.0) else 0.0
                of_sample[i] += wins
                of_sample[j] += 1.0 - wins
                of_classes[i] += d
                of_classes[j] -= d


def all_at_once_coefficients(class_of_support, alpha, n_classes):
    """Return the coefficients α_i (y_t·y_i) of every class t (Strack 2013, 5.17, 5.18).

    Parameters
    ----------
    class_of_support : ndarray of shape (n_SV,)
        Class of every support vector.
    alpha : ndarray of shape (n_SV,)
        Weights of either sign.
    n_classes : int
        Number of classes, at least 3.

    Returns
    -------
    ndarray of shape (n_classes, n_SV)
        Coefficients. A positive weight has a positive coefficient for the class of its support vector.
    """
    products = np.full((n_classes, n_classes), -1.0 / (n_classes - 1))
    np.fill_diagonal(products, 1.0)
    return products[:, class_of_support] * alpha


def require_labels_of_one_type(y):
    """Raise if a list of labels contains both numbers and text, which NumPy would convert to text.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        Labels. `sort_by_class` checks those that are already an array.

    Raises
    ------
    ValueError
        The labels have types without a common order. The message names the types.
    """
    if isinstance(y, (list, tuple)):
        types = set(map(type, y))
        is_text = {issubclass(kind, str) for kind in types}
        if len(is_text) > 1:
            raise _cannot_sort(types)


def _cannot_sort(types):
    """Return the error for labels whose types have no common order.

    Parameters
    ----------
    types : iterable of type
        Types of the labels.

    Returns
    -------
    ValueError
        Error that names the types.
    """
    found = " beside ".join(sorted(kind.__name__ for kind in types))
    return ValueError(
        f"y: expected labels of one type that can be sorted, found {found}. "
        "Convert all labels to numbers or all to text"
    )


def _ascending_classes(y, starts):
    """Return the distinct labels in ascending order, and whether all labels are sorted.

    Parameters
    ----------
    y : ndarray of shape (n_samples,)
        Class label of each sample.
    starts : int ndarray
        Rows where the label differs from that of the row before; the first is 0.

    Returns
    -------
    classes : ndarray of shape (n_classes,)
        Distinct labels.
    is_sorted : bool
        Whether `y` is ascending.
    """
    classes = y[starts]
    try:
        is_sorted = bool((classes[:-1] < classes[1:]).all())
        return (classes if is_sorted else np.unique(y)), is_sorted
    except TypeError as error:
        raise _cannot_sort(set(map(type, classes))) from error


def sort_by_class(y):
    """Sort samples by class.

    Parameters
    ----------
    y : ndarray of shape (n_samples,)
        Labels of any type that can be sorted.

    Returns
    -------
    classes : ndarray of shape (n_classes,)
        Distinct labels, ascending.
    rows : int32 ndarray of shape (n_samples,)
        Row numbers, class by class.
    class_start : int ndarray of shape (n_classes + 1,)
        Boundaries of the classes among `rows`.

    Raises
    ------
    ValueError
        The labels are not class labels, or there are fewer than two classes.
    """
    starts = np.concatenate(([0], np.flatnonzero(y[1:] != y[:-1]) + 1))
    classes, is_sorted = _ascending_classes(y, starts)
    if classes.dtype.kind == "c":
        raise ValueError(
            "Complex data not supported: y holds complex numbers, expected class labels. "
            "Convert them to real numbers or text"
        )
    if classes.dtype.kind == "f" and (classes != np.floor(classes)).any():
        raise ValueError(
            "Unknown label type: continuous. y holds fractions, expected class labels. "
            "Use a regressor, or bin y into classes"
        )
    if classes.size < 2:
        raise ValueError(
            f"y has only one class: {plain(classes[0])}. A classifier needs samples of at least 2 classes"
        )
    if is_sorted:
        return classes, np.arange(y.size, dtype=np.int32), np.concatenate((starts, [y.size]))
    if classes.size <= 64:  # a pass for each class is faster than sorting, and takes less memory
        parts = [np.flatnonzero(y == t).astype(np.int32) for t in classes]
        return classes, np.concatenate(parts), np.cumsum([0, *(part.size for part in parts)])
    codes = np.searchsorted(classes, y)
    rows = np.argsort(codes, kind="stable").astype(np.int32)
    return classes, rows, np.concatenate(([0], np.cumsum(np.bincount(codes))))


def without(rows, class_start, dropped, classes):
    """Remove samples that have no positive weight.

    Parameters
    ----------
    rows : int32 ndarray of shape (n,)
        Row numbers, class by class.
    class_start : int ndarray of shape (n_classes + 1,)
        Boundaries of the classes among `rows`.
    dropped : bool ndarray of shape (n_samples,)
        Whether to remove a row of X.
    classes : ndarray of shape (n_classes,)
        Labels, for messages.

    Returns
    -------
    rows, class_start : ndarray
        Remaining rows and boundaries.

    Raises
    ------
    ValueError
        A class has no samples left.
    """
    kept = ~dropped[rows]
    sizes = np.add.reduceat(kept, class_start[:-1], dtype=np.int64)
    if not sizes.any():
        raise ValueError(
            "Invalid input - all samples have zero or negative weights. Give some a positive weight"
        )
    if np.count_nonzero(sizes) == 1:
        raise ValueError(
            "Invalid input - all samples with positive weights belong to the same class, "
            f"{classes[sizes > 0][0]}. Give samples of at least two classes a positive weight"
        )
    if not sizes.all():
        raise ValueError(
            f"every class needs a sample with a positive weight; class {classes[sizes == 0][0]} has none. "
            "Give one of its samples a positive weight, or drop the class"
        )
    return rows[kept], np.concatenate(([0], np.cumsum(sizes)))


def random_seed(random_state):
    """Convert a random state of scikit-learn to an integer.

    Parameters
    ----------
    random_state : int, RandomState or None
        An integer of at least 0 is returned unchanged. A generator is advanced. None takes entropy of the
        system.

    Returns
    -------
    int
        Seed of at least 0.
    """
    if isinstance(random_state, Integral):
        if random_state < 0:
            raise ValueError(
                f"random_state must be an integer ≥ 0, a RandomState or None; got {random_state}"
            )
        return int(random_state)
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1, np.uint64)[0])
    return int(check_random_state(random_state).randint(1 << 31))


def subproblem_seeds(seed, n_subproblems):
    """Derive a random state for every subproblem of a fit.

    `SeedSequence` hashes the seed and the index of the subproblem, so that no two subproblems share a stream.
    If the two were added, subproblem k of seed s would share that of subproblem k − 1 of seed s + 1.

    Parameters
    ----------
    seed : int
        Seed of the fit, at least 0.
    n_subproblems : int
        Number of binary problems of the training.

    Returns
    -------
    uint64 ndarray of shape (n_subproblems,)
        States, all different from 0.
    """
    return _subproblem_seeds(seed, n_subproblems).copy()


@lru_cache(maxsize=64)
def _subproblem_seeds(seed, n_subproblems):
    """Compute the states of `subproblem_seeds`, in a read-only array that is cached.

    Parameters
    ----------
    seed : int
        Seed of the fit, at least 0.
    n_subproblems : int
        Number of binary problems of the training.

    Returns
    -------
    uint64 ndarray of shape (n_subproblems,)
        States, all different from 0.
    """
    states = np.random.SeedSequence(seed).generate_state(n_subproblems, np.uint64)
    return np.maximum(states, np.uint64(1))
