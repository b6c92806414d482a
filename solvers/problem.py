"""One machine to train, and a trained one."""

from dataclasses import dataclass, field

import numpy as np
from scipy import sparse

from solvers.common.resources import NO_LIMIT
from solvers.common.status import fit_status_of
from solvers.kernels.functions import Kernel


@dataclass
class Problem:
    """One machine to train."""

    X: np.ndarray | sparse.csr_matrix
    rows: np.ndarray  # (n,) int32
    class_start: np.ndarray  # (classes + 1,) int64
    C: np.ndarray  # (1,), or (n,) with sample weights
    kernel: Kernel
    bias: float  # added to the kernel: 1, or 0 for a machine without bias
    scale: np.ndarray  # (n,) 1/√k(x, x) if the kernel is to be normalised, else (0,)
    seed: int
    deadline: float  # on `solvers.common.clock.clock` at which to stop
    max_iter: int = NO_LIMIT
    start: "Solution | None" = None  # of the last fit, to start from


@dataclass
class Solution:
    """A trained machine."""

    support: np.ndarray  # (k,) samples of the problem, ascending
    alpha: np.ndarray  # (k,) weights > 0
    bias: np.ndarray  # (1,) or, for all classes at once, (classes,)
    objective: float
    gap: float  # relative; NaN if it was not computed
    n_iter: int
    n_kernel_evals: int
    status: int  # what the solver said, of those of `solvers.common.status`; 0: its own stop was reached
    converged: bool  # whether the tolerance is certified to hold
    stopping: str  # what ended the training, and what is certified
    by_draws: bool = field(default=False, kw_only=True)  # whether its search may have missed a sample
    n_clipped: int = field(default=0, kw_only=True)  # iterations whose step took all the weight of a sample

    @property
    def fit_status(self):
        """0 if it is certified, else one of `solvers.common.status.ADVICE`."""
        return fit_status_of(self.status, self.converged, self.by_draws)
