"""Axes of a study beside parameters of solvers: those of generators and of the search; fixed candidates."""

import json
from types import SimpleNamespace

import pytest
from sklearn.datasets import load_iris

from orchestrator.analysis.findings import analyse
from orchestrator.config.compose import load_settings
from orchestrator.engine.prepare import prepare_study
from orchestrator.engine.selected_by import _arm_problems, _most_often, _starts_with_splits_of
from orchestrator.report.sections.protocol import protocol
from orchestrator.resampling.nested import Samples, nested_splits
from orchestrator.search import at_resolution
from orchestrator.store.results import PairState
from orchestrator.study.errors import ConfigError
from orchestrator.study.study import BY_DATASET, CANDIDATES, SELECTION_SPLITS, Protocol, SearchSpec, arm_on
from orchestrator.study.trials import REFIT
from tests.messages import assert_each_says, assert_says, raises
from tests.orchestrator.studies import StudyRun, run_study

FAST = (
    "study=small",
    "datasets=[iris]",
    "solvers=[libsvm_l1]",
    "protocol.outer=3",
    "protocol.inner=2",
    "search.space.C=[0.25,4]",
    "search.space.gamma=[0.0625,1]",
)


def problems_of(*overrides):
    with pytest.raises(ConfigError) as refusal:
        load_settings([*FAST, *overrides])
    return refusal.value.problems


def test_an_axis_that_a_generators_configuration_sets_makes_datasets_of_one_family():
    settings = load_settings([*FAST, "datasets=[iris,checkers]", "sweep.n=[100,1000]", "sweep.board=[2,4]"])
    iris, *boards = settings.study.datasets
    assert iris.name == "iris"
    assert [dataset.name for dataset in boards] == [
        f"checkers[n={n},board={board}]" for n in (100, 1000) for board in (2, 4)
    ]
    assert {dataset.family for dataset in boards} == {"checkers"}
    assert [dataset.params["n"] for dataset in boards] == [100, 100, 1000, 1000]
    assert [arm.name for arm in settings.study.arms] == ["libsvm_l1"]


def test_an_axis_that_nothing_has_is_refused():
    assert_each_says(problems_of("sweep.n=[100]"), ("sweep.n", "'n'"))


def test_an_axis_that_no_solver_has_itself_applies_to_the_step_that_has_it():
    both = load_settings([*FAST, "solvers=[libsvm_l1,rfeat_100]", "sweep.n_components=[20,40]"])
    features = [f"rfeat_100[features__n_components={n}]" for n in (20, 40)]
    assert [arm.name for arm in both.study.arms] == ["libsvm_l1", *features]
    assert [arm.params.get("features__n_components") for arm in both.study.arms] == [None, 20, 40]
    # The step of a pipeline is left alone where another solver has the parameter itself.
    tol = load_settings([*FAST, "solvers=[libsvm_l1,rfeat_100]", "sweep.tol=[0.1,0.01]"])
    assert [arm.name for arm in tol.study.arms] == ["libsvm_l1[tol=0.1]", "libsvm_l1[tol=0.01]", "rfeat_100"]


def test_too_many_datasets_are_refused():
    values = ",".join(map(str, range(100, 200)))
    assert_each_says(
        problems_of("datasets=[checkers]", f"sweep.n=[{values}]", f"sweep.seed=[{values}]"),
        ("dataset checkers", "1e+04 datasets", "5,000"),
    )


def test_a_resolution_of_8_is_the_papers_grid():
    space = load_settings(["study=x", "datasets=[iris]", "solvers=[libsvm_l1]"]).study.arms[0].space
    eight = at_resolution({name: (min(values), max(values)) for name, values in space.items()}, 8)
    assert eight == {name: pytest.approx(sorted(values)) for name, values in space.items()}


def test_at_a_resolution_lists_of_text_stay_and_ranges_become_lists():
    space = {
        "kernel": ("rbf", "linear"),
        "degree": {"low": 1, "high": 3, "integer": True},
        "coef0": (-1, 1),
        "C": (1, 100),
    }
    assert at_resolution(space, 5) == {
        "kernel": ("rbf", "linear"),
        "degree": (1, 2, 3),
        "coef0": (-1.0, -0.5, 0.0, 0.5, 1.0),
        "C": (1.0, pytest.approx(3.16228), 10.0, pytest.approx(31.6228), 100.0),
    }


@pytest.mark.parametrize("values", [(1, 1.0), (1, float("inf")), (10**400, 1)])
def test_at_a_resolution_lists_without_two_finite_ends_stay(values):
    assert at_resolution({"C": values}, 5) == {"C": values}


@pytest.mark.parametrize("value", ["1", "1001", "[]", "[8,8]", "x", "[8,true]", "2.5"])
def test_a_resolution_that_is_none_is_refused(value):
    assert_says(
        problems_of(f"search.resolution={value}")[0], "search.resolution", "whole number", "2", "1000"
    )


def test_one_resolution_is_no_axis():
    (arm,) = load_settings([*FAST, "search.resolution=3"]).study.arms
    assert arm.name == "libsvm_l1"
    assert arm.space["C"] == (0.25, 1.0, 4.0)


def test_arms_of_several_resolutions_have_trials_of_their_own_on_the_same_splits(tmp_path):
    results, _ = run_study(tmp_path, "search.resolution=[2,3]", "protocol.profile=timing", base=FAST)
    inner = results.trials[results.trials["inner"] != REFIT]
    assert inner.groupby("solver").size().to_dict() == {
        "libsvm_l1[resolution=2]": 3 * 2 * 4,
        "libsvm_l1[resolution=3]": 3 * 2 * 9,
    }
    axes = ["outer", "inner", "param_C", "param_gamma"]
    few, many = (rows.set_index(axes)[["score", "seed"]] for _, rows in inner.groupby("solver"))
    assert many.loc[few.index].equals(few)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The folder of a finished study of two arms, and its results."""
    folder = tmp_path_factory.mktemp("finished")
    results, _ = run_study(folder, "datasets=[iris,wine]", "sweep.shrinking=[true,false]", base=FAST)
    return folder, results


FIXED = (
    *FAST,
    "study=fixed",
    "search=selected",
    "search.study=small",
    "search.arm='libsvm_l1[shrinking=true]'",
)
FIXED = tuple(text for text in FIXED if not text.startswith("search.space"))


def test_fixed_candidates_are_those_most_often_selected(finished):
    folder, before = finished
    results, _ = run_study(folder, "datasets=[iris,wine]", "protocol.outer=5", base=FIXED)
    assert (results.trials["inner"] == REFIT).all()
    assert len(results.trials) == 2 * 5
    first = before.selections[before.selections["solver"] == "libsvm_l1[shrinking=true]"]
    for dataset, rows in results.outer.groupby("dataset"):
        selected = first[first["dataset"] == dataset]
        counts = selected.groupby(["param_C", "param_gamma"]).size()
        most = counts[counts == counts.max()].index.min()  # ties: the smallest C, then gamma
        assert set(rows[["param_C", "param_gamma"]].itertuples(index=False, name=None)) == {most}
    assert results.declaration.search.options[CANDIDATES]["iris"].keys() == {
        "libsvm_l1[shrinking=true]",
        "libsvm_l1[shrinking=false]",
    }


def test_values_that_are_lists_may_be_selected_most_often():
    space = {"hidden_layer_sizes": [[50], [100]], "max_features": [1, 1.0]}
    other = SimpleNamespace(declaration=SimpleNamespace(arms={"mlp": {"space": space}}))
    chosen = [dict(zip(space, pair, strict=True)) for pair in (([50], 1), ([100], 1.0), ([100], 1.0))]
    assert repr(_most_often(other, "mlp", chosen)) == repr(chosen[1])


def test_a_report_says_that_the_candidates_were_fixed_beforehand(finished):
    folder, _ = finished
    results, _ = run_study(folder, "study=reported", base=FIXED)
    text = " ".join(str(each) for each in protocol(analyse(results)).values())
    assert_says(text, "hyper-parameters", "libsvm_l1[shrinking=true]")
    assert_says(text, "3 folds")
    assert "mean inner" not in text


def test_a_narrower_run_at_fixed_candidates_leaves_the_others_in_the_study(finished):
    folder, _ = finished
    run_study(folder, "study=narrow", "datasets=[iris,wine]", base=FIXED)
    results, _ = run_study(folder, "study=narrow", "datasets=[wine]", base=FIXED, run_id="second")
    assert set(results.outer["dataset"]) == {"iris", "wine"}


def refused(folder, *overrides):
    paths = [f"paths.results={folder / 'results'}", f"paths.cache={folder / 'cache'}"]
    with pytest.raises(ConfigError) as refusal:
        prepare_study(load_settings([*FIXED, *paths, *overrides]))
    (problem,) = refusal.value.problems
    return problem


def test_what_another_study_cannot_answer_is_refused_in_one_sentence(finished):
    folder, _ = finished
    assert_says(refused(folder, "search.study=none"), "search.study", "no study 'none'")
    for overrides, parts in (
        (["study=small"], ["search.study=small", "study=NAME"]),
        (["datasets=[breast_cancer]"], ["search.study=small", "'breast_cancer'", "iris, wine"]),
        (
            ["search.arm=mnsvm"],
            [
                "search.study=small",
                "no arm mnsvm",
                "search.arm=NAME",
                "libsvm_l1[shrinking=false], libsvm_l1[shrinking=true]",
            ],
        ),
        (["solver.libsvm_l1.C=1"], ["solver libsvm_l1", "fixes C", "search.study"]),
        (
            ["datasets=[iris]", "dataset.iris._target_=sklearn.datasets.load_wine"],
            ["search.study=small", "'iris'", "content"],
        ),
    ):
        problem = refused(folder, *overrides)
        assert all(part in problem for part in parts), problem


def test_an_unfinished_study_is_refused(tmp_path):
    StudyRun(tmp_path, base=FAST)  # declared, and nothing run
    problem = refused(tmp_path, "search.arm=libsvm_l1")
    for part in ("search.study=small", "not finished", "libsvm_l1 on iris", "command again"):
        assert part in problem


def test_the_arm_of_the_same_name_is_not_replaced_by_another_one_until_it_is_finished():
    states = {("iris", "svc"): PairState(0), ("iris", "svc[tol=0.1]"): PairState(9, complete=False)}
    found = {"iris": {"svc": {"C": 1}}}
    study = SimpleNamespace(arms=[SimpleNamespace(name="svc[tol=0.1]", solver="svc", params={})])
    other = SimpleNamespace(name="small", states=states)

    def problems():
        return list(_arm_problems(study, SearchSpec("selected", {CANDIDATES: found}), other, "iris"))

    (problem,) = problems()
    assert_says(problem, "search.study=small", "not finished svc[tol=0.1] on iris", "command again")
    states["iris", "svc[tol=0.1]"] = PairState(9)  # finished, and a fold has selected no candidate
    (problem,) = problems()
    assert_says(problem, "search.study=small", "no candidate of svc[tol=0.1] on iris")
    found["iris"]["svc[tol=0.1]"] = {"C": 4}
    assert not problems()
    del states["iris", "svc[tol=0.1]"]
    assert not problems()


@pytest.mark.parametrize("search", ["selected", "median_of"])
def test_the_study_has_to_be_named(search):
    overrides = [text for text in FIXED if not text.startswith("search")]
    with raises(ConfigError, f"search={search}", "search.study=NAME", "null"):
        load_settings([*overrides, f"search={search}"])


def test_the_median_of_each_parameter_is_one_of_its_values(finished):
    folder, before = finished
    base = tuple(text for text in FIXED if not text.startswith("search="))
    results, _ = run_study(folder, "study=median", "search=median_of", base=base)
    first = before.selections[before.selections["solver"] == "libsvm_l1[shrinking=true]"]
    for dataset, rows in results.outer.groupby("dataset"):
        selected = first[first["dataset"] == dataset]
        expected = tuple(
            sorted(selected[name])[(len(selected) - 1) // 2] for name in ("param_C", "param_gamma")
        )
        assert set(rows[["param_C", "param_gamma"]].itertuples(index=False, name=None)) == {expected}
    assert results.declaration.search.options[SELECTION_SPLITS] == 3
    text = " ".join(str(each) for each in protocol(analyse(results)).values())
    assert_says(text, "median", "3 outer splits", "overlap")
    assert "most_often" not in str(results.declaration.search.options)
    # Splits of another seed are not those that selected: the report must not leave out the first ones.
    others, _ = run_study(folder, "study=other", "search=median_of", "protocol.seed=1", base=base)
    assert SELECTION_SPLITS not in others.declaration.search.options
    assert_says(" ".join(str(each) for each in protocol(analyse(others)).values()), "splits", "other ones")


@pytest.mark.parametrize("n_splits", [3, 6])
@pytest.mark.parametrize("seed", [0, (0, 1)])
@pytest.mark.parametrize("name", ["StratifiedShuffleSplit", "StratifiedKFold"])
def test_the_first_splits_are_those_that_selected_if_they_are_the_same_rows(name, seed, n_splits):
    X, y = load_iris(return_X_y=True)

    def declared(n_splits):
        outer = {"_target_": f"sklearn.model_selection.{name}", "n_splits": n_splits}
        outer |= {"shuffle": True} if name.endswith("Fold") else {"test_size": 0.3}
        return Protocol(outer=outer, seed=seed, inner=2)

    def tested(protocol):
        splits = nested_splits(Samples(X, y, {}), protocol)
        return [splits.train_test(outer, inner)[1].tolist() for outer, inner in splits.of_level(True)]

    selected_on, study = declared(3), SimpleNamespace(protocol=declared(n_splits))
    recorded = json.loads(json.dumps(selected_on.to_dict()))
    other = SimpleNamespace(declaration=SimpleNamespace(protocol=recorded))
    first = tested(selected_on)
    assert _starts_with_splits_of(study, other) == (tested(study.protocol)[: len(first)] == first)


def test_a_grid_may_fix_parameters_on_single_datasets(tmp_path):
    fixed = "search.by_dataset={wine: {gamma: 0.25}}"
    results, _ = run_study(tmp_path, "datasets=[iris,wine]", fixed, base=FAST)
    gammas = results.trials.groupby("dataset")["param_gamma"].unique()
    assert list(gammas["wine"]) == [0.25]
    assert len(gammas["iris"]) > 1
    assert results.states["wine", "libsvm_l1"].complete
    assert len(results.selections) == len(results.outer) == 6


@pytest.mark.parametrize(
    ("fixed", "parts"),
    [
        ("{wyne: {gamma: 0.25}}", ("search.by_dataset.wyne", "dataset", "'wine'", "svmbench list datasets")),
        ("{iris: {gama: 0.25}}", ("search.by_dataset.iris.gama", "an arm searches: C, gamma")),
        ("{iris: {gamma: -1}}", ("search.by_dataset.iris.gamma", "solver libsvm_l1", "'gamma'", "SVC", "-1")),
    ],
)
def test_a_name_or_value_in_by_dataset_that_cannot_be_used_is_refused(fixed, parts):
    with raises(ConfigError, *parts):
        load_settings([*FAST, f"search.by_dataset={fixed}"])
    # The values of datasets that a narrowed experiment leaves out stay.
    (arm,) = load_settings([*FAST, "search.by_dataset={wine: {gamma: 0.25}}"]).study.arms
    for dataset in ("wine", "wine[n=100]"):
        assert arm_on(arm, {BY_DATASET: {"wine": {"gamma": 0.25}}}, dataset).space["gamma"] == (0.25,)
