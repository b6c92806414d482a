"""Many small binary problems together: kernel values of two tiles of classes at a time serve all their pairs.

A pair of classes needs the kernel values within its classes and between them. Consecutive classes form tiles
of a few hundred samples. The values within each class are computed once, and those between two tiles once.
All pairs of the two tiles are then one numba call, so no Python runs between pairs. A block of two tiles
stays in the processor's cache, and the whole Gram matrix is never stored.
"""

import time
from itertools import combinations_with_replacement, pairwise
from typing import NamedTuple

import numpy as np

from solvers.common.blas import one_blas_thread
from solvers.common.clock import clock
from solvers.common.resources import NO_LIMIT, in_threads, n_threads
from solvers.common.status import TIMEOUT
from solvers.gram.outcomes import new_outcomes, rows_used
from solvers.gram.subproblems import block_dtype, class_sizes, new_workspace
from solvers.kernels.functions import GRAM, kernel_block
from solvers.multiclass import index_of_pair, subproblem_seeds
from solvers.path.driver import allocate_path, error_of_scaled, shares_of, solution_of, solve_grams

MIN_CLASSES = 11
"""Smallest number of classes whose pairs are trained by tiles."""
MAX_SAMPLES = 500
"""Largest number of samples of a pair that is trained by tiles."""
TILE_SAMPLES = 512
"""Largest number of samples of a tile of several classes. Two tiles have at most 8 MB of kernel values."""
NEARBY = 4
"""Number of classes in a group. Pairs of two groups follow each other, so their values stay cached."""
SHORT, LONG = 0.01, 0.04
"""Seconds below and above which the next piece of pairs is larger or smaller, if there is a deadline."""


class Tile(NamedTuple):
    """Consecutive classes."""

    first: int  # index of the first class
    last: int  # index of the last class, plus 1
    start: int  # index of the first sample among the samples sorted by class
    stop: int  # index of the last sample, plus 1


def _padded(n):
    """Return a width of a matrix at which a column meets all sets of the processor's cache.

    Parameters
    ----------
    n : int
        Number of columns.

    Returns
    -------
    int
        Odd multiple of 8 values (64 bytes), at least n.
    """
    return 8 * (-(-n // 8) | 1)


class Tiles:
    """Kernel values of a training set, for two tiles of classes at a time.

    Parameters
    ----------
    X : {ndarray, CSR} of shape (n_samples, n_features), or ndarray of shape (n_samples, n_samples)
        Training samples as `Kernel.prepare` returns them, or their Gram matrix.
    kernel : solvers.kernels.functions.Kernel
        Kernel function with its parameters, as chosen for the training samples.
    scale : ndarray of shape (n_samples,), or (0,)
        1/√k(x, x) if the kernel is to be normalised, else empty.
    problem : PathProblem
        Samples by class, weights and values of C of the path.

    Attributes
    ----------
    error : float
        Bound on the error of a value.
    tiles : list of Tile
        Groups of consecutive classes, which cover all classes in order.
    """

    def __init__(self, X, kernel, scale, problem):
        self._X, self._kernel, self._scale, self._problem = X, kernel, scale, problem
        self.error: float = error_of_scaled(kernel.error, scale)
        self.tiles = tiles_of_classes(problem.class_start)
        # Pairs of two tiles share these values; the pairs of a single tile have them in its matrix.
        self._within = [self._within_classes(tile) for tile in self.tiles] if len(self.tiles) > 1 else []

    def dtype(self):
        """Return the type of the blocks of pairs.

        Returns
        -------
        type
            float32 for a float32 Gram matrix whose values have errors, else float64.
        """
        return block_dtype(self._X, self._kernel.error) if self._kernel.kind == GRAM else np.float64

    def new_memory(self):
        """Allocate memory for the kernel values of two tiles.

        Returns
        -------
        ndarray of shape (n_values,)
            Memory for `gram`, of the type of the kernel values.
        """
        largest = sum(sorted(tile.stop - tile.start for tile in self.tiles)[-2:])
        return np.zeros(_padded(largest) ** 2, self._X.dtype if self._kernel.kind == GRAM else np.float64)

    def gram(self, one, other, memory):
        """Return a matrix with the kernel values that the pairs of two tiles need.

        Parameters
        ----------
        one, other : int
            Indices of the tiles; equal for the pairs within a tile.
        memory : ndarray
            Memory of `new_memory`.

        Returns
        -------
        ndarray of shape (width, width)
            Its first n rows and columns are the Gram matrix of the n samples of both tiles. For two different
            tiles, values between different classes of the same tile are not valid.
        """
        tile = self.tiles[one]
        a = tile.stop - tile.start
        n = a if one == other else a + self.tiles[other].stop - self.tiles[other].start
        width = _padded(n)
        K = memory[: width * width].reshape(width, width)
        if one == other:
            K[:n, :n] = self._values(tile, tile)
        else:
            between = self._values(tile, self.tiles[other])
            K[:a, a:n], K[a:n, :a] = between, between.T
            for at, values in (*self._classes_at(one, 0), *self._classes_at(other, a)):
                K[at, at] = values
        return K

    def _classes_at(self, index, offset):
        """Yield the kernel values within each class of a tile.

        Parameters
        ----------
        index : int
            Index of the tile.
        offset : int
            Index of its first sample in a matrix of two tiles.

        Yields
        ------
        at : slice
            Samples of the class in that matrix.
        values : ndarray
            Their kernel values.
        """
        for values in self._within[index]:
            yield slice(offset, offset + len(values)), values
            offset += len(values)

    def _within_classes(self, tile):
        """Return the kernel values within each class of a tile.

        Parameters
        ----------
        tile : Tile
            Consecutive classes.

        Returns
        -------
        list of ndarray
            A matrix for each class.
        """
        K, starts = self._values(tile, tile), self._problem.class_start[tile.first : tile.last + 1]
        starts = (starts - tile.start).tolist()
        return [K[a:b, a:b].copy() for a, b in pairwise(starts)]

    def _values(self, tile, other):
        """Evaluate the kernel between the samples of two tiles.

        Parameters
        ----------
        tile, other : Tile
            Classes of the rows, and of the columns.

        Returns
        -------
        ndarray
            Kernel values.
        """
        rows, others = self._rows(tile), self._rows(other)
        if self._kernel.kind == GRAM:
            return self._X[np.ix_(rows, others)]
        K = kernel_block(self._X[rows], self._X[others], self._kernel)
        if self._scale.size:
            K *= self._scale[rows, None]
            K *= self._scale[others]
        return K

    def _rows(self, tile):
        """Return the rows of X of a tile.

        Parameters
        ----------
        tile : Tile
            Consecutive classes.

        Returns
        -------
        int32 ndarray
            Rows, class by class.
        """
        return self._problem.rows[tile.start : tile.stop]


def tiles_of_classes(class_start):
    """Divide classes into tiles.

    Parameters
    ----------
    class_start : int ndarray of shape (n_classes + 1,)
        Boundaries of the classes among the samples.

    Returns
    -------
    list of Tile
        Tiles of at most `TILE_SAMPLES` samples, or of one class.
    """
    starts, tiles, first = class_start.tolist(), [], 0
    for t in range(1, len(starts)):
        if t + 1 == len(starts) or starts[t + 1] - starts[first] > TILE_SAMPLES:
            tiles.append(Tile(first, t, starts[first], starts[t]))
            first = t
    return tiles


def has_many_small_pairs(class_start):
    """Return whether a training set has many small pairs, for which training on tiles is faster.

    Parameters
    ----------
    class_start : int ndarray of shape (n_classes + 1,)
        Boundaries of the classes among the samples.

    Returns
    -------
    bool
        True from `MIN_CLASSES` classes on, if no pair has more than `MAX_SAMPLES` samples.
    """
    return class_start.size > MIN_CLASSES and np.sort(class_sizes(class_start))[-2:].sum() <= MAX_SAMPLES


def path_by_tiles(X, kernel, scale, problem, solver, deadline=np.inf, n_jobs=None):
    """Train all pairs of classes for every C, on tiles of classes.

    Parameters
    ----------
    X : {ndarray, CSR} of shape (n_samples, n_features), or ndarray of shape (n_samples, n_samples)
        Training samples as `Kernel.prepare` returns them, or their Gram matrix.
    kernel : solvers.kernels.functions.Kernel
        Kernel function with its parameters, as chosen for the training samples.
    scale : ndarray of shape (n_samples,), or (0,)
        1/√k(x, x) if the kernel is to be normalised, else empty.
    problem : PathProblem
        Problem of the path, for pairs of classes.
    solver : BlockSolver
        Algorithm that trains each subproblem on its block.
    deadline : float, default=inf
        Time on `solvers.common.clock.clock` at which to stop. It is checked between pieces of pairs. Pairs
        that were not trained have no weight, and the status TIMEOUT.
    n_jobs : int or None, default=None
        Number of threads, as in `in_threads`. The result does not depend on it. It must be None if there is a
        deadline or a limit of the iterations, which the pairs share in turn.

    Returns
    -------
    PathSolution
        Trained subproblems.
    """
    started = time.perf_counter()
    groups, weights, outcomes, left = allocate_path(problem)
    with one_blas_thread():  # the products are small
        source = Tiles(X, kernel, scale, problem)
        training = _Training(source, problem, solver, groups, deadline, left, weights, outcomes)
        pairs = [*combinations_with_replacement(range(len(source.tiles)), 2)]
        n = n_threads(n_jobs)
        in_threads(training.run, [pairs[k::n] for k in range(n)], n)
    seconds = shares_of(time.perf_counter() - started, outcomes.costs)
    return solution_of(problem, weights, rows_used(weights), outcomes, solver, seconds)


class _Training:
    """Training of the pairs of tiles, with the arrays that receive the results.

    Parameters
    ----------
    source : Tiles
        Kernel values.
    problem : PathProblem
        Samples by class, weights and values of C of the path.
    solver : BlockSolver
        Algorithm that trains each subproblem on its block.
    groups : int64 ndarray of shape (n_pairs, 2)
        Pairs of classes.
    deadline : float
        Time on `solvers.common.clock.clock` at which to stop.
    left : int64 ndarray of shape (n_C,)
        Remaining iterations, changed in place.
    weights : ndarray of shape (n_C, n_classes - 1, n)
        Receives the weights, in the layout of `PathSolution.weights`.
    outcomes : Outcomes
        Receives the other results.
    """

    def __init__(self, source, problem, solver, groups, deadline, left, weights, outcomes):
        self._source, self._problem, self._solver, self._groups = source, problem, solver, groups
        self._deadline, self._left, self._weights, self._outcomes = deadline, left, weights, outcomes
        self._seeds = subproblem_seeds(solver.seed, len(groups))
        self._n_waiting = len(groups)
        self._size = 1  # number of pairs of the next piece, if there is a deadline

    def run(self, pairs):
        """Train the pairs of classes of some pairs of tiles, in the memory of one thread.

        Parameters
        ----------
        pairs : list of tuple
            Pairs of indices of tiles.
        """
        memory = self._source.new_memory()
        n_C, dtype = self._problem.Cs.size, self._source.dtype()
        workspace = new_workspace(self._problem.class_start, self._groups, 2, n_C, dtype)
        for one, other in pairs:
            self._train(one, other, memory, workspace)

    def _train(self, one, other, memory, workspace):
        """Train the pairs of classes of two tiles.

        Parameters
        ----------
        one, other : int
            Indices of the tiles, ascending.
        memory : ndarray
            Memory of `Tiles.new_memory`.
        workspace : solvers.gram.subproblems.Workspace
            Memory for the blocks.
        """
        tile, last = self._source.tiles[one], self._source.tiles[other]
        n_first = tile.last - tile.first
        classes = np.arange(tile.first, tile.last)
        if one == other:
            groups = np.transpose(np.triu_indices(n_first, 1))
        else:
            classes = np.concatenate((classes, np.arange(last.first, last.last)))
            groups = np.indices((n_first, last.last - last.first)).reshape(2, -1).T + np.array([0, n_first])
        nearby = np.lexsort((groups[:, 1] // NEARBY, groups[:, 0] // NEARBY))
        groups = np.ascontiguousarray(groups[nearby], dtype=np.int64)
        if not len(groups):
            return
        indices = index_of_pair(classes[groups[:, 0]], classes[groups[:, 1]], self._problem.classes.size)
        if clock() > self._deadline:
            return self._leave_out(indices)
        K = self._source.gram(one, other, memory)
        problem = self._part([tile] if one == other else [tile, last], classes)
        weights = np.zeros((1, problem.Cs.size, classes.size - 1, problem.rows.size))
        first = 0
        while first < len(groups):
            if clock() > self._deadline:
                self._leave_out(indices[first:])
                break
            piece = slice(first, first + (len(groups) if self._deadline == np.inf else self._size))
            self._solve(K, problem, groups[piece], indices[piece], weights, workspace)
            first = piece.stop
        self._store(weights[0], tile, last)

    def _part(self, tiles, classes):
        """Return the problem of some tiles, whose samples are numbered from 0.

        Parameters
        ----------
        tiles : list of Tile
            Tiles whose samples the problem gets.
        classes : int ndarray
            Indices of their classes, ascending.

        Returns
        -------
        PathProblem
            Problem of their pairs.
        """
        class_start = self._problem.class_start
        sizes = class_start[classes + 1] - class_start[classes]
        return self._problem._replace(
            classes=self._problem.classes[classes],
            rows=np.arange(sizes.sum(), dtype=np.int32),
            class_start=np.concatenate(([0], np.cumsum(sizes))),
            inverse_weights=np.concatenate([self._problem.inverse_weights[t.start : t.stop] for t in tiles]),
        )

    def _solve(self, K, problem, groups, indices, weights, workspace):
        """Train some pairs of two tiles in one numba call.

        Parameters
        ----------
        K : ndarray of shape (width, width)
            Kernel values of both tiles, as `Tiles.gram` returns them.
        problem : PathProblem
            Problem of both tiles.
        groups : int64 ndarray of shape (n_pairs, 2)
            Pairs of class indices of `problem`.
        indices : int64 ndarray of shape (n_pairs,)
            Indices of the pairs among all pairs.
        weights : ndarray of shape (1, n_C, n_classes - 1, n)
            Receives the weights.
        workspace : solvers.gram.subproblems.Workspace
            Memory for the blocks.
        """
        began, n_pairs = clock(), len(groups)
        outcomes = new_outcomes(n_pairs, problem.Cs.size, 2)
        left = np.array([_share(value, n_pairs, self._n_waiting) for value in self._left.tolist()])
        solve_grams(
            K[None],
            [self._source.error],
            problem,
            groups,
            left=left[None],
            solvers=[self._solver],
            weights=weights,
            outcomes=outcomes,
            workspace=workspace,
            seeds=self._seeds[indices],
        )
        for values, found in zip(self._outcomes, outcomes, strict=True):
            values[indices] = found
        is_limited = self._left != NO_LIMIT
        if is_limited.any():
            self._left[is_limited] -= np.minimum(self._left, outcomes.iterations.sum(axis=0))[is_limited]
            self._n_waiting -= n_pairs
        seconds = clock() - began
        self._size = self._size * 2 if seconds < SHORT else max(1, self._size // (1 + (seconds > LONG)))

    def _leave_out(self, indices):
        """Record that pairs were not trained, because the time is over.

        Parameters
        ----------
        indices : int64 ndarray
            Indices of the pairs among all pairs.
        """
        self._outcomes.statuses[indices], self._outcomes.gaps[indices] = TIMEOUT, np.nan

    def _store(self, weights, tile, last):
        """Copy the weights of the pairs of two tiles to those of all pairs.

        Parameters
        ----------
        weights : ndarray of shape (n_C, n_classes of both tiles - 1, n)
            Weights, in the layout of `PathSolution.weights`.
        tile, last : Tile
            The tiles; equal for the pairs within a tile.
        """
        n_first, a = tile.last - tile.first, tile.stop - tile.start
        of_first, of_last = slice(tile.start, tile.stop), slice(last.start, last.stop)
        if tile == last:
            self._weights[:, tile.first : tile.last - 1, of_first] = weights
        else:
            self._weights[:, last.first - 1 : last.last - 1, of_first] = weights[:, n_first - 1 :, :a]
            self._weights[:, tile.first : tile.last, of_last] = weights[:, :n_first, a:]


def _share(left, n, n_waiting):
    """Return the share of some pairs in the remaining iterations, rounded up.

    Parameters
    ----------
    left : int
        Remaining iterations.
    n : int
        Number of pairs.
    n_waiting : int
        Number of pairs that have not been trained, including these.

    Returns
    -------
    int
        Iterations of the n pairs together.
    """
    return left if left == NO_LIMIT else -(-left * n // n_waiting)
