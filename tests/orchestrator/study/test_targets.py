"""Mappings with `_target_` become the objects they stand for, and say what is wrong with them."""

from functools import partial

import numpy as np
import pytest
import sklearn.svm
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import fbeta_score
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MinMaxScaler

from orchestrator.study.targets import (
    ResolveError,
    did_you_mean,
    instantiate,
    resolve,
    target_problems,
    targets_in,
)
from tests.messages import assert_says, raises

SCALE = {"_target_": "sklearn.preprocessing.MinMaxScaler"}
PIPELINE = {
    "_target_": "sklearn.pipeline.Pipeline",
    "steps": [["scale", SCALE], ["model", {"_target_": "sklearn.linear_model.LogisticRegression", "C": 3}]],
}
BETA = {"_target_": "sklearn.metrics.fbeta_score", "_partial_": True}


def test_nested_targets_are_made_from_the_inside():
    made = instantiate(PIPELINE)
    assert isinstance(made, Pipeline)
    assert isinstance(made["scale"], MinMaxScaler)
    assert isinstance(made["model"], LogisticRegression)
    assert made["model"].C == 3
    assert instantiate(PIPELINE)["model"] is not made["model"]


def test_positional_arguments_and_tuples_can_be_said():
    made = instantiate({"_target_": "sklearn.pipeline.make_pipeline", "_args_": [SCALE, SCALE]})
    assert [name for name, _ in made.steps] == ["minmaxscaler-1", "minmaxscaler-2"]
    assert instantiate({"_target_": "builtins.tuple", "_args_": [[0, 2]]}) == (0, 2)


def test_a_function_itself_is_a_partial_without_arguments():
    assert instantiate(BETA) is fbeta_score
    bound = instantiate(BETA | {"beta": 2})
    assert isinstance(bound, partial)
    assert bound.keywords == {"beta": 2}
    assert bound([1, 0, 1], [1, 1, 1]) == fbeta_score([1, 0, 1], [1, 1, 1], beta=2)


def test_what_is_no_target_is_copied_with_its_types():
    node = {"weights": {0: 1, 1: 2.0}, "names": ["a", None, True], "pair": (1, 2), "array": np.arange(3)}
    made = instantiate(node)
    assert {**made, "array": 0} == {**node, "array": 0}
    assert made["weights"] is not node["weights"]
    made["array"][0] = 9
    assert node["array"][0] == 0
    assert type(made["pair"]) is tuple


def test_all_targets_are_found_the_outermost_first():
    assert list(targets_in([PIPELINE, {"a": {"b": BETA}}])) == [
        "sklearn.pipeline.Pipeline",
        "sklearn.preprocessing.MinMaxScaler",
        "sklearn.linear_model.LogisticRegression",
        "sklearn.metrics.fbeta_score",
    ]


@pytest.mark.parametrize(
    ("node", "problem"),
    [
        ({"_target_": "sklearn.svm.SVCC"}, ("did you mean", "'SVC'")),
        ({"_target_": 3}, ("dotted path",)),
        ({"_target_": "math.pi"}, ("_target_", "math.pi")),
        ({"_target_": "sklearn.svm.SVC", "c": 1}, ("sklearn.svm.SVC", "'c'", "'C'")),
        ({"_target_": "sklearn.svm.SVC", "_args_": 1}, ("list", "_args_", "1")),
        ({"_target_": "sklearn.svm.SVC", "_partial_": 1}, ("true or false", "_partial_", "1")),
    ],
)
def test_each_problem_is_told_where_it_is(node, problem):
    assert not list(target_problems(PIPELINE))
    assert not list(target_problems(BETA | {"beta": 2}))
    (found,) = target_problems({"_target_": "sklearn.pipeline.Pipeline", "steps": [["x", node]]})
    assert_says(found, *problem)


def test_an_object_can_be_named_as_it_is():
    assert not list(target_problems({"_target_": "math.pi", "_partial_": True}))
    assert instantiate({"_target_": "math.pi", "_partial_": True}) == np.pi


def test_a_path_leads_to_classes_functions_and_their_attributes():
    assert resolve("sklearn.svm.SVC") is sklearn.svm.SVC
    assert resolve("sklearn.svm.SVC.fit") is sklearn.svm.SVC.fit
    assert resolve("xml.etree.ElementTree.parse").__name__ == "parse"


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("sklearn.svm.SVCC", ("module 'sklearn.svm'", "'SVCC'", "'SVC'")),
        ("sklearn.svn.SVC", ("module 'sklearn'", "'svn'", "'svm'")),
        ("sklaern.svm.SVC", ("module 'sklaern'", "'sklearn'")),
        ("sklearn.svm.SVC.fitt", ("ABCMeta 'sklearn.svm.SVC'", "'fitt'", "'fit'")),
        ("SVC", ("dotted path", "'package.module.name'", "'SVC'")),
        ("sklearn..SVC", ("dotted path",)),
        ("", ("dotted path",)),
        (3, ("dotted path",)),
    ],
)
def test_the_part_that_fails_is_named(path, message):
    with raises(ResolveError, *message):
        resolve(path)


def test_a_module_that_fails_to_import_says_why(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "lame_module_a.py").write_text("1 / 0\n")
    (tmp_path / "lame_module_b.py").write_text("import module_that_is_not_there\n")
    with pytest.raises(ResolveError, match="importing 'lame_module_a' failed: ZeroDivisionError"):
        resolve("lame_module_a.load")
    with pytest.raises(ResolveError, match=r"importing 'lame_module_b' failed: .*'module_that_is_not_there'"):
        resolve("lame_module_b.load")
    (tmp_path / "lame_module_c.py").write_text("raise BaseException('no')\n")
    with raises(ResolveError, "'lame_module_c'", "BaseException"):
        resolve("lame_module_c.load")


def test_nearest_names_ignore_case_and_stay_silent_when_nothing_is_near():
    assert did_you_mean("IRSI", ["iris", "wine"]) == "; did you mean 'iris'?"
    assert did_you_mean("covtype", ["iris", "wine"]) == ""
    assert did_you_mean("acc", ["jaccard", "accuracy"]) == "; did you mean 'accuracy'?"


def test_a_folder_that_a_package_hides_is_named(tmp_path, monkeypatch):
    (tmp_path / "solvers/deep").mkdir(parents=True)
    (tmp_path / "solvers/mine.py").write_text("class Mine:\n    pass\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    import solvers

    for path in ("solvers.mine.Mine", "solvers.deep.Mine"):
        with pytest.raises(ResolveError) as caught:
            resolve(path)
        assert all(part in str(caught.value) for part in (path, str(tmp_path / "solvers"), solvers.__file__))
    with pytest.raises(ResolveError) as caught:
        resolve("solvers.other.Mine")
    assert str(tmp_path) not in str(caught.value)
