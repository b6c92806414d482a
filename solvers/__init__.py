"""Geometric support vector machines as scikit-learn estimators over numba kernels."""

from solvers.bvm import BallSVC
from solvers.cvm import CoreSVC
from solvers.mnsvm import MNSVC
from solvers.newton import NewtonSVC
from solvers.smo import SMOSVC
from solvers.spheresvm import SphereSVC

__all__ = ["MNSVC", "SMOSVC", "BallSVC", "CoreSVC", "NewtonSVC", "SphereSVC"]
