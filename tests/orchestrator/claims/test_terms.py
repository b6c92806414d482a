"""Differences between a study and the experiment of its name."""

from types import SimpleNamespace

import pytest

from orchestrator.claims.terms import other_terms, settings
from orchestrator.study.study import SearchSpec

PROTOCOL = {"outer": 5, "inner": 5, "seed": 0, "metric": "accuracy", "profile": "timing", "max_seconds": None}


def design(search, datasets, arms=None):
    """The design of a study, without arms by default."""
    protocol = {**PROTOCOL, "scaling": "train"}
    return SimpleNamespace(search=search, protocol=protocol, arms=arms or {}, datasets=datasets)


def experiment(**changes):
    """The configuration of an experiment on iris without solvers."""
    search = {"kind": "sample", "study": "full", "folds": 2}
    common = {"datasets": ["iris"], "dataset": {}, "solver": {}, "sweep": {}, "protocol": PROTOCOL}
    return {**common, "search": search, **changes}


@pytest.mark.parametrize(
    ("folds", "phrases"), [(1, ["search.folds=1 in place of 2"]), (2, []), (3, []), (25, [])]
)
def test_a_larger_sample_answers_the_same_question_and_a_smaller_one_does_not(folds, phrases):
    search = SearchSpec("sample", options={"study": "full", "folds": folds})
    experiments = {"full_time": experiment()}
    found = other_terms("full_time", design(search, {"iris": {}}), experiments.get, lambda name: None)
    assert found.phrases == phrases


@pytest.mark.parametrize(("sweep", "is_asked"), [({"n": [1000, 2000]}, True), ({"noise": [0.1]}, False)])
def test_a_dataset_swept_on_another_parameter_than_the_experiment_is_another_dataset(sweep, is_asked):
    datasets = {f"checkers[n={n}]": {"params": {"n": n, "seed": 0}} for n in (1000, 2000)}
    declared = {"checkers": {"n": 1000, "seed": 0}}
    config = experiment(
        datasets=["checkers"], dataset=declared, sweep=sweep, search={"kind": "grid", "space": {}}
    )
    found = other_terms("s", design(SearchSpec("grid"), datasets), {"s": config}.get, lambda name: None)
    phrases = found.concerning([], ["checkers"])
    assert phrases == ([] if is_asked else ["dataset.checkers.n=2000 in place of 1000"])


def test_a_dataset_without_a_setting_must_have_a_value_of_the_experiments_sweep():
    config = experiment(datasets=["checkers"], dataset={"checkers": {"n": 50}}, sweep={"n": [100, 200]})
    for n, phrases in ((50, ["dataset.checkers.n=50 in place of 100, 200"]), (100, [])):
        found = of_arms(config, {}, {"checkers": {"params": {"n": n}}})
        assert found.concerning([], ["checkers"]) == phrases


def of_arms(config, arms, datasets):
    """The terms of a study with these arms and datasets."""
    search = SearchSpec("sample", options={"study": "full", "folds": 2})
    return other_terms("s", design(search, datasets, arms), {"s": config}.get, lambda name: None)


def swept_arm(**sweep):
    """An arm of solver m with parameters of a sweep."""
    return {"solver": "m", "target": "a.B", "params": {"tol": 0.1, **sweep}, "sweep": sweep}


@pytest.mark.parametrize(
    ("sweep", "phrases"),
    [({"eta": [1, 1.3]}, []), ({"step__eta": [1, 1.3]}, []), ({"tol": [0.1]}, ["another m.step__eta"])],
)
def test_a_solver_that_is_swept_on_another_parameter_than_the_experiment_is_another_solver(sweep, phrases):
    config = experiment(solver={"m": {"_target_": "a.B", "tol": 0.1}}, sweep=sweep)
    arms = {f"m[step__eta={eta}]": swept_arm(step__eta=eta) for eta in (1, 1.3)}
    assert of_arms(config, arms, {"iris": {}}).concerning(["m"], ["iris"]) == phrases


@pytest.mark.parametrize(
    ("sweep", "missing"),
    [
        ({"eta": 1.3}, []),
        ({"eta": None}, ["without eta=null"]),
        ({"eta": "auto"}, ["without eta=auto"]),
    ],
)
def test_a_sweep_may_lack_the_list_and_so_may_the_resolution(sweep, missing):
    search = {"kind": "sample", "study": "full", "folds": 2, "resolution": 2}
    config = experiment(solver={"m": {"_target_": "a.B", "tol": 0.1}}, sweep=sweep, search=search)
    arms = {"m[eta=1.3]": swept_arm(eta=1.3)}
    assert [*of_arms(config, arms, {"iris": {}}).coverage] == missing


def test_several_resolutions_are_swept():
    search = {"kind": "sample", "study": "full", "folds": 2, "resolution": [2, 4]}
    found = of_arms(experiment(search=search), {}, {"iris": {}})
    assert found.swept == {"resolution": (2, 4)}
    assert [*found.coverage] == ["without resolution=2, resolution=4"]


def test_lists_and_classes_of_a_sweep_are_found_in_the_arms():
    values = [[1, 2], {"_target_": "a.C", "x": 1}, "a,b"]
    config = experiment(sweep={"eta": values})
    arms = {f"m[{i}]": {"solver": "m", "sweep": {"eta": value}} for i, value in enumerate(values)}
    assert [*of_arms(config, arms, {"iris": {}}).coverage] == []


def test_a_value_with_commas_is_one_setting_of_a_dataset():
    assert settings("blobs[sizes=[10,20],n=5]") == ["sizes=[10,20]", "n=5"]
