"""A billiard in the version space, whose mean position is the Bayes point (Ruján 1997; Herbrich et al. 2001).

The version space is the part of the unit sphere where ``y_i ⟨w, φ_i⟩ > 0`` for all samples, in the space of
the kernel ``K + diag(1/C)``. A ball at b = Σ y_i γ_i φ_i flies along a great circle with the unit velocity v
= Σ y_i β_i φ_i, and is reflected by the planes of the samples. With the signed matrix H, ``H_ij = y_i y_j (K
+ diag(1/C))_ij``, its distances from the planes are d = Hγ, and their velocities u = Hβ. The planes are hit
at the angles θ_j = atan2(d_j, −u_j).

A billiard need not be ergodic: in an orthant it never leaves a torus. So the ball stops after each arc of a
given length, and flies on in a random direction. This keeps the uniform distribution on the version space.

A bounce changes d and u of all samples, but one coefficient of the velocity only. Position and velocity are
therefore kept as G and B and a rotation of the two, and the integral W of the position as coefficients of G
and B plus a remainder. All of them are written out where a call ends.
"""

import math
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cholesky, solve_triangular

from solvers.common.blas import one_blas_thread
from solvers.common.clock import clock
from solvers.common.compile import inner, njit
from solvers.common.reductions import larger_of
from solvers.common.resources import in_threads
from solvers.common.status import CONVERGED, LIMIT, PAUSED, TIMEOUT

LENGTH, ARC_LEFT, CHORDS, LONGEST, LEAST_OVERLAP, OVERLAP = range(6)
"""Entries of `Ball.numbers`: length of the path; length up to the next restart; sum and largest of the
chords; smallest ⟨mean, midpoint⟩; ⟨position, velocity⟩ of a straight flight."""
BOUNCES, SINCE_EXACT, N_ARCS, LAST_PLANE = range(4)
"""Entries of `Ball.counts`: bounces; bounces since d and u were computed from the coefficients; finished
arcs; plane of the last bounce, −1 for none."""
STRIP = 64
"""Number of samples whose planes are compared at a time."""
TINY = 1e-300
"""Smallest distance from a plane in a quotient."""
ESCAPE = 1e4
"""Length beyond which a straight flight meets no plane (Herbrich et al. 2001)."""
TOO_SHORT = 1e-9
"""Length of a position that cannot be projected on the sphere."""
EXACT_AFTER, EXACT_PER_SAMPLE = 500, 4
"""Bounces after which d and u are computed again: the sum of a number, and of another one for each sample."""
WORK_OF_CALL = 1 << 26
"""Number of updates of a distance between two readings of the clock, about."""
FEWEST_ARCS, MOST_ARCS = 8, 64
"""Numbers of directions that are drawn at a time."""
FIRST_ARCS = 64
"""Least number of arcs of each ball before the first comparison of the balls."""
MIN_SPREAD = 2.0
"""Distance from its start that a ball has to reach by diffusion before the first comparison, in radians."""
MAX_GROWTH, MIN_GROWTH = 4.0, 1.25
"""Growth of the number of arcs between two comparisons."""


class NotPositiveDefinite(ValueError):
    """The kernel matrix with its ridge is not positive definite."""


class Table(NamedTuple):
    """The planes of a version space, which all balls share."""

    H: np.ndarray  # (n, n): kernel values with the ridge and the signs of the labels
    L: np.ndarray  # (n, n): lower Cholesky factor of H
    start: np.ndarray  # (n,): coefficients of the unit vector with equal distances from all planes


class Ball(NamedTuple):
    """A ball and the path that it has flown, as coefficients with the signs of the labels."""

    gamma: np.ndarray  # (n,): position, a unit vector
    beta: np.ndarray  # (n,): velocity, a unit vector
    d: np.ndarray  # (n,): distances from the planes, at least 0
    u: np.ndarray  # (n,): velocities of the distances
    W: np.ndarray  # (n,): integral of the position over the path
    DW: np.ndarray  # (n,): H W; only for the rule of the paper
    numbers: np.ndarray  # (6,): see `LENGTH`
    counts: np.ndarray  # int64 (4,): see `BOUNCES`


def table_of(H):
    """Factor the matrix of a version space.

    Parameters
    ----------
    H : ndarray of shape (n, n)
        Kernel values with the ridge and the signs of the labels.

    Returns
    -------
    Table
        Planes.

    Raises
    ------
    NotPositiveDefinite
        The matrix has no Cholesky factor.
    """
    with one_blas_thread():
        try:
            L = cholesky(H, lower=True, check_finite=False)
        except LinAlgError as error:
            raise NotPositiveDefinite(str(error)) from error
        half = solve_triangular(L, np.ones(H.shape[0]), lower=True, check_finite=False)
        start = solve_triangular(L, half, lower=True, trans=1, check_finite=False)
    return Table(H, L, start / np.sqrt(half @ half))


def ball_at_start(table):
    """Return a ball that has not flown yet.

    Parameters
    ----------
    table : Table
        Planes.

    Returns
    -------
    Ball
        Ball at the start, without a velocity.
    """
    n = table.start.size
    with one_blas_thread():
        d = table.H @ table.start
    zeros = [np.zeros(n) for _ in range(4)]
    numbers = np.array([0.0, 0.0, 0.0, 0.0, 1.0, 0.0])
    return Ball(
        table.start.copy(), zeros[0], d, zeros[1], zeros[2], zeros[3], numbers, np.array([0, 0, 0, -1])
    )


def draw_directions(table, generator, n_directions):
    """Draw isotropic vectors of the space that the samples span.

    Parameters
    ----------
    table : Table
        Planes.
    generator : numpy.random.Generator
        Source of the vectors.
    n_directions : int
        Number of vectors.

    Returns
    -------
    coefficients, velocities : ndarray of shape (n_directions, n), C-contiguous
        β and Hβ of each vector.
    """
    normal = generator.standard_normal((table.start.size, n_directions))
    with one_blas_thread():
        coefficients = solve_triangular(table.L, normal, lower=True, trans=1, check_finite=False)
        velocities = table.L @ normal
    return np.ascontiguousarray(coefficients.T), np.ascontiguousarray(velocities.T)


@inner
def first_plane(d, u):
    """Return the plane that a flight along a great circle meets first: the one of the smallest θ.

    Parameters
    ----------
    d, u : arrays (n,)
        Distances from the planes, and their velocities.

    Returns
    -------
    int
        Index of the sample. θ falls with −u/d, which needs no trigonometric function.
    """
    best, first = -np.inf, 0
    for start in range(0, d.size, STRIP):
        nearest = -np.inf
        for t in range(start, min(start + STRIP, d.size)):
            nearest = larger_of(nearest, -u[t] / larger_of(d[t], TINY))
        if nearest > best:
            best, first = nearest, start
    best, plane = -np.inf, first
    for t in range(first, min(first + STRIP, d.size)):
        ratio = -u[t] / larger_of(d[t], TINY)
        if ratio > best:
            best, plane = ratio, t
    return plane


@inner
def turn(d, u, cosine, sine):
    """Rotate distances and their velocities.

    Parameters
    ----------
    d, u : arrays (n,), changed in place
        Distances from the planes, and their velocities.
    cosine, sine : float
        Cosine and sine of the angle of flight.
    """
    for t in range(d.size):
        before = d[t]
        d[t] = larger_of(before * cosine + u[t] * sine, 0.0)
        u[t] = u[t] * cosine - before * sine


@inner
def turn_and_reflect(d, u, cosine, sine, change, row):
    """Rotate distances and their velocities, and reflect the velocity by a plane.

    Parameters
    ----------
    d, u : arrays (n,), changed in place
        Distances from the planes, and their velocities.
    cosine, sine : float
        Cosine and sine of the angle of flight.
    change : float
        Coefficient of the plane that is subtracted from the velocity.
    row : array (n,)
        Row of H of the plane.
    """
    for t in range(d.size):
        before = d[t]
        d[t] = larger_of(before * cosine + u[t] * sine, 0.0)
        u[t] = u[t] * cosine - before * sine - change * row[t]


@njit
def make_exact(H, ball):
    """Normalise position and velocity, and compute d and u from the coefficients.

    Parameters
    ----------
    H : array (n, n)
        Signed kernel matrix.
    ball : Ball
        Ball, changed in place. Its velocity is made tangent.
    """
    gamma, beta, d, u = ball.gamma, ball.beta, ball.d, ball.u
    np.dot(H, gamma, d)
    length = np.sqrt(np.dot(gamma, d))
    for t in range(d.size):
        gamma[t] /= length
        d[t] = max(d[t] / length, 0.0)
    np.dot(H, beta, u)
    set_tangent(ball)
    ball.counts[SINCE_EXACT] = 0


@njit
def set_tangent(ball):
    """Make the velocity a unit vector that is tangent to the sphere.

    Parameters
    ----------
    ball : Ball
        Ball with β and u of any direction, changed in place.
    """
    gamma, beta, d, u = ball.gamma, ball.beta, ball.d, ball.u
    along = np.dot(beta, d)
    for t in range(d.size):
        beta[t] -= along * gamma[t]
        u[t] -= along * d[t]
    length = np.sqrt(np.dot(beta, u))
    for t in range(d.size):
        beta[t] /= length
        u[t] /= length


@njit
def fly_arcs(H, ball, coefficients, velocities, restart, max_bounces):
    """Fly along great circles, with a new direction after each arc.

    Parameters
    ----------
    H : array (n, n)
        Signed kernel matrix.
    ball : Ball
        Ball, changed in place.
    coefficients, velocities : arrays (m, n)
        New directions, one for each arc.
    restart : float
        Length of an arc.
    max_bounces : int
        Largest number of bounces of the ball, those of earlier calls included.

    Returns
    -------
    int
        Number of directions that were used. An arc that `max_bounces` interrupts goes on in the next call.
    """
    numbers, counts = ball.numbers, ball.counts
    for k in range(coefficients.shape[0]):
        if numbers[ARC_LEFT] <= 0.0:
            ball.beta[:] = coefficients[k]
            ball.u[:] = velocities[k]
            set_tangent(ball)
            numbers[ARC_LEFT] = restart
        while numbers[ARC_LEFT] > 0.0:
            if counts[BOUNCES] >= max_bounces:
                return k
            if counts[SINCE_EXACT] >= EXACT_AFTER + EXACT_PER_SAMPLE * ball.d.size:
                make_exact(H, ball)
            _fly_arc(H, ball, max_bounces)
        counts[N_ARCS] += 1
    return coefficients.shape[0]


@njit
def _fly_arc(H, ball, max_bounces):
    """Fly to the end of an arc, of the bounces, or until d and u should be computed again.

    Parameters
    ----------
    H : array (n, n)
        Signed kernel matrix.
    ball : Ball
        Ball, changed in place.
    max_bounces : int
        Largest number of bounces of the ball.
    """
    G, B, W, d, u, numbers, counts = ball.gamma, ball.beta, ball.W, ball.d, ball.u, ball.numbers, ball.counts
    # position = c G + s B and velocity = c B − s G; W is the array W plus w_G G + w_B B.
    c, s, w_G, w_B = 1.0, 0.0, 0.0, 0.0
    limit = EXACT_AFTER + EXACT_PER_SAMPLE * d.size
    while counts[BOUNCES] < max_bounces and counts[SINCE_EXACT] < limit:
        plane = first_plane(d, u)
        distance, velocity = d[plane], u[plane]
        angle = np.arctan2(distance, -velocity)
        is_last = angle >= numbers[ARC_LEFT]
        if is_last:
            angle = numbers[ARC_LEFT]
            cosine, sine = np.cos(angle), np.sin(angle)
        else:
            size = np.sqrt(distance * distance + velocity * velocity)
            cosine, sine = -velocity / size, distance / size
        numbers[LENGTH] += angle
        numbers[ARC_LEFT] -= angle
        w_G += sine * c - (1.0 - cosine) * s
        w_B += sine * s + (1.0 - cosine) * c
        c, s = c * cosine - s * sine, s * cosine + c * sine
        if is_last:
            turn(d, u, cosine, sine)
            numbers[ARC_LEFT] = 0.0
            break
        change = 2.0 * (velocity * cosine - distance * sine) / H[plane, plane]
        turn_and_reflect(d, u, cosine, sine, change, H[plane])
        d[plane], u[plane] = 0.0, abs(u[plane])
        W[plane] += change * (w_B * c - w_G * s)
        G[plane] += change * s
        B[plane] -= change * c
        counts[BOUNCES] += 1
        counts[SINCE_EXACT] += 1
        counts[LAST_PLANE] = plane
    for t in range(d.size):
        at_G, at_B = G[t], B[t]
        W[t] += w_G * at_G + w_B * at_B
        G[t], B[t] = c * at_G + s * at_B, c * at_B - s * at_G


@inner
def weight_of_midpoint(overlap, share):
    """Return ρ2 of Herbrich et al. (2001): how far a new arc can move the mean at most.

    Parameters
    ----------
    overlap : float
        ⟨mean, midpoint⟩ of two unit vectors.
    share : float
        Length of the path so far, as a share of that with the arc.

    Returns
    -------
    float
        Coefficient of the midpoint in the new mean.
    """
    square = share * share * (1.0 - overlap)
    return 1.0 - square - share * np.sqrt((2.0 - square) / (1.0 + overlap)) * overlap


@njit
def fly_by_rule(H, ball, coefficients, velocities, restart, is_straight, tol, max_bounces):
    """Fly until the mean moves by less than a tolerance (Herbrich et al. 2001), all arrays written out.

    Parameters
    ----------
    H : array (n, n)
        Signed kernel matrix.
    ball : Ball
        Ball, changed in place.
    coefficients, velocities : arrays (m, n)
        New directions.
    restart : float
        Length of an arc; infinite for a ball that never stops.
    is_straight : bool
        Whether the flight is straight, with the position projected on the sphere where it meets a plane.
    tol : float
        Largest ρ2 of the worst arc of the run.
    max_bounces : int
        Largest number of bounces of the ball, those of earlier calls included.

    Returns
    -------
    status : int
        CONVERGED, LIMIT, or PAUSED if more directions are needed.
    used : int
        Number of directions that were used.
    """
    gamma, beta, d, u, W, DW = ball.gamma, ball.beta, ball.d, ball.u, ball.W, ball.DW
    numbers, counts, used = ball.numbers, ball.counts, 0
    while counts[BOUNCES] < max_bounces:
        plane = _first_on_line(d, u) if is_straight else first_plane(d, u)
        if numbers[ARC_LEFT] <= 0.0 or plane < 0:
            if used == coefficients.shape[0]:
                return PAUSED, used
            beta[:], u[:] = coefficients[used], velocities[used]
            used += 1
            _set_direction(ball, is_straight)
            numbers[ARC_LEFT] = restart
            continue
        if counts[SINCE_EXACT] >= EXACT_AFTER + EXACT_PER_SAMPLE * d.size:
            _make_exact_all(H, ball, is_straight)
        along = numbers[OVERLAP]
        if is_straight:
            step = max(d[plane], 0.0) / -u[plane]
            size = np.sqrt(max(0.0, 1.0 + 2.0 * step * along + step * step))
            if size < TOO_SHORT:  # the flight would meet the origin
                numbers[ARC_LEFT] = 0.0
                continue
            cosine, sine = 1.0 / size, step / size
            angle = np.arctan2(step * np.sqrt(max(0.0, 1.0 - along * along)), 1.0 + step * along)
        else:
            angle = np.arctan2(d[plane], -u[plane])
            cosine, sine = np.cos(angle), np.sin(angle)
        is_last = angle >= numbers[ARC_LEFT]
        if is_last and not is_straight:  # a straight flight goes on to the next plane
            angle = numbers[ARC_LEFT]
            cosine, sine = np.cos(angle), np.sin(angle)
        chord = 2.0 * np.sin(0.5 * angle)
        overlap_before = np.dot(gamma, DW)
        of_mean = np.sqrt(max(np.dot(W, DW), 0.0))
        for t in range(d.size):
            at, distance = gamma[t], d[t]
            gamma[t] = cosine * at + sine * beta[t]
            d[t] = max(cosine * distance + sine * u[t], 0.0)
            if not is_straight:
                beta[t] = cosine * beta[t] - sine * at
                u[t] = cosine * u[t] - sine * distance
        # The integral of an arc is the chord times the midpoint; the midpoint is the sum over its length.
        midpoint = 1.0 / (2.0 * np.cos(0.5 * angle)) if angle < np.pi else 0.0
        if of_mean > 0.0:
            overlap = (overlap_before + np.dot(gamma, DW)) * midpoint / of_mean
            numbers[LEAST_OVERLAP] = min(numbers[LEAST_OVERLAP], max(overlap, -1.0 + 1e-12))
        _add_arc(ball, cosine, sine, chord * midpoint, is_straight)
        numbers[LENGTH] += angle
        numbers[ARC_LEFT] -= angle
        numbers[CHORDS] += chord
        numbers[LONGEST] = max(numbers[LONGEST], chord)
        if is_straight:
            numbers[OVERLAP] = (along + sine / cosine) * cosine
        if not is_last or is_straight:
            change = 2.0 * u[plane] / H[plane, plane]
            beta[plane] -= change
            for t in range(d.size):
                u[t] -= change * H[plane, t]
            d[plane], u[plane] = 0.0, abs(u[plane])
            counts[BOUNCES] += 1
            counts[SINCE_EXACT] += 1
            counts[LAST_PLANE] = plane
        if is_last:
            numbers[ARC_LEFT] = 0.0
            counts[N_ARCS] += 1
        share = numbers[CHORDS] / (numbers[CHORDS] + numbers[LONGEST])
        if weight_of_midpoint(numbers[LEAST_OVERLAP], share) < tol:
            return CONVERGED, used
    return LIMIT, used


@inner
def _add_arc(ball, cosine, sine, weight, is_straight):
    """Add the integral of an arc that ends at the position of a ball to W and HW.

    Parameters
    ----------
    ball : Ball
        Ball after the flight, changed in place.
    cosine, sine : float
        Coefficients of the flight.
    weight : float
        Chord of the arc over the length of the sum of both ends.
    is_straight : bool
        Whether the velocity is the one before the flight.
    """
    gamma, beta, d, u, W, DW = ball.gamma, ball.beta, ball.d, ball.u, ball.W, ball.DW
    for t in range(d.size):
        if is_straight:
            before, distance = (gamma[t] - sine * beta[t]) / cosine, (d[t] - sine * u[t]) / cosine
        else:
            before, distance = cosine * gamma[t] - sine * beta[t], cosine * d[t] - sine * u[t]
        W[t] += weight * (before + gamma[t])
        DW[t] += weight * (distance + d[t])


@inner
def _first_on_line(d, u):
    """Return the plane that a straight flight meets first.

    Parameters
    ----------
    d, u : arrays (n,)
        Distances from the planes, and their velocities.

    Returns
    -------
    int
        Index of the sample; −1 if no plane is nearer than `ESCAPE`.
    """
    best, plane = ESCAPE, -1
    for t in range(d.size):
        if u[t] < 0.0:
            step = d[t] / -u[t]
            if step < best:
                best, plane = step, t
    return plane


@njit
def _set_direction(ball, is_straight):
    """Give a ball a drawn velocity of length 1, away from the plane on which it lies.

    Parameters
    ----------
    ball : Ball
        Ball with β and u of any direction, changed in place.
    is_straight : bool
        Whether the velocity need not be tangent.
    """
    if is_straight:
        length = np.sqrt(np.dot(ball.beta, ball.u))
        ball.beta[:] /= length
        ball.u[:] /= length
    else:
        set_tangent(ball)
    last = ball.counts[LAST_PLANE]
    if last >= 0 and ball.d[last] == 0.0 and ball.u[last] < 0.0:
        ball.beta[:] *= -1.0
        ball.u[:] *= -1.0
    ball.numbers[OVERLAP] = np.dot(ball.beta, ball.d) if is_straight else 0.0


@njit
def _make_exact_all(H, ball, is_straight):
    """Compute the arrays of a ball from its coefficients, HW included.

    Parameters
    ----------
    H : array (n, n)
        Signed kernel matrix.
    ball : Ball
        Ball, changed in place.
    is_straight : bool
        Whether the velocity need not be tangent.
    """
    if is_straight:
        gamma, d = ball.gamma, ball.d
        np.dot(H, gamma, d)
        length = np.sqrt(np.dot(gamma, d))
        for t in range(d.size):
            gamma[t] /= length
            d[t] = max(d[t] / length, 0.0)
        np.dot(H, ball.beta, ball.u)
        length = np.sqrt(np.dot(ball.beta, ball.u))
        ball.beta[:] /= length
        ball.u[:] /= length
        ball.numbers[OVERLAP] = np.dot(ball.beta, d)
        ball.counts[SINCE_EXACT] = 0
    else:
        make_exact(H, ball)
    np.dot(H, ball.W, ball.DW)


class Rules(NamedTuple):
    """When a ball stops in flight, and when the balls end."""

    restart: float  # length of an arc; infinite for none
    is_straight: bool  # whether the flight is straight
    tol: float  # largest 1 − cos of the angle between two balls; without restarts, largest ρ2
    max_bounces: int  # largest number of bounces of a ball
    deadline: float  # time on `solvers.common.clock.clock` at which to stop


class Played(NamedTuple):
    """Result of a billiard."""

    mean: np.ndarray  # (n,): coefficients of the mean position, a unit vector, with the signs of the labels
    gap: float  # 1 − cos of the largest angle between the means of two balls
    status: int  # CONVERGED, LIMIT or TIMEOUT: whether the rule of every ball holds, or why not
    bounces: int  # of all balls
    concentration: float  # length of the mean position, at most 1


class Player:
    """Flights of one ball, with its source of directions.

    Parameters
    ----------
    table : Table
        Planes.
    rules : Rules
        When the ball stops.
    seed : sequence of int
        Seed of the directions.
    """

    def __init__(self, table, rules, seed):
        self.table, self.rules, self.ball = table, rules, ball_at_start(table)
        self._generator = np.random.default_rng(seed)
        n = table.start.size
        self._n_drawn = int(np.clip(WORK_OF_CALL // (2 * n * n), FEWEST_ARCS, MOST_ARCS))
        self._directions: Any = None
        self._next = self._n_drawn

    def _batch(self):
        """Return the directions that are not used yet; draw new ones if there are none.

        Returns
        -------
        coefficients, velocities : ndarray of shape (m, n)
            Directions.
        """
        if self._next == self._n_drawn:
            self._directions, self._next = draw_directions(self.table, self._generator, self._n_drawn), 0
        return tuple(values[self._next :] for values in self._directions)

    def fly(self, n_arcs):
        """Fly until a number of arcs is finished, or a limit is reached.

        Parameters
        ----------
        n_arcs : int
            Number of finished arcs, those of earlier calls included.

        Returns
        -------
        int
            CONVERGED, LIMIT or TIMEOUT.
        """
        counts, rules = self.ball.counts, self.rules
        while counts[N_ARCS] < n_arcs:
            if clock() > rules.deadline:
                return TIMEOUT
            coefficients, velocities = (part[: n_arcs - counts[N_ARCS]] for part in self._batch())
            before = counts[N_ARCS]
            with one_blas_thread():
                fly_arcs(self.table.H, self.ball, coefficients, velocities, rules.restart, rules.max_bounces)
            self._next += int(counts[N_ARCS] - before)
            if counts[BOUNCES] >= rules.max_bounces:
                return LIMIT
        return CONVERGED

    def fly_by_rule(self):
        """Fly until the rule of Herbrich et al. (2001) holds, or a limit is reached.

        Returns
        -------
        int
            CONVERGED, LIMIT or TIMEOUT.
        """
        rules, counts = self.rules, self.ball.counts
        chunk = max(100, WORK_OF_CALL // self.table.start.size)
        while True:
            if clock() > rules.deadline:
                return TIMEOUT
            limit = min(rules.max_bounces, int(counts[BOUNCES]) + chunk)
            with one_blas_thread():
                status, used = fly_by_rule(
                    *(self.table.H, self.ball, *self._batch()),
                    *(rules.restart, rules.is_straight, rules.tol, limit),
                )
            self._next += int(used)
            if status == CONVERGED or counts[BOUNCES] >= rules.max_bounces:
                return int(status)


def least_arcs(restart):
    """Return the number of arcs after which balls that agree count as converged.

    A ball with short arcs moves as by diffusion. All balls start at the same point, and agree until they have
    left it: after N arcs of a length ℓ they are about ℓ √N away.

    Parameters
    ----------
    restart : float
        Length of an arc; infinite for none.

    Returns
    -------
    int
        Number of arcs, at least `FIRST_ARCS`.
    """
    return max(FIRST_ARCS, math.ceil((MIN_SPREAD / restart) ** 2))


def play(table, rules, n_balls, seed, n_jobs=None):
    """Fly several balls, and return the mean of their positions.

    Balls that restart fly until they agree. Balls without restarts, or with straight flights, fly until the
    rule of Herbrich et al. (2001) holds for each.

    Parameters
    ----------
    table : Table
        Planes.
    rules : Rules
        When balls stop.
    n_balls : int
        Number of balls, at least 2.
    seed : int
        Seed of the directions of all balls.
    n_jobs : int or None, default=None
        Number of threads; None is one, −1 one for each core.

    Returns
    -------
    Played
        Mean of the positions of all balls, and their largest disagreement.
    """
    players = [Player(table, rules, [seed, k]) for k in range(n_balls)]
    enough = least_arcs(rules.restart)
    if rules.is_straight or rules.restart == np.inf:
        status = max(in_threads(Player.fly_by_rule, players, n_jobs))
        return _result_of(table, players, status)
    n_arcs = enough
    while True:
        status = max(in_threads(partial(Player.fly, n_arcs=n_arcs), players, n_jobs))
        played = _result_of(table, players, status)
        # All balls start at the same point, so that short flights always agree.
        if played.gap <= rules.tol and min(int(player.ball.counts[N_ARCS]) for player in players) >= enough:
            return played._replace(status=CONVERGED)
        if status != CONVERGED:
            return played
        # The error of a mean falls with the root of the number of arcs, and the gap with the number.
        n_arcs = int(n_arcs * np.clip(1.1 * played.gap / rules.tol, MIN_GROWTH, MAX_GROWTH)) + 1


def _result_of(table, players, status):
    """Return the mean of the positions of several balls.

    Parameters
    ----------
    table : Table
        Planes.
    players : list of Player
        Balls that have flown.
    status : int
        How their flights ended.

    Returns
    -------
    Played
        Result.
    """
    paths = np.array([player.ball.W for player in players])
    with one_blas_thread():
        inner_products = paths @ (table.H @ paths.T)
    lengths = np.sqrt(np.maximum(np.diag(inner_products), 0.0))
    total = float(np.sqrt(max(inner_products.sum(), 0.0)))
    flown = sum(float(player.ball.numbers[LENGTH]) for player in players)
    if not (lengths > 0.0).all() or total == 0.0:  # out of time before the first flight
        mean, gap = table.start, np.nan
    else:
        mean = paths.sum(axis=0) / total
        gap = 1.0 - float((inner_products / np.outer(lengths, lengths)).min())
    bounces = sum(int(player.ball.counts[BOUNCES]) for player in players)
    return Played(mean, max(gap, 0.0), status, bounces, total / flown if flown > 0.0 else np.nan)
