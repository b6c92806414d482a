"""The public surface has types: mypy accepts right uses of every estimator, and refuses wrong ones."""

from importlib.resources import files

import pytest
from mypy import api

HEAD = """
import numpy as np

from solvers import MNSVC, SMOSVC, BallSVC, CoreSVC, NewtonSVC, SphereSVC

X, y = np.eye(4), np.array([0, 1, 0, 1])
"""

RIGHT_USES = """
for model in (
    MNSVC(4.0, pair="gmdm", pair_exponent=0.5, eta=1.3, random_state=0, class_weight={0: 2.0}),
    SphereSVC(C=4.0, tol="auto", track_margins=True, bias="none", warm_start=True),
    BallSVC(C=4.0, draws=10, subset=5, multiclass="all_at_once"),
    CoreSVC(C=4.0, kernel="poly", degree=2, coef0=0.0, max_iter=100, cache_size=50),
):
    n_clipped: int = model.fit(X, y, sample_weight=[1.0, 1.0, 2.0, 2.0]).n_clipped_.sum()
newton = NewtonSVC(C=4.0, gamma="scale", compact=True, max_seconds=1.0, class_weight="balanced").fit(X, y)
smo = SMOSVC(
    C=4.0, loss="l2", kernel=lambda a, b: a @ b.T, shrinking=False, break_ties=False, probability=True
)
labels: np.ndarray[tuple[int, ...], np.dtype[np.float64]] = smo.fit(X, y).predict(X.tolist())
scores: np.ndarray[tuple[int, ...], np.dtype[np.float64]] = smo.decision_function(X)
chances: np.ndarray[tuple[int, ...], np.dtype[np.float64]] = smo.predict_proba(X)
summary: tuple[float, float, bool, str, int] = (
    newton.objective_, newton.gap_, newton.converged_, newton.stopping_, newton.fit_status_
)
method: str = newton.method_
n_vectors: int = newton.support_.size + newton.dual_coef_.shape[1] + newton.intercept_.size

for path in (smo.fit_path(X, y, [0.5, 1.0]), newton.fit_path(X, y, np.array([0.5, 1.0]), check_finite=False)):
    texts: list[str] = path.stopping_
    best: np.intp = path.objective_.argmin() + path.converged_.argmax() + path.duality_gap_.argmin()
    predicted: np.ndarray[tuple[int, ...], np.dtype[np.int64]] = path.predict_path(X)
grid = NewtonSVC.path_grid([NewtonSVC(kernel="precomputed")], y, [0.5, 1.0])
grid.fit(np.ones((1, 4, 4)))
"""

WRONG_USES = {
    'MNSVC(C="nonsense")': "arg-type",
    "SMOSVC(shrinking=0.5)": "arg-type",
    'MNSVC(random_state="seed")': "arg-type",
    "SMOSVC().fit(X)": "call-arg",
    "SMOSVC().fit_path(X, y)": "call-arg",
    'MNSVC().fit_path(X, y, "0.5, 1.0")': "arg-type",
    "MNSVC().fit_path(X, y, 0.5)": "arg-type",
    "NewtonSVC().fit_path(X, y, [0.5]).objectives_": "attr-defined",
    "NewtonSVC().fit_path(X, y, [0.5]).stopping_ + 1": "operator",
}


@pytest.fixture(scope="module")
def findings(tmp_path_factory):
    """Findings of mypy on a file of right uses, and on one with a wrong use in every line."""
    folder = tmp_path_factory.mktemp("typing")
    right, wrong = folder / "right.py", folder / "wrong.py"
    right.write_text(HEAD + RIGHT_USES)
    wrong.write_text(HEAD + "\n".join(WRONG_USES) + "\n")
    options = ["--strict", "--follow-imports=silent", "--config-file=", f"--cache-dir={folder / 'cache'}"]
    text, errors, _ = api.run([*options, str(right), str(wrong)])
    assert not errors
    return text.splitlines()


def test_the_package_says_that_it_has_types():
    assert files("solvers").joinpath("py.typed").is_file()


def test_right_uses_are_accepted(findings):
    assert [line for line in findings if "right.py" in line] == []


@pytest.mark.parametrize("use", WRONG_USES)
def test_a_wrong_use_is_refused(findings, use):
    number = (HEAD + "\n".join(WRONG_USES)).split("\n").index(use) + 1
    (finding,) = [line for line in findings if f"wrong.py:{number}: error:" in line]
    assert f"[{WRONG_USES[use]}]" in finding
