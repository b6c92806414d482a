"""One binary or all-at-once problem to train, and its solution."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse

from solvers.common.resources import NO_LIMIT
from solvers.common.status import fit_status_of
from solvers.kernels.functions import Kernel


@dataclass
class Problem:
    """Subproblem of a training: its samples, kernel, penalties and limits."""

    X: np.ndarray | sparse.csr_matrix  # features of all training samples, or their Gram matrix
    rows: np.ndarray  # (n,) int32: rows of X, class by class
    class_start: np.ndarray  # (labels + 1,) int64: boundaries of the labels among `rows`
    C: np.ndarray  # (1,), or (n,) with sample weights: penalties
    kernel: Kernel
    bias: float  # constant that is added to the kernel: 1, or 0 for a subproblem without bias
    scale: np.ndarray  # (n,) 1/√k(x, x) if the kernel is to be normalised, else (0,)
    seed: int  # seed of the random draws
    deadline: float  # time on `solvers.common.clock.clock` at which to stop
    max_iter: int = NO_LIMIT  # limit of the iterations
    start: "Solution | None" = None  # solution of the last fit, to start from
    shared: dict[str, Any] = field(default_factory=dict)  # results of `once`, with their X and kernel

    def once(self, name: str, compute: Callable[[], Any]) -> Any:
        """Return what X and the kernel determine, computed once for all subproblems of a training.

        Parameters
        ----------
        name : str
            What it is.
        compute : callable
            Computes it, without arguments. Subproblems that are trained at the same time may each do so.
        """
        X, kernel, value = self.shared.get(name, (None, None, None))
        if X is not self.X or kernel is not self.kernel:
            value = compute()
            self.shared[name] = self.X, self.kernel, value
        return value


@dataclass
class Solution:
    """Trained subproblem."""

    support: np.ndarray  # (k,) samples of the problem, ascending
    alpha: np.ndarray  # (k,) weights, not 0, of either sign; a coefficient is a weight times its label
    bias: np.ndarray  # (1,) or, for all classes at once, (classes,)
    objective: float  # ‖c‖², or the dual objective of SMO
    gap: float  # relative gap; NaN if it was not computed
    n_iter: int  # number of iterations
    n_kernel_evals: int  # number of kernel values that were computed
    status: int  # status of the solver, from `solvers.common.status`; 0: its stopping rule holds
    converged: bool  # whether the tolerance is certified
    stopping: str  # what ended the training, and what is certified
    by_draws: bool = field(default=False, kw_only=True)  # whether the search may have missed a sample
    n_clipped: int = field(default=0, kw_only=True)  # iterations whose step took all the weight of a sample
    n_full_updates: int = field(default=0, kw_only=True)  # other iterations, or additions to a core set

    @property
    def fit_status(self):
        """Fit status of the subproblem, as in `fit_status_`: 0 if it is certified, else a key of `ADVICE`."""
        return fit_status_of(self.status, self.converged, self.by_draws)
