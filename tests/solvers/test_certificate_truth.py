"""A gap that is claimed is never below the true one, over random problems of every kind.

The reference is slow and obvious: kernels from differences, and all sums, in long double, from nothing but
what a fitted model publishes.
"""

import warnings
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from solvers import LASVC, MNSVC, SMOSVC, BallSVC, CoreSVC, NewtonSVC, SphereSVC

LONG = np.longdouble
SOLVERS = {
    "mnsvm": MNSVC(random_state=0),
    "mnsvm_mdm": MNSVC(pair="mdm", bias="none", random_state=0),
    "mnsvm_adjmn": MNSVC(stopping="adjmn", random_state=0),
    "mnsvm_meb": MNSVC(stopping="meb", random_state=0),
    "newton": NewtonSVC(),
    "newton_tight": NewtonSVC(tol=1e-6),
    "smo_l1": SMOSVC(max_iter=100_000),
    "smo_l2": SMOSVC(loss="l2", max_iter=100_000),
    "cvm": CoreSVC(random_state=0),
    "spheresvm": SphereSVC(random_state=0),
    "bvm": BallSVC(random_state=0),
}
LASVM = LASVC(epochs=3, random_state=0)
NORMALISED = ("cvm", "spheresvm", "bvm")
KINDS = ["rbf", "rbf", "rbf", "linear", "poly", "precomputed", "precomputed", "rounded"]
PROBLEMS, CUT_SHORT, STRIDE = 500, 300, 17


@dataclass
class Case:
    """A random problem as passed to a solver, and its kernel matrix in long double."""

    name: str
    kind: str
    X: object
    y: np.ndarray
    model: object
    K: np.ndarray
    Cs: list | None  # values of C of a path; None: a fit


def random_case(number, solver=None):
    """Return problem `number`; problems from `PROBLEMS` on are ended early, with tolerances of any size."""
    rng = np.random.default_rng([13, number])
    name = list(SOLVERS)[number % len(SOLVERS)]
    if solver is not None:
        name = "lasvm"
    kind = str(rng.choice(KINDS))
    if name in ("mnsvm_adjmn", "mnsvm_meb") and kind in ("linear", "poly"):
        kind = "rbf"  # the rule needs the same k(x, x) for all samples
    n, d, dtype = int(rng.integers(20, 120)), int(rng.integers(1, 20)), rng.choice([np.float32, np.float64])
    C = float(10.0 ** rng.uniform(-4, 6) if rng.random() < 0.4 else 4.0 ** rng.integers(-4, 6))
    n_classes = 3 if rng.random() < 0.2 else 2
    y = rng.permutation(np.arange(n) % n_classes)
    scale, offset, gamma = 1.0, rng.choice([0.0, 1.0, 3.0]), 2.0 ** rng.uniform(-4, 0)
    if kind not in ("linear", "poly"):
        scale = 10.0 ** rng.uniform(-3, 3)
        offset = rng.choice([0.0, 1.0, 10.0, 1e3, 1e5])
        gamma = 2.0 ** rng.uniform(-6, 4) / scale**2
    X = rng.normal(size=(n, d)) + y[:, None] * rng.uniform(0, 2)
    X = (X * scale + offset).astype(dtype)
    if rng.random() < 0.3:
        X[rng.random((n, d)) < 0.3] = 0.0
    X[:, 0] += (X == 0).all(axis=1)  # no empty row: the ball methods normalise
    K = reference_kernel(X.astype(LONG), kind, gamma)
    model = clone(SOLVERS.get(name, solver))
    model.set_params(C=C, kernel=kind, gamma=gamma, degree=2)
    given = sparse.csr_matrix(X) if rng.random() < 0.4 else X
    Cs = None
    if kind in ("precomputed", "rounded"):
        model.set_params(kernel="precomputed")
        given = K.astype(dtype if kind == "precomputed" else np.float32)
        if kind == "precomputed" or solver is not None:
            K = given.astype(LONG)  # the matrix defines the kernel
        else:
            model.set_params(gram_error=2.0**-24)
        if rng.random() < 0.7 and solver is None:
            Cs = [0.25 * C, C]
    if number >= PROBLEMS:
        model.set_params(max_iter=int(rng.choice([1, 3, 30, 300])), tol=float(10.0 ** rng.uniform(-4, -0.3)))
    return Case(name, kind, given, y, model, K, Cs)


def reference_kernel(X, kind, gamma):
    if kind == "linear" or kind == "poly":
        products = (X[:, None, :] * X[None, :, :]).sum(axis=2)
        return products if kind == "linear" else (LONG(gamma) * products + 1) ** 2
    return np.exp(-LONG(gamma) * ((X[:, None, :] - X[None, :, :]) ** 2).sum(axis=2))


def subproblems_of_model(model, y):
    """Yield members, weights, and the bias for the second class, for every pair of classes of a model."""
    labels = y[model.support_]
    for k, (i, j) in enumerate(combinations(range(len(model.classes_)), 2)):
        weights = np.zeros(len(y))
        first, second = labels == i, labels == j
        weights[model.support_[first]] = np.abs(model.dual_coef_[j - 1, first])
        weights[model.support_[second]] = np.abs(model.dual_coef_[i, second])
        members = np.isin(y, (i, j))
        bias = model.intercept_[k] * (1 if len(model.classes_) == 2 else -1)
        yield members, np.where(y[members] == j, LONG(1), LONG(-1)), weights[members].astype(LONG), bias


def subproblems_of_path(solution, k, y):
    """Yield members, weights, and the bias for the second class, for every pair at the k-th C of a path."""
    of_row = np.zeros((solution.weights.shape[1], len(y)))
    of_row[:, solution.problem.rows] = solution.weights[k]
    for p, (i, j) in enumerate(combinations(range(len(solution.problem.classes)), 2)):
        members = np.isin(y, (i, j))
        weights = np.where(y == i, of_row[j - 1], of_row[i])[members]
        signs = np.where(y[members] == j, LONG(1), LONG(-1))
        yield members, signs, weights.astype(LONG), -solution.intercepts[k, p]


def hull_gap(case, C, members, y, alpha):
    """Return 1 − (max(g_min, 0) / ‖c‖²)² of a subproblem, and the distance to a violation of its rule."""
    K = case.K[np.ix_(members, members)]
    if case.name in NORMALISED:
        root = np.sqrt(np.diag(K))
        K, alpha = K / np.outer(root, root), alpha * root
    H = np.outer(y, y) * (K + (case.model.bias != "none")) + np.diag(np.full(len(y), 1 / LONG(C)))
    alpha = alpha / alpha.sum()
    g = H @ alpha
    square_norm, square_radius = alpha @ g, H[0, 0]
    gap = float(1 - (max(g.min(), LONG(0)) / square_norm) ** 2)
    if case.name.startswith("newton"):
        return gap, case.model.tol - gap
    return gap, float(g.min() - lowest_allowed(case, LONG(C), square_norm, square_radius))


def lowest_allowed(case, C, w2, tau):
    """Return the lower bound of g that the table in `solvers` states when `converged_` is true."""
    ball = (2e-6 / (tau - 1 / C) + 1 / (15000 * C)) / tau  # (7.3)
    if case.model.tol != "auto":
        tol = ball = LONG(case.model.tol)
    else:
        tol = LONG(1e-3)
    return {
        "mnsvm": w2 * (1 - tol) ** 2,
        "mnsvm_mdm": w2 * (1 - tol) ** 2,
        "mnsvm_adjmn": w2 - tol * np.sqrt(max(w2, LONG(0)) * tau),
        "mnsvm_meb": (w2 + tau * (1 - (1 + ball) ** 2)) / 2,
        "spheresvm": (w2 + tau * (1 - (1 + ball) ** 2)) / 2,
        "bvm": (w2 + tau * (1 - (1 + ball) ** 2)) / 2,
        "cvm": (w2 + tau - (1 + ball) ** 2 * (tau - w2)) / 2,
    }[case.name]


def smo_gap(case, C, members, y, alpha, bias):
    """Return the duality gap as a share of the primal objective, and how far the violation is below `tol`."""
    K, C = case.K[np.ix_(members, members)], LONG(C)
    slack = np.maximum(0, 1 - y * (K @ (y * alpha) + LONG(bias)))
    quadratic = (y * alpha) @ K @ (y * alpha)
    if getattr(case.model, "loss", "l1") == "l1":
        primal, dual = quadratic / 2 + C * slack.sum(), alpha.sum() - quadratic / 2
    else:
        primal = quadratic / 2 + C * (slack**2).sum() / 2
        dual = alpha.sum() - (quadratic + (alpha**2).sum() / C) / 2
    gap = float((primal - dual) / primal)
    return gap, case.model.tol - gap


@dataclass
class Claim:
    """Claims of a training about itself, and the truth."""

    number: int
    case: Case
    C: float
    converged: bool
    gap: float
    stopping: str
    true_gap: float
    slack: float  # distance to a violation of the rule; negative if a sample violates it

    def __str__(self):
        kind = f"{self.case.kind} {self.case.X.dtype}"
        return (
            f"{self.number}: {self.case.name} {kind} C={self.C:.3g}: claims {self.gap:.3g}, true "
            f"{self.true_gap:.3g}, slack {self.slack:.3g}, converged={self.converged}, {self.stopping}"
        )


def claims_of(number, solver=None):
    """Train problem `number`, and return its claims, one for each C."""
    case = random_case(number, solver)
    model = case.model
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        if case.Cs is None:
            model.fit(case.X, case.y)
            reported = [(model.C, model.converged_, model.gap_, model.stopping_)]
            subproblems = [list(subproblems_of_model(model, case.y))]
        else:
            path = model.fit_path(case.X, case.y, case.Cs)
            reported = zip(case.Cs, path.converged_, path.duality_gap_, path.stopping_, strict=True)
            subproblems = [list(subproblems_of_path(path._solution, k, case.y)) for k in range(len(case.Cs))]
    claims = []
    for (C, *claim), parts in zip(reported, subproblems, strict=True):
        if case.name.startswith(("smo", "lasvm")):
            found = [smo_gap(case, C, *part) for part in parts]
        else:
            found = [hull_gap(case, C, *part[:3]) for part in parts]
        gaps, rooms = np.array(found).T
        claims.append(Claim(number, case, C, *claim, gaps.max(), rooms.min()))
    return claims


@pytest.fixture(scope="module")
def claims(full_size):
    numbers = range(PROBLEMS + CUT_SHORT)
    numbers = numbers if full_size else numbers[::STRIDE]
    return [claim for number in numbers for claim in claims_of(number)]


def test_no_gap_is_above_the_one_claimed(claims):
    false = [str(claim) for claim in claims if not claim.true_gap <= claim.gap]
    assert not false, "\n".join(false)


def test_what_converged_keeps_its_tolerance(claims):
    false = [str(claim) for claim in claims if claim.converged and not claim.slack >= 0.0]
    assert not false, "\n".join(false)
    assert all(claim.converged == claim.stopping.startswith("certified") for claim in claims)


def test_nearly_all_converge_where_C_is_usual(claims):
    usual = [claim for claim in claims if claim.C <= 1024.0 and claim.number < PROBLEMS]
    missed = [str(claim) for claim in usual if not claim.converged]
    print(f"{len(missed)} of {len(usual)} with C <= 1024 did not converge:", *missed, sep="\n")
    assert len(missed) <= 0.05 * len(usual), "\n".join(missed)


def test_the_gap_of_online_steps_is_over_all_samples(full_size):
    claims = [
        claim
        for number in range(0, PROBLEMS + CUT_SHORT, 1 if full_size else STRIDE)
        for claim in claims_of(number, LASVM)
    ]
    false = [str(claim) for claim in claims if not claim.true_gap <= claim.gap]
    assert not false, "\n".join(false)
    false = [str(claim) for claim in claims if claim.converged and not claim.slack >= 0.0]
    assert not false, "\n".join(false)
    assert 0 < sum(claim.converged for claim in claims) < len(claims)
