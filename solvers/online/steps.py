"""PROCESS and REPROCESS of LASVM (Bordes et al., 2005) on a set of samples, as compiled loops.

Each sample of the set has a place. A place that its sample has left is empty until another sample takes it.
Signed weights ``β_i = y_i α_i`` and the gradient ``F_i = Σ_j β_j k(i, j) − y_i`` are those of
`solvers.smo.row_steps`; the gradient g of the paper is −F. The bounds of an empty place are both 0, so that
no step moves its weight.

A kernel row over all places is filled when its sample enters. Entries of samples that enter later are copied
from the rows of those samples when a step needs them, which the symmetry of the kernel permits.
"""

from typing import NamedTuple

import numpy as np

from solvers.common.compile import inner, njit
from solvers.common.pair_selection import SMALLEST_SQUARE_DISTANCE, lowest_and_highest
from solvers.common.status import CONVERGED, LIMIT, PAUSED, ROW_MISSING

N_USED, N_EMPTY, TIME = range(3)
"""Entries of `Places.counts`."""
ENTER, STEP, REPROCESS = range(3)
"""Parts of the work on a sample, where `learn_samples` can stop for a missing row."""


class Places(NamedTuple):
    """Samples of the set, and kernel rows between them."""

    counts: (
        np.ndarray
    )  # int64 (3,): places that were ever used; empty ones of these; number of entries so far
    empty: np.ndarray  # int64 (capacity,): empty places, the last N_EMPTY that were left
    member: np.ndarray  # int64 (capacity,): sample at a place, −1 if it is empty
    entered: np.ndarray  # int64 (capacity,): time of entry of the sample
    F: np.ndarray  # (capacity,): gradient
    beta: np.ndarray  # (capacity,): signed weights
    low: np.ndarray  # (capacity,): lower bounds of the weights
    high: np.ndarray  # (capacity,): upper bounds of the weights
    diagonal: np.ndarray  # (capacity,): k(x, x)
    rows: np.ndarray  # (n_slots, capacity): kernel rows
    slot: np.ndarray  # int64 (capacity,): slot of the row of a place, −1 if it is missing
    owner: np.ndarray  # int64 (n_slots,): place whose row is in a slot, −1 for none
    filled: np.ndarray  # int64 (n_slots,): time up to which the entries of a row are filled
    clock: np.ndarray  # int64 (n_slots + 1,): time of the last use of each slot; last, the number of uses


class Arrivals(NamedTuple):
    """Samples to learn, in this order."""

    samples: np.ndarray  # int64 (m,): numbers of the samples
    y: np.ndarray  # (m,): labels, −1 or 1
    C: np.ndarray  # (m,): penalties
    diagonal: np.ndarray  # (m,): k(x, x)
    is_seed: np.ndarray  # bool (m,): whether no REPROCESS follows
    block: np.ndarray  # (m, used places + m): kernel values with the places, and then with these samples


@njit
def extreme_places(places):
    """Return the places of the smallest F that can grow, and of the largest F that can shrink.

    After a step both weights have the same F but for rounding. `lowest_and_highest` then takes the first of
    them, so that rounding does not decide.

    Parameters
    ----------
    places : Places
        Samples of the set.

    Returns
    -------
    i, j : int
        The places; −1 if there is none.
    """
    n = places.counts[N_USED]
    beta = places.beta[:n]
    return lowest_and_highest(places.F[:n], beta < places.high[:n], beta > places.low[:n])


@njit(allocates=False)
def take_slot(places, place):
    """Assign to a place the slot that was not used for the longest time.

    Parameters
    ----------
    places : Places
        Samples of the set, changed in place.
    place : int
        Place whose row is about to be written.

    Returns
    -------
    int
        The slot.
    """
    slot = 0
    for k in range(places.owner.size):
        if places.clock[k] < places.clock[slot]:
            slot = k
    if places.owner[slot] >= 0:
        places.slot[places.owner[slot]] = -1
    places.owner[slot], places.slot[place] = place, slot
    places.filled[slot] = places.counts[TIME]
    places.clock[-1] += 1
    places.clock[slot] = places.clock[-1]
    return slot


@inner
def complete_row(places, place):
    """Fill the entries of a kernel row that are missing.

    Parameters
    ----------
    places : Places
        Samples of the set, changed in place.
    place : int
        Place of the sample.

    Returns
    -------
    int
        The slot of the row; −1 if it has to be computed.
    """
    slot = places.slot[place]
    if slot < 0:
        return -1
    since, now = places.filled[slot], places.counts[TIME]
    if since < now:
        for p in range(places.counts[N_USED]):
            if places.entered[p] > since and places.member[p] >= 0:
                if places.slot[p] < 0:
                    return -1
                places.rows[slot, p] = places.rows[places.slot[p], place]
        places.filled[slot] = now
    places.clock[-1] += 1
    places.clock[slot] = places.clock[-1]
    return slot


@inner
def move_weight(places, i, j):
    """Move weight from one place to another, as far as the objective falls and the bounds permit.

    Parameters
    ----------
    places : Places
        Samples of the set, changed in place.
    i, j : int
        Places of the weights that grow and shrink, with ``F[j] > F[i]``.

    Returns
    -------
    wanted : int
        Place whose row is missing, so that no weight has moved; −1 after a step.
    gain : float
        Decrease of the objective.
    """
    slot_i = complete_row(places, i)
    if slot_i < 0:
        return i, 0.0
    slot_j = complete_row(places, j)
    if slot_j < 0:
        return j, 0.0
    row_i, row_j, F, beta = places.rows[slot_i], places.rows[slot_j], places.F, places.beta
    square_distance = places.diagonal[i] + places.diagonal[j] - 2.0 * row_i[j]
    square_distance = max(square_distance, SMALLEST_SQUARE_DISTANCE)
    difference, slack_i, slack_j = F[j] - F[i], places.high[i] - beta[i], beta[j] - places.low[j]
    delta = min(difference / square_distance, slack_i, slack_j)
    beta[i] = places.high[i] if delta == slack_i else beta[i] + delta
    beta[j] = places.low[j] if delta == slack_j else beta[j] - delta
    for p in range(places.counts[N_USED]):
        F[p] += delta * (row_i[p] - row_j[p])
    return -1, delta * (difference - 0.5 * delta * square_distance)


@inner
def drop_idle(places, i, j, is_member):
    """Remove samples without weight that do not violate the optimality conditions with any other one.

    Parameters
    ----------
    places : Places
        Samples of the set, changed in place.
    i, j : int
        Places of the smallest F that can grow, and of the largest F that can shrink.
    is_member : bool array (n,), or (0,)
        Whether a sample is in the set, changed in place; empty if samples arrive only once.
    """
    if i < 0 or j < 0:
        return
    lowest, highest = places.F[i], places.F[j]
    for p in range(places.counts[N_USED]):
        if places.beta[p] != 0.0 or places.member[p] < 0:
            continue
        is_idle = places.F[p] >= highest if places.high[p] > 0.0 else places.F[p] <= lowest
        if is_idle:
            if is_member.size:
                is_member[places.member[p]] = False
            places.member[p], places.low[p], places.high[p] = -1, 0.0, 0.0
            if places.slot[p] >= 0:
                places.owner[places.slot[p]], places.clock[places.slot[p]] = -1, 0
                places.slot[p] = -1
            places.empty[places.counts[N_EMPTY]] = p
            places.counts[N_EMPTY] += 1


@inner
def enter_set(places, arrivals, k, row, F):
    """Give a sample a place, with weight 0.

    Parameters
    ----------
    places : Places
        Samples of the set, changed in place, with capacity for another one.
    arrivals : Arrivals
        Samples to learn.
    k : int
        Index of the sample among `arrivals`.
    row : array (capacity,)
        Kernel values with the used places.
    F : float
        Gradient of the sample.

    Returns
    -------
    int
        The place.
    """
    if places.counts[N_EMPTY] > 0:
        places.counts[N_EMPTY] -= 1
        place = places.empty[places.counts[N_EMPTY]]
    else:
        place = places.counts[N_USED]
        places.counts[N_USED] += 1
    places.counts[TIME] += 1
    places.member[place], places.entered[place] = arrivals.samples[k], places.counts[TIME]
    places.F[place], places.beta[place] = F, 0.0
    places.low[place] = 0.0 if arrivals.y[k] > 0.0 else -arrivals.C[k]
    places.high[place] = arrivals.C[k] if arrivals.y[k] > 0.0 else 0.0
    places.diagonal[place] = arrivals.diagonal[k]
    slot = take_slot(places, place)
    for p in range(places.counts[N_USED]):
        places.rows[slot, p] = row[p]
    places.rows[slot, place] = arrivals.diagonal[k]
    return place


@njit
def learn_samples(places, arrivals, column, is_member, cursor, tol, max_steps):
    """PROCESS each sample, and let one REPROCESS follow unless it is a seed.

    A sample that is in the set already does not enter again. Nor does one that could not move any weight:
    with the extremes F_i and F_j of the set, one of label 1 with F > F_j, or one of label −1 with F < F_i.
    This rule is that of the authors' program. The paper lets every sample enter.

    Parameters
    ----------
    places : Places
        Samples of the set, changed in place, with capacity for all samples that arrive.
    arrivals : Arrivals
        Samples to learn.
    column : int64 array (capacity,)
        Column of `arrivals.block` with the kernel values of each place, changed in place.
    is_member : bool array (n,), or (0,)
        Whether a sample is in the set, changed in place; empty if samples arrive only once.
    cursor : int64 array (3,)
        Index of the next sample, part of its work, and its place; changed in place.
    tol : float
        Largest violation at which no step is taken.
    max_steps : int
        Number of steps after which the loop stops.

    Returns
    -------
    status : int
        CONVERGED if all samples are learnt, ROW_MISSING or LIMIT.
    steps : int
        Number of steps that were taken.
    wanted : int
        Place whose row is missing, or −1.
    gain : float
        Decrease of the objective.
    """
    steps, gain = 0, 0.0
    n_before = arrivals.block.shape[1] - arrivals.samples.size
    row = np.empty(column.size)
    while cursor[0] < arrivals.samples.size:
        k = cursor[0]
        if steps >= max_steps:
            return LIMIT, steps, -1, gain
        if cursor[1] == ENTER:
            cursor[1] = REPROCESS
            if not (is_member.size and is_member[arrivals.samples[k]]):
                y, F = arrivals.y[k], -arrivals.y[k]
                for p in range(places.counts[N_USED]):
                    row[p] = arrivals.block[k, column[p]]
                    F += places.beta[p] * row[p]
                i, j = extreme_places(places)
                is_useless = False
                if i >= 0 and j >= 0 and places.F[j] > places.F[i]:
                    is_useless = places.F[j] < F if y > 0.0 else places.F[i] > F
                if not is_useless:
                    place = enter_set(places, arrivals, k, row, F)
                    column[place] = n_before + k
                    if is_member.size:
                        is_member[arrivals.samples[k]] = True
                    cursor[1], cursor[2] = STEP, place
        if cursor[1] == STEP:
            i, j = extreme_places(places)
            if arrivals.y[k] > 0.0:
                i = cursor[2]
            else:
                j = cursor[2]
            if i >= 0 and j >= 0 and places.F[j] - places.F[i] > tol:
                wanted, gained = move_weight(places, i, j)
                if wanted >= 0:
                    return ROW_MISSING, steps, wanted, gain
                steps, gain = steps + 1, gain + gained
            cursor[1] = REPROCESS
        if not arrivals.is_seed[k]:
            if steps >= max_steps:
                return LIMIT, steps, -1, gain
            i, j = extreme_places(places)
            if i >= 0 and j >= 0 and places.F[j] - places.F[i] > tol:
                wanted, gained = move_weight(places, i, j)
                if wanted >= 0:
                    return ROW_MISSING, steps, wanted, gain
                steps, gain = steps + 1, gain + gained
                i, j = extreme_places(places)
            drop_idle(places, i, j, is_member)
        cursor[0], cursor[1] = k + 1, ENTER
    return CONVERGED, steps, -1, gain


@njit
def reprocess(places, is_member, tol, max_steps):
    """REPROCESS until no pair of the set violates the optimality conditions by more than the tolerance.

    Parameters
    ----------
    places : Places
        Samples of the set, changed in place.
    is_member : bool array (n,), or (0,)
        Whether a sample is in the set, changed in place; empty if samples arrive only once.
    tol : float
        Largest violation.
    max_steps : int
        Number of steps after which the loop stops.

    Returns
    -------
    status : int
        CONVERGED, PAUSED or ROW_MISSING.
    steps : int
        Number of steps that were taken.
    wanted : int
        Place whose row is missing, or −1.
    gain : float
        Decrease of the objective.
    """
    steps, gain = 0, 0.0
    while True:
        i, j = extreme_places(places)
        if i < 0 or j < 0 or not places.F[j] - places.F[i] > tol:
            drop_idle(places, i, j, is_member)
            return CONVERGED, steps, -1, gain
        if steps >= max_steps:
            return PAUSED, steps, -1, gain
        wanted, gained = move_weight(places, i, j)
        if wanted >= 0:
            return ROW_MISSING, steps, wanted, gain
        steps, gain = steps + 1, gain + gained
        i, j = extreme_places(places)
        drop_idle(places, i, j, is_member)
