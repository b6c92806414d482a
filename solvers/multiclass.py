"""Subproblems of several classes: pairs, votes, random states, and scikit-learn's layout of coefficients."""

from functools import lru_cache
from itertools import combinations, pairwise
from numbers import Integral

import numpy as np
from sklearn.utils import check_random_state

from solvers.common.plain import plain


def pairs_of(n_classes):
    """Return the pairs (i, j), i < j, of classes in the order of `decision_function_shape="ovo"`."""
    return list(combinations(range(n_classes), 2))


def pairwise_coefficients(n_classes, class_of_support, subproblems):
    """Arrange the weights of pair machines as `sklearn.svm.SVC.dual_coef_` does.

    Parameters
    ----------
    n_classes : int
    class_of_support : ndarray of shape (n_SV,)
        Class of every support vector of the model, ascending.
    subproblems : list of (places, alpha)
        For every pair (i, j): where its support vectors are among those of the model, and their weights ≥ 0.

    Returns
    -------
    dual_coef : ndarray of shape (n_classes − 1, n_SV)
        A support vector of class t has its weight against class s in row s if s < t, else in row s − 1.
        Positive for the first class of a pair; for the second one if there are two classes only.
    """
    dual_coef = np.zeros((n_classes - 1, class_of_support.size))
    for (i, j), (places, alpha) in zip(pairs_of(n_classes), subproblems, strict=True):
        first = class_of_support[places] == i
        dual_coef[j - 1, places[first]] = alpha[first]
        dual_coef[i, places[~first]] = -alpha[~first]
    return -dual_coef if n_classes == 2 else dual_coef


def pairwise_decisions(K, dual_coef, intercept, class_start):
    """Evaluate all the pair machines.

    Parameters
    ----------
    K : ndarray of shape (m, n_SV)
        Kernel between samples and the support vectors of the model, which are sorted by class.
    dual_coef, intercept : ndarray
        As in `sklearn.svm.SVC`.
    class_start : ndarray of shape (n_classes + 1,)
        The support vectors of class t are class_start[t] … class_start[t + 1] − 1.

    Returns
    -------
    decisions : ndarray of shape (m, n_pairs)
    """
    n_classes = class_start.size - 1
    if n_classes == 2:
        return K @ dual_coef.T + intercept
    parts = [K[:, a:b] @ dual_coef[:, a:b].T for a, b in pairwise(class_start)]
    decisions = np.empty((K.shape[0], intercept.size))
    for k, (i, j) in enumerate(pairs_of(n_classes)):
        decisions[:, k] = parts[i][:, j - 1] + parts[j][:, i] + intercept[k]
    return decisions


def votes(decisions, n_classes, zero_for_first=False, break_ties=True):
    """Count the votes of the pair machines; ties are broken by the summed evidence, squashed to half a vote.

    Parameters
    ----------
    decisions : ndarray of shape (m, n_pairs)
        Positive for the first class of a pair.
    n_classes : int
    zero_for_first : bool
        Which class of a pair a decision of exactly 0 is a vote for.
    break_ties : bool
        False: nothing is added to the votes.

    Returns
    -------
    scores : ndarray of shape (m, n_classes)
    """
    count = np.zeros((decisions.shape[0], n_classes))
    evidence = np.zeros_like(count)
    for k, (i, j) in enumerate(pairs_of(n_classes)):
        d = decisions[:, k]
        wins = d >= 0.0 if zero_for_first else d > 0.0
        count[:, i] += wins
        count[:, j] += ~wins
        evidence[:, i] += d
        evidence[:, j] -= d
    return count + evidence / (3.0 * (np.abs(evidence) + 1.0)) if break_ties else count


def all_at_once_coefficients(class_of_support, alpha, n_classes):
    """α_i (y_t·y_i) for every class t: ndarray of shape (n_classes, n_SV) (5.17, 5.18)."""
    products = np.full((n_classes, n_classes), -1.0 / (n_classes - 1))
    np.fill_diagonal(products, 1.0)
    return products[:, class_of_support] * alpha


def require_labels_of_one_type(y):
    """Raise if labels in a list are numbers beside text: an array of them would hold text alone.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        Arrays are left to `sort_by_class`.
    """
    if isinstance(y, (list, tuple)):
        types = set(map(type, y))
        is_text = {issubclass(kind, str) for kind in types}
        if len(is_text) > 1:
            raise _cannot_sort(types)


def _cannot_sort(types):
    """Return the error of labels whose types have no common order."""
    found = " beside ".join(sorted(kind.__name__ for kind in types))
    return ValueError(
        f"y: expected labels of one type that can be sorted, found {found}. "
        "Convert all labels to numbers or all to text"
    )


def _ascending_classes(y, starts):
    """Return the classes, ascending, and whether y is sorted; `starts` are the rows where labels change."""
    classes = y[starts]
    try:
        is_sorted = bool((classes[:-1] < classes[1:]).all())
        return (classes if is_sorted else np.unique(y)), is_sorted
    except TypeError as error:
        raise _cannot_sort(set(map(type, classes))) from error


def sort_by_class(y):
    """Return the classes, the rows sorted by class (int32), and where each class starts among them."""
    starts = np.concatenate(([0], np.flatnonzero(y[1:] != y[:-1]) + 1))
    classes, is_sorted = _ascending_classes(y, starts)
    if classes.dtype.kind == "c":
        raise ValueError("Complex data not supported: y holds complex numbers, expected class labels")
    if classes.dtype.kind == "f" and (classes != np.floor(classes)).any():
        raise ValueError(
            "Unknown label type: continuous. A classifier needs class labels, y holds fractions: "
            "use a regressor, or bin y into classes"
        )
    if classes.size < 2:
        raise ValueError(
            f"a classifier needs samples of at least 2 classes; y has only one class: {plain(classes[0])}"
        )
    if is_sorted:
        return classes, np.arange(y.size, dtype=np.int32), np.concatenate((starts, [y.size]))
    if classes.size <= 64:  # a pass for each class needs less memory than sorting, and is faster
        parts = [np.flatnonzero(y == t).astype(np.int32) for t in classes]
        return classes, np.concatenate(parts), np.cumsum([0, *(part.size for part in parts)])
    codes = np.searchsorted(classes, y)
    rows = np.argsort(codes, kind="stable").astype(np.int32)
    return classes, rows, np.concatenate(([0], np.cumsum(np.bincount(codes))))


def without(rows, class_start, dropped, classes):
    """Leave out samples (bool, by row of X), those without a positive weight."""
    kept = ~dropped[rows]
    sizes = np.add.reduceat(kept, class_start[:-1], dtype=np.int64)
    if not sizes.any():
        raise ValueError("Invalid input - all samples have zero or negative weights; some must be positive")
    if np.count_nonzero(sizes) == 1:
        raise ValueError(
            "Invalid input - all samples with positive weights belong to the same class, "
            f"{classes[sizes > 0][0]}; at least two classes need some"
        )
    if not sizes.all():
        raise ValueError(
            f"every class needs a sample with a positive weight; class {classes[sizes == 0][0]} has none"
        )
    return rows[kept], np.concatenate(([0], np.cumsum(sizes)))


def random_seed(random_state):
    """Make a whole number of what scikit-learn accepts as a random state."""
    if isinstance(random_state, Integral):
        if random_state < 0:
            raise ValueError(
                f"random_state must be a whole number ≥ 0, a RandomState or None; got {random_state}"
            )
        return int(random_state)
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1, np.uint64)[0])
    return int(check_random_state(random_state).randint(1 << 31))


def subproblem_seeds(seed, n_subproblems):
    """Derive a random state, a number of 64 bits but 0, for every machine of a fit.

    `SeedSequence` hashes seed and number of the machine: no two share a stream, whereas by adding them up
    machine k of seed s would have that of machine k − 1 of seed s + 1.
    """
    return _subproblem_seeds(seed, n_subproblems).copy()


@lru_cache(maxsize=64)
def _subproblem_seeds(seed, n_subproblems):
    states = np.random.SeedSequence(seed).generate_state(n_subproblems, np.uint64)
    return np.maximum(states, np.uint64(1))
