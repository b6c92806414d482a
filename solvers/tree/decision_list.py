"""Growth of a decision list: planes without errors on all labels but one, each chosen to cut most samples.

All samples are active at first. A node is the best of the candidates: H1 and the C-SVM, for each label as the
soft one. If no candidate cuts a sample, their opposite directions are tried, then the planes perpendicular to
them. If these fail as well, the sample farthest from the mean of the active ones is cut. This always works
but for rounding, because (mean − x_v)·x is smallest at x_v (Cauchy and Schwarz). The samples that a node
cuts become inactive. The list ends when all active samples have one label, which is its default.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy import sparse

from solvers.common.clock import clock
from solvers.common.status import CONVERGED, LIMIT, STALLED, TIMEOUT
from solvers.kernels.subproblem_kernel import OutOfTime
from solvers.reduction.copies import first_copies
from solvers.tree.h1 import (
    Threshold,
    csvm_direction,
    h1_direction,
    hull_of,
    mean_of,
    require_time,
    threshold_of,
    unit,
)
from solvers.tree.perpendicular import MAX_SPARSE_FEATURES, best_perpendicular
from solvers.tree.scoring import products_of, rounding_of
from solvers.tree.soft_margin import is_solvable

TOO_LARGE = "the C-SVM was left out where samples and features were too many for it"
"""Note of a list that was grown without the C-SVM at a node."""
COPIES = "equal samples of different labels have the label of their majority"
"""Note of a list whose training samples contradict one another."""
ROUNDING = "rounding hides the differences of the remaining samples"
"""Note of a list that ended because no plane cut a sample."""
FEW = "no plane cuts min_cut of the remaining samples, which have the label of their majority"
"""Note of a list that ended before all samples had one label, because of `min_cut`."""


class Options(NamedTuple):
    """Parameters of the growth."""

    C: float  # penalty of the soft samples in the C-SVM
    candidates: str  # "both", "h1" or "csvm"
    greedy: bool  # whether perpendicular planes are candidates of every node
    min_cut: int  # smallest number of samples that a node cuts
    max_nodes: int  # largest number of nodes; −1 without a limit
    deadline: float  # time on `solvers.common.clock.clock`


class Node(NamedTuple):
    """Plane of a list."""

    direction: np.ndarray  # (d,): unit normal w
    threshold: float  # r; samples with w·x < r leave
    label: int  # label of the samples that leave
    solver: str  # "h": H1; "c": C-SVM; "m": mean of the samples, less the one farthest from it
    sign: int  # −1 if the direction of the solver was reversed
    is_perpendicular: bool  # whether the plane is perpendicular to that of the solver
    n_cut: int  # training samples that it cut
    gap: float  # distance between the hard samples and the cut sample next to them


class Grown(NamedTuple):
    """Decision list before pruning."""

    nodes: list[Node]
    default: int  # label of the samples that leave nowhere
    status: int  # how the growth ended
    notes: tuple[str, ...]  # what else happened, for `stopping_`


class _Candidate(NamedTuple):
    """Plane that may become a node."""

    direction: np.ndarray
    label: int
    solver: str
    sign: int
    is_perpendicular: bool
    threshold: Threshold
    scores: np.ndarray  # products of the active samples with the direction


class _Active(NamedTuple):
    """Active samples."""

    X: np.ndarray | sparse.csr_matrix
    codes: np.ndarray  # labels from 0
    weights: np.ndarray
    rounding: float  # bound on the rounding error of a product with a unit vector
    present: np.ndarray  # labels that occur


def grow(X, codes, weights, n_labels, options):
    """Grow a decision list.

    Parameters
    ----------
    X : {ndarray, CSR} of shape (n, d)
        Samples; CSR in canonical form.
    codes : int64 ndarray of shape (n,)
        Labels from 0.
    weights : ndarray of shape (n,)
        Weights of the samples, positive.
    n_labels : int
        Number of labels.
    options : Options
        Parameters.

    Returns
    -------
    Grown
        List, whose training error is 0 if it converged and no equal samples have different labels.
    """
    consistent = without_contradictions(X, codes, weights, n_labels)
    notes = {COPIES: None} if (consistent != codes).any() else {}
    rounding, active = rounding_of(X), np.arange(codes.size)
    nodes: list[Node] = []
    status = CONVERGED
    while True:
        labels = consistent[active]
        present = np.unique(labels)
        if present.size == 1:
            return Grown(nodes, int(present[0]), status, tuple(notes))
        if len(nodes) == options.max_nodes:
            status = LIMIT
            break
        if clock() >= options.deadline:
            status = TIMEOUT
            break
        samples = _Active(X[active], labels, weights[active], rounding, present)
        try:
            best = _best_plane(samples, n_labels, options, notes)
        except OutOfTime:
            status = TIMEOUT
            break
        if best is None:
            status = STALLED
            notes[ROUNDING] = None
            break
        is_cut = (labels == best.label) & (best.threshold.value - best.scores > rounding)
        n_cut = int(np.count_nonzero(is_cut))
        if n_cut < options.min_cut:
            notes[FEW] = None
            break
        nodes.append(
            Node(
                *(best.direction, best.threshold.value, best.label, best.solver, best.sign),
                *(best.is_perpendicular, n_cut, best.threshold.gap),
            )
        )
        active = active[~is_cut]
    totals = np.bincount(codes[active], weights[active], n_labels)
    return Grown(nodes, int(totals.argmax()), status, tuple(notes))


def without_contradictions(X, codes, weights, n_labels):
    """Give equal samples the label of their majority.

    Parameters
    ----------
    X : {ndarray, CSR} of shape (n, d)
        Samples; CSR in canonical form.
    codes : int64 ndarray of shape (n,)
        Labels from 0.
    weights : ndarray of shape (n,)
        Weights of the samples, positive.
    n_labels : int
        Number of labels.

    Returns
    -------
    int64 ndarray of shape (n,)
        Labels. Of equal totals, the label that has more weight among all samples wins, then the first one.
    """
    first = first_copies(X, np.arange(codes.size))
    differs = np.zeros(codes.size, np.bool_)
    np.logical_or.at(differs, first, codes != codes[first])
    rows = np.flatnonzero(differs[first])
    if rows.size == 0:
        return codes
    groups, group_of = np.unique(first[rows], return_inverse=True)
    totals = np.zeros((groups.size, n_labels))
    np.add.at(totals, (group_of, codes[rows]), weights[rows])
    order = np.argsort(-np.bincount(codes, weights, n_labels), kind="stable")
    consistent = codes.copy()
    consistent[rows] = order[totals[:, order].argmax(axis=1)][group_of]
    return consistent


def _best_plane(samples, n_labels, options, notes):
    """Return the plane that cuts most active samples.

    Parameters
    ----------
    samples : _Active
        Active samples of at least two labels.
    n_labels : int
        Number of labels.
    options : Options
        Parameters.
    notes : dict
        Receives notes as keys.

    Returns
    -------
    _Candidate or None
        Plane; None if rounding hides what the last resort would cut.
    """
    solved = list(_solved(samples, options, notes))
    best = _best_of(solved)
    if best is None:
        best = _best_of([_reversed(plane, samples) for plane in solved])
    if best is None or options.greedy:
        best = _best_of([best, *_perpendicular(samples, solved, n_labels, options.greedy)])
    return _farthest(samples) if best is None else best


def _best_of(candidates):
    """Return the candidate that cuts most, of equal ones that with the largest gap, then the first.

    Parameters
    ----------
    candidates : list of _Candidate or None
        Planes.

    Returns
    -------
    _Candidate or None
        Best plane; None if none cuts a sample.
    """
    best = None
    for plane in candidates:
        if plane is None or not plane.threshold.cut > 0.0:
            continue
        if best is None or plane.threshold[:0:-1] > best.threshold[:0:-1]:  # by cut, then by gap
            best = plane
    return best


def _solved(samples, options, notes) -> Iterator[_Candidate]:
    """Yield the planes of H1 and of the C-SVM for each soft label.

    Parameters
    ----------
    samples : _Active
        Active samples.
    options : Options
        Parameters.
    notes : dict
        Receives notes as keys.

    Yields
    ------
    _Candidate
        Plane, which may cut nothing.
    """
    X, codes, weights = samples.X, samples.codes, samples.weights
    takes_csvm = options.candidates != "h1"
    if takes_csvm and not is_solvable(X):
        takes_csvm, notes[TOO_LARGE] = False, None
    for label in samples.present:
        is_soft = codes == label
        found = h1_direction(hull_of(X, is_soft, weights), deadline=options.deadline)
        require_time(found)
        directions = []
        if options.candidates != "csvm" or not takes_csvm:
            directions.append(("h", found.z))
        if takes_csvm and found.z.any():
            w = csvm_direction(X, is_soft, weights, options.C, found.mu, options.deadline)
            directions.append(("c", w))
        for solver, w in directions:
            direction = unit(w)
            if direction is not None:
                yield _candidate(samples, direction, int(label), solver, 1, False)


def _candidate(samples, direction, label, solver, sign, is_perpendicular, scores=None):
    """Return a plane with its threshold.

    Parameters
    ----------
    samples : _Active
        Active samples.
    direction : ndarray of shape (d,)
        Unit normal that points away from the soft samples.
    label : int
        Soft label.
    solver : {"h", "c", "m"}
        Origin of the direction.
    sign : {1, -1}
        Whether the direction is that of the solver.
    is_perpendicular : bool
        Whether the plane is perpendicular to that of the solver.
    scores : ndarray of shape (n,), optional
        Products of the samples with the direction; by default they are computed.

    Returns
    -------
    _Candidate
        Plane.
    """
    if scores is None:
        scores = products_of(samples.X, direction[None, :])[:, 0]
    is_soft = samples.codes == label
    threshold = threshold_of(scores, is_soft, samples.weights, samples.rounding)
    return _Candidate(direction, label, solver, sign, is_perpendicular, threshold, scores)


def _reversed(plane, samples):
    """Return a plane with the opposite direction.

    Parameters
    ----------
    plane : _Candidate
        Plane.
    samples : _Active
        Active samples.

    Returns
    -------
    _Candidate
        Plane with the same soft label.
    """
    return _candidate(samples, -plane.direction, plane.label, plane.solver, -1, False, -plane.scores)


def _perpendicular(samples, solved, n_labels, greedy):
    """Return the best planes that are perpendicular to those of the solvers.

    Parameters
    ----------
    samples : _Active
        Active samples.
    solved : list of _Candidate
        Planes of the solvers. Without any, the planes are perpendicular to the axes.
    n_labels : int
        Number of labels.
    greedy : bool
        Whether the planes are candidates of every node.

    Returns
    -------
    list of _Candidate
        The best plane for each plane of a solver and each label.

    Raises
    ------
    ValueError
        The samples are sparse, with more than `MAX_SPARSE_FEATURES` features, and `greedy` is true.
    """
    X, d = samples.X, samples.X.shape[1]
    if sparse.issparse(X) and d > MAX_SPARSE_FEATURES:
        if greedy:
            raise ValueError(
                f"greedy=True: found sparse samples of {d:,} features, expected at most "
                f"{MAX_SPARSE_FEATURES:,}. Each node would compute {8e-9 * X.shape[0] * d:.1f} GB of dense "
                "products for each candidate. Set greedy=False, or reduce the features"
            )
        return []
    bases = [(plane.direction, plane.scores, plane.solver) for plane in solved]
    if not bases:
        bases = [(np.zeros(d), np.zeros(X.shape[0]), "m")]
    found = []
    for w, scores, solver in bases:
        planes = best_perpendicular(X, w, scores, samples.codes, n_labels, samples.weights, samples.rounding)
        for label, plane in enumerate(planes):
            if plane is not None:
                found.append(_candidate(samples, plane.direction, label, solver, 1, True))
    return found


def _farthest(samples):
    """Return the plane that cuts the sample farthest from the mean of the active ones.

    Parameters
    ----------
    samples : _Active
        Active samples.

    Returns
    -------
    _Candidate or None
        Plane; None if rounding hides the difference.
    """
    X = samples.X
    mean = mean_of(X, samples.weights)
    if sparse.issparse(X):
        squares = np.asarray(X.multiply(X).sum(axis=1)).ravel() - 2.0 * np.asarray(X @ mean).ravel()
    else:
        squares = np.einsum("ij,ij->i", X, X) - 2.0 * (X @ mean)
    v = int(squares.argmax())
    x = X[v].toarray().ravel() if sparse.issparse(X) else X[v]
    direction = unit(mean - x)
    if direction is None:
        return None
    plane = _candidate(samples, direction, int(samples.codes[v]), "m", 1, False)
    return plane if plane.threshold.cut > 0.0 else None
