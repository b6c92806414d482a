"""What all the solvers share: checking of input, labels, classes, prediction and the fitted attributes.

A solver is a subclass of `KernelSVC` with an `__init__` of its own and one method::

    def _solve(self, problem: Problem) -> Solution

which trains one machine: two classes, or all of them where `multiclass="all_at_once"`. The samples of a
problem are numbered 0 … n − 1 class by class (`class_start`), and sample i is row `rows[i]` of `X`. In a
binary machine the first class has y = +1. `X` is dense or CSR float64, as `Kernel.place` returns it; for a
precomputed or callable kernel (`kernel.kind == GRAM`) it is the full Gram matrix, float32 or float64. A
solution holds the weights such that d(x) = Σ α_i y_i k(x_i, x) + bias has margin 1. `_solve` ends in order at
`problem.deadline` (`time.monotonic`) with the best it has. Solvers with fewer parameters set the class
attributes below (`bias`, `multiclass`).
"""

import time
import warnings
from dataclasses import dataclass
from numbers import Integral, Real

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from solvers.kernels import (
    GRAM,
    KINDS,
    LINEAR,
    Kernel,
    for_samples,
    kernel_block,
    kernel_diagonal,
    variance_of,
)
from solvers.multiclass import (
    all_at_once_coefficients,
    pairs_of,
    pairwise_coefficients,
    pairwise_decisions,
    votes,
)
from solvers.platt import PlattMixin
from solvers.stopping import stopping_of

BLOCK_VALUES = 1 << 20  # kernel values of a block of predictions (8 MB)


@dataclass
class Problem:
    """One machine to train."""

    X: np.ndarray | sparse.csr_matrix
    rows: np.ndarray  # (n,) int32
    class_start: np.ndarray  # (classes + 1,) int64
    C: np.ndarray  # (1,), or (n,) with sample weights
    kernel: Kernel
    bias: float  # added to the kernel: 1, or 0 for a machine without bias
    scale: np.ndarray  # (n,) 1/√k(x, x) if the kernel is to be normalised, else (0,)
    seed: int
    deadline: float  # time.monotonic() at which to stop
    start: "Solution | None" = None  # of the last fit, to start from


@dataclass
class Solution:
    """A trained machine."""

    support: np.ndarray  # (k,) samples of the problem, ascending
    alpha: np.ndarray  # (k,) weights > 0
    bias: np.ndarray  # (1,) or, for all classes at once, (classes,)
    objective: float
    gap: float  # relative; NaN if it was not computed
    n_iter: int
    n_kernel_evals: int
    status: int  # 0 converged, 1 max_iter, 2 max_seconds, 3 the kernel is not positive definite
    converged: bool  # whether the tolerance is certified to hold
    stopping: str  # what ended the training, and what is certified


REASONS = {
    0: "a violator was not drawn, or rounding hides it: raise draws, or tol",
    1: "max_iter was reached: raise it, or tol",
    2: "max_seconds were over: raise them, or tol",
    4: "rounding ended its progress: scale the samples, or use a smaller C",
    3: "the kernel is not positive definite on these samples: use another one, or a smaller C",
}


class KernelSVC(PlattMixin, ClassifierMixin, BaseEstimator):
    """Base of the support vector classifiers.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int
    support_ : ndarray of shape (n_SV,)
        Rows of the training samples that are support vectors of any machine, sorted by class.
    support_vectors_ : {ndarray, CSR} of shape (n_SV, n_features)
        Empty for a precomputed kernel.
    n_support_ : ndarray of shape (n_classes,), int32
    dual_coef_ : ndarray of shape (n_classes − 1, n_SV), or (n_classes, n_SV) for all at once
        As in `sklearn.svm.SVC`.
    intercept_ : ndarray of shape (n_pairs,), or (n_classes,)
    n_iter_, n_kernel_evals_ : int
        Summed over the machines.
    objective_ : float
        Summed over the machines; for the geometric solvers, ‖c‖².
    gap_, duality_gap_ : float
        The largest relative gap of a machine, over all of its samples: a bound that allows for every rounding
        (`solvers.certificate`). NaN if it would have cost more than training.
    converged_ : bool
        Whether what `tol` asks for is certified to hold for every machine; the table in `solvers` says what
        that is.
    stopping_ : str
        ``"certified: ..."``, or what ended the machine that is farthest from its tolerance, and its gap.
    fit_status_ : int
        0 converged, 1 `max_iter`, 2 `max_seconds`, 3 kernel not positive definite, 4 ended by rounding; the
        largest of the machines.
    """

    bias: str = "theoretic"
    multiclass: str = "pairwise"
    normalises = False  # whether the method needs a constant k(x, x)

    def fit(self, X, y, sample_weight=None):
        """Train on samples X with labels y.

        Parameters
        ----------
        X : {array-like, CSR} of shape (n_samples, n_features), or (n_samples, n_samples) if precomputed
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
            Sample i has penalty C · sample_weight[i]; with weight 0 it is left out.

        Returns
        -------
        self
        """
        started = time.monotonic()
        self._validate_params()
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=self._accepted_types(), order="C")
        self.classes_, rows, class_start = sort_by_class(y)
        weights = self._check_weights(sample_weight, X.shape[0])
        if weights is not None and not weights.all():
            rows, class_start = _without(rows, class_start, weights == 0.0, self.classes_)
        C = np.array([float(self.C)])
        if weights is not None:
            C = self._penalties(weights[rows])
        kernel, X_or_gram = self._resolve_kernel(X, None if weights is None else weights > 0.0)
        self._kernel, self._gamma = kernel, kernel.gamma
        scale = self._normalisation(X_or_gram, kernel)

        n_classes = self.classes_.size
        at_once = self.multiclass == "all_at_once" and n_classes > 2
        groups = [range(n_classes)] if at_once else pairs_of(n_classes)
        starts = self._starts(rows, class_start, len(groups))
        seed = random_seed(self.random_state) if hasattr(self, "random_state") else 0
        limit = getattr(self, "max_seconds", None)
        end = np.inf if limit is None else started + limit
        solutions, members = [], []
        for k, group in enumerate(groups):
            part = [rows[class_start[t] : class_start[t + 1]] for t in group]
            member = rows if len(part) == n_classes else np.concatenate(part)
            now = time.monotonic()
            solutions.append(
                self._solve(
                    Problem(
                        X=X_or_gram,
                        rows=member,
                        class_start=np.cumsum([0, *(p.size for p in part)]),
                        C=C if C.size == 1 else self.C * weights[member],
                        kernel=kernel,
                        bias=0.0 if self.bias == "none" else 1.0,
                        scale=scale if scale.size == 0 else scale[member],
                        seed=mix(seed + k),
                        deadline=now + (end - now) / (len(groups) - k),
                        start=starts[k],
                    )
                )
            )
            members.append(member)
        self._publish(X, rows, class_start, scale, solutions, members, at_once)
        if getattr(self, "probability", False):
            self._fit_probability(X, y, sample_weight)
        return self

    def decision_function(self, X):
        """Evaluate the machines.

        Returns
        -------
        scores : ndarray of shape (n_samples,) for two classes, else (n_samples, n_classes)
            Two classes: positive for `classes_[1]`. Pairwise: votes, with ties broken by the summed evidence.
            All at once: y_t · (W x + b) of each class.
        """
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=self._accepted_types(), order="C", reset=False)
        n_classes = self.classes_.size
        scores = np.empty((X.shape[0], n_classes) if n_classes > 2 else X.shape[0])
        step = max(1, BLOCK_VALUES // max(1, self.support_.size))
        class_start = np.concatenate(([0], np.cumsum(self.n_support_)))
        for start in range(0, X.shape[0], step):
            block = slice(start, start + step)
            K = self._kernel_to_support(X[block])
            if self.dual_coef_.shape[0] == n_classes:
                scores[block] = K @ self.dual_coef_.T + self.intercept_
                continue
            decisions = pairwise_decisions(K, self.dual_coef_, self.intercept_, class_start)
            scores[block] = decisions[:, 0] if n_classes == 2 else votes(decisions, n_classes)
        return scores

    def predict(self, X):
        """Predict a label of `classes_` for every sample."""
        scores = self.decision_function(X)
        return self.classes_[(scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags

    def _solve(self, problem):
        raise NotImplementedError

    def _validate_params(self):
        check_number("C", self.C, "a number > 0", lambda v: 0 < v < np.inf)
        if not (callable(self.kernel) or self.kernel in KINDS):
            raise ValueError(f"kernel must be a callable or one of {sorted(KINDS)}; got {self.kernel!r}")
        if self.gamma not in ("scale", "auto"):
            check_number("gamma", self.gamma, "'scale', 'auto' or a number > 0", lambda v: 0 < v < np.inf)
        check_number("degree", self.degree, "a number ≥ 0", lambda v: 0 <= v < np.inf)
        check_number("coef0", self.coef0, "a finite number", np.isfinite)
        if self.kernel == "imq" and self.coef0 <= 0:
            raise ValueError(
                f"coef0 must be > 0 for kernel='imq', which is 1/√(γ‖x − z‖² + coef0); got {self.coef0}"
            )
        check_number("gram_error", self.gram_error, "a finite number ≥ 0", lambda v: 0 <= v < np.inf)
        if getattr(self, "max_seconds", None) is not None:
            check_number("max_seconds", self.max_seconds, "None or a number > 0", lambda v: v > 0)

    def _check_weights(self, sample_weight, n):
        """Return weights (n,), or None where all are equal to one."""
        if sample_weight is None:
            return None
        weights = np.asarray(sample_weight, dtype=np.float64)
        if weights.ndim == 0:
            weights = np.full(n, float(weights))
        if weights.shape != (n,):
            raise ValueError(
                f"sample_weight must have shape ({n},), one weight a sample; got {weights.shape}"
            )
        if not np.all(np.isfinite(weights)) or (weights < 0).any():
            raise ValueError(
                "sample_weight must be finite and ≥ 0; drop the samples or mend the weights that are not"
            )
        return None if (weights == 1.0).all() else weights

    def _penalties(self, weights):
        """C_i of the samples; a single number where all are the same."""
        if (weights == weights[0]).all():
            return self.C * weights[:1]
        if self.normalises:
            raise ValueError(
                f"{type(self).__name__} needs the same C for all samples, which must lie on a sphere; "
                "sample_weight has different weights: use MNSVC, or weights that are all equal (or zero)"
            )
        return self.C * weights

    def _accepted_types(self):
        """Return what X may be: float64 features; a precomputed matrix as it is."""
        return [np.float64, np.float32] if self.kernel == "precomputed" else np.float64

    def _resolve_kernel(self, X, used=None):
        """Return the kernel with its numbers, and what it is evaluated on: samples, or a Gram matrix."""
        if callable(self.kernel):
            gram = np.ascontiguousarray(self.kernel(X, X), dtype=np.float64)
            if gram.shape != (X.shape[0],) * 2:
                raise ValueError(
                    f"the kernel callable must return a matrix of shape {(X.shape[0],) * 2} here; "
                    f"it returned {gram.shape}"
                )
            return Kernel(GRAM), gram
        kind = KINDS[self.kernel]
        if kind == GRAM and X.shape[0] != X.shape[1]:
            raise ValueError(
                f"a precomputed kernel must be a square matrix, samples × samples; got shape {X.shape}"
            )
        if kind == GRAM and sparse.issparse(X):
            raise ValueError(
                "a precomputed kernel must be a dense matrix; got a sparse one: convert it by toarray()"
            )
        if kind == GRAM:
            return Kernel(GRAM, error=float(self.gram_error)), X
        gamma = 1.0 if kind == LINEAR else self._resolve_gamma(X)
        return for_samples(Kernel(kind, gamma, float(self.coef0), float(self.degree)), X, used)

    def _resolve_gamma(self, X):
        if self.gamma == "auto":
            return 1.0 / X.shape[1]
        if self.gamma == "scale":
            variance = variance_of(X)
            return 1.0 / (X.shape[1] * variance) if variance > 0 else 1.0
        return float(self.gamma)

    def _normalisation(self, X, kernel):
        """Return 1/√k(x, x) where the method needs a constant diagonal and the kernel has none (2.47)."""
        self._normalised = False
        if not self.normalises or kernel.has_constant_diagonal:
            return np.empty(0)
        diagonal = kernel_diagonal(X, kernel)
        if kernel.kind == GRAM:
            if not np.allclose(diagonal, diagonal[0], rtol=1e-6, atol=0.0):
                raise ValueError(
                    f"{type(self).__name__} needs a kernel with constant k(x, x); this one lies between "
                    f"{diagonal.min():g} and {diagonal.max():g}: divide by √(k(x, x) k(z, z)), or use MNSVC"
                )
            return np.empty(0)
        self._normalised = True
        return self._inverse_root(diagonal)

    def _inverse_root(self, diagonal):
        if not (diagonal > 0).all():
            raise ValueError(
                f"{type(self).__name__} normalises the {self.kernel} kernel, which needs k(x, x) > 0 for all "
                f"samples; the smallest is {diagonal.min():g}: use kernel='rbf', or MNSVC"
            )
        return 1.0 / np.sqrt(diagonal)

    def _starts(self, rows, class_start, n_machines):
        """Solutions of the last fit if it was on the same samples and labels, else None for each machine."""
        last = getattr(self, "_last", None) if getattr(self, "warm_start", False) else None
        if last is None or len(last[2]) != n_machines:
            return [None] * n_machines
        same = np.array_equal(last[0], rows) and np.array_equal(last[1], class_start)
        return last[2] if same else [None] * n_machines

    def _publish(self, X, rows, class_start, scale, solutions, members, at_once):
        """Set the fitted attributes from the machines' solutions."""
        n_classes = self.classes_.size
        used = np.zeros(X.shape[0], dtype=bool)
        for solution, member in zip(solutions, members, strict=True):
            used[member[solution.support]] = True
        chosen = used[rows]
        self.support_ = rows[chosen]
        self.n_support_ = np.add.reduceat(chosen, class_start[:-1], dtype=np.int32)
        class_of_support = np.repeat(np.arange(n_classes), self.n_support_)
        place = np.empty(X.shape[0] if self.support_.size else 0, dtype=np.int32)
        place[self.support_] = np.arange(self.support_.size, dtype=np.int32)
        machines = [
            (place[member[s.support]], s.alpha if scale.size == 0 else s.alpha * scale[member[s.support]])
            for s, member in zip(solutions, members, strict=True)
        ]
        if at_once:
            self.dual_coef_ = all_at_once_coefficients(class_of_support, machines[0][1], n_classes)
            self.intercept_ = solutions[0].bias
        else:
            self.dual_coef_ = pairwise_coefficients(n_classes, class_of_support, machines)
            self.intercept_ = np.concatenate([s.bias for s in solutions]) * (-1.0 if n_classes == 2 else 1.0)
        self.support_vectors_ = X[:0] if self.kernel == "precomputed" else X[self.support_]
        self.n_iter_ = sum(s.n_iter for s in solutions)
        self.n_kernel_evals_ = sum(s.n_kernel_evals for s in solutions)
        self.objective_ = float(sum(s.objective for s in solutions))
        self.gap_ = self.duality_gap_ = float(np.max([s.gap for s in solutions]))
        self.fit_status_ = max(s.status for s in solutions)
        certified = np.array([s.converged for s in solutions])
        self.converged_ = bool(certified.all())
        gaps = np.array([s.gap for s in solutions])
        self.stopping_ = stopping_of(certified, gaps, lambda k: solutions[k].stopping)
        if getattr(self, "warm_start", False):
            self._last = (rows, class_start, solutions)
        if not self.converged_:
            warnings.warn(
                f"{type(self).__name__} stopped before its tolerance was met: {REASONS[self.fit_status_]} "
                f"(stopping_: {self.stopping_})",
                ConvergenceWarning,
                stacklevel=3,
            )

    def _kernel_to_support(self, X):
        """Kernel between a block of samples and the support vectors."""
        if self.kernel == "precomputed":
            return np.asarray(X[:, self.support_], dtype=np.float64)
        if callable(self.kernel):
            return np.asarray(self.kernel(X, self.support_vectors_), dtype=np.float64)
        X = self._kernel.place(X)
        K = kernel_block(X, self._kernel.place(self.support_vectors_), self._kernel)
        if self._normalised:
            K *= self._inverse_root(kernel_diagonal(X, self._kernel))[:, None]
        return K


def check_number(name, value, expected, is_valid, kind=Real):
    """Refuse a parameter that is not a number of the right kind and range."""
    if not isinstance(value, kind) or isinstance(value, bool) or not is_valid(value):
        raise ValueError(f"{name} must be {expected}; got {value!r}")


def check_choice(name, value, choices):
    """Refuse a parameter that is none of the choices."""
    if value not in choices:
        raise ValueError(f"{name} must be one of {sorted(choices)}; got {value!r}")


def check_count(name, value, least=1):
    """Refuse a parameter that is not a whole number ≥ `least`."""
    check_number(name, value, f"a whole number ≥ {least}", lambda v: v >= least, Integral)


def sort_by_class(y):
    """Return the classes, the rows sorted by class (int32), and where each class starts among them."""
    classes = np.unique(y)
    if classes.dtype.kind == "f" and (classes != np.floor(classes)).any():
        raise ValueError(
            "Unknown label type: continuous. A classifier needs class labels, y holds fractions: "
            "use a regressor, or bin y into classes"
        )
    if classes.size < 2:
        raise ValueError(
            f"a classifier needs samples of at least 2 classes; y has only one class: {classes[0]!r}"
        )
    if classes.size <= 64:  # a pass for each class needs less memory than sorting, and is faster
        parts = [np.flatnonzero(y == t).astype(np.int32) for t in classes]
        return classes, np.concatenate(parts), np.cumsum([0, *(part.size for part in parts)])
    codes = np.searchsorted(classes, y)
    rows = np.argsort(codes, kind="stable").astype(np.int32)
    return classes, rows, np.concatenate(([0], np.cumsum(np.bincount(codes))))


def _without(rows, class_start, dropped, classes):
    """Leave out the samples of weight 0."""
    kept = ~dropped[rows]
    sizes = np.add.reduceat(kept, class_start[:-1], dtype=np.int64)
    if not sizes.all():
        raise ValueError(
            f"every class needs a sample whose sample_weight is not zero; "
            f"class {classes[sizes == 0][0]!r} has none"
        )
    return rows[kept], np.concatenate(([0], np.cumsum(sizes)))


def random_seed(random_state):
    """Make a whole number of what scikit-learn accepts as a random state."""
    if isinstance(random_state, Integral):
        return int(random_state)
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1, np.uint64)[0])
    return int(check_random_state(random_state).randint(1 << 31))


def mix(seed):
    """Scramble a whole number to 64 bits, never 0 (splitmix64): neighbours become unrelated random states."""
    z = (seed * 0x9E3779B97F4A7C15 + 0x632BE59BD9B4E019) & (2**64 - 1)
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & (2**64 - 1)
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & (2**64 - 1)
    return (z ^ (z >> 31)) or 1
