"""Measure the first fit after an upgrade: CPU seconds with an empty numba cache, and with a full one.

    python -m benchmarks.compilation [NAME ...]

The processes run one after the other, and each has its own cache. The data are 300 samples of two classes,
and the kernel is Gaussian. With more than one core, a helper process compiles part of the code, and its
seconds are not counted. Set NUMBA_NUM_THREADS=1 to measure the whole.
"""

import os
import subprocess
import sys
import tempfile

FITS = {
    "AESVC": "AESVC().fit(X, y)",
    "AESVC, path": "AESVC().fit_path(X, y, Cs)",
    "LASVC": "LASVC(random_state=0).fit(X, y)",
    "SMOSVC": "SMOSVC().fit(X, y)",
    "SMOSVC, path": "SMOSVC().fit_path(X, y, Cs)",
    "SMOSVC, l2": "SMOSVC(loss='l2').fit(X, y)",
    "MNSVC": "MNSVC(random_state=0).fit(X, y)",
    "MNSVC, path": "MNSVC(random_state=0).fit_path(X, y, Cs)",
    "SphereSVC": "SphereSVC(random_state=0).fit(X, y)",
    "SphereSVC, path": "SphereSVC(random_state=0).fit_path(X, y, Cs)",
    "BallSVC": "BallSVC(random_state=0).fit(X, y)",
    "BallSVC, path": "BallSVC(random_state=0).fit_path(X, y, Cs)",
    "CoreSVC": "CoreSVC(random_state=0).fit(X, y)",
    "CoreSVC, path": "CoreSVC(random_state=0).fit_path(X, y, Cs)",
    "NewtonSVC": "NewtonSVC().fit(X, y)",
    "NewtonSVC, path": "NewtonSVC().fit_path(X, y, Cs)",
    "H1SVC": "H1SVC().fit(X, y)",
    "SVMTreeClassifier": "SVMTreeClassifier().fit(X, y)",
    "SVMTreeClassifier, greedy": "SVMTreeClassifier(greedy=True).fit(X, y)",
    "PerfSVC": "PerfSVC().fit(X, y)",
    "PerfSVC, rbf": "PerfSVC(kernel='rbf', n_basis=50, random_state=0).fit(X, y)",
    "Ellipsoid": "EllipsoidSVC().fit(X, y)",
    "Ellipsoid, hard": "EllipsoidSVC(margin='hard', r=1 - 1e-6).fit(X, y)",
    "Ellipsoid, smo": "EllipsoidSVC(solver='smo').fit(X, y)",
    "Ellipsoid, path": "EllipsoidSVC().fit_path(X, y, Cs)",
    "BayesPoint": "BayesPointClassifier(tol=0.05, random_state=0).fit(X, y)",
    "BayesPoint, straight": "BayesPointClassifier(flight='euclidean', restart=None).fit(X, y)",
    "RelativeMargin": "RelativeMarginSVC().fit(X, y)",
    "EllipsoidalKernel": "EllipsoidalKernelSVC().fit(X, y)",
    "EllipsoidalKernel, linear": "EllipsoidalKernelSVC(kernel='linear').fit(X, y)",
    "SoftBall": "SoftBallSVC().fit(X, y)",
    "SoftBall, path": "SoftBallSVC().fit_path(X, y, [0.3, 0.6])",
    "FourierFeatures": "FourierFeatures(random_state=0).fit_transform(X)",
}
PROGRAM = """
import time, warnings
from sklearn.datasets import make_classification
from solvers import *
warnings.simplefilter("ignore")  # about tolerances that few samples cannot meet
X, y = make_classification(300, 12, n_informative=6, random_state=0)
X, Cs = X / abs(X).max(), [0.25, 1.0, 4.0, 16.0]
before = time.process_time()
{fit}
print(time.process_time() - before)
"""


def cpu_seconds(fit: str, cache: str) -> float:
    environment = os.environ | {"NUMBA_CACHE_DIR": cache, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-c", PROGRAM.format(fit=fit)]
    return float(subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout)


def main() -> None:
    width = max(map(len, FITS))
    print(f"{'':{width}}{'empty':>8}{'full':>8}   CPU seconds")
    for name in sys.argv[1:] or FITS:
        with tempfile.TemporaryDirectory() as cache:
            empty, full = cpu_seconds(FITS[name], cache), cpu_seconds(FITS[name], cache)
        print(f"{name:{width}}{empty:8.2f}{full:8.2f}", flush=True)


if __name__ == "__main__":
    main()
