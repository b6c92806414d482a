"""Random training problems, every way to train on them, and bounds on the optimum of each subproblem.

A way to train is a source of kernel values, an algorithm, or another statement of the same problem. The
bounds are computed from nothing but the weights of a model and the samples, on all rows, in long double.
"""

from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pytest
from scipy import sparse

from solvers import MNSVC, SMOSVC, BallSVC, CoreSVC, NewtonSVC, SphereSVC
from solvers.margin import descent, l1_path, subproblem
from solvers.multiclass import groups_of
from solvers.path import tiles
from solvers.path.result import PathSolution

LONG = np.longdouble
SOLVERS = [
    SMOSVC(tol=1e-4),
    SMOSVC(tol=1e-4, loss="l2"),
    NewtonSVC(tol=1e-4),
    MNSVC(tol=1e-4, random_state=0),
    None,  # one of `BALLS`, which take equal weights only
]
BALLS = [SphereSVC(random_state=0), BallSVC(random_state=0), CoreSVC(random_state=0)]
ANY_CACHE = 200.0
"""`cache_size` that fits the Gram matrix of any problem here, in MB."""


class Bounds(NamedTuple):
    """Truth about one trained subproblem."""

    lower: LONG  # lower bound on the optimum
    upper: LONG  # objective of the model, an upper bound on the optimum
    gap: float  # distance between the two as the solver defines its gap
    slack: float  # distance to a violation of the condition of `converged_`; negative if it is violated


@dataclass
class Run:
    """One way to train for one C: what it claims, and the truth about each of its subproblems."""

    way: str
    C: float
    converged: bool
    gap: float
    bounds: list[Bounds]

    def __str__(self):
        true = max(bound.gap for bound in self.bounds)
        return f"{self.way}, C={self.C:.4g}: claims {self.gap:.3g}, true {true:.3g}, {self.converged=}"


@dataclass
class Task:
    """A random training problem, for two values of C."""

    number: int
    model: object
    X: np.ndarray
    y: np.ndarray
    Cs: np.ndarray
    weight: np.ndarray | None  # weights of samples
    is_sparse: bool

    def __str__(self):
        weight = "none" if self.weight is None else self.weight.dtype
        kind = "CSR" if self.is_sparse else "dense"
        return f"problem {self.number}: {self.model}, {self.X.shape} {kind}, C={self.Cs[-1]:.3g}, {weight=}"

    @cached_property
    def K(self):
        """Kernel matrix from differences."""
        X, model = self.X.astype(LONG), self.model
        if model.kernel == "rbf":
            return np.exp(-LONG(model.gamma) * ((X[:, None] - X[None]) ** 2).sum(axis=2))
        products = (X[:, None] * X[None]).sum(axis=2)
        return products if model.kernel == "linear" else (LONG(model.gamma) * products + model.coef0) ** 2

    @cached_property
    def C_factors(self):
        """Penalty of each sample as a multiple of C; 0 for a sample that is left out."""
        of_class = np.ones(self.y.size)
        if self.model.class_weight is not None:
            of_class = np.array([self.model.class_weight[label] for label in self.y.tolist()])
        return of_class * (1.0 if self.weight is None else self.weight)

    @cached_property
    def groups(self):
        """Classes of each subproblem."""
        n_classes = np.unique(self.y).size
        return groups_of(n_classes, "pairwise" if n_classes == 2 else self.model.multiclass)

    @cached_property
    def largest(self):
        """Number of samples of the largest subproblem."""
        kept = self.y[self.C_factors > 0.0]
        return max(int(np.isin(kept, group).sum()) for group in self.groups)

    @cached_property
    def half_of_largest(self):
        """Value of `cache_size` that fits half of the Gram matrix of the largest subproblem."""
        return 4e-6 * self.largest**2

    def samples(self):
        return sparse.csr_matrix(self.X) if self.is_sparse else self.X


def random_task(number):
    """Return problem `number`."""
    rng = np.random.default_rng([44, number])
    ball = BALLS[number // len(SOLVERS) % len(BALLS)]
    model = (SOLVERS[number % len(SOLVERS)] or ball)._copy()
    n_classes, d = int(rng.integers(2, 7)), int(rng.integers(2, 8))
    sizes = rng.integers(8, 60 if n_classes == 2 else 30, n_classes)
    y = rng.permutation(np.repeat(np.arange(n_classes), sizes))
    X = rng.normal(size=(n_classes, d))[y] * rng.uniform(0.2, 2.0) + rng.normal(size=(y.size, d))
    X[rng.random(X.shape) < rng.choice([0.0, 0.4])] = 0.0
    X[:5] = X[-5:]  # some samples occur twice, perhaps with different labels
    X[:, 0] += (X == 0.0).all(axis=1)  # no row is empty, because the ball methods normalise
    kernel = str(rng.choice(["rbf", "rbf", "rbf", "linear", "poly"]))
    model.set_params(kernel=kernel, gamma=float(2.0 ** rng.uniform(-3, 2)), degree=2, coef0=1.0)
    X /= 1.0 if kernel == "rbf" else 32.0  # else steps at a large C stall, or take a minute
    model.set_params(multiclass=str(rng.choice(["pairwise", "pairwise", "one_vs_rest"])))
    C, weight = 10.0 ** rng.uniform(-2, 4), None
    if type(model) not in map(type, BALLS):
        kind = rng.choice(["none", "real", "integer", "integer"])
        if kind != "none":
            real, whole = rng.uniform(0.2, 5.0, y.size), rng.integers(1, 4, y.size)
            weight = (real if kind == "real" else whole) * (rng.random(y.size) < 0.9)
        if rng.random() < 0.3:
            model.set_params(class_weight=dict(enumerate(rng.uniform(0.3, 3.0, n_classes).tolist())))
    return Task(number, model, X, y, np.array([C / 8.0, C]), weight, bool(rng.random() < 0.5))


# Ways to train.


def one_gram(task):
    return by_path(task, cache_size=ANY_CACHE)


def other_storage(task):
    return by_path(task, X=task.X if task.is_sparse else sparse.csr_matrix(task.X), cache_size=ANY_CACHE)


def precomputed(task):
    return by_path(
        task, X=task.K.astype(np.float64), kernel="precomputed", gram_error=float(1e-15 * task.K.max())
    )


def a_gram_each(task):
    """Subproblems one by one, each from its Gram matrix."""
    return by_path(task, cache_size=8e-6 * (task.largest**2 + 1))


def by_rows(task):
    return by_path(task, cache_size=task.half_of_largest)


def by_margin(task):
    """Samples near the margin, on blocks that are smaller than each subproblem."""
    with pytest.MonkeyPatch.context() as patch:
        for module, name, value in (
            *((l1_path, "MAX_DENSE", 20), (subproblem, "MAX_WHOLE_BLOCK", 15), (subproblem, "FEW_NEAR", 10)),
            *((subproblem, "MIN_SUBSAMPLE", 20), (descent, "FEW_NEAR", 10), (descent, "MIN_FIRST", 20)),
        ):
            patch.setattr(module, name, value)
        patch.setattr("solvers.estimators.smosvc.MAX_DENSE", 20)
        return by_path(task, cache_size=7.9e-6 * task.largest**2)


def by_tiles(task):
    """All pairs together, on tiles of a few classes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tiles, "MIN_CLASSES", 3)
        patch.setattr(tiles, "TILE_SAMPLES", 40)
        return by_path(task, cache_size=task.half_of_largest)


def by_fit(task):
    return [*by_fits(task, ANY_CACHE), *by_fits(task, task.half_of_largest)]


def by_pairs(task):
    """The samples of each pair of classes, as a problem of two classes."""
    models = []
    for group in task.groups:
        members, weight = np.isin(task.y, group), None if task.C_factors.min() == 1.0 else task.C_factors
        y = np.searchsorted(group, task.y[members])
        weight = None if weight is None else weight[members]
        model = task.model._copy()
        if not is_ball(model):
            model.set_params(class_weight=None)  # `weight` contains it
        models.append(one_gram(Task(task.number, model, task.X[members], y, task.Cs, weight, task.is_sparse)))
    return [
        Run(
            "",
            C,
            all(run.converged for run in runs),
            max(run.gap for run in runs),
            [run.bounds[0] for run in runs],
        )
        for C, *runs in zip(task.Cs, *models, strict=True)
    ]


def repeated_rows(task):
    """Each sample as often as its weight says. The weights of its copies add up to its weight."""
    source = np.repeat(np.arange(task.y.size), task.weight)
    return by_path(task, task.samples()[source], source=source, cache_size=ANY_CACHE)


WAYS: dict[Callable, Callable] = {
    one_gram: lambda task: True,
    other_storage: lambda task: True,
    precomputed: lambda task: task.model.kernel == "rbf" or not is_ball(task.model),
    a_gram_each: lambda task: len(task.groups) > 1 and task.model.multiclass == "pairwise",
    by_rows: lambda task: True,
    by_margin: lambda task: task.model.kernel == "rbf" and not is_ball(task.model),
    by_tiles: lambda task: len(task.groups) > 1 and task.model.multiclass == "pairwise",
    by_fit: lambda task: True,
    by_pairs: lambda task: len(task.groups) > 1 and task.model.multiclass == "pairwise",
    repeated_rows: lambda task: task.weight is not None and task.weight.dtype.kind == "i",
}
"""Ways to train, and the problems for which they exist."""


def runs_of(task):
    """Train on a problem in every way, and return the runs."""
    runs = []
    for way, exists in WAYS.items():
        if exists(task):
            found = way(task)
            for run in found:
                run.way = way.__name__
            runs += found
    return runs


def is_ball(model):
    return isinstance(model, tuple(map(type, BALLS)))


def by_path(task, X=None, source=None, **params):
    """Train on a path; `source` is the sample of the problem that each row of `X` is a copy of."""
    model = task.model._copy().set_params(**params)
    X = task.samples() if X is None else X
    y, weight = (task.y, task.weight) if source is None else (task.y[source], None)
    with solutions() as kept:
        path = model.fit_path(X, y, task.Cs, weight)
    solution, runs = kept[-1] if kept else path._solution, []  # a Gram matrix keeps all rows
    for k, C in enumerate(task.Cs):
        layers = np.zeros((solution.weights.shape[1], task.y.size), LONG)
        rows = solution.problem.rows if source is None else source[solution.problem.rows]
        np.add.at(layers, (slice(None), rows), solution.weights[k])
        bounds = [
            bounds_of(task, C, group, layers[layer_of(task, group)], -solution.intercepts[k, p])
            for p, group in enumerate(task.groups)
        ]
        runs.append(Run("", C, bool(path.converged_[k]), float(path.duality_gap_[k]), bounds))
    return runs


def layer_of(task, group):
    """Return the index of the layer that has the weight of each sample, for one subproblem."""
    if task.model.multiclass == "one_vs_rest" and len(task.groups) > 1:
        return np.full(task.y.size, group[0]), np.arange(task.y.size)
    other = np.where(task.y == group[0], group[1] - 1, group[0])
    return np.minimum(other, len(np.unique(task.y)) - 2), np.arange(task.y.size)


def by_fits(task, cache_size):
    """Train for each C from nothing, and read the published coefficients."""
    for C in task.Cs:
        model = (
            task.model._copy().set_params(C=C, cache_size=cache_size).fit(task.samples(), task.y, task.weight)
        )
        layers = np.zeros((len(model.dual_coef_), task.y.size), LONG)
        layers[:, model.support_] = np.abs(model.dual_coef_)
        # The decision of two classes is positive for the second one.
        sign = 1.0 if len(model.classes_) == 2 else -1.0
        bounds = [
            bounds_of(task, C, group, layers[layer_of(task, group)], sign * model.intercept_[p])
            for p, group in enumerate(task.groups)
        ]
        yield Run("", C, bool(model.converged_), float(model.duality_gap_), bounds)


@contextmanager
def solutions():
    """Keep the solutions of paths with the weights of all samples."""
    kept, on_used_rows = [], PathSolution.on_used_rows
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PathSolution, "on_used_rows", lambda self: kept.append(self) or on_used_rows(self))
        yield kept


# Truth about a subproblem. Labels are −1 for its first class, and the bias is that of the other class.


def bounds_of(task, C, group, alpha, bias):
    """Return the truth about a subproblem from the weight of each sample, of which none is negative."""
    members = np.isin(task.y, group) & (task.C_factors > 0.0)
    y = np.where(task.y[members] == group[0], LONG(-1), LONG(1))
    K, C_of_rows, alpha = task.K[np.ix_(members, members)], LONG(C) * task.C_factors[members], alpha[members]
    if isinstance(task.model, SMOSVC):
        return smo_bounds(K, y, alpha, LONG(bias), C_of_rows, task.model)
    if is_ball(task.model):
        root = np.sqrt(np.diag(K))
        K, alpha = K / np.outer(root, root), alpha * root
    return hull_bounds(np.outer(y, y) * (K + 1) + np.diag(1 / C_of_rows), alpha / alpha.sum(), task.model)


def smo_bounds(K, y, alpha, bias, C, model):
    beta = y * alpha
    ridge = beta / C if model.loss == "l2" else 0
    limit = C if model.loss == "l1" else np.inf
    slack = np.maximum(0, 1 - y * (K @ beta + bias))
    quadratic = beta @ K @ beta
    loss = C @ slack if model.loss == "l1" else C @ slack**2 / 2
    upper = quadratic / 2 + loss
    # A sum of the weights that is not zero moves the dual by at most this much.
    lower = alpha.sum() - quadratic / 2 - beta @ (ridge + 0 * beta) / 2 - abs(beta.sum()) * (1 + abs(bias))
    F, gap = K @ beta - y + ridge, float((upper - lower) / upper)
    rounding = LONG(1e-11) * np.minimum(limit, alpha.max())
    can_grow = np.where(y > 0, alpha < limit - rounding, alpha > rounding)
    can_shrink = np.where(y > 0, alpha > rounding, alpha < limit - rounding)
    violation = F[can_shrink].max(initial=-np.inf) - F[can_grow].min(initial=np.inf)
    return Bounds(lower, upper, gap, float(model.tol - max(violation, gap)))


def hull_bounds(H, alpha, model):
    """Return the truth about a hull point. Its projection on any other direction bounds the shortest one."""
    g = H @ alpha
    upper, lowest = alpha @ g, max(g.min(), LONG(0))
    gap = float(1 - (lowest / upper) ** 2)
    if is_ball(model):  # its tolerance is that of `test_certificate_truth`
        slack = 0.0
    elif isinstance(model, NewtonSVC):
        slack = model.tol - gap
    else:
        slack = float(g.min() - upper * (1 - LONG(model.tol)) ** 2)
    return Bounds(lowest**2 / upper, upper, gap, slack)
