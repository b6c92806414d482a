"""The L1 and the L2 problem on many samples, for an ascending path of C, without a Gram matrix.

The first C starts from the solution for some of the samples. For the L1 loss, it shows about how many samples
of each class are inside the margin; for the L2 loss, about how large their slacks are. From one C to the
next, the rules are those of `solvers.smo.block_path`. Each C is solved by `solvers.margin.subproblem`.
"""

import numpy as np
from scipy import sparse

from solvers.common.blas import one_blas_thread
from solvers.common.status import certified_text, uncertified_text
from solvers.gram.outcomes import new_outcomes
from solvers.kernels.tiles import is_tiled, scaled_samples
from solvers.margin.subproblem import LargeSubproblem
from solvers.problem import Solution
from solvers.smo.certificate import SMO_STOPPING_TEXTS

# Largest subproblem for which the block of all samples costs less than a choice of samples.
MAX_DENSE = 3000
# Memory of a nonzero feature value, in bytes: its column, and its value in float64 and in float32.
BYTES_OF_NONZERO = 16.0
# Largest share of the memory for tiles. Rows of the kernel are slower, even if little is left for the block.
SHARE_OF_TILES = 0.95
# Name of the scaled samples among what the subproblems of a training share.
SAMPLES = "samples"
# Cost of a step, in kernel values.
COST_OF_STEP = 500.0


def takes_large_path(problem, memory):
    """Return whether a subproblem is trained here; see the table in the documentation of the solvers.

    If it is not, the scaled samples that other subproblems of its training share are freed.

    Parameters
    ----------
    problem : solvers.problem.Problem
        Samples of the subproblem, with their penalties C, the kernel and the limits.
    memory : float
        Memory for the whole training, in bytes.

    Returns
    -------
    bool
        True for a large subproblem with finite C whose kernel is computed by tiles.
    """
    is_large = problem.rows.size > MAX_DENSE and bytes_of_tiles(problem) <= SHARE_OF_TILES * memory
    is_large = is_large and bool(np.isfinite(problem.C).all())
    if is_large and problem.once("is_tiled", lambda: is_tiled(problem.kernel, problem.X)):
        return True
    problem.shared.pop(SAMPLES, None)  # this subproblem may use all of the memory
    return False


def samples_of(problem):
    """Return the samples of the training that a subproblem belongs to, scaled for tiles.

    Parameters
    ----------
    problem : solvers.problem.Problem
        The subproblem.

    Returns
    -------
    solvers.kernels.tiles.Samples
        All rows of `problem.X`.
    """
    return problem.once(SAMPLES, lambda: scaled_samples(problem.X, problem.kernel.gamma))


def has_large_subproblem(problem, kernel, X):
    """Return whether a subproblem is so large that a Gram matrix of all samples costs more than it saves.

    Parameters
    ----------
    problem : solvers.path.result.PathProblem
        Sorted samples, weights and values of C that the path trains on.
    kernel : solvers.kernels.functions.Kernel
        Kernel of the classifier, whose kind decides.
    X : {ndarray, CSR} of shape (n_samples, n_features), float64
        Samples of the training set.

    Returns
    -------
    bool
        True if the largest subproblem of two labels is too large for a Gram matrix.
    """
    sizes = np.sort(np.diff(problem.class_start))
    largest = sizes.sum() if problem.multiclass == "one_vs_rest" else sizes[-2:].sum()
    return not problem.at_once and largest > MAX_DENSE and is_tiled(kernel, X)


def bytes_of_tiles(problem):
    """Return the memory of a subproblem's samples as tiles, and of all samples as rows.

    Parameters
    ----------
    problem : solvers.problem.Problem
        Samples of the subproblem, with their penalties C, the kernel and the limits.

    Returns
    -------
    float
        Memory in bytes.
    """
    X = problem.X
    # Dense rows omit zeros too.
    n_nonzero = X.nnz if sparse.issparse(X) else problem.once("n_nonzero", lambda: np.count_nonzero(X))
    return 8.0 * problem.rows.size * X.shape[1] + BYTES_OF_NONZERO * n_nonzero


def solve_large(problem, tol, memory, hinge):
    """Train a subproblem for its C.

    Parameters
    ----------
    problem : solvers.problem.Problem
        Samples of the subproblem, with their penalties C, the kernel and the limits.
    tol, memory, hinge
        As in `large_path`.

    Returns
    -------
    solvers.problem.Solution
        The trained subproblem.
    """
    outcome = new_outcomes(1, 1, 2).of_subproblem(0)
    limits = np.array([problem.max_iter])
    alpha = large_path(problem, samples_of(problem), np.ones(1), tol, limits, memory, outcome, hinge)[0]
    support, gap, status = np.flatnonzero(alpha), float(outcome.gaps[0]), int(outcome.statuses[0])
    converged = bool(outcome.converged[0])
    reason = SMO_STOPPING_TEXTS[status]
    return Solution(
        support=support,
        alpha=alpha[support],
        bias=outcome.biases[0, :1],
        objective=float(outcome.objectives[0]),
        gap=gap,
        n_iter=int(outcome.iterations[0]),
        n_kernel_evals=int(outcome.evaluations[0]),
        status=status,
        converged=converged,
        stopping=certified_text(tol) if converged else uncertified_text(reason, gap),
    )


def large_path(problem, samples, Cs, tol, limits, memory, outcome, hinge):
    """Train a subproblem for every C, each time from the last solution.

    Parameters
    ----------
    problem : solvers.problem.Problem
        The subproblem. The penalty of a sample is its C times that of the path.
    samples : solvers.kernels.tiles.Samples
        Samples of `problem.X`, scaled for tiles.
    Cs : ndarray of shape (n_C,)
        Values of C, ascending.
    tol : float
        Largest violation and relative duality gap that count as converged.
    limits : int64 ndarray of shape (n_C,)
        Largest number of iterations for each C.
    memory : float
        Memory for the whole training, in bytes.
    outcome : solvers.gram.outcomes.Outcomes
        Arrays of shape (n_C,), which receive the results.
    hinge : bool
        Whether the loss is C ξ; if not, it is ½ C ξ².

    Returns
    -------
    weights : ndarray of shape (n_C, m)
        Weights α ≥ 0; for the L1 loss, at most the C of their sample.
    """
    m = problem.rows.size
    weight = np.ascontiguousarray(np.broadcast_to(problem.C, (m,)))
    y = np.where(np.arange(m) < problem.class_start[1], 1.0, -1.0)
    rows, left = problem.rows.astype(np.int64), memory - bytes_of_tiles(problem)
    subproblem = LargeSubproblem(samples, problem.X.shape[1], rows, y, left, problem.deadline, hinge)
    weights = np.zeros((Cs.size, m))
    with one_blas_thread():
        for k, C in enumerate(Cs):
            before, n_start = subproblem.evaluations, 0
            if k > 0:
                subproblem.raise_C(C * weight)
            else:
                subproblem.set_C(C * weight)
                if problem.start is None:
                    n_start = subproblem.start(int(limits[k]))
                else:
                    _warm_start(subproblem, problem.start, hinge)
            status, gap, converged, iterations = subproblem.solve(tol, int(limits[k]) - n_start)
            outcome.statuses[k], outcome.gaps[k], outcome.converged[k] = status, gap, converged
            outcome.iterations[k], outcome.objectives[k] = n_start + iterations, subproblem.objective
            outcome.evaluations[k] = subproblem.evaluations - before
            outcome.costs[k] = outcome.evaluations[k] + COST_OF_STEP * (n_start + iterations)
            outcome.biases[k] = subproblem.bias, -subproblem.bias
            weights[k] = np.abs(subproblem.beta)
            outcome.supports[k] = np.count_nonzero(weights[k])
    return weights


def _warm_start(subproblem, solution, hinge):
    """Start from the weights of the last fit, scaled down if they violate the bounds of the L1 loss.

    Parameters
    ----------
    subproblem : LargeSubproblem
        Receives the weights.
    solution : solvers.problem.Solution
        Solution of the last fit.
    hinge : bool
        Whether the loss is C ξ; if not, it is ½ C ξ², and weights have no upper bound.
    """
    support, alpha = solution.support, solution.alpha
    if hinge:
        C = subproblem.C[support]
        alpha = np.minimum(min(1.0, (C / alpha).min(initial=1.0)) * alpha, C)
    beta = np.zeros(subproblem.y.size)
    beta[support] = subproblem.y[support] * alpha
    subproblem.set_weights(beta)
