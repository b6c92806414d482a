"""The point of a convex hull nearest to a target: Wolfe's method (1976), also on reduced hulls.

For points x_i and a target s, the method minimises ‖z‖², z = Σ λ_i x_i − s, over Σ λ_i = 1 and 0 ≤ λ_i ≤ u_i.
The feasible set is a polytope. Its vertex in a direction z gives the largest possible weight to the points
with the smallest x_i·z. Without bounds the vertices are the points themselves. The method keeps at most d + 1
vertices, the corral, with the Cholesky factor of their inner products. A major cycle adds the vertex with the
smallest x·z. Minor cycles move to the point of smallest norm in the affine hull of the corral, and drop
vertices that lose their weight.

With g_i = (x_i − s)·z, the smallest norm is at least min g / ‖z‖, where the minimum is over the vertices.
`solvers.common.certificate` turns that into a bound that holds for all rounding errors.
"""

from typing import NamedTuple

import numpy as np
from scipy import sparse

from solvers.common.certificate import FEW_ROUNDINGS, TERMS_IN_PRODUCT, UNIT_ROUNDOFF, certified_gap
from solvers.common.clock import clock
from solvers.common.compile import njit
from solvers.common.resources import NO_LIMIT, require_memory
from solvers.common.status import CONVERGED, LIMIT, STALLED, TIMEOUT

TOLERANCE = 1e-10
"""Difference of ‖z‖² and min g at which the method ends, as a share of the smaller of ‖z‖² and the largest
‖x_i − s‖²."""
ZERO = 1e-8
"""Largest ‖z‖ that counts as zero, as a share of the largest distance of a point from s."""
SMALLEST_PIVOT = 1e-13
"""Smallest squared distance of a new vertex from the affine hull of the corral, as a share of the scale."""
FIRST_CAPACITY = 16
"""Number of vertices that the first arrays of a corral hold."""


class Nearest(NamedTuple):
    """Nearest point of a hull."""

    z: np.ndarray  # (d,): nearest point less the target; zeros if the target is in the hull
    samples: np.ndarray  # points with weight
    weights: np.ndarray  # their weights λ, with the sum 1
    gap: float  # certified relative error of ‖z‖², from 0 to 1; 0 if the target is in the hull
    n_iter: int  # major cycles, of which the first takes the first vertex
    status: int  # how the method ended


class Hull:
    """Convex hull of weighted points around a target, and its reduced hulls.

    Parameters
    ----------
    X : {ndarray, CSR} of shape (n, d)
        Points.
    weights : ndarray of shape (n,)
        Weights of the points, positive. They scale the bounds of reduced hulls.
    target : ndarray of shape (d,)
        Target s.
    """

    def __init__(self, X, weights, target):
        self.weights, self.target = weights, target
        self.is_uniform = bool((weights == weights[0]).all())
        self._points = X if sparse.issparse(X) else X - target
        if sparse.issparse(X):
            norms = np.asarray(X.multiply(X).sum(axis=1)).ravel()
            squares = norms - 2.0 * np.asarray(X @ target).ravel() + target @ target
            self._largest = float(np.sqrt(norms.max()) + np.linalg.norm(target))
        else:
            squares = np.einsum("ij,ij->i", self._points, self._points)
            self._largest = float(np.sqrt(squares.max()) + 2.0 * np.linalg.norm(target))
        self.square_scale = max(float(squares.max()), 0.0)

    @property
    def total(self):
        """Sum of the weights of the points."""
        return float(self.weights.sum())

    def scores(self, z):
        """Return (x_i − s)·z of every point.

        Parameters
        ----------
        z : ndarray of shape (d,)
            Direction.

        Returns
        -------
        ndarray of shape (n,)
            Scores.
        """
        if sparse.issparse(self._points):
            return np.asarray(self._points @ z).ravel() - self.target @ z
        return self._points @ z

    def mean(self):
        """Return the mean of the points less the target, in which every λ is proportional to its weight.

        Returns
        -------
        ndarray of shape (d,)
            Mean.
        """
        share = self.weights / self.total
        if sparse.issparse(self._points):
            return np.asarray(self._points.T @ share).ravel() - self.target
        return share @ self._points

    def vertex(self, g, mu):
        """Return the vertex of a reduced hull with the smallest score.

        Parameters
        ----------
        g : ndarray of shape (n,)
            Scores of the points.
        mu : float
            Bound of λ for a weight of 1. From 1 on there is no bound.

        Returns
        -------
        rows : int64 ndarray
            Points of the vertex.
        shares : ndarray
            Their weights, with the sum 1.
        """
        if mu >= 1.0:
            return np.array([g.argmin()]), np.ones(1)
        count = int(np.floor(1.0 / mu + 1e-9))
        if self.is_uniform and self.weights[0] == 1.0 and count < g.size:
            rows = np.argpartition(g, count)[: count + 1]
            rows = rows[np.argsort(g[rows], kind="stable")]
        else:
            rows = np.argsort(g, kind="stable")
        ends = np.minimum(np.cumsum(mu * self.weights[rows]), 1.0)
        shares = np.diff(ends, prepend=0.0)
        used = shares > 0.0
        return rows[used], shares[used] / shares.sum()

    def combine(self, rows, shares):
        """Return a combination of points less the target.

        Parameters
        ----------
        rows : int64 ndarray
            Points.
        shares : ndarray
            Their weights, with the sum 1.

        Returns
        -------
        ndarray of shape (d,)
            Combination.
        """
        if sparse.issparse(self._points):
            return np.asarray(self._points[rows].T @ shares).ravel() - self.target
        return self._points[rows[0]].copy() if rows.size == 1 else shares @ self._points[rows]

    def error_of(self, z):
        """Return a bound on the rounding error of a score.

        Parameters
        ----------
        z : ndarray of shape (d,)
            Direction.

        Returns
        -------
        float
            Bound.
        """
        roundings = z.size / TERMS_IN_PRODUCT + FEW_ROUNDINGS
        return roundings * UNIT_ROUNDOFF * self._largest * float(np.linalg.norm(z))


class Corral:
    """Corral: vertices with their weights and the Cholesky factor of their inner products.

    Parameters
    ----------
    dimension : int
        Number of features.
    scale : float
        Number that is added to the inner products, so that affinely independent vertices have a factor.
    """

    def __init__(self, dimension, scale):
        self.size, self.scale = 0, scale
        self.members: list[tuple] = []
        self._V, self._R = np.empty((FIRST_CAPACITY, dimension)), np.empty((FIRST_CAPACITY, FIRST_CAPACITY))
        self._weights = np.zeros(FIRST_CAPACITY)

    @property
    def weights(self):
        """Weight of each vertex, with the sum 1."""
        return self._weights[: self.size]

    def point(self):
        """Return the point that the weights of the vertices define.

        Returns
        -------
        ndarray of shape (d,)
            Point less the target.
        """
        return self.weights @ self._V[: self.size]

    def add(self, vertex, member):
        """Add a vertex of weight 0, if it is affinely independent of the others.

        Parameters
        ----------
        vertex : ndarray of shape (d,)
            Vertex less the target.
        member : tuple
            Points and shares of the vertex.

        Returns
        -------
        bool
            Whether the vertex was added.
        """
        if self.size == self._weights.size:
            self._enlarge()
        products = self._V[: self.size] @ vertex + self.scale
        k = append_row(self._R, self.size, products, float(vertex @ vertex) + self.scale, self.scale)
        if k == self.size:
            return False
        self._V[self.size], self._weights[self.size] = vertex, 0.0 if self.size else 1.0
        self.members.append(member)
        self.size = k
        return True

    def descend(self):
        """Move to the point of smallest norm in the convex hull of the vertices, and drop the others."""
        order = np.arange(self.size)
        k = minor_cycles(self._R, self._weights, order, self.size)
        kept = order[:k]
        if k < self.size:
            self._V[:k] = self._V[kept]
            self.members = [self.members[t] for t in kept]
        self.size = k

    def combination(self):
        """Return the points with weight, and their weights.

        Returns
        -------
        samples : int64 ndarray
            Points, ascending.
        weights : ndarray
            Their weights, with the sum 1.
        """
        rows = np.concatenate([rows for rows, _ in self.members])
        shares = np.concatenate(
            [w * shares for w, (_, shares) in zip(self.weights, self.members, strict=True)]
        )
        samples, inverse = np.unique(rows, return_inverse=True)
        return samples, np.bincount(inverse, shares)

    def _enlarge(self):
        """Double the number of vertices that fit."""
        k, n = self.size, 2 * self.size
        d = self._V.shape[1]
        require_memory(
            8.0 * n * (n + d),
            f"{n:,} vertices of a hull with {d:,} features",
            "use fewer features or samples",
        )
        V, R, weights = np.empty((n, d)), np.empty((n, n)), np.zeros(n)
        V[:k], R[:k, :k], weights[:k] = self._V, self._R, self._weights
        self._V, self._R, self._weights = V, R, weights


@njit(allocates=False)
def append_row(R, k, products, square, scale):
    """Append a row to a Cholesky factor Rᵀ of inner products.

    Parameters
    ----------
    R : array (any, any)
        Lower triangular factor of k rows; receives row k.
    k : int
        Number of rows.
    products : array (k,)
        Inner products of the new vector with the others, overwritten.
    square : float
        Inner product of the new vector with itself.
    scale : float
        Size of the inner products.

    Returns
    -------
    int
        k + 1, or k if the new vector depends on the others within rounding.
    """
    rest = square
    for i in range(k):
        value = products[i]
        for j in range(i):
            value -= R[i, j] * products[j]
        value /= R[i, i]
        products[i] = value
        rest -= value * value
    if not rest > SMALLEST_PIVOT * max(square, scale):
        return k
    for j in range(k):
        R[k, j] = products[j]
    R[k, k] = np.sqrt(rest)
    return k + 1


@njit
def minor_cycles(R, weights, order, k):
    """Move to the point of smallest norm in the convex hull, and drop vertices without weight.

    Parameters
    ----------
    R : array (any, any)
        Lower triangular factor of the inner products plus a constant, updated.
    weights : array (any,)
        Weights of the vertices, updated.
    order : int64 array (k,)
        Receives the indices of the vertices that are kept, in their order.
    k : int
        Number of vertices.

    Returns
    -------
    int
        Number of vertices that are kept.
    """
    u = np.empty(k)
    while True:
        total = 0.0
        for i in range(k):  # R Rᵀ u = e
            value = 1.0
            for j in range(i):
                value -= R[i, j] * u[j]
            u[i] = value / R[i, i]
        for i in range(k - 1, -1, -1):
            u[i] /= R[i, i]
            for j in range(i):
                u[j] -= R[i, j] * u[i]
            total += u[i]
        step, worst = 1.0, -1
        for i in range(k):
            u[i] /= total
            if u[i] <= 0.0:
                share = weights[i] / (weights[i] - u[i]) if weights[i] > 0.0 else 0.0
                if worst < 0 or share < step:
                    step, worst = share, i
        if worst < 0:
            for i in range(k):
                weights[i] = u[i]
            return k
        rest = 0.0
        for i in range(k):
            weights[i] = max(0.0, (1.0 - step) * weights[i] + step * u[i])
        weights[worst] = 0.0
        for i in range(k - 1, -1, -1):
            if weights[i] == 0.0 and k > 1:
                remove_row(R, i, k)
                for j in range(i, k - 1):
                    weights[j], order[j] = weights[j + 1], order[j + 1]
                k -= 1
        for i in range(k):
            rest += weights[i]
        for i in range(k):
            weights[i] /= rest


@njit(allocates=False)
def remove_row(R, removed, k):
    """Remove a row from a Cholesky factor by rotations.

    Parameters
    ----------
    R : array (any, any)
        Lower triangular factor of k rows, updated.
    removed : int
        Row to remove.
    k : int
        Number of rows.
    """
    for i in range(removed + 1, k):
        for j in range(i + 1):
            R[i - 1, j] = R[i, j]
    for i in range(removed, k - 1):
        a, b = R[i, i], R[i, i + 1]
        radius = np.hypot(a, b)
        c, s = a / radius, b / radius
        R[i, i] = radius
        for t in range(i + 1, k - 1):
            first, second = R[t, i], R[t, i + 1]
            R[t, i] = c * first + s * second
            R[t, i + 1] = c * second - s * first


def nearest_point(hull, mu=1.0, max_iter=NO_LIMIT, deadline=np.inf, tol=TOLERANCE, only_zero=False):
    """Return the point of a hull that is nearest to its target.

    Parameters
    ----------
    hull : Hull
        Points and target.
    mu : float, default=1.0
        Bound of λ for a weight of 1. From 1 on there is no bound.
    max_iter : int, default=NO_LIMIT
        Largest number of major cycles.
    deadline : float, default=inf
        Time on `solvers.common.clock.clock` at which the method stops.
    tol : float, default=TOLERANCE
        Difference of ‖z‖² and min g at which the method ends, as a share of the smaller of ‖z‖² and the
        largest squared distance of a point from the target. Where rounding ends the progress, a share of the
        latter is enough.
    only_zero : bool, default=False
        Whether the method ends as soon as it is certain that the target is outside the hull.

    Returns
    -------
    Nearest
        Nearest point, with its certificate.
    """
    scale = hull.square_scale
    if scale == 0.0:
        return Nearest(np.zeros(hull.target.size), np.zeros(1, np.int64), np.ones(1), 0.0, 1, CONVERGED)
    corral = Corral(hull.target.size, scale)
    member = hull.vertex(hull.scores(hull.mean()), mu)
    corral.add(hull.combine(*member), member)
    n_iter, square, z = 1, np.inf, corral.point()
    while True:
        previous, square = square, float(z @ z)
        if square <= ZERO**2 * scale:
            samples, weights = corral.combination()
            return Nearest(np.zeros(z.size), samples, weights, 0.0, n_iter, CONVERGED)
        g = hull.scores(z)
        member = hull.vertex(g, mu)
        lowest = float(member[1] @ g[member[0]])
        if lowest >= square - tol * min(scale, square) or (
            only_zero and lowest > ZERO * np.sqrt(scale * square)
        ):
            status = CONVERGED
        elif not square < previous:
            status = CONVERGED if lowest >= square - tol * scale else STALLED
        elif n_iter >= max_iter:
            status = LIMIT
        elif clock() >= deadline:
            status = TIMEOUT
        elif corral.add(hull.combine(*member), member):
            n_iter += 1
            corral.descend()
            z = corral.point()
            continue
        else:
            status = CONVERGED if lowest >= square - tol * scale else STALLED
        gap = float(certified_gap(square, lowest, hull.error_of(z), 1.0))
        samples, weights = corral.combination()
        return Nearest(z, samples, weights, gap, n_iter, status)
