"""Whatever YAML can say is a hyper-parameter's value: from the key of a trial to the page of a report."""

import io
import json
import math
import uuid
from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from rich.console import Console

from orchestrator.analysis import findings as frames
from orchestrator.analysis.findings import analyse
from orchestrator.cli.display import display
from orchestrator.config.arms import build_arms
from orchestrator.engine.load import read_results
from orchestrator.engine.prepare import prepare_study
from orchestrator.engine.run import run_session
from orchestrator.report import write_report
from orchestrator.search import make_search
from orchestrator.store.store import Store
from orchestrator.study.records import Records
from orchestrator.study.study import Arm, Candidate, Protocol, SearchSpec
from orchestrator.study.trials import Identity
from orchestrator.study.values import canonical_json, cell, for_json, from_json, stored_as_numbers
from tests.orchestrator.classifiers import here
from tests.orchestrator.studies import settings_for

HUGE = 10**400
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.integers()
    | st.sampled_from([2**53, 2**53 + 1, 2**64, -HUGE, HUGE, 0.1 + 0.2, 1e-5, 1e22])
    | st.sampled_from([-1.0, 0.0, -0.0, 1.0, 2.0, math.inf, -math.inf])
    | st.floats(allow_nan=False)
    | st.text(max_size=4)
    | st.sampled_from(
        ["null", "true", "1", "1.0", " 1", "[1]", "[", "{}", '"', '"1"', "NaN", "nan", "inf", "", "__items__"]
    )
)
values = st.recursive(
    scalars,
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(scalars, inside, max_size=3),
    max_leaves=4,
)


def same(a, b):
    """Whether two values are one, types included; written without regard to how texts are made."""
    if isinstance(a, dict) and isinstance(b, dict):
        unmatched = list(b.items())
        for key, item in a.items():
            found = [pair for pair in unmatched if same(key, pair[0]) and same(item, pair[1])]
            if not found:
                return False
            unmatched.remove(found[0])
        return not unmatched
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and a == b


def distinct(found):
    kept = []
    for value in found:
        if not any(same(value, other) for other in kept):
            kept.append(value)
    return kept


axes = st.lists(values, min_size=1, max_size=5).map(distinct)


@given(values, values)
@example(1, 1.0)
@example(1, True)
@example(1, "1")
@example(None, "null")
@example(math.inf, "Infinity")
@example({0: 1}, {"0": 1})
@example({0: 1}, {False: 1})
@example({0: 1}, "{0:1}")
@example([1], "[1]")
@example(0.0, -0.0)
def test_values_share_a_text_exactly_if_they_are_the_same(a, b):
    assert (canonical_json(a) == canonical_json(b)) == same(a, b)
    assert (cell(a) == cell(b)) == same(a, b)


@given(values)
def test_plain_text_is_its_own_cell_and_json_reads_the_others(value):
    try:
        read = json.loads(cell(value))
    except ValueError:
        assert value == cell(value) or "{" in cell(value)  # keys that JSON does not know
    else:
        assert same(read, value)


@given(values)
def test_a_value_survives_its_way_through_json(value):
    text = json.dumps(for_json({"space": {"a": [value]}}))
    assert same(json.loads(text, object_hook=from_json), {"space": {"a": [value]}})


# -- keys and paths ------------------------------------------------------------------------------


def arm_with(space, name="arm", **choices):
    return Arm(name=name, target="a.B", params={}, space={key: tuple(axis) for key, axis in space.items()})


@given(axes, axes)
def test_every_candidate_is_asked_once_and_has_a_key_of_its_own(first, second):
    arm = arm_with({"a": first, "b": second})
    search = make_search("grid", arm.space)
    candidates = search.ask()
    assert len(set(candidates)) == len(first) * len(second)
    paths = Identity("iris", "f", "s", arm, Protocol()).paths(0, 0, candidates)
    assert len({key for path in paths for key in path.keys}) == len(candidates)
    trained = [candidate.as_dict() for path in paths for candidate in path.candidates]
    for candidate in candidates:
        search.tell(candidate, 0.5)
        assert sum(same(candidate.as_dict(), other) for other in trained) == 1
    assert same(
        search.selection.best.as_dict(), {"a": search.space.axes["a"][0], "b": search.space.axes["b"][0]}
    )


@given(axes)
def test_only_numbers_put_a_path_in_order(Cs):
    candidates = [Candidate.of({"C": C, "gamma": 1}) for C in Cs]
    paths = Identity("iris", "f", "s", arm_with({"C": Cs}), Protocol()).paths(0, 0, candidates)
    assert sorted(c.text for path in paths for c in path.candidates) == sorted(c.text for c in candidates)
    for path in paths:
        if len(path) > 1:
            on_path = [candidate.value("C") for candidate in path.candidates]
            assert all(type(C) in (int, float) for C in on_path)
            assert on_path == sorted(on_path)
    numbers = [C for C in Cs if stored_as_numbers([C])]
    assert len(paths) == len(Cs) - max(0, len(numbers) - 1)


def test_an_estimator_may_change_the_list_it_is_given():
    candidate = Candidate.of({"a": [1, [2]], "b": {"c": [3]}})
    given_away = candidate.as_dict()
    given_away["a"][1].append(4)
    given_away["b"]["c"].append(4)
    assert candidate.as_dict() == {"a": [1, [2]], "b": {"c": [3]}}


def test_a_swept_value_has_a_label_of_its_own():
    swept = [1, 1.0, True, "1", None, "null", [1], {"a": 1}, 0.12345678, 0.12345679, "a,b", HUGE]
    arms, problems = build_arms(
        {"x": {"_target_": here("Setting")}}, {"setting": swept}, SearchSpec("grid"), {"C": (1,)}, "timing"
    )
    assert not problems
    assert len({arm.name for arm in arms}) == len(swept)
    assert [arm.name for arm in arms[:6]] == [
        f"x[setting={text}]" for text in ("1", "1.0", "true", '"1"', "null", '"null"')
    ]


# -- columns -------------------------------------------------------------------------------------


def rows_of(arm, axis):
    return [
        {
            "key": f"{arm.name}{position}",
            "status": "ok",
            "solver": arm.name,
            **arm.param_columns(Candidate.of({"a": value})),
        }
        for position, value in enumerate(axis)
    ]


@pytest.mark.full
@given(axes, axes, st.lists(st.booleans(), min_size=11, max_size=11))
def test_columns_tell_values_apart_however_rows_are_stored(tmp_path_factory, first, second, cuts):
    arms = [
        arm_with({"a": first}, "first"),
        arm_with({"a": second}, "second"),
        arm_with({"b": [1]}, "without"),
    ]
    rows = [*rows_of(arms[0], first), *rows_of(arms[1], second)]
    rows.append({"key": "without", "status": "ok", "solver": "without", "param_b": 1.0})
    frames = []
    for split in (cuts, [False] * len(cuts)):
        store = Store(tmp_path_factory.mktemp("store"))
        store.lock().release()
        batch = []
        for row, cut in zip(rows, split, strict=False):
            batch.append(Records.of({}, [row]))
            if cut:
                store.append(batch)
                batch = []
        store.append(batch)
        frames.append(store.trials())
        store.compact()
        frames.append(store.trials())
    for frame in frames[1:]:
        assert frame.equals(frames[0])
    column = frames[0].set_index("key")["param_a"]
    for arm, axis in zip(arms, (first, second), strict=False):
        stored = column[[f"{arm.name}{position}" for position in range(len(axis))]]
        assert stored.notna().all()
        assert stored.nunique() == len(axis)
        if not stored_as_numbers(axis):
            assert stored.to_list() == list(map(cell, axis))
        else:
            assert [float(value) for value in stored] == axis
    assert column[["without"]].isna().all()
    numeric = stored_as_numbers(first) and stored_as_numbers(second)
    assert (column.dtype == float) == numeric


# -- whole studies -------------------------------------------------------------------------------


def go(settings):
    """Run a study; return what the run did and what is stored."""
    console = Console(file=io.StringIO())
    summary = run_session(settings, prepare_study(settings), display(console), ["test"])
    return summary, read_results(Store(settings.paths.results / settings.study.name))


@pytest.fixture(scope="module")
def any_setting(tmp_path_factory):
    solver = f"_target_: {here('Setting')}\nspace: {{setting: [1]}}\n"
    return settings_for(tmp_path_factory.mktemp("any"), solver)


@settings(max_examples={30: 3, 1000: 200}[settings.default.max_examples])  # each is two runs of a study
@given(axes)
@example([1, 1.0, True, "1", None, "null", [1], "[1]", {0: 1}, {"0": 1}, HUGE, math.inf, "inf"])
def test_a_study_over_any_values_is_complete_and_says_what_it_chose(any_setting, axis):
    (arm,) = any_setting.study.arms
    arm = replace(arm, space={"setting": tuple(axis)}, params={"best": canonical_json(axis[-1])})
    study = replace(any_setting.study, arms=(arm,), name=f"s{uuid.uuid4().hex}")
    settings = replace(any_setting, study=study)
    summary, results = go(settings)
    assert summary.trials_run == 2 * (2 * len(axis) + 1 if len(axis) > 1 else 1)
    assert go(settings)[0].trials_run == 0
    assert set(results.trials["status"]) == {"ok"}
    (chosen,) = arm.param_columns(Candidate.of({"setting": axis[-1]})).values()
    for frame in (results.selections, results.outer):
        assert frame["param_setting"].to_list() == [chosen] * 2
    found = analyse(results)
    assert same(list(found.design.arms["x"]["space"]["setting"]), axis)
    coverage = frames.coverage(found).iloc[0]
    assert coverage["planned"] == coverage["stored"] == coverage["scored"] == summary.trials_run
    assert frames.selections(found)["chosen"].item().endswith(" (2×)")


SOLVERS = {
    "null among depths": (
        "{_target_: sklearn.tree.DecisionTreeClassifier, space: {max_depth: [2, null], "
        "class_weight: [null, balanced, {0: 1, 1: 2, 2: 1}], max_features: [1, 1.0]}}",
        12,
    ),
    "text for gamma": ("{_target_: sklearn.svm.SVC, space: {C: [1, 4], gamma: [scale, auto, 0.5]}}", 6),
    "C that is no number": (f"{{_target_: {here('Setting')}, space: {{C: [null, 1, true, a, [1], 2]}}}}", 6),
    "lists": (
        "{_target_: sklearn.neural_network.MLPClassifier, max_iter: 2, "
        "space: {hidden_layer_sizes: [[2], [2, 2], 3]}}",
        3,
    ),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", SOLVERS)
def test_what_a_file_says_is_trained_stored_and_reported(tmp_path, name):
    solver, n_candidates = SOLVERS[name]
    summary, results = go(settings_for(tmp_path, solver))
    assert summary.trials_run == 2 * (2 * n_candidates + 1)
    assert set(results.trials["status"]) == {"ok"}
    coverage = frames.coverage(analyse(results)).iloc[0]
    assert coverage["planned"] == coverage["stored"] == summary.trials_run
    inner = results.trials[results.trials["inner"] >= 0]
    params = [name for name in inner if name.startswith("param_")]
    assert len(inner[params].drop_duplicates()) == n_candidates
    write_report(results, tmp_path / "report")


@pytest.mark.full
@pytest.mark.figures("sweep")
def test_swept_values_of_any_kind_are_arms_of_their_own_in_the_report(tmp_path):
    solver = f"{{_target_: {here('Setting')}, space: {{C: [1, 2]}}}}"
    _, results = go(
        settings_for(
            tmp_path, solver, "datasets=[iris,wine]", "sweep.setting=[1,1.0,true,null,[1],[1,2],'1',{a:1}]"
        )
    )
    assert results.trials["solver"].nunique() == 8
    write_report(results, tmp_path / "report")
    settings = frames.sweep_summary(analyse(results))["setting"].to_list()
    assert settings == ["1", "1.0", "true", "null", "[1]", "[1,2]", '"1"', '{"a":1}']
