"""Samples that `LASVC.partial_fit` keeps between two calls, and the models that they give."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.utils.extmath import row_norms

from solvers.common.certificate import AIMED_SHARE
from solvers.common.resources import NO_LIMIT
from solvers.common.status import CONVERGED, TIMEOUT
from solvers.kernels.functions import LARGEST_EXPONENT, RADIAL, Kernel, for_samples
from solvers.kernels.subproblem_kernel import OutOfTime, SubproblemKernel
from solvers.multiclass import coefficients_of, groups_of
from solvers.online.expansion import Expansion
from solvers.online.training import N_SEEDS
from solvers.problem import Problem
from solvers.smo.certificate import gap_of
from solvers.smo.kernel_rows import CachedRows
from solvers.smo.row_training import SmoState


class Batch(NamedTuple):
    """Samples of one call of `partial_fit`, without those that have no weight."""

    X: np.ndarray | sparse.csr_matrix  # (n, d): features, in the format of the first call
    codes: np.ndarray  # (n,) int64: class of each sample
    C: np.ndarray  # (n,): penalties
    numbers: np.ndarray  # (n,) int64: numbers of the samples, in the order of arrival over all calls


@dataclass
class Subset:
    """Set of one subproblem: its samples with their weights. Sample k is row k of `X`."""

    group: np.ndarray  # classes of the subproblem; those of the label 1 come first
    expansion: Expansion
    X: Any = None  # (m, d): features of the members
    numbers: Any = None  # (m,) int64: their numbers in the order of arrival
    codes: Any = None  # (m,) int64: their classes
    n_seen: Any = None  # (2,) int64: samples of the labels 1 and −1 that have arrived
    n_kernel_evals: int = 0  # number of kernel values that were computed
    status: int = CONVERGED  # how the last call ended
    gap: float = np.nan  # relative duality gap on the set; NaN if the set lacks a label

    def copy(self):
        """Return a copy that another call of `partial_fit` may change.

        Returns
        -------
        Subset
            Copy, without kernel rows.
        """
        arrays = {"n_seen": None if self.n_seen is None else self.n_seen.copy()}
        return Subset(**(self.__dict__ | arrays | {"expansion": self.expansion.copy()}))

    def learn(self, batch, kernel, deadline):
        """PROCESS the samples of a batch that belong to the subproblem, in their order.

        Parameters
        ----------
        batch : Batch
            Samples.
        kernel : Kernel
            Kernel function with its parameters.
        deadline : float
            Time on `solvers.common.clock.clock` at which to stop.
        """
        chosen = np.flatnonzero(np.isin(batch.codes, self.group))
        n_members = 0 if self.numbers is None else self.numbers.size
        if not chosen.size:
            self.status = CONVERGED
            return
        if n_members:
            self.X = stacked(self.X, batch.X[chosen])
            self.numbers = np.append(self.numbers, batch.numbers[chosen])
            self.codes = np.append(self.codes, batch.codes[chosen])
        else:
            self.X, self.numbers, self.codes = batch.X[chosen], batch.numbers[chosen], batch.codes[chosen]
            self.n_seen = np.zeros(2, np.int64) if self.n_seen is None else self.n_seen
        y = np.where(batch.codes[chosen] == self.group[0], 1.0, -1.0)
        is_seed = np.zeros(chosen.size, np.bool_)
        for which, sign in enumerate((1.0, -1.0)):
            of_label = np.flatnonzero(y == sign)
            is_seed[of_label[: max(0, N_SEEDS - self.n_seen[which])]] = True
            self.n_seen[which] += of_label.size
        values = self._kernel(kernel, deadline)
        try:
            samples = np.arange(n_members, n_members + chosen.size)
            self.status = self.expansion.learn(values, samples, y, batch.C[chosen], is_seed)
        except OutOfTime:
            self.status = TIMEOUT
        self._keep_members(values)
        self.gap = self._estimated_gap()

    def finish(self, kernel, deadline, tol):
        """REPROCESS until the set violates the conditions by at most the tolerance, and bound its gap.

        Parameters
        ----------
        kernel : Kernel
            Kernel function with its parameters.
        deadline : float
            Time on `solvers.common.clock.clock` at which to stop.
        tol : float
            Largest violation.
        """
        if self.numbers is None or not self.numbers.size:  # a limit may leave no sample in the set
            self.status, self.gap = CONVERGED, np.nan
            return
        self.expansion.tol = AIMED_SHARE * tol
        values = self._kernel(kernel, deadline)
        try:
            self.status = self.expansion.finish(values)
        except OutOfTime:
            self.status = TIMEOUT
        self._keep_members(values)
        self.gap = np.nan if self.status == TIMEOUT else self._bounded_gap(kernel)

    def support(self):
        """Return the support vectors.

        Returns
        -------
        members : int64 ndarray of shape (k,)
            Rows of `X`.
        alpha : ndarray of shape (k,)
            Their weights, positive.
        """
        places = self.expansion.places
        chosen = self.expansion.members()
        chosen = chosen[places.beta[chosen] != 0.0]
        return places.member[chosen], np.abs(places.beta[chosen])

    def _kernel(self, kernel, deadline):
        """Return the kernel between the samples of `X`.

        Parameters
        ----------
        kernel : Kernel
            Kernel function with its parameters.
        deadline : float
            Time on `solvers.common.clock.clock` at which to stop.

        Returns
        -------
        SubproblemKernel
            Kernel between the samples.
        """
        n = self.X.shape[0]
        rows, start, C = np.arange(n, dtype=np.int32), np.array([0, n]), np.ones(1)
        problem = Problem(kernel.prepare(self.X), rows, start, C, kernel, 0.0, np.empty(0), 0, deadline)
        return SubproblemKernel(problem)

    def _keep_members(self, values):
        """Forget the samples that are not in the set and all kernel rows, and count kernel values.

        Parameters
        ----------
        values : SubproblemKernel
            Kernel of the last call.
        """
        self.n_kernel_evals += values.evaluations
        places, chosen = self.expansion.places, self.expansion.members()
        kept = places.member[chosen]
        self.X, self.numbers, self.codes = self.X[kept], self.numbers[kept], self.codes[kept]
        places.member[chosen] = np.arange(kept.size)
        self.expansion.release_rows()

    def _has_both_labels(self):
        """Return whether the set has samples of both labels. Without them both objectives are 0.

        Returns
        -------
        bool
            Whether the gap is defined.
        """
        is_first = self.codes == self.group[0]
        return bool(is_first.any() and not is_first.all())

    def _estimated_gap(self):
        """Return the relative duality gap on the set, from the gradient that the steps have updated.

        Returns
        -------
        float
            Gap without an allowance for rounding; NaN if the set lacks a label.
        """
        if not self._has_both_labels():
            return np.nan
        p, chosen = self.expansion.places, self.expansion.members()
        low, high = p.low[chosen], p.high[chosen]
        y, C = np.where(high > 0.0, 1.0, -1.0), high - low
        point = p.F[chosen], p.beta[chosen], y, C, np.zeros(chosen.size)
        return float(gap_of(*point, True, self.expansion.bias(), 0.0))

    def _bounded_gap(self, kernel):
        """Bound the relative duality gap on the set, from a gradient that is computed again.

        Parameters
        ----------
        kernel : Kernel
            Kernel function with its parameters.

        Returns
        -------
        float
            Upper bound of the gap; NaN if the set lacks a label.
        """
        if not self._has_both_labels():
            return np.nan
        p, chosen = self.expansion.places, self.expansion.members()
        chosen = chosen[np.argsort(p.high[chosen] <= 0.0, kind="stable")]
        rows, C = p.member[chosen].astype(np.int32), (p.high - p.low)[chosen]
        kernel, X = for_samples(kernel._replace(center=None, by_differences=False), self.X)
        start = np.array([0, np.count_nonzero(p.high[chosen] > 0.0), chosen.size])
        state = SmoState(Problem(X, rows, start, C, kernel, 0.0, np.empty(0), 0, np.inf), "l1")
        state.beta[:] = p.beta[chosen]
        state.store = CachedRows(state.kernel, self.expansion.cache_bytes)
        state.recompute()
        return float(state.gap(state.error()))


@dataclass
class Stream:
    """Sets of all subproblems, and the kernel of the first call."""

    kernel: Kernel
    strategy: str  # "pairwise" or "one_vs_rest"
    n_classes: int
    subsets: list[Subset]
    n_seen: int = 0  # number of samples that have arrived

    def copy(self):
        """Return a copy that another call of `partial_fit` may change.

        Returns
        -------
        Stream
            Copy, without kernel rows.
        """
        return Stream(**(self.__dict__ | {"subsets": [subset.copy() for subset in self.subsets]}))

    def adapt_kernel(self, X):
        """Let the kernel sum squared differences, if its other method is too inexact for new samples.

        `for_samples` has chosen the method from the first batch, which later ones may be far away from.

        Parameters
        ----------
        X : {ndarray, CSR} of shape (n, d)
            Samples of a batch.
        """
        kernel = self.kernel
        if kernel.kind not in RADIAL or kernel.by_differences:
            return
        with np.errstate(over="ignore", invalid="ignore"):
            square = row_norms(kernel.prepare(X), squared=True).max()
        if not kernel.gamma * square <= LARGEST_EXPONENT:
            self.kernel = kernel._replace(by_differences=True, center=None)

    def model(self):
        """Return the support vectors of all subproblems, and their coefficients.

        Returns
        -------
        numbers : int64 ndarray of shape (n_SV,)
            Numbers of the support vectors in the order of arrival, class by class.
        codes : int64 ndarray of shape (n_SV,)
            Their classes.
        X : {ndarray, CSR} of shape (n_SV, n_features) or None
            Their features; None without support vectors.
        dual_coef : ndarray of shape (n_classes − 1 or n_classes, n_SV)
            Coefficients in the layout of scikit-learn.
        """
        used = [subset for subset in self.subsets if subset.numbers is not None]
        parts = [(subset, subset.support()[0]) for subset in used]
        numbers = np.concatenate([np.empty(0, np.int64), *(subset.numbers[k] for subset, k in parts)])
        codes = np.concatenate([np.empty(0, np.int64), *(subset.codes[k] for subset, k in parts)])
        numbers, first = np.unique(numbers, return_index=True)
        order = np.argsort(codes[first], kind="stable")
        position = np.empty(numbers.size, np.int64)
        position[order] = np.arange(numbers.size)
        X = None
        if numbers.size:
            X = parts[0][0].X[parts[0][1]]
            for subset, k in parts[1:]:
                X = stacked(X, subset.X[k])
            X = X[first[order]]
        weights = []
        for subset in self.subsets:
            rows, alpha = subset.support()
            own = numbers[:0] if subset.numbers is None else subset.numbers[rows]
            weights.append((position[np.searchsorted(numbers, own)], alpha))
        codes = codes[first[order]]
        return numbers[order], codes, X, coefficients_of(self.n_classes, self.strategy, codes, weights)


def new_stream(kernel, strategy, n_classes, cache_bytes, tol):
    """Return a stream without samples.

    Parameters
    ----------
    kernel : Kernel
        Kernel function with its parameters.
    strategy : {"pairwise", "one_vs_rest"}
        Strategy for several classes.
    n_classes : int
        Number of classes.
    cache_bytes : float
        Memory for kernel rows, in bytes.
    tol : float
        Largest violation at which no step is taken.

    Returns
    -------
    Stream
        One empty set for each subproblem.
    """
    groups = groups_of(n_classes, strategy)
    subsets = [Subset(group, Expansion(cache_bytes, AIMED_SHARE * tol, NO_LIMIT)) for group in groups]
    return Stream(kernel, strategy, n_classes, subsets)


def stacked(above, below):
    """Return the rows of two matrices of the same format in one.

    Parameters
    ----------
    above, below : {ndarray, CSR}
        Matrices with the same number of columns.

    Returns
    -------
    {ndarray, CSR}
        The rows of `above`, then those of `below`.
    """
    if sparse.issparse(above):
        return sparse.vstack((above, below), format="csr")
    return np.concatenate((above, below))
