"""The machines of a path of `NewtonSVC` one by one, where one Gram matrix for all would not pay."""

import time

import numpy as np

from solvers.base import Problem
from solvers.limits import share_of
from solvers.newton_machine import solve_machine
from solvers.path_blocks import groups_of, store_block
from solvers.path_result import PathSolution, intercepts
from solvers.seeds import machine_seeds


def path_by_machines(X, kernel, classes, rows, class_start, Cs, at_once, bias, *, tol, max_iter, memory):
    """Train the machines of a path one by one from the features of their samples.

    Parameters are those of `solvers.newton_gram.fit_path` and `solvers.newton_machine.solve_machine`.

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
    iterations, methods, statuses, supports, evaluations = (
        np.empty(of_machine, dtype=np.int64) for _ in range(5)
    )
    left = np.full(Cs.size, max_iter)
    seeds = machine_seeds(0, len(groups))
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
            seed=int(seeds[k]),
            deadline=np.inf,
        )
        limits = share_of(left, len(groups) - k)
        solved = solve_machine(problem, 1.0, Cs, tol, max_iter=limits, memory=memory)
        left -= np.minimum(left, solved.iterations)
        used[:, samples] |= solved.weights > 0.0
        model = solved.weights
        if len(solved.coefficients):
            compact = len(solved.coefficients)
            model = np.concatenate((np.zeros((compact, samples.size)), solved.weights[compact:]))
            model[:compact, solved.pivots] = solved.coefficients
        store_block(model, class_start, group, weights)
        norm2s[:, k], gaps[:, k] = solved.norm2s, solved.gaps
        iterations[:, k], methods[:, k] = solved.iterations, solved.methods
        statuses[:, k] = solved.statuses
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
        converged=gaps <= tol,
        iterations=iterations,
        outcomes=statuses,
        methods=methods,
        supports=supports,
        n_support=np.count_nonzero(used, axis=1),
        evaluations=evaluations.sum(axis=1),
        seconds=seconds.sum(axis=1),
    )
