"""Paths on several Gram matrices together are those on each, bit for bit."""

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_iris, load_wine, make_classification
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import minmax_scale

from solvers import MNSVC, SMOSVC, BallSVC, CoreSVC, NewtonSVC, SphereSVC
from tests.messages import raises

SOLVERS = {
    "l1": (SMOSVC, {}),
    "l2": (SMOSVC, {"loss": "l2"}),
    "newton": (NewtonSVC, {}),
    "newton_all_at_once": (NewtonSVC, {"multiclass": "all_at_once"}),
    "mnsvm": (MNSVC, {}),
    "mnsvm_weighted": (MNSVC, {"class_weight": "balanced", "pair": "mdm"}),
    "mnsvm_sampling": (MNSVC, {"draws": 10, "exhaustive": False, "bias": "average"}),
    "sphere": (SphereSVC, {}),
    "sphere_all_at_once": (SphereSVC, {"multiclass": "all_at_once"}),
    "ball": (BallSVC, {}),
    "core": (CoreSVC, {}),
}
GAMMAS = [0.05, 0.5, 4.0]
CS = [0.25, 4.0, 64.0]
COUNTS = ("n_iter_", "n_kernel_evals_", "n_support_", "n_clipped_", "fit_status_")
OF_EACH = (*COUNTS, "sv_share_", "converged_", "objective_", "duality_gap_", "stopping_", "method_")


def many_machines():
    X, y = load_digits(return_X_y=True)
    return X[:180], y[:180]


DATASETS = {
    "iris": lambda: load_iris(return_X_y=True),
    "wine": lambda: load_wine(return_X_y=True),
    "binary": lambda: make_classification(120, 6, flip_y=0.2, random_state=1),
    "digits": many_machines,
    "text": lambda: (load_iris().data, np.array(["b", "c", "a"])[load_iris().target]),
}


def samples(dataset):
    X, y = DATASETS[dataset]()
    X, order = minmax_scale(X), np.random.default_rng(0).permutation(len(y))
    return X[order[::2]], y[order[::2]], X[order[1::2]]


def estimators(kind, parameters, n):
    seeded = [{"random_state": 7 + k} if hasattr(kind, "draws") else {} for k in range(n)]
    return [
        kind(kernel="precomputed", gram_error=1e-7 * (k + 1), **parameters, **seeded[k]) for k in range(n)
    ]


@pytest.mark.sample(3)
@pytest.mark.parametrize("dataset", DATASETS)
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_each_training_is_that_of_fit_path(solver, dataset, dtype):
    kind, parameters = SOLVERS[solver]
    X, y, X_test = samples(dataset)
    models = estimators(kind, parameters, len(GAMMAS))
    paths, labels, matrices, grid = [], [], [], kind.path_grid(models, y, CS)
    for model, gamma in zip(models, GAMMAS, strict=True):
        K, K_test = (rbf_kernel(A, X, gamma).astype(dtype) for A in (X, X_test))
        paths.append(path := model.fit_path(K, y, CS))
        matrices.append((K, K_test))
        labels.append(path.predict_path(K_test))
    for part in (slice(0, 1), slice(1, None)):
        Ks, test = map(np.stack, zip(*matrices[part], strict=True))
        grid.fit(Ks)
        np.testing.assert_array_equal(grid.predict(test), labels[part])
    fitted = grid.fitted()
    names = [name for name in OF_EACH if hasattr(paths[0], name)]
    assert names == [name for name in OF_EACH if hasattr(fitted, name)]
    for name in names:
        expected = np.concatenate([getattr(path, name) for path in paths])
        np.testing.assert_array_equal(getattr(fitted, name), expected, err_msg=name)
    assert fitted.fit_seconds_.shape == (len(GAMMAS) * len(CS),)


@pytest.mark.parametrize("loss", ["l1", "l2"])
def test_matrices_from_which_other_numbers_were_subtracted_are_each_its_own(loss):
    X, y, X_test = samples("iris")
    shifts, gammas = (0.0, 1.0, 0.5), (4.0, 0.01, 0.5)
    models = [SMOSVC(loss=loss, kernel="precomputed", gram_shift=shift, gram_error=1e-7) for shift in shifts]
    Ks, tests = (
        np.stack([rbf_kernel(A, X, g) - shift for shift, g in zip(shifts, gammas, strict=True)])
        for A in (X, X_test)
    )
    grid = SMOSVC.path_grid(models, y, CS)
    grid.fit(Ks)
    labels = grid.predict(tests)
    paths = [model.fit_path(K, y, CS) for model, K in zip(models, Ks, strict=True)]
    np.testing.assert_array_equal(
        grid.fitted().objective_, np.concatenate([path.objective_ for path in paths])
    )
    for found, path, K, shift, gamma in zip(labels, paths, tests, shifts, gammas, strict=True):
        np.testing.assert_array_equal(found, path.predict_path(K))
        single = SMOSVC(loss=loss, C=CS[-1], gamma=gamma).fit(X, y)
        assert np.mean(found[-1] == single.predict(X_test)) > 0.95, shift


@pytest.mark.parametrize(
    ("Cs", "parameters", "message"),
    [
        ([1.0], {}, ("at least two", "C")),
        ([2.0, 1.0], {}, ("ascending",)),
        ([1.0, 2.0], {"kernel": "rbf"}, ("precomputed",)),
        ([1.0, 2.0], {"max_seconds": 3.0}, ("max_seconds",)),
        ([1.0, 2.0], {"tol": -1.0}, ("tol",)),
    ],
)
def test_invalid_parameters_of_a_grid_are_refused(Cs, parameters, message):
    X, y, _ = samples("iris")
    with raises(ValueError, *message):
        SMOSVC.path_grid([SMOSVC(**{"kernel": "precomputed"} | parameters)], y, Cs).fit(rbf_kernel(X)[None])


def test_a_matrix_that_is_not_finite_is_refused():
    X, y, _ = samples("iris")
    K = rbf_kernel(X)[None]
    K[0, 0, 1] = np.nan
    with pytest.raises(ValueError, match="finite"):
        SMOSVC.path_grid([SMOSVC(kernel="precomputed")], y, CS).fit(K)


def test_calls_in_the_wrong_order_are_refused():
    X, y, _ = samples("iris")
    K = rbf_kernel(X)[None]
    grid = SMOSVC.path_grid([SMOSVC(kernel="precomputed")] * 3, y, CS)
    with pytest.raises(ValueError, match=r"predict .*fit"):
        grid.predict(K)
    grid.fit(K)
    with pytest.raises(ValueError, match=r"fitted .*\b1 of 3\b"):
        grid.fitted()
    for wrong in (K[0], np.dstack([K, K]), K[..., :5], K[:, :0], np.vstack([K, K])):
        with raises(ValueError, "kernel", f"shape (1, n_test, {len(y)})"):
            grid.predict(wrong)
    for wrong in (K[0], K[:, 1:], K[:0], K.astype(int), 1.0):
        with raises(ValueError, "Gram", f"shape (n_matrices, {len(y)}, {len(y)})"):
            grid.fit(wrong)
    with raises(ValueError, "3", "2"):
        grid.fit(np.vstack([K, K, K]))
    grid.fit(np.vstack([K, K]))
    with raises(ValueError, "1", "0"):
        grid.fit(K)
    with raises(ValueError, "NewtonSVC", "SMOSVC"):
        SMOSVC.path_grid([SMOSVC(kernel="precomputed"), NewtonSVC(kernel="precomputed")], y, CS)
    with raises(ValueError, "class", "none"):
        SMOSVC.path_grid([], y, CS)


def test_a_grid_stays_as_it_is_where_one_of_several_matrices_is_refused():
    X, y, X_test = samples("iris")
    K, K_test = rbf_kernel(X)[None], rbf_kernel(X_test, X)[None]
    huge = np.where(K > 0.5, 1.79e308, -1.79e308)
    grid = MNSVC.path_grid([MNSVC(kernel="precomputed", random_state=0)] * 3, y, [2.3e-308, 4.0, 64.0])
    grid.fit(K)
    labels = grid.predict(K_test)
    with np.errstate(all="ignore"), pytest.raises(ValueError, match="finite"):
        grid.fit(np.vstack([0.5 * K, huge]))
    np.testing.assert_array_equal(grid.predict(K_test), labels)
    grid.fit(np.vstack([K, K]))
    assert len(grid.fitted().converged_) == 9


@pytest.mark.parametrize("Cs", [3.0, ["1", "2"], [True, True], [1j, 2j], [1.0, 1.0], []], ids=str)
def test_what_is_no_path_of_C_is_refused_in_a_sentence(Cs):
    X, y, _ = samples("iris")
    with raises(ValueError, "ascending", "finite", "> 0"):
        SMOSVC().fit_path(X, y, Cs)


def test_kernel_values_to_predict_are_checked():
    X, y, _ = samples("iris")
    K = rbf_kernel(X)
    path = SMOSVC(kernel="precomputed").fit_path(K, y, CS)
    with pytest.raises(ValueError, match="finite"):
        path.predict_path(K * np.nan)
    with raises(ValueError, "real", "complex128"):
        path.predict_path(K * 1j)
    with raises(ValueError, "labels of shape"):
        SMOSVC(kernel="precomputed").fit_path(K, None, CS)
