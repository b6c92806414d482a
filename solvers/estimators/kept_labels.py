"""Labels that a reduced set cannot have changed, and the number of vectors that keeps almost all of them."""

from itertools import combinations

import numpy as np


def certain_labels(decisions, bounds, n_classes, is_voted, break_ties):
    """Return whether the label of each sample is the same for all decisions within their bounds.

    Parameters
    ----------
    decisions : ndarray of shape (n, P)
        Decisions of the subproblems, positive for the first class of a pair; for two classes for the second.
    bounds : ndarray of shape (n, P)
        Bounds on the distance of each decision from the true one.
    n_classes : int
        Number of classes.
    is_voted : bool
        Whether the subproblems are pairs of at least three classes.
    break_ties : bool
        Whether the sum of decisions breaks ties of votes; if not, the first class wins.

    Returns
    -------
    bool ndarray of shape (n,)
        Whether the label is certain.
    """
    if n_classes == 2:
        return np.abs(decisions[:, 0]) > bounds[:, 0]
    if is_voted:
        return _certain_votes(decisions, bounds, n_classes, break_ties)
    rows = np.arange(decisions.shape[0])
    winner = decisions.argmax(axis=1)
    others = decisions + bounds
    others[rows, winner] = -np.inf
    return decisions[rows, winner] - bounds[rows, winner] > others.max(axis=1)


def _certain_votes(decisions, bounds, n_classes, break_ties):
    """Return whether the winner of the votes is the same for all decisions within their bounds.

    Parameters
    ----------
    decisions, bounds : ndarray of shape (n, n_pairs)
        As in `certain_labels`.
    n_classes : int
        Number of classes, at least 3.
    break_ties : bool
        As in `certain_labels`.

    Returns
    -------
    bool ndarray of shape (n,)
        Whether the label is certain.
    """
    n = decisions.shape[0]
    least, most, low, high = (np.zeros((n, n_classes)) for _ in range(4))
    for k, (i, j) in enumerate(combinations(range(n_classes), 2)):
        d, b = decisions[:, k], bounds[:, k]
        least[:, i] += d > b
        most[:, i] += d >= -b
        least[:, j] += d < -b
        most[:, j] += d <= b
        low[:, i] += d - b
        high[:, i] += d + b
        low[:, j] -= d + b
        high[:, j] -= d - b
    rows, winner = np.arange(n), (least + most + low / (1e3 + np.abs(low))).argmax(axis=1)
    votes_of_winner = least[rows, winner][:, None]
    if break_ties:
        # Evidence is added to the votes as a share of a vote, whose rounding hides differences below this.
        slack = 1e-12 * (1.0 + np.abs(high).max(axis=1, keepdims=True)) ** 2
        beats = low[rows, winner][:, None] > high + slack
    else:
        beats = winner[:, None] < np.arange(n_classes)
    wins = (votes_of_winner > most) | ((votes_of_winner == most) & beats)
    wins[rows, winner] = True
    return wins.all(axis=1)


def fewest(keeps_labels, most):
    """Return the least number of vectors that keeps the labels, by doubling and bisection.

    Parameters
    ----------
    keeps_labels : callable
        Function of a number of vectors, which is taken to be monotone.
    most : int
        Number of vectors that keeps all labels.

    Returns
    -------
    int
        Number, between 1 and `most`.
    """
    low, high = 0, 1
    while high < most and not keeps_labels(high):
        low, high = high, min(2 * high, most)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if keeps_labels(middle) else (middle, high)
    return high


def held_out_rows(labels, share, generator):
    """Return a share of the samples of each class.

    Parameters
    ----------
    labels : ndarray of shape (n,)
        Labels of the samples.
    share : float
        Share of each class, rounded down.
    generator : numpy.random.Generator
        Source of the choice.

    Returns
    -------
    int64 ndarray
        Rows, ascending.

    Raises
    ------
    ValueError
        All classes are too small to hold a sample out.
    """
    chosen = []
    for label in np.unique(labels):
        rows = np.flatnonzero(labels == label)
        chosen.append(generator.permutation(rows)[: int(share * rows.size)])
    found = np.sort(np.concatenate(chosen))
    if found.size == 0:
        raise ValueError(
            f"n_vectors='auto': expected a class of at least {int(np.ceil(1 / share))} samples, of which "
            f"some can be held out, found {labels.size} samples in all. Set n_vectors to a number"
        )
    return found
