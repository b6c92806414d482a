"""Small trainings at the limits of the arithmetic: each is to end, and to claim no smaller gap than is true.

``python -m tests.solvers.extreme_cases FIRST LAST FILE`` runs some of them, one a line of FILE. The line says
what is wrong, if anything is. A case that takes more than `SECONDS` of the processor kills the process, and
leaves its number as the last line; the clock stands still while numba compiles.
"""

import json
import signal
import sys
import warnings
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
from numba.core import event
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from solvers import MNSVC, SMOSVC, BallSVC, CoreSVC, NewtonSVC, SphereSVC
from solvers.path.result import PathSolution

LONG = np.longdouble
# CPU time that a case may take, without compiling, in seconds.
SECONDS = 5.0
SOLVERS = (MNSVC, SphereSVC, BallSVC, CoreSVC, SMOSVC, SMOSVC, NewtonSVC)
BALLS = (SphereSVC, BallSVC, CoreSVC)
STORAGES = ("float32", "float64", "csr", "gram32", "gram64")
SHAPES = ("random", "contradicting", "constant", "equal", "one_each", "corners")


@dataclass
class Case:
    """One training as passed to a solver."""

    number: int
    model: object
    X: object
    y: np.ndarray
    kernel: str
    points: np.ndarray  # features or kernel values, as passed to the solver
    Cs: list[float] | None  # values of C of a path; None: a fit
    about: str = field(default="")


def random_case(number):
    """Make case `number`: solvers, types, scales, penalties, tolerances and shapes of data, all at random."""
    rng = np.random.default_rng([42, number])
    solver = SOLVERS[number % len(SOLVERS)]
    storage = STORAGES[number // len(SOLVERS) % len(STORAGES)]
    shape = str(rng.choice(SHAPES))
    scale = 10.0 ** rng.uniform(-18, 18) if rng.random() < 0.7 else 1.0
    C = float(10.0 ** rng.uniform(-6, 9))
    tol = float(10.0 ** rng.uniform(-12, -1)) if rng.random() < 0.9 else 10.0 ** rng.uniform(-300, -12)
    model = random_model(rng, solver, number).set_params(C=C, tol=tol)
    points, y = random_points(rng, shape)
    kernel = str(rng.choice(["linear", "rbf"]))
    if storage in ("gram32", "gram64"):
        points = np.exp(-squares_between(points)) if kernel == "rbf" or solver in BALLS else points @ points.T
        points = (points * scale).astype(np.float32 if storage == "gram32" else np.float64)
        kernel, X = "precomputed", points
    else:
        points = (points * np.sqrt(scale)).astype(np.float64 if storage == "float64" else np.float32)
        X = sparse.csr_matrix(points) if storage == "csr" else points
        model.set_params(gamma=0.5 / scale)
    model.set_params(kernel=kernel)
    Cs = [C * 4.0**k for k in range(int(rng.integers(1, 4)))] if rng.random() < 0.4 else None
    about = f"{number}: {model!r} on {storage} {shape} n={len(y)} scale={scale:.3g} Cs={Cs}"
    return Case(number, model, X, y, kernel, points, Cs, " ".join(about.split()))


def random_model(rng, solver, number):
    """Return an unfitted solver, sometimes with other rules than its usual ones."""
    if solver is SMOSVC:
        return SMOSVC(loss="l1" if number % len(SOLVERS) == SOLVERS.index(SMOSVC) else "l2")
    if solver is NewtonSVC:
        return NewtonSVC(bias=str(rng.choice(["theoretic", "none"])))
    model = solver(random_state=number, bias=str(rng.choice(["theoretic", "average", "none"])))
    if rng.random() < 0.2:
        model.set_params(exhaustive=False, draws=int(rng.choice([1, 10, 100, 600])))
    if rng.random() < 0.15:
        model.set_params(track_margins=False)
    if solver is MNSVC:
        model.set_params(
            pair=str(rng.choice(["imdm", "mdm", "gmdm"])), eta=float(rng.choice([1.0, 1.5, 1.99]))
        )
        model.set_params(stopping=str(rng.choice(["mn", "mn", "violation"])))
    return model


def random_points(rng, shape):
    """Return samples of two classes of a shape, none of which is zero, and their labels."""
    n, d = int(rng.integers(2, 61)), int(rng.integers(1, 7))
    X, y = rng.normal(size=(n, d)), np.arange(n) % 2
    if shape == "contradicting":  # every row twice, once of each class
        X = np.repeat(X[: (n + 1) // 2], 2, axis=0)[:n]
    elif shape == "constant":
        X[:, rng.random(d) < 0.7] = 1.0
    elif shape == "equal":
        X[:] = X[0]
    elif shape == "one_each":
        X, y = X[:2], y[:2]
    elif shape == "corners":
        X = rng.integers(0, 2, size=(n, d)).astype(float)
    X += rng.choice([0.0, 0.0, 1.0]) * y[:, None]
    X[(X == 0).all(axis=1), 0] = 1.0
    return X, y


def squares_between(X):
    """Return the squared distances of all pairs of rows."""
    return ((X[:, None, :] - X[None, :, :]) ** 2).sum(axis=2)


def kernel_of(case):
    """Return the kernel matrix in long double, normalised where the solver normalises."""
    P = case.points.astype(LONG)
    if case.kernel == "precomputed":
        return P
    if case.kernel == "rbf":
        return np.exp(-LONG(case.model.gamma) * squares_between(P))
    K = (P[:, None, :] * P[None, :, :]).sum(axis=2)
    if isinstance(case.model, BALLS):
        root = np.sqrt(np.diag(K))
        K /= np.outer(root, root)
    return K


def hull_gap(case, K, C, weights):
    """Return 1 − (max(g_min, 0) / ‖c‖²)² of the hull point with some weights."""
    signs = np.where(case.y == 1, LONG(1), LONG(-1))
    if isinstance(case.model, BALLS) and case.kernel == "linear":
        weights = weights * np.sqrt((case.points.astype(LONG) ** 2).sum(axis=1))
    if not weights.any():
        return 1.0
    alpha = weights / weights.sum()
    bias = 0 if case.model.bias == "none" else 1
    g = signs * ((K + bias) @ (signs * alpha)) + alpha / LONG(C)
    square_norm = alpha @ g
    return float(1 - (max(g.min(), LONG(0)) / square_norm) ** 2) if square_norm > 0 else 1.0


def smo_gap(case, K, C, weights, bias):
    """Return primal minus dual objective as a share of the primal one."""
    signs, C = np.where(case.y == 1, LONG(1), LONG(-1)), LONG(C)
    product = K @ (signs * weights)
    slack = np.maximum(0, 1 - signs * (product + LONG(bias)))
    quadratic = (signs * weights) @ product
    if case.model.loss == "l1":
        primal, dual = quadratic / 2 + C * slack.sum(), weights.sum() - quadratic / 2
    else:
        primal = quadratic / 2 + C * (slack**2).sum() / 2
        dual = weights.sum() - (quadratic + (weights**2).sum() / C) / 2
    return float((primal - dual) / primal) if primal > 0 else np.inf


def claims_of(case):
    """Train; yield for each C its C, weights, bias of class 1, gap, `converged_`, `fit_status_`, text."""
    model, n = case.model, len(case.y)
    weights = np.zeros(n, LONG)
    if case.Cs is None:
        model.fit(case.X, case.y)
        weights[model.support_] = np.abs(model.dual_coef_[0])
        told = model.gap_, model.converged_, model.fit_status_, model.stopping_
        yield (model.C, weights, model.intercept_[0], *told)
        return
    with all_rows_kept() as trained:
        path = model.fit_path(case.X, case.y, case.Cs)
    solution = trained[0] if trained else path._solution
    for k, C in enumerate(case.Cs):
        weights = np.zeros(n, LONG)
        weights[solution.problem.rows] = np.abs(solution.weights[k][0])
        told = path.duality_gap_[k], path.converged_[k], path.fit_status_[k], path.stopping_[k]
        yield (C, weights, -solution.intercepts[k, 0], *told)


@contextmanager
def all_rows_kept():
    """Collect the solutions of paths before they are cut down to the rows that have weight."""
    trained, of_used_rows = [], PathSolution.on_used_rows

    def keep(self):
        trained.append(self)
        return of_used_rows(self)

    PathSolution.on_used_rows = keep
    try:
        yield trained
    finally:
        PathSolution.on_used_rows = of_used_rows


def faults_of(case):
    """Train, and list what is wrong with what is said."""
    faults = []
    for C, weights, bias, gap, converged, status, text in claims_of(case):
        K = kernel_of(case)
        if not (np.isfinite(weights).all() and np.isfinite(bias)):
            faults.append(f"weights or bias not finite (gap {gap}, {text})")
            truth = np.nan
        elif isinstance(case.model, SMOSVC):
            truth = smo_gap(case, K, C, weights, bias)
        else:
            truth = hull_gap(case, K, C, weights)
        if not np.isnan(truth) and not truth <= gap:
            faults.append(f"C={C:.3g}: gap {gap!r} claimed, {truth!r} true ({text})")
        if converged and not np.isfinite(gap):
            faults.append(f"C={C:.3g}: converged with a gap of {gap}")
        if converged != (status == 0) or converged != text.startswith("certified"):
            faults.append(f"C={C:.3g}: converged={converged}, status {status}, {text}")
    return faults


class Watchdog(event.Listener):
    """Kills the process by SIGPROF when a case has used too much of the processor, apart from compiling."""

    def __init__(self):
        self._left, self._depth = 0.0, 0
        event.register("numba:compile", self)

    def start(self):
        """Give a case its time."""
        signal.setitimer(signal.ITIMER_PROF, SECONDS)

    def stop(self):
        """Stop the clock; return the seconds that have been used."""
        return SECONDS - signal.setitimer(signal.ITIMER_PROF, 0.0)[0]

    def on_start(self, _):
        """Stop the clock."""
        if self._depth == 0:
            self._left = SECONDS - self.stop()
        self._depth += 1

    def on_end(self, _):
        """Let the clock go on, if it ran."""
        self._depth -= 1
        if self._depth == 0:
            signal.setitimer(signal.ITIMER_PROF, self._left)


def main(first, last, file):
    """Run cases; write a line before each, and one after it."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    watchdog = Watchdog()
    with open(file, "a", buffering=1, encoding="utf-8") as lines:
        for number in range(first, last):
            case = random_case(number)
            print(json.dumps({"number": number, "about": case.about}), file=lines)
            watchdog.start()
            try:
                faults = faults_of(case)
            except Exception as error:
                faults = [f"{type(error).__name__}: {error}"]
            seconds = round(watchdog.stop(), 3)
            print(json.dumps({"number": number, "seconds": seconds, "faults": faults}), file=lines)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
