"""The state on which every geometric solver iterates: a point c = Σ α_i x̃_i of the hull.

`k̃(i, j) = (y_i·y_j)(k(x_i, x_j) + bias) + δ_ij / C_i` (Strack 2013, 2.114; 5.18 for more than two labels,
where y_i·y_j = −1/(classes − 1) for different classes). A solver stores g_i = x̃_i · c of the *tracked*
samples. These are all samples, or those that have or had weight. Tracked samples are numbered 0 …
n_tracked − 1 in the order of their arrival. That number indexes all arrays of length `capacity`. `grow` may
drop samples without weight, and numbers the others again.
"""

from typing import NamedTuple

import numpy as np
from scipy import sparse

from solvers.common.compile import inlined
from solvers.common.resources import require_memory
from solvers.common.status import FULL, GO_ON, NOT_POSITIVE, PAUSED, UNRESOLVED
from solvers.gram.subproblems import writeable
from solvers.kernels.functions import GRAM

# Content of X: features, sparse features, or kernel values.
DENSE, CSR, VALUES = range(3)

# Indices of Hull.counts and Hull.real.
N_COUNTS = 10
TRACKED, SUPPORT, SLOTS, CLOCK, ITERATIONS, EVALUATIONS, WORK, CLIPPED, DRAWN, FULL_UPDATES = range(N_COUNTS)
SQUARE_NORM, EPSILON = range(2)

# Default of the largest subproblem whose samples are all tracked, in samples.
TRACK_ALL = 50_000
# First capacity for tracked samples, in samples.
FIRST_CAPACITY = 256


class Hull(NamedTuple):
    """Plain arrays for numba. Samples are numbered class by class; sample i is row `rows[i]` of X."""

    X: np.ndarray  # (N, d) features or (N, N) kernel values; (0, 0) for sparse features
    indptr: np.ndarray  # CSR arrays of sparse features, else empty
    indices: np.ndarray
    data: np.ndarray
    rows: np.ndarray  # (n,) int32: row of X of each sample
    class_start: np.ndarray  # (classes + 1,) int64: index of the first sample of each class
    inverse_C: np.ndarray  # (n,) or (1,): 1/C of each sample
    scale: np.ndarray  # (n,) 1 / √k(x, x) if the kernel is normalised, else (0,)
    storage: int  # DENSE, CSR or VALUES
    kind: int  # kernel function and its parameters, see `solvers.kernels.functions.Kernel`
    gamma: float
    coef0: float
    degree: float
    by_differences: bool  # see `solvers.kernels.functions.Kernel`
    bias: float  # value added to the kernel
    opposite: float  # y_i·y_j of different classes
    tracked_all: bool  # whether every sample is tracked; sample i is then number i

    features: np.ndarray  # (d, capacity): tracked samples as columns; (0, capacity) unless X is dense
    square: np.ndarray  # (capacity,) ‖x‖² (sparse features only)
    sample: np.ndarray  # (capacity,) int32: index of a tracked sample among the samples
    label: np.ndarray  # (capacity,) int32: class of a tracked sample
    diagonal: np.ndarray  # (capacity,) k̃(i, i)
    alpha: np.ndarray  # (capacity,) weights
    g: np.ndarray  # (capacity,) inner products x̃_i · c
    position: np.ndarray  # (n,) int32: number of a tracked sample, −1 for the others
    support: np.ndarray  # (capacity,) uint32: tracked samples with α > 0, or the core set
    support_index: np.ndarray  # (capacity,) int32: index of a tracked sample in `support`, or −1

    cache: np.ndarray  # (slots · capacity,): k̃ between a tracked sample and all tracked samples
    slot: np.ndarray  # (capacity,) int32: slot of a tracked sample's row, or −1
    owner: np.ndarray  # (slots,) int32: number of the tracked sample whose row is in a slot
    used: np.ndarray  # (slots,) int64: time at which the row was last used, by counts[CLOCK]
    length: np.ndarray  # (slots,) int32: number of values of the row that are computed
    drawn: np.ndarray  # (kept · capacity,): k̃ between the first samples and all tracked samples, for draws
    drawn_length: np.ndarray  # (kept,) int32: number of values of a row of `drawn` that are computed

    point: np.ndarray  # (d,) sample whose kernel values are being computed
    scratch: np.ndarray  # (capacity,) k̃ between a drawn sample and the tracked ones, or temporary values
    counts: np.ndarray  # (N_COUNTS,) int64: counters, indexed by TRACKED to FULL_UPDATES
    real: np.ndarray  # (2,): ‖c‖² and ε̂, indexed by SQUARE_NORM and EPSILON
    state: np.ndarray  # (1,) uint64: state of the random number generator

    @property
    def n_samples(self):
        """Number of samples of the subproblem, tracked or not."""
        return self.rows.size


class WholeHull(Hull):
    """State in which every sample is tracked. A separate type lets numba omit the draws."""


def new_hull(problem, cache_bytes, first_samples, max_tracked=TRACK_ALL):
    """Allocate the state of a subproblem, without weights and without tracked samples.

    Parameters
    ----------
    problem : solvers.problem.Problem
        Samples of the subproblem, with their penalties C, the kernel and the limits.
    cache_bytes : float
        Memory for kernel rows, in bytes. The cache holds at least four rows.
    first_samples : int
        Largest number of samples with a weight before the first iteration.
    max_tracked : int, default=TRACK_ALL
        Largest number of samples for which all samples are tracked.

    Returns
    -------
    Hull or WholeHull
        The state; a `WholeHull` if all samples are tracked.
    """
    kernel, n, d = problem.kernel, problem.rows.size, problem.X.shape[1]
    tracked_all = n <= max_tracked
    capacity = n if tracked_all else min(n, max(FIRST_CAPACITY, first_samples))
    storage, X, indptr, indices, data = _storage(problem.X, kernel)
    require_memory(
        8.0 * d * capacity if storage == DENSE else 0.0,
        f"a copy of {capacity:,} samples with {d:,} features",
        "use a sparse matrix, or fewer samples",
    )
    slots = _slots(capacity, cache_bytes)
    # The operating system does not allocate untouched memory, so a growing state reserves its whole cache at
    # once.
    cache_values = slots * capacity if capacity >= n else max(slots * capacity, int(cache_bytes // 8))
    kept = 0 if tracked_all else _kept_rows(n, capacity, cache_bytes)
    return (WholeHull if tracked_all else Hull)(
        X=X,
        indptr=indptr,
        indices=indices,
        data=data,
        rows=problem.rows,
        class_start=problem.class_start,
        inverse_C=1.0 / problem.C,
        scale=problem.scale,
        storage=storage,
        kind=kernel.kind,
        gamma=kernel.gamma,
        coef0=kernel.coef0,
        degree=kernel.degree,
        by_differences=kernel.by_differences,
        bias=problem.bias,
        opposite=-1.0 / (problem.class_start.size - 2),
        tracked_all=tracked_all,
        features=np.empty((d if storage == DENSE else 0, capacity)),
        square=np.empty(capacity),
        sample=np.empty(capacity, np.int32),
        label=np.empty(capacity, np.int32),
        diagonal=np.empty(capacity),
        alpha=np.zeros(capacity),
        g=np.zeros(capacity),
        position=np.full(n, -1, np.int32),
        support=np.empty(capacity, np.uint32),
        support_index=np.full(capacity, -1, np.int32),
        cache=np.empty(cache_values),
        slot=np.full(capacity, -1, np.int32),
        owner=np.empty(slots, np.int32),
        used=np.zeros(slots, np.int64),
        length=np.zeros(slots, np.int32),
        drawn=np.empty(kept * capacity),
        drawn_length=np.zeros(kept, np.int32),
        point=np.zeros(0 if storage == VALUES else d),
        scratch=np.empty(capacity),
        counts=np.zeros(N_COUNTS, np.int64),
        real=np.zeros(2),
        state=np.array([problem.seed], np.uint64),
    )


def emptied(hull, problem):
    """Return a state for other penalties of the same samples, with their cached kernel rows.

    Parameters
    ----------
    hull : WholeHull
        State of an earlier training, which must not be used again.
    problem : solvers.problem.Problem
        The same samples, with their penalties C and the seed of the draws.

    Returns
    -------
    WholeHull
        State without weights and without tracked samples. The diagonal of the cached rows is the earlier one.
    """
    hull.alpha[:], hull.g[:], hull.real[:] = 0.0, 0.0, 0.0
    hull.position[:], hull.support_index[:] = -1, -1
    hull.state[0] = problem.seed
    of_cache = [SLOTS, CLOCK]
    kept = hull.counts[of_cache]
    hull.counts[:] = 0
    hull.counts[of_cache] = kept
    return hull._replace(inverse_C=1.0 / problem.C)


@inlined
def interruption(hull, budget):
    """Return why the caller is needed before the next iteration, or GO_ON.

    Parameters
    ----------
    hull : Hull or WholeHull
        State of the solver.
    budget : int
        Elementary operations after which the caller reads the clock.

    Returns
    -------
    int
        FULL, PAUSED, NOT_POSITIVE, UNRESOLVED or GO_ON of `solvers.common.status`.
    """
    counts = hull.counts
    if counts[TRACKED] == hull.g.size and hull.g.size < hull.rows.size:
        return FULL
    if counts[WORK] > budget:
        return PAUSED
    if hull.real[SQUARE_NORM] <= 0.0:
        return NOT_POSITIVE
    if not hull.real[SQUARE_NORM] < np.inf:  # the loop would never end
        return UNRESOLVED
    return GO_ON


@inlined
def largest_value_of(hull):
    """Return a bound on the size of the kernel values of the tracked samples.

    Parameters
    ----------
    hull : Hull or WholeHull
        State of the solver.

    Returns
    -------
    float
        Largest entry of the diagonal, at least 0.
    """
    largest = 0.0
    for p in range(hull.counts[TRACKED]):
        largest = max(largest, hull.diagonal[p])
    return largest


def grow(hull, cache_bytes):
    """Return the state with a larger capacity for tracked samples.

    Samples without weight are dropped if they are at least half of the tracked samples; otherwise the
    capacity doubles. Cached and kept rows are dropped: their width is the capacity, and recomputing them
    costs little compared with the draws.

    Parameters
    ----------
    hull : Hull
        State whose capacity is used up.
    cache_bytes : float
        Memory for kernel rows, in bytes.

    Returns
    -------
    Hull
        The new state, which shares some arrays with the old one.
    """
    m = hull.counts[TRACKED]
    kept = np.arange(m)
    if 2 * hull.counts[SUPPORT] <= m:
        kept = np.sort(hull.support[: hull.counts[SUPPORT]]).astype(np.intp)
    renumbered = np.full(m, -1, np.int32)
    renumbered[kept] = np.arange(kept.size)
    hull.position[hull.sample[:m]] = renumbered

    capacity = min(2 * kept.size, hull.n_samples)
    slots, n_rows = _slots(capacity, cache_bytes), _kept_rows(hull.n_samples, capacity, cache_bytes)
    resized = {}
    for name in ("square", "sample", "label", "diagonal", "alpha", "g", "scratch", "support_index"):
        array = getattr(hull, name)
        resized[name] = np.concatenate((array[kept], np.zeros(capacity - kept.size, array.dtype)))
    resized["support_index"][kept.size :] = -1
    support = np.empty(capacity, np.uint32)
    support[: hull.counts[SUPPORT]] = renumbered[hull.support[: hull.counts[SUPPORT]]]
    features = np.empty((hull.features.shape[0], capacity))
    features[:, : kept.size] = hull.features[:, kept]
    hull.counts[TRACKED], hull.counts[SLOTS] = kept.size, 0
    return hull._replace(
        features=features,
        support=support,
        cache=hull.cache if hull.cache.size >= slots * capacity else np.empty(slots * capacity),
        slot=np.full(capacity, -1, np.int32),
        owner=np.empty(slots, np.int32),
        used=np.zeros(slots, np.int64),
        length=np.zeros(slots, np.int32),
        drawn=np.empty(n_rows * capacity),
        drawn_length=np.zeros(n_rows, np.int32),
        **resized,
    )


def _slots(capacity, cache_bytes):
    """Return the number of cached rows.

    Parameters
    ----------
    capacity : int
        Capacity for tracked samples, which is the length of a row.
    cache_bytes : float
        Memory for kernel rows, in bytes.

    Returns
    -------
    int
        At least four, and at most `capacity`.
    """
    return int(min(capacity, max(4, cache_bytes // (8 * capacity))))


def _kept_rows(n, capacity, cache_bytes):
    """Return the number of samples whose kernel values are kept for later draws.

    Kept rows take the memory that the cache of kernel rows leaves.

    Parameters
    ----------
    n : int
        Number of samples of the subproblem.
    capacity : int
        Capacity for tracked samples, which is the length of a row.
    cache_bytes : float
        Memory for kernel rows, in bytes.

    Returns
    -------
    int
        At least 0, and at most `n`.
    """
    left = cache_bytes // (8 * capacity) - _slots(capacity, cache_bytes)
    return int(min(n, max(0, left)))


def _storage(X, kernel):
    """Split X into the arrays of `Hull`.

    Arrays that do not apply are empty, so that the state has one type and numba compiles once.

    Parameters
    ----------
    X : {ndarray, CSR} of shape (n_samples, n_features)
        Samples, or kernel values.
    kernel : solvers.kernels.functions.Kernel
        Kernel function with its parameters.

    Returns
    -------
    tuple
        The kind of storage, and the fields `X`, `indptr`, `indices` and `data` of `Hull`.
    """
    no_index = np.empty(0, np.int32)
    if sparse.issparse(X):
        indptr = X.indptr.astype(np.int64, copy=False)
        indices = X.indices.astype(np.int32, copy=False)
        return CSR, np.empty((0, 0), X.dtype), indptr, writeable(indices), writeable(X.data)
    storage = VALUES if kernel.kind == GRAM else DENSE
    return storage, writeable(X), np.empty(0, np.int64), no_index, np.empty(0, X.dtype)
