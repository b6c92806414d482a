"""Geometric support vector machines as scikit-learn estimators over numba kernels.

After `fit`, `gap_` bounds how far a machine is from optimal, with every rounding allowed for: the
relative error of ‖c‖², 1 − (max(g_min, 0)/‖c‖²)² over all samples, or for `SMOSVC` primal minus dual
objective as a share of the primal one. `converged_` says whether what `tol` = ε asks for is certified to
hold, of every machine and for all samples; `stopping_` says it in words, or what ended the training
instead and which gap was left. What `gap_` says of ‖c‖², or of the objectives, holds for positive
semidefinite kernels only: with others (sigmoid; poly with a negative `coef0` or a fractional `degree`; some
Gram matrices) there may be a better machine far away.

======================= ================================================== ======================
Solver                  When `converged_` is true                          `gap_` is then at most
======================= ================================================== ======================
NewtonSVC               `gap_` ≤ ε                                         ε
SMOSVC                  no violation of the optimality conditions above ε  ε
                        (in units of the margin), and `gap_` ≤ ε
MNSVC                   g ≥ ‖c‖² (1 − ε)² of every sample                  1 − (1 − ε)⁴ ≈ 4 ε
MNSVC(stopping="adjmn") g ≥ ‖c‖² − ε ‖c‖ √τ̃ of every sample               ≈ 2 ε √τ̃ / ‖c‖
MNSVC(stopping="meb")   every sample within (1 + ε) √τ̃ of c; this is      ≈ 3/4 + ε τ̃ / ‖c‖²
SphereSVC, BallSVC      not the smallest ball, and gaps near 3/4 are usual
CoreSVC                 every sample within (1 + ε) times the radius of    ≈ 2 ε τ̃ / ‖c‖²
                        the core set's ball
======================= ================================================== ======================

Here τ̃ = k̃(x, x), and ε = "auto" is that of the papers: 10⁻³ for mn and adjmn, (7.3) for the balls. The
probabilistic stop of the papers (no violator among the draws: ``exhaustive=False``, or more than 50,000
samples) promises none of this by itself: the certificate decides.
"""

from solvers.bvm import BallSVC
from solvers.cvm import CoreSVC
from solvers.mnsvm import MNSVC
from solvers.newton import NewtonSVC
from solvers.smo import SMOSVC
from solvers.spheresvm import SphereSVC

__all__ = ["MNSVC", "SMOSVC", "BallSVC", "CoreSVC", "NewtonSVC", "SphereSVC"]
