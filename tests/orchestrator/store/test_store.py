import os
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest

from orchestrator import load_study
from orchestrator.config.schema import folders
from orchestrator.engine.damage_repair import repair
from orchestrator.store.columns import TRIAL_SCHEMA
from orchestrator.store.files import DamageError
from orchestrator.store.store import Store, StoreError
from tests.messages import raises
from tests.orchestrator.store.stored_rows import keys, parts, records, trial

# -- appending and reading -----------------------------------------------------------------------


def test_what_is_appended_is_read_back(store):
    started = datetime(2026, 1, 1, 12, 30, tzinfo=UTC)
    store.append([records(trial("a", n_sv=7, started_at=started, converged=True, param_C=4.0), trial("b"))])
    row = store.trials().iloc[0]
    assert (row["key"], row["n_sv"], row["converged"], row["study"]) == ("a", 7, True, "s")
    assert row["started_at"] == started
    assert row["param_C"] == 4.0
    assert pd.isna(store.trials().iloc[1]["n_sv"])


READING = """
import os, sys
from pathlib import Path
import pyarrow.parquet
from orchestrator.store.store import Store
store = Store(Path(sys.argv[1]))
before = os.listdir("/proc/self/task")
read = [store.stored(), store.refits(), store.run_ids(), store.predictions()]
print(len(read[0]), len(set(os.listdir("/proc/self/task")) - set(before)))
"""


def test_what_is_read_leaves_no_thread_that_may_hold_bytes_of_python_when_the_interpreter_ends(store):
    """A thread of Arrow that lets go of them then aborts the process, as it did one command in seven."""
    store.append([records(trial("a"), trial("b", inner=1))])
    done = subprocess.run([sys.executable, "-c", READING, store.folder], capture_output=True, text=True)
    assert (done.stdout.split(), done.stderr) == (["2", "0"], "")


def test_every_column_of_the_schema_is_there_from_the_first_row(store):
    store.append([records(trial("a", param_gamma=1.0, param_C=1.0, score_f1=0.1))])
    names = list(store.trials())
    assert set(TRIAL_SCHEMA.names) <= set(names)
    assert names[names.index("inner") + 1 :][:2] == ["param_C", "param_gamma"]
    assert names[names.index("score") + 1] == "score_f1"


def test_rows_come_back_in_canonical_order_whatever_the_order_of_arrival(store):
    rows = [
        trial(f"{dataset}{outer}{inner}{C}", dataset=dataset, outer=outer, inner=inner, param_C=C)
        for dataset in ("b", "a")
        for outer in (1, 0)
        for inner in (0, -1)
        for C in (16.0, 4.0)
    ]
    for row in rows:
        store.append([records(row)])
    axes = ["dataset", "outer", "inner", "param_C"]
    found = list(store.trials()[axes].itertuples(index=False, name=None))
    assert found == sorted(tuple(row[name] for name in axes) for row in rows)


def test_nothing_appended_is_no_part(store):
    store.append([])
    assert not parts(store)
    assert store.trials().empty
    assert store.stored() == {}
    assert store.outer_rows() == store.selection_rows() == []


def test_an_append_is_one_whole_file_under_its_final_name(store):
    store.append([records(trial("a")), records(trial("b"), trial("c"))])
    assert [path.name for path in store.trials_folder.iterdir()] == [path.name for path in parts(store)]
    assert len(parts(store)) == 1


def test_temporary_files_are_ignored(store):
    store.append([records(trial("a"))])
    (store.trials_folder / ".part-x.parquet.1234.tmp").write_bytes(b"half a row")
    assert keys(store) == ["a"]
    store.compact()
    assert keys(store) == ["a"]


def repaired_until(moves, folder):
    """Repair a study in a process that ends at once when it renames a file once more; return its status."""
    code = f"""if True:
        import os, pathlib, sys
        from orchestrator.engine.damage_repair import repair
        from orchestrator.store.store import Store
        left = {moves}
        def counting(event, arguments):
            global left
            if event == "os.rename":
                left -= 1
                if left < 0:
                    os._exit(9)
        sys.addaudithook(counting)
        repair(Store(pathlib.Path({str(folder)!r})))
    """
    return subprocess.run([sys.executable, "-c", code]).returncode


def test_a_repair_that_was_killed_is_finished_by_the_next(store, tmp_path):
    facts = {"study": {"datasets": [], "arms": []}}
    for run_id in ("20260101T000000-aaaaaa", "20260101T000000-bbbbbb"):
        store.write_provenance(run_id, facts)
        store.append([records(trial(run_id, run_id=run_id))])
        store.append([records(trial(f"damaged in {run_id}", run_id=run_id))])
    for path in (*parts(store)[1::2], store.folder / "provenance/20260101T000000-aaaaaa.json"):
        path.write_bytes(b"nothing")
    for moves in (0, 2, 4, 6):
        folder = tmp_path / str(moves) / "s"
        shutil.copytree(store.folder, folder)
        assert repaired_until(moves, folder) == 9
        repair(Store(folder))
        assert repair(Store(folder)) == []
        assert keys(Store(folder)) == ["20260101T000000-aaaaaa", "20260101T000000-bbbbbb"]
        runs = Store(folder).provenance()
        assert [run.get("lost", False) for run in runs] == [True, False]
        assert not list(folder.glob("**/.*.tmp"))


def test_a_derived_table_that_is_damaged_is_named_when_it_is_read(store):
    store.write_selections([{"dataset": "iris", "outer": 0}])
    (store.folder / "selections.parquet").write_bytes(b"nothing")
    with raises(DamageError, "selections.parquet", "damaged"):
        store.selection_rows()


def test_a_failed_trial_has_no_score(store):
    store.append([records(trial("a", "error", None), trial("b", "timeout", 0.25))])
    assert pd.isna(store.stored()["a"].score)
    assert store.stored()["b"].score == 0.25


def test_refits_are_found_by_key(store):
    store.append([records(trial("a"), trial("r", inner=-1, n_sv=3))])
    assert store.refits().keys() == {"r"}
    assert store.refits()["r"]["n_sv"] == 3


# -- writing -------------------------------------------------------------------------------------


def test_a_link_under_the_name_of_a_temporary_is_not_written_through(store, tmp_path, monkeypatch):
    target = tmp_path / "precious"
    target.write_text("mine")
    monkeypatch.setattr(
        "orchestrator.study.atomic.uuid", SimpleNamespace(uuid4=lambda: SimpleNamespace(hex="0"))
    )
    (store.folder / ".outer.parquet.0.tmp").symlink_to(target)
    with raises(StoreError, "outer.parquet", "File exists"):
        store.write_outer([])
    assert target.read_text() == "mine"


@pytest.mark.parametrize("ending", [KeyboardInterrupt, SystemExit, MemoryError])
def test_a_writer_that_is_interrupted_leaves_no_temporary(store, monkeypatch, ending):
    def end(*arguments):
        raise ending

    store.append([records(trial("a"))])
    store.append([records(trial("b"))])
    monkeypatch.setattr("os.fsync", end)
    for write in (
        lambda: store.append([records(trial("c"))]),
        lambda: store.write_outer([]),
        lambda: store.write_provenance("r", {}),
        store.compact,
    ):
        with pytest.raises(ending):
            write()
    assert not list(store.folder.rglob(".*.tmp"))
    assert keys(store) == ["a", "b"]


def test_a_relative_folder_stays_where_it_was(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    store = Store(Path("results/s"))
    paths = folders({"paths": {"results": "results", "data": "~/data", "cache": "cache"}})
    store.lock().release()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    store.append([records(trial("a"))])
    store.write_provenance("r", {})
    assert keys(store) == ["a"]
    assert not list(Path.cwd().iterdir())
    assert paths.results == tmp_path / "results"
    assert paths.cache == tmp_path / "cache"


# -- disks that fail -----------------------------------------------------------------------------


@pytest.fixture
def full_disk(tmp_path):
    """A file system of 256 kB with nothing free but what a test makes."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", folder]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("mounting a small file system takes root")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def test_a_full_disk_is_told_and_costs_nothing_that_was_stored(full_disk):
    store = Store(full_disk / "s")
    store.lock().release()
    store.append([records(trial("a"))])
    many = records(*(trial(os.urandom(512).hex()) for _ in range(1_000)))
    with raises(StoreError, "No space left on device", "repair"):
        store.append([many])
    assert not list(store.trials_folder.glob(".*"))
    assert keys(store) == ["a"]


# -- studies -------------------------------------------------------------------------------------


def test_a_store_that_recorded_no_splits_is_read_by_the_identities_of_its_rows(store):
    rows = [
        trial(f"{kind}{outer}", identity=kind, inner=-1, outer=outer) for kind in "ab" for outer in (0, 1)
    ]
    store.append([records(*rows, trial("inner", identity="b"))])
    store.write_selections([{"identity": kind, "dataset": "iris", "solver": "svc"} for kind in "ab"])
    for day, identity in enumerate("ab", start=1):
        study = {
            "datasets": [{"name": "iris"}],
            "arms": [{"name": "svc", "target": "T", "identity": identity}],
            "search": "grid",
            "protocol": {"outer": 2},
        }
        facts = {"started_at": f"2026-01-0{day}", "identities": {"iris": {"svc": identity}}, "study": study}
        store.write_provenance(str(day), facts)
    results = load_study("s", store.folder.parent)
    assert sorted(results.trials["key"]) == ["b0", "b1", "inner"]
    assert list(results.outer["key"]) == ["b0", "b1"]
    assert list(results.selections["identity"]) == ["b"]
    assert results.excluded["trials"].tolist() == [2]
    assert results.states["iris", "svc"].complete
    assert keys(store) == ["a0", "a1", "b0", "b1", "inner"]


def test_a_study_is_found_by_name_and_by_path(store):
    store.append([records(trial("a"))])
    results = store.folder.parent
    for found in (load_study("s", results), load_study(str(store.folder)), load_study(store.folder)):
        assert list(found.trials["key"]) == ["a"]


def test_a_study_that_is_not_there_is_told_with_those_that_are(store):
    results = store.folder.parent
    with raises(StoreError, "study 'x'", store.folder.name, "svmbench studies"):
        load_study("x", results)
    with raises(StoreError, "no study"):
        load_study("x", results / "empty")
