"""Changes of a study after its first scores: what counts as one, with its date and what was there before."""

import json
from copy import deepcopy
from pathlib import Path

import pytest

from orchestrator.study.growth import ARMS, DATASETS, SETTINGS, late_changes


@pytest.fixture(scope="module")
def medium():
    """Provenance of a published study whose five runs added, removed and added datasets again."""
    stored = json.loads((Path(__file__).parent / "medium_runs.json").read_text())
    by_name = {kind: {facts["name"]: facts for facts in stored[kind]} for kind in (DATASETS, ARMS)}
    runs = []
    for run in stored["runs"]:
        study = {kind: [by_name[kind][name] for name in run.pop(kind)] for kind in (DATASETS, ARMS)}
        runs.append(run | {"study": study | {name: stored[name] for name in ("protocol", "search")}})
    return runs


def changes(runs):
    """Return the late changes of runs, of all names that they declare."""
    names = {
        kind: [*dict.fromkeys(each["name"] for run in runs for each in run["study"][kind])]
        for kind in (DATASETS, ARMS)
    }
    return late_changes(runs, names[DATASETS], names[ARMS])


def declared_first(runs, **choices):
    """Return a copy of runs whose first one declared choices of the report."""
    runs = deepcopy(runs)
    runs[0]["report"] = runs[0]["report"] | choices
    return runs


def test_datasets_of_a_study_that_grew_were_chosen_after_results_were_seen(medium):
    (change,) = changes(medium)
    assert (change.kind, change.date, change.removed) == (DATASETS, "2026-11-23", ())
    assert change.added == ("satimage", "optdigits", "reuters", "pendigits")
    assert len(change.before) == 9
    assert change.before[0] == "iris"
    assert changes(medium[:1]) == []


def test_a_plan_or_a_sequential_study_foresees_growth(medium):
    added = ["satimage", "optdigits", "reuters", "pendigits"]
    assert changes(declared_first(medium, plan={"datasets": added})) == []
    assert changes(declared_first(medium, sequential=True)) == []
    (rest,) = changes(declared_first(medium, plan={"datasets": added[:3]}))
    assert rest.added == ("pendigits",)
    late = deepcopy(medium)
    late[1]["report"] = late[1]["report"] | {"plan": {"datasets": added}, "sequential": True}
    assert len(changes(late)) == 1  # declared when scores were stored already


def test_a_run_without_scores_binds_nothing(medium):
    runs = deepcopy(medium)
    runs[0]["summary"] = {"trials_run": 0, "trials_stored_before": 0}
    runs[1]["found_trials"] = False
    assert changes(runs) == []


def test_a_killed_run_that_left_scores_binds(medium):
    runs = deepcopy(medium[:2])
    del runs[0]["summary"]  # written at the end of a run
    assert len(changes(runs)) == 1


def altered(runs, **protocol):
    """Return a copy of the last run with other values of the protocol, as a further run."""
    run = deepcopy(runs[-1])
    run["study"]["protocol"] |= protocol
    return [*runs, run | {"started_at": "2026-12-01T00:00:00+00:00"}]


def test_folds_and_seeds_are_named_with_their_values_before(medium):
    (change,) = changes(altered(medium[:1], outer=5))
    assert (change.kind, change.date, change.is_repeats) == (SETTINGS, "2026-12-01", False)
    assert "outer was 3, now 5" in change.text
    seeds = altered(medium[:1], seed=[0, 1, 2])
    (change,) = changes(seeds)
    assert change.is_repeats
    assert changes(declared_first(seeds, plan={"repeats": 3})) == []
    assert len(changes(declared_first(seeds, plan={"repeats": 2}))) == 1
    (other,) = changes(altered(medium[:1], seed=[7, 8]))  # not further seeds, but other ones
    assert not other.is_repeats


def test_arms_and_spaces(medium):
    runs = altered(medium[:1])
    arms = runs[-1]["study"][ARMS]
    arms[0] = arms[0] | {"space": {"C": [1, 2], "gamma": [1]}}
    arms.append(arms[1] | {"name": "late"})
    added, space = changes(runs)
    assert (added.kind, added.added) == (ARMS, ("late",))
    assert space.kind == SETTINGS
    assert space.text.startswith("libsvm_l1: space.C was [0.25,4,64], now [1,2]")
    recoded = altered(medium[:1])
    recoded[-1]["study"][ARMS][0] |= {"identity": "another version"}
    assert changes(recoded) == []  # a correction of code is no choice of what is compared


def test_other_data_under_the_same_name(medium):
    runs = altered(medium[:1])
    datasets = runs[-1]["study"][DATASETS]
    datasets[0] = datasets[0] | {"fingerprint": "0" * 63, "n": datasets[0]["n"] - 1}
    datasets[1] = datasets[1] | {"fingerprint": None}  # not recorded, so nothing can be said
    (change,) = changes(runs)
    assert (change.kind, change.date) == (SETTINGS, "2026-12-01")
    assert change.text == "iris: other data under the same name (150 rows, now 149)"
    datasets[0] = datasets[0] | {"n": 150}
    (change,) = changes([*runs, runs[-1] | {"started_at": "2026-12-24"}])
    assert (change.text, change.date) == ("iris: other data under the same name", "2026-12-01")


@pytest.mark.parametrize(
    ("protocol", "now"),
    [
        ({"scaling": "none"}, "none"),
        ({"scaling": "dataset"}, "to [0, 1] by the whole dataset"),
        ({"scaling": "none", "prepare": {"name": "standard"}}, "standard (mean 0 and variance 1"),
    ],
)
def test_another_preparation_of_features(medium, protocol, now):
    (change,) = changes(altered(medium[:1], **protocol))
    assert (change.kind, change.date) == (SETTINGS, "2026-12-01")
    assert change.text.startswith(f"protocol: prepare was minmax (to [0, 1] by the training rows), now {now}")
    # Another version of the same transformer is a correction of code.
    same = altered(altered(medium[:1], prepare={"name": "table", "identity": "a"}), prepare={"name": "table"})
    assert changes(same[1:]) == []


def test_a_preparation_that_is_chosen_for_each_dataset(medium):
    runs = altered(medium[:1])
    arms = [facts["name"] for facts in runs[0]["study"][ARMS]]
    table = {"name": "table", "kind": "one-hot"}
    runs[-1]["preparations"] = {"wine": dict.fromkeys(arms, table), "iris": {arms[0]: {"name": "standard"}}}
    texts = [change.text for change in changes(runs)]
    assert all(text.startswith("protocol: prepare was minmax") for text in texts)
    assert [text.rpartition(" on ")[2] for text in texts] == ["iris", "wine"]
    runs[-1]["study"][ARMS] = [facts | {"prepare": table} for facts in runs[-1]["study"][ARMS]]
    assert not any("protocol" in change.text for change in changes(runs))  # a choice of the arms


def test_the_time_limit_and_the_profile_of_times(medium):
    (change,) = changes(altered(medium[:1], max_seconds=60.0, profile="throughput"))
    assert "max_seconds was not set, now 60" in change.text
    assert "profile was timing, now throughput" in change.text


def test_a_dataset_of_an_earlier_protocol_is_removed(medium):
    runs = altered(medium[:1], outer=5)
    dropped = runs[-1]["study"][DATASETS].pop()
    removed, settings = late_changes(runs, [], [])
    assert (removed.removed, removed.date) == ((dropped["name"],), "2026-11-23")
    assert settings.kind == SETTINGS
