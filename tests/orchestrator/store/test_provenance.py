import json
from functools import partial

import pytest

from orchestrator.engine.damage_repair import repair
from orchestrator.engine.load import read_results
from orchestrator.store.files import DamageError
from orchestrator.store.store import Store, StoreError
from tests.messages import assert_says, raises, says
from tests.orchestrator.store.stored_rows import keys, recorded_runs, records, trial
from tests.published import PUBLISHED


def test_the_records_of_published_studies_are_undamaged():
    folders = [folder for folder in PUBLISHED.iterdir() if (folder / "provenance").is_dir()]
    assert folders
    for folder in folders:
        assert Store(folder).provenance(), folder


@pytest.mark.parametrize("content", ["{}", '{"run_id": "r2"}', '{"study": {}, "follows": "../../x"}'])
def test_a_record_that_hides_what_its_run_declared_is_named(store, content):
    for run_id in ("r1", "r2"):
        store.write_provenance(run_id, {"study": {"datasets": [], "arms": []}})
    (store.folder / "provenance/r2.json").write_text(content)
    for read in (store.provenance, store.stored, partial(read_results, store)):
        with raises(DamageError, "r2.json", "damaged"):
            read()


def test_runs_are_numbered_in_the_order_in_which_they_are_recorded(store):
    recorded_runs(store, "b", "c", "a")
    assert [run["run_id"] for run in store.provenance()] == ["b", "c", "a"]
    assert store.next_run_number() == 4


def test_a_record_that_is_missing_is_named_be_it_the_newest(store):
    recorded_runs(store, "y", "z", "x")
    before = store.provenance()
    for run_id in "yzx":
        path = store.folder / "provenance" / f"{run_id}.json"
        content = path.read_bytes()
        path.unlink()
        with raises(DamageError, f"{run_id}.json", "damaged", "missing"):
            store.provenance()
        path.write_bytes(content)
    assert store.provenance() == before


def test_rows_of_a_run_without_a_record_are_named(store):
    store.append([records(trial("a", run_id="r"))])
    for read in (store.stored, store.trials, partial(read_results, store)):
        with raises(DamageError, "r.json", "damaged", "missing"):
            read()
    store.write_provenance("r", {})
    assert keys(store) == ["a"]


def test_a_record_has_one_line_for_each_candidate_of_a_sample(store):
    candidates = [[{"C": C, "gamma": 0.0625}, 25, [[0, 1], [3, 2]]] for C in range(30)]
    store.write_provenance("r", {"study": {"datasets": [], "candidates": candidates}})
    lines = (store.folder / "provenance/r.json").read_text().splitlines()
    assert [json.loads(line.strip(" ,")) for line in lines if '"gamma"' in line] == candidates
    assert store.provenance()[0]["study"]["candidates"] == candidates


def test_records_may_change_their_names_and_places_but_no_content(store):
    recorded_runs(store, "y", "z")
    before = store.provenance()
    first, second = (store.folder / "provenance" / f"{run_id}.json" for run_id in "yz")
    contents = first.read_bytes(), second.read_bytes()
    second.write_bytes(contents[0])
    first.write_bytes(contents[1])
    first.rename(first.with_name("other.json"))
    assert store.provenance() == before
    second.write_bytes(contents[0].replace(b'"number": 1', b'"number": 3'))
    with raises(DamageError, "content", "checksum"):
        store.provenance()


def test_a_run_that_lost_its_record_keeps_its_place(store):
    recorded_runs(store, "y", "z", "x")
    store.append([records(trial("a", score=0.1, run_id="z"))])
    store.append([records(trial("a", score=0.2, run_id="y"))])
    (store.folder / "provenance" / "z.json").unlink()
    assert any(says(sentence, "run z", "lost") for sentence in repair(store))
    assert [run["run_id"] for run in store.provenance()] == ["y", "z", "x"]
    assert store.stored()["a"].score == 0.1
    assert repair(store) == []


def test_a_record_under_the_name_of_another_that_is_lost_is_kept(store):
    recorded_runs(store, "y", "z")
    first = store.folder / "provenance" / "y.json"
    first.rename(first.with_name("z.json"))
    assert any(says(sentence, "run z", "lost") for sentence in repair(store))
    assert [(run["run_id"], "lost" in run) for run in store.provenance()] == [("y", False), ("z", True)]


def test_no_older_declaration_comes_back_when_the_newest_is_lost(store):
    recorded_runs(store, "y", "z")
    (store.folder / "provenance" / "z.json").write_text("7")
    assert_says(repair(store)[-1], "declaration", "lost")
    with raises(StoreError, "study 's'", "lost"):
        read_results(store)
    store.write_provenance("w", {"number": store.next_run_number()})
    assert read_results(store).trials.empty


def test_provenance_is_told_oldest_first(store):
    for number in (2, 1, 3):
        store.write_provenance(f"run{number}", {"started_at": f"2026-01-0{number}"})
    assert [run["started_at"][-1] for run in store.provenance()] == ["1", "2", "3"]


@pytest.mark.parametrize(
    "content",
    [
        b'{"started',
        b"[]",
        b"7",
        b"\xff\xfe{}",
        b"",
        b"[" * 100_000 + b"]" * 100_000,
        b'{"number": "first"}',
        b'{"study": 7}',
        b'{"study": {"datasets": [1], "arms": [2]}}',
        b'{"started_at": "yesterday"}',
        b'{"format": 1}',
    ],
)
def test_damaged_provenance_is_named_for_an_older_declaration_would_be_in_force(store, content):
    store.append([records(trial("a"))])
    store.write_provenance("run1", {"started_at": "2026-01-01"})
    path = store.folder / "provenance" / "broken.json"
    path.write_bytes(content)
    for read in (store.provenance, store.trials, store.next_run_number, partial(read_results, store)):
        with raises(StoreError, "broken.json", "damaged", "svmbench repair study=s"):
            read()
