"""Python objects become the nodes that a YAML file would hold, or are refused in a sentence."""

import functools
import linecache
import re
import sys

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import RandomForestClassifier, VotingClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.feature_selection import SelectKBest, chi2
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import solvers
from orchestrator.config.local_definitions import LocalDefinitions
from orchestrator.config.objects import NodeWriter, UnwritableError
from orchestrator.study.targets import instantiate, resolve
from tests.messages import assert_says, raises
from tests.orchestrator.notebooks import CELL, run_cell

SVC_, TREE = "sklearn.svm.SVC", "sklearn.tree.DecisionTreeClassifier"


def nothing_local(thing):
    raise AssertionError(f"{thing} is in a module")


def node(given):
    return NodeWriter(nothing_local).solver(given)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (SVC, {"_target_": SVC_, "space": {}}),
        (SVC(), {"_target_": SVC_, "space": {}}),
        (SVC(C=np.float64(3), gamma="auto"), {"_target_": SVC_, "C": 3.0, "gamma": "auto", "space": {}}),
        (
            (SVC(C=5, tol=0.1), {"C": np.array([1, 10]), "gamma": ("scale", 0.1)}),
            {"_target_": SVC_, "tol": 0.1, "space": {"C": [1, 10], "gamma": ["scale", 0.1]}},
        ),
        (solvers.MNSVC(eta=1.3), {"_target_": "solvers.MNSVC", "eta": 1.3, "space": {}}),
        (
            (make_pipeline(StandardScaler(), SVC(C=2)), {"svc__gamma": [1]}),
            {
                "_target_": "sklearn.pipeline.Pipeline",
                "steps": [
                    ["standardscaler", {"_target_": "sklearn.preprocessing.StandardScaler"}],
                    ["svc", {"_target_": SVC_, "C": 2}],
                ],
                "space": {"svc__gamma": [1]},
            },
        ),
        (
            (SVC(), {"C": scipy.stats.loguniform(0.01, 100), "degree": scipy.stats.randint(2, 5)}),
            {
                "_target_": SVC_,
                "space": {
                    "C": {"low": 0.01, "high": 100.0, "log": True},
                    "degree": {"low": 2, "high": 4, "integer": True},
                },
            },
        ),
        (
            (SVC(), {"coef0": scipy.stats.uniform(1, 2)}),
            {"_target_": SVC_, "space": {"coef0": {"low": 1.0, "high": 3.0}}},
        ),
        (
            MLPClassifier(hidden_layer_sizes=(50, 20)),
            {
                "_target_": "sklearn.neural_network.MLPClassifier",
                "hidden_layer_sizes": [50, 20],
                "space": {},
            },
        ),
        (
            SVC(class_weight={0: 1, 1: 2.5}),
            {"_target_": SVC_, "class_weight": {0: 1, 1: 2.5}, "space": {}},
        ),
    ],
)
def test_an_object_is_written_as_a_reader_would_write_it(given, expected):
    assert node(given) == expected


@pytest.mark.parametrize(
    "estimator",
    [
        VotingClassifier([("a", SVC(C=2)), ("b", DecisionTreeClassifier(max_depth=2))], weights=[1, 2]),
        make_pipeline(SelectKBest(chi2, k=3), LogisticRegression()),
        make_pipeline(FunctionTransformer(np.log1p), LogisticRegression(C=3)),
        make_pipeline(FunctionTransformer(functools.partial(np.clip, a_min=0, a_max=1)), SVC()),
        make_pipeline(TfidfVectorizer(ngram_range=(1, 2)), LogisticRegression()),
        GridSearchCV(SVC(), {"C": [1, 2]}, cv=StratifiedKFold(3, shuffle=True, random_state=0)),
        make_pipeline(
            make_column_transformer(
                (SimpleImputer(fill_value=np.nan), make_column_selector(dtype_include=np.number)),
                (StandardScaler(), ["a", "b"]),
            ),
            SVC(),
        ),
    ],
)
def test_a_node_gives_an_equal_estimator(estimator):
    written = NodeWriter(nothing_local).estimator(estimator)
    # Steps are lists in a file.
    assert plain(instantiate(written)) == plain(estimator)
    assert NodeWriter(nothing_local).estimator(instantiate(written)) == written


def plain(estimator):
    """Return the text of an estimator without layout, addresses, and the kinds of its brackets."""
    text = repr(estimator).translate(str.maketrans("()", "[]", "\n "))
    return re.sub(r"at0x[0-9a-f]+", "", text)


class Stubborn(ClassifierMixin, BaseEstimator):
    """Changes its parameter, against scikit-learn's rule."""

    def __init__(self, k=1):
        self.k = 2 * k


@pytest.mark.parametrize(
    ("given", "facts"),
    [
        (SVC(kernel=lambda a, b: a @ b.T), ("SVC.kernel", "lambda", "def")),
        (SVC(random_state=np.random.RandomState(0)), ("SVC.random_state", "integer")),
        (SVC(random_state=np.random.default_rng(0)), ("SVC.random_state", "integer")),
        (SVC(C=pd.Series([1.0])), ("SVC.C", "Series")),
        (
            make_pipeline(FrozenEstimator(SVC()), SVC()),
            ("Pipeline.steps", "FrozenEstimator", "fitted"),
        ),
        (make_pipeline(StandardScaler().set_output(transform="pandas"), SVC()), ("set_output",)),
        (Stubborn(), ("Stubborn", "__init__")),
        ((SVC(), {"C": 1}), ("C", "[1]")),
        ((SVC(), {"C": scipy.stats.gamma(2)}), ("C", "gamma", "loguniform", "list")),
        ((SVC(), [{"C": [1]}]), ("search space",)),
        ("svc", ("estimator", "'svc'")),
        (3, ("estimator", "3")),
    ],
)
def test_what_no_file_can_hold_is_refused_in_a_sentence(given, facts):
    with raises(UnwritableError, *facts):
        node(given)


def test_a_function_within_a_function_is_refused():
    def kernel(a, b):
        return a @ b.T

    with raises(UnwritableError, "kernel", "inside a function"):
        node(SVC(kernel=kernel))


# -- classes of a notebook -----------------------------------------------------------------------


@pytest.fixture
def definitions(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path])
    return LocalDefinitions(tmp_path / "modules")


def test_a_class_of_a_notebook_becomes_a_module_with_all_that_it_needs(definitions, monkeypatch):
    notebook = run_cell(CELL, monkeypatch)
    writer = NodeWriter(definitions.path_of)
    written = writer.solver(notebook.Nearest(power=1))
    made = resolve(written["_target_"])
    assert made.__module__.startswith("nearest_")
    assert written == {"_target_": f"{made.__module__}.Nearest", "power": 1, "space": {}}
    X, y = np.array([[0.0], [1.0], [8.0], [9.0]]), np.array([0, 0, 1, 1])
    expected = notebook.Nearest().fit(X, y).predict(X)
    assert (made().fit(X, y).predict(X) == expected).all()
    nested = writer.solver(SVC(kernel=notebook.linear))
    assert resolve(nested["kernel"]["_target_"])(X, X).tolist() == (X @ X.T).tolist()


def test_the_code_is_the_identity_and_its_comments_are_not(definitions, monkeypatch):
    first = definitions.path_of(run_cell(CELL, monkeypatch).Nearest)
    assert definitions.path_of(run_cell(CELL.replace("Recursive", "Such"), monkeypatch).Nearest) == first
    edited = definitions.path_of(run_cell(CELL.replace("SHIFT = 2.0", "SHIFT = 3.0"), monkeypatch).Nearest)
    assert edited != first
    assert resolve(edited).__module__ != resolve(first).__module__


@pytest.mark.parametrize(
    ("change", "facts"),
    [
        (("SHIFT = 2.0", "SHIFT = np.ones(1)"), ("shifted", "SHIFT", "parameter")),
        (("SHIFT = 2.0", "SHIFT = object()"), ("shifted", "SHIFT", "object")),
        (("class Nearest(Base):", "Nearest = Base\nclass Nearest(Nearest):"), ("Nearest", "another name")),
    ],
)
def test_a_value_that_a_module_cannot_hold_is_named(definitions, monkeypatch, change, facts):
    notebook = run_cell(CELL.replace(*change), monkeypatch)
    with raises(UnwritableError, *facts):
        definitions.path_of(notebook.Nearest)


def test_annotations_that_are_not_evaluated_stay_so(definitions, monkeypatch):
    """A script with `from __future__ import annotations` may name the class itself, or what it lacks."""
    text = "from __future__ import annotations\n" + CELL.replace(
        "def fit(self, X, y):", "def fit(self, X: Unknown, y) -> Nearest:"
    )
    assert resolve(definitions.path_of(run_cell(text, monkeypatch).Nearest))().get_params() == {"power": 2}


def test_a_class_without_source_is_refused(definitions, monkeypatch):
    notebook = run_cell(CELL, monkeypatch)
    linecache.cache.pop("<cell 1>")
    with pytest.raises(UnwritableError) as raised:
        definitions.path_of(notebook.Nearest)
    assert_says(str(raised.value), "Nearest", "source")


def test_estimators_of_the_same_class_share_a_module(definitions, monkeypatch):
    notebook = run_cell(CELL, monkeypatch)
    writer = NodeWriter(definitions.path_of)
    first, second = (writer.solver(notebook.Tuned(C=C))["_target_"] for C in (1, 2))
    assert first == second
    assert RandomForestClassifier  # imported classes keep their paths
