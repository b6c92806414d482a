"""The set of samples that LASVM keeps, with their weights and kernel rows."""

import numpy as np

from solvers.common.progress import first_look, has_stalled, resolution
from solvers.common.resources import NO_LIMIT
from solvers.common.status import CONVERGED, LIMIT, PAUSED, ROW_MISSING, STALLED
from solvers.online.steps import (
    N_USED,
    Arrivals,
    Places,
    extreme_places,
    learn_samples,
    reprocess,
    take_slot,
)
from solvers.smo.certificate import bias_of

# Number of samples whose kernel values are computed together.
CHUNK = 64
# Growth of the capacity when no place is left.
GROWTH = 1.5
# Least number of kernel rows in memory: those of a step, and that of the sample that enters.
MIN_ROWS = 4
# Number of steps between two readings of the clock.
STEPS_BEFORE_CHECK = 1000


class Expansion:
    """Set of samples that the model consists of, for one subproblem.

    Parameters
    ----------
    cache_bytes : float
        Memory for kernel rows, in bytes.
    tol : float
        Largest violation at which no step is taken.
    max_steps : int, default=NO_LIMIT
        Number of steps after which the training ends.
    """

    def __init__(self, cache_bytes, tol, max_steps=NO_LIMIT):
        self.cache_bytes, self.tol, self.max_steps = cache_bytes, tol, max_steps
        self.steps, self.objective = 0, 0.0
        self.places = _places_of(0, 0)
        self.is_member = np.empty(0, np.bool_)

    def copy(self):
        """Return a copy without kernel rows, which are computed again when they are needed.

        Returns
        -------
        Expansion
            Copy that shares no array.
        """
        copy = object.__new__(Expansion)
        copy.__dict__.update(self.__dict__)
        copy.places = _resized(self.places, self.places.member.size, 0)
        copy.is_member = self.is_member.copy()
        return copy

    def release_rows(self):
        """Free the memory of the kernel rows, which are computed again when they are needed."""
        self.places = _resized(self.places, self.places.member.size, 0)

    def members(self):
        """Return the places of the set in use.

        Returns
        -------
        int64 ndarray of shape (n_members,)
            Places, ascending.
        """
        return np.flatnonzero(self.places.member[: self.places.counts[N_USED]] >= 0)

    def violation(self):
        """Return the largest violation of the optimality conditions by a pair of the set.

        Returns
        -------
        float
            The violation; minus infinity if no pair can move.
        """
        i, j = extreme_places(self.places)
        return float(self.places.F[j] - self.places.F[i]) if i >= 0 and j >= 0 else -np.inf

    def bias(self):
        """Return the bias: the mean of −F over the free weights of the set.

        Returns
        -------
        float
            Intercept b of the decision function.
        """
        p, chosen = self.places, self.members()
        return bias_of(p.F[chosen], p.beta[chosen], p.low[chosen], p.high[chosen]) if chosen.size else 0.0

    def decisions(self, kernel, samples):
        """Evaluate the model.

        Parameters
        ----------
        kernel : solvers.kernels.subproblem_kernel.SubproblemKernel
            Kernel between the samples.
        samples : int64 ndarray of shape (m,)
            Numbers of samples.

        Returns
        -------
        decisions : ndarray of shape (m,)
            Decisions f(x), with the bias (g_i + g_j)/2 of the paper.
        block : ndarray of shape (m, used places)
            Kernel values with the used places. Those of empty places have no meaning.
        """
        p, used = self.places, self.places.counts[N_USED]
        block = kernel.block(kernel.points(samples), self._points(kernel))
        i, j = extreme_places(p)
        bias = -0.5 * float(p.F[i] + p.F[j]) if i >= 0 and j >= 0 else 0.0
        return block @ p.beta[:used] + bias, block

    def learn(self, kernel, samples, y, C, is_seed):
        """PROCESS samples one after the other, and let a REPROCESS follow each of them.

        Parameters
        ----------
        kernel : solvers.kernels.subproblem_kernel.SubproblemKernel
            Kernel between the samples.
        samples : int64 ndarray of shape (m,)
            Numbers of the samples, in their order.
        y : ndarray of shape (m,)
            Labels, −1 or 1.
        C : ndarray of shape (m,)
            Penalties.
        is_seed : bool ndarray of shape (m,)
            Samples that no REPROCESS follows.

        Returns
        -------
        int
            CONVERGED, or LIMIT after `max_steps` steps.

        Raises
        ------
        OutOfTime
            If the deadline passes.
        """
        for start in range(0, samples.size, CHUNK):
            kernel.check_time()
            part = slice(start, start + CHUNK)
            points = kernel.points(samples[part])
            block = np.empty((samples[part].size, self.places.counts[N_USED] + samples[part].size))
            used = self.places.counts[N_USED]
            if used:
                block[:, :used] = kernel.block(points, self._points(kernel))
            block[:, used:] = kernel.block(points, points)
            status = self.learn_block(kernel, samples[part], y[part], C[part], is_seed[part], block)
            if status != CONVERGED:
                return status
        return CONVERGED

    def learn_block(self, kernel, samples, y, C, is_seed, block):
        """PROCESS samples whose kernel values are known.

        Parameters
        ----------
        kernel : solvers.kernels.subproblem_kernel.SubproblemKernel
            Kernel between the samples.
        samples : int64 ndarray of shape (m,)
            Numbers of the samples, in their order.
        y : ndarray of shape (m,)
            Labels, −1 or 1.
        C : ndarray of shape (m,)
            Penalties.
        is_seed : bool ndarray of shape (m,)
            Samples that no REPROCESS follows.
        block : ndarray of shape (m, used places + m)
            Kernel values with the used places, and then with these samples.

        Returns
        -------
        int
            CONVERGED, or LIMIT after `max_steps` steps.
        """
        self._reserve(samples.size)
        used = int(self.places.counts[N_USED])
        diagonal = block[np.arange(samples.size), used + np.arange(samples.size)]
        arrivals = Arrivals(samples, y, C, diagonal, is_seed, block)
        column, cursor = np.arange(self.places.member.size), np.zeros(3, np.int64)
        while True:
            left = self.max_steps - self.steps
            done = learn_samples(self.places, arrivals, column, self.is_member, cursor, self.tol, left)
            if not self._account(kernel, *done):
                return done[0]

    def finish(self, kernel):
        """REPROCESS until no pair of the set violates the optimality conditions by more than the tolerance.

        Parameters
        ----------
        kernel : solvers.kernels.subproblem_kernel.SubproblemKernel
            Kernel between the samples.

        Returns
        -------
        int
            CONVERGED, LIMIT after `max_steps` steps, or STALLED if the steps gain next to nothing.

        Raises
        ------
        OutOfTime
            If the deadline passes.
        """
        self._reserve(0)
        before, n = self.steps, int(self.places.counts[N_USED])
        look = first_look(n)
        while True:
            kernel.check_time()
            left = min(STEPS_BEFORE_CHECK, self.max_steps - self.steps)
            done = reprocess(self.places, self.is_member, self._resolved_tol(), left)
            if self._account(kernel, *done):
                continue
            if done[0] != PAUSED:
                return done[0]
            if self.steps >= self.max_steps:
                return LIMIT
            if (steps := self.steps - before) >= look[0]:
                if has_stalled(look, steps, self.objective, self.violation(), self.tol, n):
                    return STALLED
                look = (2 * steps, self.objective, look[1] - self.objective)

    def _resolved_tol(self):
        """Return the tolerance, or the violation that rounding alone can cause if that is larger.

        Returns
        -------
        float
            Largest violation at which no step is taken.
        """
        p, used = self.places, self.places.counts[N_USED]
        largest = p.diagonal[:used].max(initial=0.0) * np.abs(p.beta[:used]).sum()
        return max(self.tol, 2.0 * float(resolution(largest + 1.0)))

    def _account(self, kernel, status, steps, wanted, gain):
        """Add steps to the totals, and compute the kernel row that is missing.

        Parameters
        ----------
        kernel : solvers.kernels.subproblem_kernel.SubproblemKernel
            Kernel between the samples.
        status, steps, wanted, gain
            Results of a loop of `solvers.online.steps`.

        Returns
        -------
        bool
            Whether a row was missing, so that the loop has to be called again.
        """
        self.steps += steps
        self.objective -= gain
        if status != ROW_MISSING:
            return False
        used = int(self.places.counts[N_USED])
        point = kernel.points(self.places.member[wanted : wanted + 1])
        row = kernel.block(point, self._points(kernel))[0]
        self.places.rows[take_slot(self.places, wanted), :used] = row
        return True

    def _points(self, kernel):
        """Return the samples at all used places. Any sample stands for those of empty places.

        Parameters
        ----------
        kernel : solvers.kernels.subproblem_kernel.SubproblemKernel
            Kernel between the samples.

        Returns
        -------
        {ndarray, CSR}
            Samples, as `SubproblemKernel.block` takes them.
        """
        return kernel.points(np.maximum(self.places.member[: self.places.counts[N_USED]], 0))

    def _reserve(self, n):
        """Increase the capacity if fewer than a number of places are left.

        Parameters
        ----------
        n : int
            Number of samples that may enter.
        """
        capacity = self.places.member.size
        needed = int(self.places.counts[N_USED]) + n
        if needed > capacity or not self.places.owner.size:
            capacity = max(needed, int(GROWTH * capacity)) if needed > capacity else capacity
            n_slots = int(min(capacity, max(MIN_ROWS, self.cache_bytes // (8 * capacity))))
            self.places = _resized(self.places, capacity, n_slots)


def _places_of(capacity, n_slots):
    """Return an empty set.

    Parameters
    ----------
    capacity : int
        Number of places.
    n_slots : int
        Number of kernel rows in memory.

    Returns
    -------
    Places
        Set without samples.
    """
    return Places(
        np.zeros(3, np.int64),
        np.zeros(capacity, np.int64),
        np.full(capacity, -1),
        np.zeros(capacity, np.int64),
        np.zeros(capacity),
        np.zeros(capacity),
        np.zeros(capacity),
        np.zeros(capacity),
        np.zeros(capacity),
        np.zeros((n_slots, capacity)),
        np.full(capacity, -1),
        np.full(n_slots, -1),
        np.zeros(n_slots, np.int64),
        np.zeros(n_slots + 1, np.int64),
    )


def _resized(places, capacity, n_slots):
    """Return a set with another capacity.

    Parameters
    ----------
    places : Places
        Samples of the set.
    capacity : int
        Number of places, at least that of `places`.
    n_slots : int
        Number of kernel rows in memory. If there are fewer than before, the rows used last are kept.

    Returns
    -------
    Places
        Copy of the set.
    """
    larger, old = _places_of(capacity, n_slots), places.member.size
    larger.counts[:] = places.counts
    for name in ("empty", "member", "entered", "F", "beta", "low", "high", "diagonal"):
        getattr(larger, name)[:old] = getattr(places, name)
    kept = np.argsort(-places.clock[:-1], kind="stable")[:n_slots]
    kept = kept[places.owner[kept] >= 0]
    m = kept.size
    larger.rows[:m, :old] = places.rows[kept]
    larger.owner[:m], larger.filled[:m] = places.owner[kept], places.filled[kept]
    larger.clock[:m], larger.clock[-1] = places.clock[kept], places.clock[-1]
    larger.slot[larger.owner[:m]] = np.arange(m)
    return larger
