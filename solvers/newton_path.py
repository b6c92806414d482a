"""What `NewtonSVC.fit_path` gives back, and how it gets there without one Gram matrix for all machines."""

import time

import numpy as np
from sklearn.utils.validation import check_array

from solvers.base import Problem
from solvers.block_path import method_names
from solvers.kernels import GRAM, kernel_block
from solvers.newton_machine import solve_machine
from solvers.path import PathSolution, groups_of, intercepts, layer

BLOCK_VALUES = 1 << 22


def path_by_machines(X, kernel, classes, rows, class_start, Cs, at_once, bias, *, tol, max_steps, memory):
    """Train the machines of a path one by one from the features of their samples.

    Parameters are those of `solvers.path.fit_path` and `solvers.newton_machine.solve_machine`.

    Returns
    -------
    PathSolution
        Machines that were solved in feature space are held on their pivots, with weights of either sign.
    """
    groups = groups_of(classes.size, at_once)
    depth = 1 if at_once else classes.size - 1
    weights = np.zeros((Cs.size, depth, rows.size))
    used = np.zeros((Cs.size, rows.size), dtype=bool)
    of_machine = (Cs.size, len(groups))
    norm2s, gaps, seconds = np.empty(of_machine), np.empty(of_machine), np.empty(of_machine)
    iterations, methods, supports, evaluations = (np.empty(of_machine, dtype=np.int64) for _ in range(4))
    for k, group in enumerate(groups):
        started = time.perf_counter()
        samples = np.concatenate([np.arange(class_start[p], class_start[p + 1]) for p in group])
        machine_start = np.concatenate(([0], np.cumsum(np.diff(class_start)[group])))
        problem = Problem(
            X=X,
            rows=rows[samples],
            class_start=machine_start,
            C=np.ones(1),
            kernel=kernel,
            bias=bias,
            scale=np.empty(0),
            seed=0,
            deadline=np.inf,
        )
        solved = solve_machine(problem, 1.0, Cs, tol, max_steps=max_steps, memory=memory)
        used[:, samples] |= solved.weights > 0.0
        model = solved.weights
        if len(solved.coefficients):
            compact = len(solved.coefficients)
            model = np.concatenate((np.zeros((compact, samples.size)), solved.weights[compact:]))
            model[:compact, solved.pivots] = solved.coefficients
        for t, p in enumerate(group):
            part = slice(machine_start[t], machine_start[t + 1])
            weights[:, layer(p, group, depth), class_start[p] : class_start[p + 1]] = model[:, part]
        norm2s[:, k], gaps[:, k] = solved.norm2s, solved.gaps
        iterations[:, k], methods[:, k] = solved.iterations, solved.methods
        supports[:, k] = np.count_nonzero(solved.weights, axis=1)
        evaluations[:, k] = solved.evaluations
        seconds[:, k] = (time.perf_counter() - started) / Cs.size
    return PathSolution(
        Cs=Cs,
        classes=classes,
        rows=rows,
        class_start=class_start,
        weights=weights,
        intercepts=intercepts(weights, class_start, bias, at_once),
        at_once=at_once,
        norm2s=norm2s,
        gaps=gaps,
        iterations=iterations,
        methods=methods,
        supports=supports,
        n_support=np.count_nonzero(used, axis=1),
        evaluations=evaluations.sum(axis=1),
        seconds=seconds.sum(axis=1),
    )


class NewtonPath:
    """The machines of `NewtonSVC.fit_path` for every C.

    Attributes
    ----------
    Cs_ : ndarray of shape (n_C,)
    classes_ : ndarray of shape (n_classes,)
    n_iter_, n_kernel_evals_, n_support_ : int ndarrays of shape (n_C,)
        As a fitted estimator has them; `n_support_` is the number of support vectors of any machine.
    sv_share_ : ndarray of shape (n_C,)
        Mean over the machines of support vectors / samples.
    converged_ : bool ndarray of shape (n_C,)
    objective_ : ndarray of shape (n_C,)
        ``||c||²`` summed over the machines.
    duality_gap_ : ndarray of shape (n_C,)
        The largest certified gap of a machine.
    fit_status_ : list of str
        The methods that were used.
    fit_seconds_ : ndarray of shape (n_C,)
        Wall seconds of the whole path, shared out by counted work.
    """

    def __init__(self, estimator, solution, kernel, X):
        sizes = np.diff(solution.class_start)[groups_of(solution.classes.size, solution.at_once)].sum(axis=1)
        self.Cs_ = solution.Cs
        self.classes_ = solution.classes
        self.n_iter_ = solution.iterations.sum(axis=1)
        self.n_kernel_evals_ = solution.evaluations
        self.n_support_ = solution.n_support
        self.sv_share_ = (solution.supports / sizes).mean(axis=1)
        self.objective_ = solution.norm2s.sum(axis=1)
        self.duality_gap_ = solution.gaps.max(axis=1)
        self.converged_ = self.duality_gap_ <= estimator.tol
        self.fit_status_ = [method_names(bits) for bits in np.bitwise_or.reduce(solution.methods, axis=1)]
        self.fit_seconds_ = solution.seconds
        self._kernel = kernel
        self._callable = estimator.kernel if callable(estimator.kernel) else None
        if kernel.kind == GRAM and self._callable is None:
            self._solution, self._vectors = solution, None
        else:
            self._solution, kept = solution.on_used_rows()
            self._vectors = X[kept]

    def predict_path(self, X):
        """Predict labels for every C.

        Parameters
        ----------
        X : {array-like, CSR} of shape (n_test, n_features), or (n_test, n_train) if precomputed

        Returns
        -------
        labels : ndarray of shape (n_C, n_test)
        """
        if self._vectors is None:
            return self._solution.predict_path(np.asarray(X))
        X = check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32], order="C")
        step = max(1, BLOCK_VALUES // max(1, self._vectors.shape[0]))
        blocks = [X[a : a + step] for a in range(0, X.shape[0], step)]
        return np.concatenate(
            [self._solution.predict_path(self._kernel_to(block)) for block in blocks], axis=1
        )

    def _kernel_to(self, X):
        if self._callable is not None:
            return np.asarray(self._callable(X, self._vectors), dtype=np.float64)
        return kernel_block(X, self._vectors, self._kernel)
