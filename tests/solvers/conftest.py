import pytest
from sklearn.datasets import load_iris, make_classification

from solvers.path.result import PathSolution


@pytest.fixture(scope="session")
def two_classes():
    """120 overlapping samples of two classes in four dimensions, one class twice as large."""
    X, y = make_classification(
        120, 4, n_informative=3, n_redundant=0, weights=[0.67], flip_y=0.1, class_sep=0.7, random_state=3
    )
    return X, y


@pytest.fixture(scope="session")
def iris():
    X, y = load_iris(return_X_y=True)
    return X / X.max(axis=0), y


@pytest.fixture
def trained(monkeypatch):
    """Paths as they are trained, with the weights of all samples."""
    paths, of_used_rows = [], PathSolution.on_used_rows

    def keep(self):
        paths.append(self)
        return of_used_rows(self)

    monkeypatch.setattr(PathSolution, "on_used_rows", keep)
    return paths
