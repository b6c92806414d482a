"""`search=random`, and searches of a user's own in a folder outside the repository."""

import math
import shutil
import subprocess
import sys
from collections import Counter
from itertools import chain
from pathlib import Path

import numpy as np
import pytest

import orchestrator
from orchestrator.config.compose import load_settings
from orchestrator.engine.damage_repair import repair
from orchestrator.engine.load import find_study, load_study, read_results
from orchestrator.execution.serial import SerialExecutor
from orchestrator.search import Range, Space, make_search
from orchestrator.store.files import DamageError
from orchestrator.study.errors import ConfigError, StudyStopped
from orchestrator.study.study import SearchSpec
from tests.messages import assert_says, raises, says
from tests.orchestrator.studies import StudyRun, run_study

EXAMPLE = Path(__file__).parents[3] / "examples" / "search"

WORSE = """
import os, random

def moods(space, seed):
    yield [{name: axis.at(random.random()) for name, axis in space.items()}]

def ends(space, seed):
    os._exit(3)

def outside(space, seed):
    yield [{"C": 1e9, "gamma": 1.0}]

def nothing(space, seed):
    yield []

def tires(space, seed):
    yield [{"C": 1.0, "gamma": 1.0}]
    raise RuntimeError("enough")

def leaves(space, seed):
    yield [{"C": 1.0, "gamma": 1.0}]
    os._exit(3)
"""

RANGES = "search.space={C: {low: 0.1, high: 100, log: true}, gamma: {low: 0.01, high: 1, log: true}}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    copy = shutil.copytree(EXAMPLE, tmp_path_factory.mktemp("elsewhere") / "search")
    (copy / "worsesearch.py").write_text(WORSE)
    for name in ("moods", "ends", "outside", "nothing", "tires", "leaves", "missing"):
        (copy / "search" / f"{name}.yaml").write_text(
            f"_target_: worsesearch.{name}\nbudget: 9\nspace: {{}}\n"
        )
    return copy


def candidates(search, score=lambda **_: 0.5):
    """Follow a search to its end; return all that it asked for."""
    asked = []
    while batch := search.ask():
        asked += batch
        for candidate in batch:
            search.tell(candidate, score(**candidate.as_dict()))
    assert search.done
    return [candidate.as_dict() for candidate in asked]


def drawn(space, seed=0, **options):
    return candidates(make_search(SearchSpec("random", options), space, seed))


# -- spaces with ranges --------------------------------------------------------------------------


def test_a_range_is_walked_from_end_to_end():
    assert [Range(2.0, 10.0).at(share) for share in (0, 0.25, 1)] == [2.0, 4.0, 10.0]
    assert [Range(1.0, 10000.0, log=True).at(share) for share in (0, 0.25, 1)] == [1.0, 10.0, 10000.0]
    assert Range(0.0, 1.0).at(1 / 3) == 0.333333
    assert Range(1.0, 1.002).at(1 / 3) == 1.00067
    for low, high, log in ((1.0, 1.000001, False), (1e6, 1e6 + 0.1, True), (-1e-9 - 1, -1.0, False)):
        narrow = [Range(low, high, log).at(share) for share in np.linspace(0, 1, 101).tolist()]
        assert (len(set(narrow)), narrow[0], narrow[-1]) == (101, low, high)
    whole = Counter(Range(1, 4, integer=True).at(share) for share in np.linspace(0, 1, 4001).tolist())
    assert sorted(whole) == [1, 2, 3, 4]
    assert all(count == pytest.approx(1000, abs=2) for count in whole.values())


@pytest.mark.parametrize(
    "axis",
    [
        *({"low": 1}, {"low": 2, "high": 1}, {"low": 0, "high": 1, "log": True}),
        {"low": 1, "high": 2.5, "integer": True},
        *({"low": 1, "high": 2, "step": 1}, {"low": "a", "high": 2}, {"low": 1, "high": math.inf}),
    ],
)
def test_what_is_no_range_is_refused(axis):
    with raises(ValueError, "range"):
        Space({"C": axis})


def test_values_lead_to_their_point_and_back():
    space = Space(
        {"C": {"low": 1, "high": 8}, "kernel": ["rbf", "linear"], "n": {"low": 1, "high": 5, "integer": True}}
    )
    point = space.point({"kernel": "linear", "n": 3.0, "C": np.float64(2.5)})
    assert point == (2.5, 1, 3)
    assert space.candidate(point).as_dict() == {"C": 2.5, "kernel": "linear", "n": 3}
    for wrong in ({"C": 9}, {"kernel": "poly"}, {"n": 2.5}, {"C": True}, {"gamma": 1}):
        with pytest.raises(ValueError, match="expected"):
            space.point({"C": 2, "kernel": "rbf", "n": 1} | wrong)


@pytest.mark.parametrize("kind", ["grid", "pattern"])
def test_a_search_of_lists_refuses_a_range(kind):
    with raises(ValueError, f"{kind}", "search", "list", "C"):
        make_search(kind, {"C": {"low": 1, "high": 2}})


# -- random --------------------------------------------------------------------------------------


def test_lists_are_drawn_from_without_replacement():
    space = {"C": (1, 2, 4), "gamma": (0.5, 1), "kernel": ("rbf", "poly")}
    found = drawn(space, budget=100)
    assert sorted(map(str, found)) == sorted(map(str, candidates(make_search("grid", space))))
    assert drawn(space, budget=5) == found[:5]
    assert drawn(space, seed=1, budget=100) != found


def test_a_larger_budget_begins_with_what_a_smaller_one_draws():
    space = {"C": {"low": 1e-3, "high": 1e3, "log": True}, "kernel": ("rbf", "poly")}
    found = drawn(space, budget=400)
    assert drawn(space, budget=40) == found[:40]
    logs = np.log10([each["C"] for each in found])
    assert -3 <= logs.min() < -2.8 < 2.8 < logs.max() <= 3
    assert abs(logs.mean()) < 0.3
    assert 150 < sum(each["kernel"] == "rbf" for each in found) < 250


def test_scores_change_nothing_and_a_space_of_nothing_has_one_candidate():
    space = {"C": {"low": 0, "high": 1}}
    search = make_search(SearchSpec("random", {"budget": 7}), space, 0)
    assert candidates(search, lambda C: math.nan) == drawn(space, budget=7)
    assert drawn({}, budget=7) == [{}]


SMALLER = ("datasets=[iris]", "protocol.outer=2", "protocol.inner=2")


def test_arms_get_the_same_candidates_and_a_larger_budget_adds_to_the_trials(tmp_path):
    random = (*SMALLER, "solvers=[libsvm_l1]", "sweep.tol=[0.001,0.01]", "search=random", RANGES)
    few, summary = run_study(tmp_path, *random, "search.budget=2")
    assert summary.trials_run == 2 * 2 * (2 * 2 + 1)
    drawn = few.trials.groupby(["solver", "outer"])["param_C"].apply(lambda column: sorted(set(column)))
    assert drawn["libsvm_l1[tol=0.001]"].tolist() == drawn["libsvm_l1[tol=0.01]"].tolist()
    assert drawn["libsvm_l1[tol=0.01]"][0] != drawn["libsvm_l1[tol=0.01]"][1]
    many, summary = run_study(tmp_path, *random, "search.budget=3", run_id="again")
    inner = few.trials[few.trials["inner"] >= 0]
    assert set(inner["key"]) <= set(many.trials["key"])
    assert summary.trials_run <= 2 * 2 * (2 + 1)
    assert set(few.selections["selection_key"]).isdisjoint(many.selections["selection_key"])


# -- a user's own --------------------------------------------------------------------------------


def own(folder, name, *options):
    return ("study=own", *SMALLER, "solvers=[libsvm_l1]", f"search={name}", *options)


class Interrupted(SerialExecutor):
    """Takes so many batches and no more."""

    left = 4

    def submit(self, order):
        self.left -= 1
        if self.left < 0:
            raise KeyboardInterrupt
        super().submit(order)


def comparable(results):
    columns = [name for name in results.trials if name.startswith(("key", "param_", "score", "status"))]
    return results.trials[columns], results.selections, results.outer["key"].tolist()


def without_code(folder, monkeypatch):
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path != str(folder)])
    for name in ("mysearch", "worsesearch"):
        monkeypatch.delitem(sys.modules, name, raising=False)


def test_a_search_runs_resumes_and_is_read_without_its_code(folder, tmp_path, monkeypatch):
    zoom = own(folder, "zoom", RANGES)
    whole, _ = run_study(tmp_path / "whole", *zoom, config_dir=folder)
    assert len(whole.trials) == 2 * (2 * 12 + 1)
    stopped = StudyRun(tmp_path / "stopped", *zoom, config_dir=folder, executor=Interrupted())
    with pytest.raises(KeyboardInterrupt):
        stopped.go()
    with monkeypatch.context() as patch:
        without_code(folder, patch)
        part = read_results(stopped.store)
        assert 0 < len(part.trials) < len(whole.trials)
        assert part.excluded.empty
    again, summary = run_study(tmp_path / "stopped", *zoom, config_dir=folder, run_id="again")
    assert summary.trials_stored_before == len(part.trials)
    without_code(folder, monkeypatch)
    for found in (again, load_study("own", tmp_path / "whole" / "results")):
        for one, other in zip(comparable(found), comparable(whole), strict=True):
            assert one == other if isinstance(one, list) else one.equals(other)
    command = ["status", "study=own", f"paths.results={tmp_path / 'whole' / 'results'}"]
    done = subprocess.run([sys.executable, "-m", "orchestrator", *command], capture_output=True, text=True)
    assert_says(done.stdout, "50 of 50 trials", "0 failed", "complete")


def test_a_lost_or_damaged_record_of_a_search_is_named_and_written_anew(folder, tmp_path):
    paths = [f"paths.{name}={tmp_path / name}" for name in ("results", "cache")]
    command = (*own(folder, "climb", "search.space={C: [1,4], gamma: [1]}", "cluster=serial"), *paths)
    whole = orchestrator.run_study(*command, config_dir=folder)
    store = find_study("own", tmp_path / "results")
    record, other = sorted(store.search_records.folder.glob("*.json"))
    record.write_bytes(record.read_bytes()[:10])
    with raises(DamageError, f"{record}", "damaged", "svmbench repair study=own"):
        read_results(store)
    assert f"{record} is damaged" in repair(store)[0]
    other.unlink()
    (found,) = read_results(store).lost
    assert_says(found, "2 records", "missing", f"{record.parent}")
    again = orchestrator.run_study(*command, config_dir=folder)
    assert again.lost == []
    for one, expected in zip(comparable(again), comparable(whole), strict=True):
        assert one == expected if isinstance(one, list) else one.equals(expected)


def test_a_class_is_asked_and_told_round_by_round(folder, monkeypatch):
    monkeypatch.syspath_prepend(folder)
    scores = {(1, 1): 0.5, (2, 1): 0.6, (4, 1): 0.6, (2, 3): 0.7}
    search = make_search(SearchSpec("mysearch.Climb"), {"a": (1, 2, 4), "b": (1, 3)})
    asked = candidates(search, lambda a, b: scores[a, b])
    assert [tuple(each.values()) for each in asked] == [(1, 1), (2, 1), (4, 1), (2, 3)]
    assert search.selection.best.as_dict() == {"a": 2, "b": 3}
    assert list(chain(*search.rounds)) != []


def test_the_options_are_in_the_selection_key_alone(folder):
    def keys(*options):
        settings = load_settings(["study=x", *own(folder, "zoom", *options)], folder)
        return settings.study.search.text, settings.study.arms, settings.study.protocol

    (text, *rest), (other, *same) = keys(), keys("search.width=3")
    assert text != other
    assert rest == same


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("overrides", "sentence"),
    [
        (["search=moods", RANGES], ("worsesearch.moods", "different candidates", "seed")),
        (["search=ends", RANGES], ("worsesearch.ends", "SystemExit", "os._exit(3)")),
        (
            ["search=outside", RANGES],
            ("worsesearch.outside", "number", "0.1", "100", "C", "1000000000.0"),
        ),
        (["search=nothing", RANGES], ("worsesearch.nothing", "no candidate", "solver libsvm_l1")),
        (["search=missing", RANGES], ("module 'worsesearch'", "'missing'")),
        (["search=zoom", "search.wdth=3"], ("'wdth'",)),
        (
            ["search=zoom", "search.budget=3"],
            ("3 candidates", "search.budget", "more"),
        ),
        (["search=climb", RANGES], ("range", "search.budget")),
        (["search=grid", "search.budget=3"], ("search.budget", "by_dataset")),
        (["search=random", "search.seeds=3"], ("budget", "'seed'")),
        (["search=random", "search.budget=0"], ("search.budget", "whole number", "1", "0")),
        (
            ["search=grid", "search._target_=mysearch.zoom"],
            ("kind grid", "_target_ mysearch.zoom"),
        ),
        (
            ["search=grid", RANGES],
            ("grid", "list", "C", "gamma"),
        ),
    ],
)
def test_what_cannot_search_is_refused(overrides, sentence, folder):
    with pytest.raises(ConfigError) as found:
        load_settings(["study=x", *own(folder, "grid"), *overrides], folder)
    assert any(says(problem, *sentence) for problem in found.value.problems)


@pytest.mark.parametrize(("option", "other"), [("seed=-1", "budget=3"), ("budget=0", "seed=1")])
def test_only_the_option_that_is_wrong_is_told(option, other, folder):
    with pytest.raises(ConfigError) as found:
        load_settings([*own(folder, "random"), "study=x", f"search.{option}", f"search.{other}", RANGES])
    (problem,) = found.value.problems
    assert_says(problem, f"search.{option.partition('=')[0]}", "whole number")


@pytest.mark.parametrize(
    ("name", "what"), [("tires", "RuntimeError: enough"), ("leaves", "SystemExit: os._exit(3)")]
)
def test_a_search_that_fails_later_stops_the_study_which_keeps_what_it_has(name, what, folder, tmp_path):
    options = own(folder, name, "search.space={C: [1], gamma: [1]}")
    run = StudyRun(tmp_path, *options, config_dir=folder)
    with raises(StudyStopped, f"worsesearch.{name}", what):
        run.go()
    assert len(run.store.stored()) > 0
