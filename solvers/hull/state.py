"""The state that every geometric solver iterates on: a point c = Σ α_i x̃_i of the hull.

`k̃(i, j) = (y_i·y_j)(k(x_i, x_j) + bias) + δ_ij / C_i` (Strack 2013, 2.114; 5.18 for more than two labels,
where y_i·y_j = −1/(classes − 1) for different classes). A solver keeps g_i = x̃_i · c for the *tracked*
samples: all of them, or those that ever had weight. Tracked samples are numbered 0 …
n_tracked − 1 in the order of their arrival, and all the arrays of length `capacity` are indexed by that
number.
"""

from typing import NamedTuple

import numpy as np
from scipy import sparse

from solvers.common.compile import inlined
from solvers.common.resources import require_memory
from solvers.common.status import FULL, GO_ON, NOT_POSITIVE, PAUSED, UNRESOLVED
from solvers.gram.subproblems import writeable
from solvers.kernels.functions import GRAM

DENSE, CSR, VALUES = range(3)  # what X holds: features, sparse features, kernel values

# Places in Hull.counts and Hull.real.
TRACKED, SUPPORT, SLOTS, CLOCK, ITERATIONS, EVALUATIONS, WORK, CLIPPED, DRAWN = range(9)
SQUARE_NORM, EPSILON = range(2)

TRACK_ALL = 50_000  # samples; above, g is kept for the support vectors only, unless asked for
FIRST_CAPACITY = 256


class Hull(NamedTuple):
    """Plain arrays for numba. Samples are numbered class by class; sample i is row `rows[i]` of X."""

    X: np.ndarray
    indptr: np.ndarray
    indices: np.ndarray
    data: np.ndarray
    rows: np.ndarray  # (n,) int32
    class_start: np.ndarray  # (classes + 1,) int64: class t starts at sample class_start[t]
    inverse_C: np.ndarray  # (n,) or (1,)
    scale: np.ndarray  # (n,) 1 / √k(x, x) when the kernel is normalised, else (0,)
    storage: int
    kind: int
    gamma: float
    coef0: float
    degree: float
    by_differences: bool  # see `solvers.kernels.functions.Kernel`
    bias: float
    opposite: float  # y_i·y_j of different classes
    tracked_all: bool  # whether every sample is tracked: sample i is then number i

    features: np.ndarray  # (d, capacity): the tracked samples, one a column; (0, capacity) unless dense
    square: np.ndarray  # (capacity,) ‖x‖² (sparse features only)
    sample: np.ndarray  # (capacity,) int32
    label: np.ndarray  # (capacity,) int32
    diagonal: np.ndarray  # (capacity,) k̃(i, i)
    alpha: np.ndarray  # (capacity,)
    g: np.ndarray  # (capacity,)
    position: np.ndarray  # (n,) int32: number of a tracked sample, −1 for the others
    support: np.ndarray  # (capacity,) uint32: tracked samples with α > 0
    support_index: np.ndarray  # (capacity,) int32: where in `support`, or −1

    cache: np.ndarray  # (slots · capacity,): k̃ between a tracked sample and all
    slot: np.ndarray  # (capacity,) int32: slot of a tracked sample's row, or −1
    owner: np.ndarray  # (slots,) int32
    used: np.ndarray  # (slots,) int64: when the row was last asked for
    length: np.ndarray  # (slots,) int32: how many of its values are filled in

    point: np.ndarray  # (d,) the sample whose kernel values are being computed
    scratch: np.ndarray  # (capacity,) k̃ between a drawn sample and the tracked ones, or whatever
    counts: np.ndarray  # (9,) int64
    real: np.ndarray  # (2,)
    state: np.ndarray  # (1,) uint64: random state

    @property
    def n_samples(self):
        """Samples of the machine, tracked or not."""
        return self.rows.size


class WholeHull(Hull):
    """The state where every sample is tracked: another type, for which numba does not compile the draws."""


def new_hull(problem, cache_bytes, epsilon, first_samples, max_tracked=TRACK_ALL):
    """Allocate the state for a problem: no weight anywhere, and nothing tracked yet.

    Parameters
    ----------
    problem : solvers.problem.Problem
    cache_bytes : float
        Room for kernel rows; never less than four rows.
    epsilon : float
        First ε̂.
    first_samples : int
        How many samples, at most, get weight before the first iteration.
    most_tracked : int
        All samples are tracked where there are no more than so many.
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
    # Memory that is never touched costs nothing: a machine that may grow gets all of its cache at once.
    cache_values = slots * capacity if capacity >= n else max(slots * capacity, int(cache_bytes // 8))
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
        point=np.zeros(0 if storage == VALUES else d),
        scratch=np.empty(capacity),
        counts=np.zeros(9, np.int64),
        real=np.array([0.0, epsilon]),
        state=np.array([problem.seed], np.uint64),
    )


@inlined
def interruption(hull, budget):
    """Whether the caller is needed before the next iteration, and for what."""
    counts = hull.counts
    if counts[TRACKED] == hull.g.size and hull.g.size < hull.rows.size:
        return FULL
    if counts[WORK] > budget:
        return PAUSED
    if hull.real[SQUARE_NORM] <= 0.0:
        return NOT_POSITIVE
    if not hull.real[SQUARE_NORM] < np.inf:  # it would never end
        return UNRESOLVED
    return GO_ON


@inlined
def largest_value_of(hull):
    """Return a bound on the size of the kernel values of the tracked samples."""
    largest = 0.0
    for p in range(hull.counts[TRACKED]):
        largest = max(largest, hull.diagonal[p])
    return largest


def grow(hull, cache_bytes):
    """Return the state with room for more tracked samples.

    Those without weight are forgotten if they have piled up to half of all; else the room is doubled. Cached
    rows are forgotten: they are as wide as the room, and computing them again costs little beside the draws.
    """
    m = hull.counts[TRACKED]
    kept = np.arange(m)
    if 2 * hull.counts[SUPPORT] <= m:
        kept = np.sort(hull.support[: hull.counts[SUPPORT]]).astype(np.intp)
    renumbered = np.full(m, -1, np.int32)
    renumbered[kept] = np.arange(kept.size)
    hull.position[hull.sample[:m]] = renumbered

    capacity = min(2 * kept.size, hull.n_samples)
    slots = _slots(capacity, cache_bytes)
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
        **resized,
    )


def _slots(capacity, cache_bytes):
    return int(min(capacity, max(4, cache_bytes // (8 * capacity))))


def _storage(X, kernel):
    """Split X into the arrays of `Hull`; those that do not apply are empty: one type, compiled once."""
    no_index = np.empty(0, np.int32)
    if sparse.issparse(X):
        indptr = X.indptr.astype(np.int64, copy=False)
        indices = X.indices.astype(np.int32, copy=False)
        return CSR, np.empty((0, 0), X.dtype), indptr, writeable(indices), writeable(X.data)
    storage = VALUES if kernel.kind == GRAM else DENSE
    return storage, writeable(X), np.empty(0, np.int64), no_index, np.empty(0, X.dtype)
