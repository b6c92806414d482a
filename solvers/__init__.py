"""Geometric support vector machines as scikit-learn estimators over numba kernels.

Folders and files, each of which imports only those below it:

============== =====================================================================================
estimators/    one scikit-learn estimator a file: parameters, docstring, `_solve`; `fit_path`
path/          training for all C of a split at once: one driver over any block solver
version_space/ Bayes points, relative margins, ellipsoids and soft balls
tree/          lists of planes without errors on one class
online/        the L1 problem sample by sample, on a set that grows and shrinks
reduction/     representatives of a training set, reduced sets of a trained model, and bounds for both
linear/        cutting planes for the hinge loss, on features or on a basis of kernel functions
newton/        the L2 problem, exactly: support Newton, low rank, features, pair steps
margin/        large training sets without a Gram matrix
hull/          the minimal-norm and ball problems, by kernel rows and on a block
smo/           L1 and L2 with a free bias, by kernel rows and on a block
gram/          blocks of kernel values: gathering, pairs of classes, factors
problem        a subproblem to train, and its solution
multiclass     pairs of classes, one against the rest, all at once, votes
kernels/       kernel functions, blocks of values, one sample against many
common/        compilation, statuses, selection, rounding, limits, memory, seeds, threads, BLAS
============== =====================================================================================

Symbols of Strack (2013) and their names in code, for n samples of a subproblem:

======================== =================== ================ ==========================================
symbol                   name                shape            meaning
======================== =================== ================ ==========================================
α_i                      alpha               (n,)             weights of the hull point, ≥ 0, sum 1
x̃_i · c                  g                   (n,)             inner products with the point c
‖c‖²                     square_norm         scalar           objective, which training minimises
k̃(i, j)                  row, H + diag(1/C)  (n,), (n, n)     (y_i·y_j)(k(x_i, x_j) + bias) + δ_ij / C_i
k̃ without δ_ij / C_i     H                   (n, n)           a block, in `gram`
1 / C_i                  inverse_C           (n,) or (1,)     addition of a penalty to the diagonal
1 / sample_weight        inverse_weight      (n,)             inverse_C is this over C
τ̃ = k̃(i, i)              diagonal            (n,)             R̂², if it is the same for all samples
‖x̃_u − x̃_v‖²             square_distance     scalar           D_uv
ε, ε̂                     epsilon             scalar           ε of the stopping rule, and of its scale
u, v                     u, v                scalar           samples that give and receive weight
β, η                     beta, eta           scalar           weight that moves; over-relaxation
y_i·y_j, y_i ≠ y_j       opposite            scalar           −1, or −1/(classes − 1) for all at once
N_d, N_r                 draws, subset       scalar           draws without a violator; draws at a time
y_i α_i                  beta                (n,)             signed weights, in `smo`, where K has no sign
yf − 1 in signed form    F                   (n,)             gradient, in `smo`
α / ‖c‖²                 weights             (n_C, n)         weights of margin 1
======================== =================== ================ ==========================================

After `fit`, `gap_` bounds the distance of a subproblem from its optimum, with an allowance for every rounding
error. It is the relative error of ‖c‖², 1 − (max(g_min, 0)/‖c‖²)² over all samples. For `SMOSVC` it is the
primal minus the dual objective as a share of the primal one. `converged_` says whether the tolerance `tol` =
ε is certified for every subproblem and all samples. `stopping_` says the same in words. If the tolerance is
not certified, it names the reason and the remaining gap. The bound holds for positive semidefinite kernels
only. With other kernels (sigmoid; poly with a negative `coef0` or a fractional `degree`; some Gram matrices)
a better solution may exist far away.

======================= ================================================== ======================
Solver                  When `converged_` is true                          `gap_` is then at most
======================= ================================================== ======================
NewtonSVC               `gap_` ≤ ε                                         ε
SMOSVC                  no violation of the optimality conditions above ε  ε
                        (in units of the margin), and `gap_` ≤ ε
AESVC                   `gap_` ≤ ε, on all samples (usually not so)        ε
RelativeMarginSVC       as SMOSVC                                          ε
EllipsoidalKernelSVC    as SMOSVC, and the gap of its ellipsoid ≤ ε        ε
SoftBallSVC             `gap_` ≤ ε                                         ε
BayesPointClassifier    the balls agree to ε, which certifies nothing      ε
LASVC                   as SMOSVC (usually not so after one epoch)         ε
EllipsoidSVC            `gap_` ≤ ε, as a share of Σ C ξ + ‖v‖              ε
ReducedSetSVC           as SMOSVC, for the machine before its reduction    ε
PerfSVC                 F1 within ε C Σ s_i of its optimum (on the basis)  linear: ε C Σ s_i / F1
MNSVC                   g ≥ ‖c‖² (1 − ε)² of every sample                  1 − (1 − ε)⁴ ≈ 4 ε
... "violation"         g ≥ ‖c‖² (1 − ε) of every sample                   1 − (1 − ε)² ≈ 2 ε
MNSVC(stopping="adjmn") g ≥ ‖c‖² − ε ‖c‖ √τ̃ of every sample               ≈ 2 ε √τ̃ / ‖c‖
MNSVC(stopping="meb")   every sample within (1 + ε) √τ̃ of c; this is      ≈ 3/4 + ε τ̃ / ‖c‖²
SphereSVC, BallSVC      not the smallest ball, and gaps near 3/4 are usual
CoreSVC                 every sample within (1 + ε) times the radius of    ≈ 2 ε τ̃ / ‖c‖²
                        the core set's ball
======================= ================================================== ======================

Here τ̃ = k̃(x, x). ε = "auto" is that of the papers: 10⁻³ for the rules of the minimal norm, (7.3) for the
balls. The probabilistic stop of the papers ends a search whose draws found no violator. It applies with
``exhaustive=False`` or ``track_margins=False``, and to more than 50,000 samples, unless they are trained on
those near the margin or the draws have become expensive. This stop certifies nothing: only the certificate
sets `converged_`.
"""

from solvers.estimators.aesvc import AESVC
from solvers.estimators.ballsvc import BallSVC
from solvers.estimators.bayespointclassifier import BayesPointClassifier
from solvers.estimators.coresvc import CoreSVC
from solvers.estimators.ellipsoidalkernelsvc import EllipsoidalKernelSVC
from solvers.estimators.ellipsoidsvc import EllipsoidSVC
from solvers.estimators.fourierfeatures import FourierFeatures
from solvers.estimators.h1svc import H1SVC
from solvers.estimators.lasvc import LASVC
from solvers.estimators.mnsvc import MNSVC
from solvers.estimators.newtonsvc import NewtonSVC
from solvers.estimators.nusvc import NuSVC
from solvers.estimators.orientedgradients import OrientedGradients
from solvers.estimators.perfsvc import PerfSVC
from solvers.estimators.reducedsetsvc import ReducedSetSVC, reduce
from solvers.estimators.relativemarginsvc import RelativeMarginSVC
from solvers.estimators.smosvc import SMOSVC
from solvers.estimators.softballsvc import SoftBallSVC
from solvers.estimators.spheresvc import SphereSVC
from solvers.estimators.svmtreeclassifier import SVMTreeClassifier

# Processes that run different versions of the sources may share one folder of compiled code.
stamps_compiled_code = True

__all__ = [
    "AESVC",
    "H1SVC",
    "LASVC",
    "MNSVC",
    "SMOSVC",
    "BallSVC",
    "BayesPointClassifier",
    "CoreSVC",
    "EllipsoidSVC",
    "EllipsoidalKernelSVC",
    "FourierFeatures",
    "NewtonSVC",
    "NuSVC",
    "OrientedGradients",
    "PerfSVC",
    "ReducedSetSVC",
    "RelativeMarginSVC",
    "SVMTreeClassifier",
    "SoftBallSVC",
    "SphereSVC",
    "reduce",
]
