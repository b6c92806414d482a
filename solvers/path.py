"""All machines of one training set, for an ascending path of C, from one Gram matrix.

This is what a model selection spends its time on, so it is one numba call: every machine's block is cut out
of the Gram matrix once and solved for every C, each from the solution before it (`solvers.block_path`). The
predictions of the whole path are one matrix product for each class.
"""

import time
from dataclasses import dataclass, replace

import numpy as np
from numba import njit

from solvers.blas import one_blas_thread
from solvers.block_path import block_path
from solvers.multiclass import pairs_of

MAX_STEPS = np.iinfo(np.int64).max


@dataclass
class PathSolution:
    """Trained machines for every C of a path.

    Attributes
    ----------
    Cs : ndarray of shape (n_C,)
    classes : ndarray of shape (n_classes,)
    rows : ndarray of shape (n,)
        Training rows sorted by class.
    class_start : ndarray of shape (n_classes + 1,)
    weights : ndarray of shape (n_C, n_classes - 1, n), or (n_C, 1, n) for all at once
        Weights ≥ 0, in the layout of `sklearn.svm.SVC.dual_coef_`: a row of class t has its weight against
        class s in row s if s < t, else in row s - 1.
    intercepts : ndarray of shape (n_C, n_pairs), or (n_C, n_classes)
        Positive for the first class of a pair.
    at_once : bool
        Whether one machine separates all classes.
    norm2s, gaps : ndarrays of shape (n_C, n_machines)
        ``||c||²`` and its certified relative error.
    iterations, methods : int ndarrays of shape (n_C, n_machines)
        Pair steps and Newton rounds, and the bits of `block_path.METHOD_NAMES`.
    supports : int ndarray of shape (n_C, n_machines)
        Support vectors of each machine.
    n_support : int ndarray of shape (n_C,)
        Support vectors of any machine.
    evaluations : int ndarray of shape (n_C,)
        Kernel values that training needed.
    seconds : ndarray of shape (n_C,)
        Wall time, shared out by counted work.
    """

    Cs: np.ndarray
    classes: np.ndarray
    rows: np.ndarray
    class_start: np.ndarray
    weights: np.ndarray
    intercepts: np.ndarray
    at_once: bool
    norm2s: np.ndarray
    gaps: np.ndarray
    iterations: np.ndarray
    methods: np.ndarray
    supports: np.ndarray
    n_support: np.ndarray
    evaluations: np.ndarray
    seconds: np.ndarray

    def predict_path(self, K):
        """Predict labels for every C.

        Parameters
        ----------
        K : ndarray of shape (n_test, n_train)
            Kernel between the samples and all training rows, in their original order.

        Returns
        -------
        labels : ndarray of shape (n_C, n_test)
        """
        n_C, depth, _ = self.weights.shape
        if not is_sorted(self.rows):
            K = K[:, self.rows]
        parts = []
        for a, b in zip(self.class_start[:-1], self.class_start[1:], strict=True):
            coefficients = self.weights[:, :, a:b].reshape(n_C * depth, b - a).astype(K.dtype, copy=False)
            parts.append((K[:, a:b] @ coefficients.T).reshape(-1, n_C, depth))
        stacked = np.stack(parts)
        elect = elect_all_at_once if self.at_once else elect_pairwise
        return self.classes[elect(stacked, self.intercepts)]

    def on_used_rows(self):
        """Leave out the rows that no machine uses; return the rest, and its row numbers."""
        kept = self.weights.any(axis=(0, 1))
        sizes = np.add.reduceat(kept, self.class_start[:-1], dtype=np.int64)
        solution = replace(
            self,
            rows=np.arange(sizes.sum(), dtype=np.int32),
            class_start=np.concatenate(([0], np.cumsum(sizes))),
            weights=np.ascontiguousarray(self.weights[:, :, kept]),
        )
        return solution, self.rows[kept]


@njit(nogil=True, cache=True)
def is_sorted(rows):
    """Whether ``rows`` counts up from 0."""
    return np.all(rows == np.arange(rows.size))


@njit(nogil=True, cache=True)
def elect_pairwise(parts, intercepts):
    """Elect the class with most votes of the pair machines, as `solvers.multiclass.votes` counts them.

    Parameters
    ----------
    parts : array (n_classes, n_test, n_C, n_classes - 1)
        What the training samples of each class contribute to each machine.
    intercepts : array (n_C, n_pairs)

    Returns
    -------
    winners : int array (n_C, n_test)
    """
    n_classes, n_test, n_C, _ = parts.shape
    winners = np.empty((n_C, n_test), np.int64)
    votes = np.empty(n_classes)
    evidence = np.empty(n_classes)
    for x in range(n_test):
        for k in range(n_C):
            votes[:] = 0.0
            evidence[:] = 0.0
            machine = 0
            for i in range(n_classes):
                for j in range(i + 1, n_classes):
                    d = (
                        np.float64(parts[i, x, k, j - 1])
                        - np.float64(parts[j, x, k, i])
                        + intercepts[k, machine]
                    )
                    machine += 1
                    votes[i if d > 0.0 or (d == 0.0 and n_classes == 2) else j] += 1.0
                    evidence[i] += d
                    evidence[j] -= d
            best, best_score = 0, -1.0
            for t in range(n_classes):
                score = votes[t] + evidence[t] / (3.0 * (abs(evidence[t]) + 1.0))
                if score > best_score:
                    best, best_score = t, score
            winners[k, x] = best
    return winners


@njit(nogil=True, cache=True)
def elect_all_at_once(parts, intercepts):
    """Class t with the largest score y_t · (W x + b); parameters and result as in `elect_pairwise`."""
    n_classes, n_test, n_C, _ = parts.shape
    winners = np.empty((n_C, n_test), np.int64)
    for x in range(n_test):
        for k in range(n_C):
            total = 0.0
            for t in range(n_classes):
                total += parts[t, x, k, 0]
            best, best_score = 0, -np.inf
            for t in range(n_classes):
                own = parts[t, x, k, 0]
                score = own - (total - own) / (n_classes - 1) + intercepts[k, t]
                if score > best_score:
                    best, best_score = t, score
            winners[k, x] = best
    return winners


@njit(nogil=True, cache=True, error_model="numpy")
def cut_block(K, rows, in_order, class_start, group, opposite, bias, H):
    """Fill ``H = (y_i·y_j)(K + bias)`` for the samples of the classes in ``group``.

    ``y_i·y_j`` is 1 within a class and ``opposite`` between classes. With ``in_order`` the rows of K are
    sorted by class already and its segments are read in one go.
    """
    a = 0
    for p in group:
        for i in range(class_start[p], class_start[p + 1]):
            source = K[rows[i]]
            target = H[a]
            b = 0
            for q in group:
                low, high = class_start[q], class_start[q + 1]
                product = K.dtype.type(1.0 if p == q else opposite)
                shift = K.dtype.type(bias) * product
                if in_order:
                    segment = source[low:high]
                    piece = target[b : b + high - low]
                    for j in range(high - low):
                        piece[j] = product * segment[j] + shift
                else:
                    for j in range(low, high):
                        target[b + j - low] = product * source[rows[j]] + shift
                b += high - low
            a += 1


@njit(nogil=True, cache=True, error_model="numpy")
def solve_path(K, rows, class_start, groups, opposite, bias, unit_ridge, Cs, tol, max_steps, starts, weights):
    """Solve every machine for every C.

    Parameters
    ----------
    K : array (n, n), float32 or float64, C-contiguous
    rows : int32 array (n,)
        Rows of ``K`` sorted by class.
    class_start : int64 array (n_classes + 1,)
    groups : int64 array (n_machines, classes of a machine)
    opposite, bias : float
    unit_ridge : array (n,)
        ``1 / sample_weight`` in sorted order.
    Cs : array (n_C,)
    tol : float
    max_steps : int
        For each machine and C.
    starts : array (n_classes - 1 or 1, n)
        Weights to start from, in the layout of `PathSolution.weights`; zeros for none.
    weights : array (n_C, n_classes - 1 or 1, n)
        Receives the solutions.

    Returns
    -------
    norm2s, gaps, costs : arrays (n_C, n_machines)
    steps, rounds, methods, supports : int arrays (n_C, n_machines)
    """
    n_C, n_machines = Cs.size, groups.shape[0]
    norm2s = np.empty((n_machines, n_C))
    gaps = np.empty((n_machines, n_C))
    costs = np.empty((n_machines, n_C))
    steps = np.empty((n_machines, n_C), np.int64)
    rounds = np.empty((n_machines, n_C), np.int64)
    methods = np.empty((n_machines, n_C), np.int64)
    supports = np.empty((n_machines, n_C), np.int64)
    in_order = is_sorted(rows)
    largest = 0
    for group in groups:
        largest = max(largest, np.sum(class_start[group + 1] - class_start[group]))
    blocks = np.empty(largest * largest, K.dtype)
    solutions = np.empty(n_C * largest)
    for k in range(n_machines):
        group = groups[k]
        m = np.sum(class_start[group + 1] - class_start[group])
        H = blocks[: m * m].reshape((m, m))
        solution = solutions[: n_C * m].reshape((n_C, m))
        cut_block(K, rows, in_order, class_start, group, opposite, bias, H)
        ridge = np.empty(m)
        alpha = np.empty(m)
        a = 0
        for p in group:
            low, high = class_start[p], class_start[p + 1]
            ridge[a : a + high - low] = unit_ridge[low:high]
            alpha[a : a + high - low] = starts[layer(p, group, starts.shape[0]), low:high]
            a += high - low
        block_path(
            H,
            ridge,
            Cs,
            tol,
            max_steps,
            not np.any(alpha > 0.0),
            alpha,
            solution,
            norm2s[k],
            gaps[k],
            steps[k],
            rounds[k],
            costs[k],
            methods[k],
        )
        a = 0
        for p in group:
            low, high = class_start[p], class_start[p + 1]
            weights[:, layer(p, group, weights.shape[1]), low:high] = solution[:, a : a + high - low]
            a += high - low
        for j in range(n_C):
            supports[k, j] = np.sum(solution[j] > 0.0)
    return norm2s.T, gaps.T, costs.T, steps.T, rounds.T, methods.T, supports.T


@njit(nogil=True, cache=True)
def layer(p, group, depth):
    """Row of `PathSolution.weights` in which class ``p`` keeps its weights for the machine of ``group``."""
    if depth == 1:
        return 0
    other = group[1] if p == group[0] else group[0]
    return other if other < p else other - 1


def fit_path(
    K,
    classes,
    rows,
    class_start,
    Cs,
    *,
    at_once,
    bias,
    tol,
    unit_ridge=None,
    max_steps=MAX_STEPS,
    starts=None,
):
    """Train every machine of a training set for every C.

    Parameters
    ----------
    K : ndarray of shape (n, n), float32 or float64
        Gram matrix, without bias and ridge.
    classes : ndarray of shape (n_classes,)
    rows : ndarray of shape (n,)
        Row numbers sorted by class. A `K` that is sorted by class already is read twice as fast.
    class_start : ndarray of shape (n_classes + 1,)
    Cs : array-like of shape (n_C,)
        Ascending, so that each solution is a good start for the next.
    at_once : bool
        One machine for all classes, with labels on a simplex, instead of one for every pair.
    bias : {0.0, 1.0}
        Added to the kernel.
    tol : float
        Bound on the certified gap of every machine.
    unit_ridge : ndarray of shape (n,), optional
        ``1 / sample_weight`` of every row of `rows`.
    max_steps : int
        Limit on pair steps for each machine and C.
    starts : ndarray, optional
        ``weights[-1]`` of an earlier solution on the same rows.

    Returns
    -------
    PathSolution
    """
    started = time.perf_counter()
    Cs = np.ascontiguousarray(Cs, dtype=np.float64)
    n_classes, n = classes.size, rows.size
    sizes = np.diff(class_start)
    depth = 1 if at_once else n_classes - 1
    groups = groups_of(n_classes, at_once)
    opposite = -1.0 / (n_classes - 1) if at_once else -1.0
    weights = np.zeros((Cs.size, depth, n))
    with one_blas_thread():
        norm2s, gaps, costs, steps, rounds, methods, supports = solve_path(
            np.ascontiguousarray(K),
            rows,
            class_start,
            groups,
            opposite,
            bias,
            np.ones(n) if unit_ridge is None else unit_ridge,
            Cs,
            tol,
            max_steps,
            np.zeros((depth, n)) if starts is None else starts,
            weights,
        )
    work = 1.0 + costs.sum(axis=1)  # a start that is optimal already costs nothing
    return PathSolution(
        Cs=Cs,
        classes=classes,
        rows=rows,
        class_start=class_start,
        weights=weights,
        intercepts=intercepts(weights, class_start, bias, at_once),
        at_once=at_once,
        norm2s=norm2s,
        gaps=gaps,
        iterations=steps + rounds,
        methods=methods,
        supports=supports,
        n_support=np.count_nonzero(weights.any(axis=1), axis=1),
        evaluations=np.full(Cs.size, (sizes[groups].sum(axis=1) ** 2).sum()),
        seconds=(time.perf_counter() - started) * work / work.sum(),
    )


def groups_of(n_classes, at_once):
    """Return the classes of every machine: an int64 array of shape (n_machines, classes of a machine)."""
    return np.array([range(n_classes)] if at_once else pairs_of(n_classes), dtype=np.int64)


def intercepts(weights, class_start, bias, at_once):
    """Return the theoretic bias Σ α_i (y_t·y_i) of every machine (Strack 2013, 2.98).

    Parameters
    ----------
    weights, class_start, at_once
        As in `PathSolution`.
    bias : {0.0, 1.0}

    Returns
    -------
    ndarray of shape (n_C, n_pairs), for the first class of the pair, or (n_C, n_classes)
    """
    sums = np.add.reduceat(weights, class_start[:-1], axis=2) * bias
    n_classes = class_start.size - 1
    if at_once:
        own = sums[:, 0, :]
        return own - (own.sum(axis=1, keepdims=True) - own) / (n_classes - 1)
    first, second = np.array(pairs_of(n_classes)).T
    return sums[:, second - 1, first] - sums[:, first, second]
