"""Geometric support vector machines as scikit-learn estimators over numba kernels.

Rooms, each of which imports only those below it:

=========== ====================================================================================
estimators/ one scikit-learn estimator a file: parameters, docstring, `_solve`; `fit_path`
path/       training for all C of a split at once: one driver over any block solver
newton/     the L2 problem, exactly: support Newton, low rank, features, pair steps
margin/     large training sets without a Gram matrix
hull/       the minimal-norm and ball problems, by rows of the kernel and on a block
smo/        L1 and L2 with a free bias, by rows of the kernel and on a block
gram/       blocks of kernel values: gathering, pairs of classes, factors
multiclass  pairs of classes, one against the rest, all at once, votes
problem     one subproblem to train, and its solution
kernels/    kernel functions, blocks of values, one sample against many
common/     compilation, statuses, selection, rounding, limits, memory, seeds, threads, BLAS
=========== ====================================================================================

Symbols of the thesis (Strack 2013) and their names in code, for n samples of a machine:

======================== =================== ================ ==========================================
symbol                   name                shape            meaning
======================== =================== ================ ==========================================
α_i                      alpha               (n,)             weights of the hull point, ≥ 0, sum 1
x̃_i · c                  g                   (n,)             inner products with the point c
‖c‖²                     square_norm         scalar           least where the machine is optimal
k̃(i, j)                  row, H + diag(1/C)  (n,), (n, n)     (y_i·y_j)(k(x_i, x_j) + bias) + δ_ij / C_i
k̃ without δ_ij / C_i     H                   (n, n)           a block, in `gram`
1 / C_i                  inverse_C           (n,) or (1,)     what a penalty adds to the diagonal
1 / sample_weight        inverse_weight      (n,)             inverse_C is this over C
τ̃ = k̃(i, i)              diagonal            (n,)             R̂², where it is the same for all samples
‖x̃_u − x̃_v‖²             square_distance     scalar           D_uv
ε, ε̂                     epsilon             scalar           of the stopping rule, and of its scale
u, v                     u, v                scalar           sample that gives weight, and that gets it
β, η                     beta, eta           scalar           weight that moves; over-relaxation
y_i·y_j, i, j unlike     opposite            scalar           −1, or −1/(classes − 1) for all at once
N_d, N_r                 draws, subset       scalar           candidates drawn in vain; compared at a time
y_i α_i                  beta                (n,)             signed weights, in `smo`, where K has no sign
yf − 1 in signed form    F                   (n,)             gradient, in `smo`
α / ‖c‖²                 weights             (n_C, n)         weights of margin 1
======================== =================== ================ ==========================================

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
... "violation"         g ≥ ‖c‖² (1 − ε) of every sample                   1 − (1 − ε)² ≈ 2 ε
MNSVC(stopping="adjmn") g ≥ ‖c‖² − ε ‖c‖ √τ̃ of every sample               ≈ 2 ε √τ̃ / ‖c‖
MNSVC(stopping="meb")   every sample within (1 + ε) √τ̃ of c; this is      ≈ 3/4 + ε τ̃ / ‖c‖²
SphereSVC, BallSVC      not the smallest ball, and gaps near 3/4 are usual
CoreSVC                 every sample within (1 + ε) times the radius of    ≈ 2 ε τ̃ / ‖c‖²
                        the core set's ball
======================= ================================================== ======================

Here τ̃ = k̃(x, x), and ε = "auto" is that of the papers: 10⁻³ for the rules of the minimal norm, (7.3) for the
balls. The probabilistic stop of the papers (no violator among the draws:
``exhaustive=False``, ``track_margins=False``, or more than 50,000 samples that are not trained by those near
the margin) promises none of this by itself: the certificate decides.
"""

from solvers.estimators.ballsvc import BallSVC
from solvers.estimators.coresvc import CoreSVC
from solvers.estimators.mnsvc import MNSVC
from solvers.estimators.newtonsvc import NewtonSVC
from solvers.estimators.smosvc import SMOSVC
from solvers.estimators.spheresvc import SphereSVC

__all__ = ["MNSVC", "SMOSVC", "BallSVC", "CoreSVC", "NewtonSVC", "SphereSVC"]
