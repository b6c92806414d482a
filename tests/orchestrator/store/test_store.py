import io
import os
import random
import shutil
import socket
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from orchestrator import load_study
from orchestrator.config.schema import folders
from orchestrator.engine.damage_repair import repair
from orchestrator.engine.load import read_results
from orchestrator.engine.overview import overview
from orchestrator.store import arrow_tables, files
from orchestrator.store.columns import SCHEMA_VERSION, TRIAL_SCHEMA
from orchestrator.store.files import DamageError
from orchestrator.store.store import Store, StoreError
from orchestrator.study.declaration import Declaration
from orchestrator.study.records import Records, StoredTrial, merged
from tests.messages import assert_says, raises, says

START = datetime(2026, 1, 1, tzinfo=UTC)


def trial(key, status="ok", score=0.5, minute=0, inner=0, **columns):
    return {
        "key": key,
        "identity": "i",
        "dataset": "iris",
        "solver": "svc",
        "outer": 0,
        "inner": inner,
        "status": status,
        "message": "",
        "score": score,
        "finished_at": START + timedelta(minutes=minute),
        **columns,
    }


def records(*rows):
    return Records.of({"study": "s"}, rows)


def keys(store):
    return sorted(store.trials()["key"])


def parts(store):
    return sorted(store.trials_folder.glob("part-*.parquet"))


@pytest.fixture
def store(tmp_path):
    store = Store(tmp_path / "results" / "s")
    store.lock().release()  # makes the folders
    return store


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


def refused(store, path, reason="damaged"):
    """Check that everything that reads trials names a file and says what to do, in one sentence."""
    for read in (store.stored, store.trials, store.refits, store.compact, partial(read_results, store)):
        with pytest.raises(DamageError) as refusal:
            read()
        assert refusal.value.path == path
        sentence = str(refusal.value)
        assert sentence.startswith(f"{path} is damaged (")
        assert reason in sentence
        assert_says(sentence, "svmbench repair study=s", f"paths.results={store.folder.parent}")
        assert "\n" not in sentence


@pytest.mark.parametrize("content", [b"", b"PAR1 and then nothing", None], ids=["empty", "garbage", "half"])
@pytest.mark.parametrize("renamed", [False, True], ids=["checksum", "no checksum"])
def test_a_damaged_part_is_named_and_never_left_out(store, content, renamed):
    store.append([records(trial("a"))])
    store.append([records(trial("b"))])
    damaged = parts(store)[1]
    if renamed:
        damaged = damaged.rename(damaged.with_name("part-9-12345678.parquet"))  # as names were once
    whole = damaged.read_bytes()
    damaged.write_bytes(whole[: len(whole) // 2] if content is None else content)
    refused(store, damaged)
    assert damaged.exists()


def test_every_flipped_bit_of_a_part_is_noticed(store):
    store.append([records(*(trial(f"{number:032d}") for number in range(20)))])
    (part,) = parts(store)
    whole = part.read_bytes()
    rng = random.Random(0)
    for _ in range(100):
        damaged = bytearray(whole)
        damaged[rng.randrange(len(whole))] ^= 1 << rng.randrange(8)
        part.write_bytes(damaged)
        with raises(DamageError, "checksum"):
            store.stored()
    part.write_bytes(whole)
    assert len(store.stored()) == 20


def test_pages_have_checksums_of_their_own_for_readers_of_parts_alone(store):
    store.append([records(trial("a"))])
    store.append([records(*(trial(f"{number:032d}") for number in range(200)))])
    part = parts(store)[1]
    content = bytearray(part.read_bytes())
    content[300] ^= 1
    part.rename(part.with_name("part-x.parquet")).write_bytes(content)
    refused(store, part.with_name("part-x.parquet"), "CRC")


def pipe(path):
    os.mkfifo(path)


def link_to_nothing(path):
    path.symlink_to("nowhere")


def link_to_a_pipe(path):
    os.mkfifo(path.parent.parent / "pipe")
    path.symlink_to(path.parent.parent / "pipe")


def link_to_itself(path):
    path.symlink_to(path)


def bound_socket(path):
    folder = os.open(path.parent, os.O_RDONLY)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(f"/proc/self/fd/{folder}/{path.name}")  # a path of its own may be too long
    os.close(folder)


@pytest.mark.parametrize(
    "make", [pipe, link_to_nothing, link_to_a_pipe, link_to_itself, Path.mkdir, bound_socket]
)
def test_what_is_no_file_is_named_and_never_waited_for(store, make):
    store.append([records(trial("a"))])
    path = store.trials_folder / "part-x.parquet"
    make(path)
    refused(store, path)


def no_text():
    return pa.StringArray.from_buffers(1, pa.array([0, 1], pa.int32()).buffers()[1], pa.py_buffer(b"\xff"))


WHOLE = {
    "key": ["a"],
    "identity": ["i"],
    "dataset": ["iris"],
    "solver": ["svc"],
    "outer": [0],
    "inner": [0],
    "status": ["ok"],
}
TABLES = {
    "no columns": pa.table({}),
    "other columns": pa.table({"a": [1]}),
    "no status": pa.table({"key": ["a"]}),
    "no keys": pa.table({"key": pa.nulls(1, pa.string()), "status": ["ok"]}),
    "words for scores": pa.table({"key": ["a"], "status": ["ok"], "score": ["high"]}),
    "large folds": pa.table({"key": ["a"], "status": ["ok"], "outer": [2**40]}),
    "lists for keys": pa.table({"key": [["a"]], "status": ["ok"]}),
    "a column of lists": pa.table({"key": ["a"], "status": ["ok"], "param_C": [[1.0]]}),
    "one name twice": pa.table([["a"], ["a"], ["ok"]], names=["key", "key", "status"]),
    "bytes for keys": pa.table({"key": [b"\xff"], "status": ["ok"]}),
    "text that is none": pa.table({"key": ["a"], "status": ["ok"], "message": no_text()}),
    "bytes of no known column": pa.table({**WHOLE, "x": [b"\xff"]}),
    "dates of no known column": pa.table({**WHOLE, "x": pa.array([2**31 - 1], pa.date32())}),
    "an instant after the year 9999": pa.table(
        {**WHOLE, "started_at": pa.array([2**62], pa.timestamp("us", tz="UTC"))}
    ),
    "no inner split": pa.table({name: value for name, value in WHOLE.items() if name != "inner"}),
    "a gap in the inner split": pa.table({**WHOLE, "inner": pa.nulls(1, pa.int32())}),
    "a run that is a path": pa.table({**WHOLE, "run_id": ["../../elsewhere"]}),
}


@pytest.mark.parametrize("name", TABLES)
def test_a_part_of_another_schema_is_named(store, name):
    store.append([records(trial("a"))])
    path = store.trials_folder / "part-x.parquet"
    pq.write_table(TABLES[name], path)
    status = partial(overview, store, Declaration({}, {}, {}, "grid", {}, {}))
    for read in (store.trials, partial(read_results, store), store.compact, status):
        with raises(DamageError, "part-x.parquet", "damaged", "svmbench repair"):
            read()
    assert_says(repair(store)[0], "part-x.parquet", "damaged")
    assert keys(store) == ["a"]


@pytest.mark.parametrize("content", ["{}", '{"run_id": "r2"}', '{"study": {}, "follows": "../../x"}'])
def test_a_record_that_hides_what_its_run_declared_is_named(store, content):
    for run_id in ("r1", "r2"):
        store.write_provenance(run_id, {"study": {"datasets": [], "arms": []}})
    (store.folder / "provenance/r2.json").write_text(content)
    for read in (store.provenance, store.stored, partial(read_results, store)):
        with raises(DamageError, "r2.json", "damaged"):
            read()


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


# -- repeated keys -------------------------------------------------------------------------------


def recorded_runs(store, *ids):
    """Record runs in this order, each by a clock that is a day behind the one before."""
    for place, run_id in enumerate(ids):
        day = f"2026-01-{28 - place}"
        store.write_provenance(
            run_id, {"run_id": run_id, "number": store.next_run_number(), "started_at": day}
        )


def test_a_repeated_key_counts_once_ok_before_failed_then_the_newest_run_whatever_the_clock(store):
    recorded_runs(store, "y", "z", "x")
    store.append(
        [records(trial("a", score=0.1, run_id="y"), trial("b", "error", None, run_id="y", minute=9))]
    )
    store.append([records(trial("a", score=0.2, run_id="z", minute=-9), trial("b", score=0.7, run_id="z"))])
    store.append([records(trial("a", "worker_lost", None, run_id="x"))])
    store.append([records(trial("c", "error", None, message="new", run_id="z", minute=-9))])
    store.append([records(trial("c", "error", None, message="old", run_id="y", minute=9))])

    def check():
        found = {key: (stored.status, stored.score) for key, stored in store.stored().items()}
        assert found["a"] == ("ok", 0.2)
        assert found["b"] == ("ok", 0.7)
        assert store.trials().set_index("key")["message"]["c"] == "new"

    check()
    store.compact()
    check()


def test_which_of_several_rows_of_one_run_counts_does_not_depend_on_the_order_of_parts(store, tmp_path):
    recorded_runs(store, "y")
    same = [trial(key, run_id="y", inner=-1) for key in "abcde"]
    other = [{"score": 0.6}, {"message": "x"}, {"n_sv": 7}, {"param_C": "4"}, {"started_at": START}]
    rows = [same, [row | columns for row, columns in zip(same, other, strict=True)]]
    rows[1].append(trial("f", "error", None, run_id="y"))
    rows[0].append(trial("f", "timeout", None, run_id="y"))
    found = []
    for number, order in enumerate(([0, 1], [1, 0, 0])):
        ordered = Store(tmp_path / f"order{number}" / "s")
        shutil.copytree(store.folder, ordered.folder)
        for place in order:
            ordered.append([records(*rows[place])])
        for _ in range(2):
            frame = ordered.trials()
            found.append(frame[sorted(frame)])
            few = frame[["key", "status", "score"]].itertuples(index=False, name=None)
            known = [(key, StoredTrial(*trial)) for key, *trial in few]
            assert repr(sorted(ordered.stored().items())) == repr(sorted(known))
            n_sv = {key: row["n_sv"] for key, row in ordered.refits().items()}
            assert n_sv == frame[frame.inner == -1].set_index("key")["n_sv"].replace({pd.NA: None}).to_dict()
            ((_, told),) = ordered.scan(lambda scan: scan.summaries(bool) or [*scan.rows(set())])
            scanned = zip(told.keys, told.statuses, told.messages, strict=True)
            few = frame[["key", "status", "message"]].itertuples(index=False, name=None)
            assert sorted(scanned) == sorted(few)
            ordered.compact()
    for frame in found:
        pd.testing.assert_frame_equal(frame, found[0])


def test_runs_are_numbered_in_the_order_in_which_they_are_recorded(store):
    recorded_runs(store, "b", "c", "a")
    assert [run["run_id"] for run in store.provenance()] == ["b", "c", "a"]
    assert store.next_run_number() == 4


def test_a_failed_trial_has_no_score(store):
    store.append([records(trial("a", "error", None), trial("b", "timeout", 0.25))])
    assert pd.isna(store.stored()["a"].score)
    assert store.stored()["b"].score == 0.25


def test_refits_are_found_by_key(store):
    store.append([records(trial("a"), trial("r", inner=-1, n_sv=3))])
    assert store.refits().keys() == {"r"}
    assert store.refits()["r"]["n_sv"] == 3


# -- compaction ----------------------------------------------------------------------------------


def test_compaction_leaves_one_part_with_every_key_once(store):
    for number in range(6):
        store.append([records(trial(f"k{number % 4}"), trial(f"only{number}"))])
    before = store.trials()
    store.compact()
    assert len(parts(store)) == 1
    pd.testing.assert_frame_equal(store.trials(), before)
    assert pq.read_metadata(parts(store)[0]).num_rows == len(before)


def test_a_compaction_killed_half_way_loses_nothing_and_doubles_nothing(store, monkeypatch):
    for number in range(5):
        store.append([records(trial(f"k{number}"))])
    before = store.trials()
    killed_at = parts(store)[2]
    unlink = type(killed_at).unlink

    def die(path, *arguments, **options):
        if path == killed_at:
            raise SystemExit("killed")
        unlink(path, *arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(type(killed_at), "unlink", die)
        with pytest.raises(SystemExit):
            store.compact()
    assert len(parts(store)) == 4
    pd.testing.assert_frame_equal(store.trials(), before)
    store.compact()
    assert len(parts(store)) == 1
    pd.testing.assert_frame_equal(store.trials(), before)


def test_a_running_study_merges_its_small_parts_only(store, monkeypatch):
    monkeypatch.setattr("orchestrator.store.store._SMALL_PART_BYTES", 20_000)
    store.append([records(*(trial(os.urandom(16).hex()) for _ in range(2_000)))])
    (large,) = parts(store)
    for number in range(3):
        store.append([records(trial(f"k{number}"))])
    store.compact(everything=False)
    assert large in parts(store)
    assert len(parts(store)) == 2
    assert len(keys(store)) == 2_003


COMPACT = """
import sys
from pathlib import Path
from types import SimpleNamespace
from orchestrator.store.store import Store
store = Store(Path(sys.argv[1]))
for round in range(30):
    table = store._trials()
    for start in range(0, 8, 2):
        store._write_part(table.slice(start, 2))
    store.compact()
"""


def test_rows_of_runs_without_a_record_are_merged(store):
    for key in ("a", "b"):
        store.append([records(trial(key, run_id="nowhere"))])
    store.compact()
    assert len(parts(store)) == 1


def test_a_large_part_is_read_from_its_file_and_its_damage_is_named(store, monkeypatch):
    store.append([records(trial("a"))])
    monkeypatch.setattr(files, "_LARGE", 0)
    assert keys(store) == ["a"]
    (part,) = parts(store)
    content = bytearray(part.read_bytes())
    content[len(content) // 2] ^= 1
    part.write_bytes(content)
    with raises(DamageError, "checksum"):
        store.stored()


def test_a_reader_sees_whole_tables_while_a_writer_compacts(store):
    store.append([records(*(trial(f"k{number}") for number in range(8)))])
    with subprocess.Popen([sys.executable, "-c", COMPACT, store.folder]) as writer:
        reads = [len(store.stored())]
        while writer.poll() is None:
            reads.append(len(store.stored()))
    assert writer.returncode == 0
    assert set(reads) == {8}
    assert len(reads) > 5


# -- columns that come, go and change ------------------------------------------------------------


def test_numbers_and_words_in_one_parameter_become_words(store):
    store.append([records(trial("a", param_degree=3), trial("b", param_degree=None))])
    store.append([records(trial("c", param_degree="auto"), trial("d", param_degree=3.0))])
    for _ in range(2):
        found = store.trials().set_index("key")["param_degree"]
        assert found[["a", "c", "d"]].to_list() == ["3", "auto", "3"]
        assert pd.isna(found["b"])
        store.compact()


def test_truth_and_other_values_are_text(store):
    store.append([records(trial("a", param_flag=True, param_x=[1, 2]), trial("b", param_flag=False))])
    found = store.trials().set_index("key")
    assert found["param_flag"].to_dict() == {"a": "true", "b": "false"}
    assert found["param_x"]["a"] == "[1,2]"


def test_derived_tables_hold_parameters_of_any_kind(store):
    store.write_outer([trial("a", param_gamma="scale"), trial("b", param_gamma=0.5)])
    store.write_selections([{"outer": 0, "param_flag": True}, {"outer": 1, "param_C": 1}])
    assert [row["param_gamma"] for row in store.outer_rows()] == ["scale", "0.5"]
    assert [(row["param_flag"], row["param_C"]) for row in store.selection_rows()] == [
        ("true", None),
        (None, 1),
    ]
    store.write_selections([])
    assert store.selection_rows() == []


def test_arms_with_other_parameters_leave_theirs_empty(store):
    store.append([records(trial("a", param_C=1))])
    store.append([records(trial("b", param_nu=0.5))])
    frame = store.trials().set_index("key")
    assert frame["param_nu"]["b"] == 0.5
    assert pd.isna(frame["param_nu"]["a"])


def test_a_part_of_an_older_schema_lacks_columns_and_is_read(store):
    names = {"key": ["old"], "identity": ["i"], "dataset": ["iris"], "solver": ["svc"], "status": ["ok"]}
    table = pa.table(names | {"score": [0.5], "outer": pa.array([0], pa.int64()), "inner": [0]})
    pq.write_table(table, store.trials_folder / "part-0.parquet")  # without a version: the first
    assert store.stored().keys() == {"old"}
    store.append([records(trial("new"))])
    assert store.stored().keys() == {"old", "new"}
    assert keys(store) == ["new", "old"]
    store.compact()
    assert keys(store) == ["new", "old"]


def test_a_newer_schema_is_refused_in_one_sentence(store):
    store.append([records(trial("a"))])
    store.append([records(trial("b"))])
    part = parts(store)[1]
    table = pq.read_table(part)
    part = part.rename(part.with_name("part-newer.parquet"))
    newer = {b"svmbench_schema_version": str(SCHEMA_VERSION + 1).encode()}
    pq.write_table(table.replace_schema_metadata(newer), part)
    for read in (store.stored, store.trials, store.compact, partial(read_results, store)):
        with pytest.raises(StoreError) as refusal:
            read()
        sentence = str(refusal.value)
        assert str(part) in sentence
        assert_says(sentence, f"{SCHEMA_VERSION}", f"{SCHEMA_VERSION + 1}")
        assert_says(sentence, "upgrade svmbench", "another study name")
        assert "\n" not in sentence


# -- one writer ----------------------------------------------------------------------------------

HOLD = """
import sys, time
from pathlib import Path
from types import SimpleNamespace
from orchestrator.store.store import Store
with Store(Path(sys.argv[1])).lock():
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def holder(store):
    with subprocess.Popen([sys.executable, "-c", HOLD, store.folder], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout.readline() == b"held\n"
            yield process
        finally:
            process.kill()


def test_a_second_writer_is_told_who_the_first_is_and_gets_in_when_it_is_killed(store, holder):
    with raises(StoreError, "study 's'", f"process {holder.pid}", "study=NAME"):
        store.lock()
    holder.kill()
    holder.wait()
    store.lock().release()


def test_a_lock_is_held_once_and_until_its_block_ends(store):
    with store.lock() as lock:
        for other in (store, Store(store.folder)):
            with raises(StoreError, "'s'", f"process {os.getpid()}", "study=NAME"):
                other.lock()
    with store.lock() as second:
        assert lock is not second


@pytest.mark.parametrize("make", ["link", "hard link"])
def test_the_holder_is_not_written_through_a_link(store, tmp_path, make):
    target = tmp_path / "precious"
    target.write_text("mine")
    path = store.folder / ".lock-holder"
    path.unlink()
    path.symlink_to(target) if make == "link" else os.link(target, path)
    store.lock().release()
    assert target.read_text() == "mine"
    assert path.read_text().startswith(f"process {os.getpid()} ")


def test_a_lock_that_is_a_link_is_named_and_set_aside(store, tmp_path):
    target = tmp_path / "precious"
    target.write_text("mine")
    path = store.folder / ".lock"
    path.unlink()
    path.symlink_to(target)
    with raises(DamageError, "s/.lock", "damaged", "svmbench repair") as refusal:
        store.lock()
    assert refusal.value.path == path
    assert repair(store)
    store.lock().release()
    assert target.read_text() == "mine"
    assert not path.is_symlink()


def test_a_lock_that_cannot_be_signed_is_not_held(store):
    path = store.folder / ".lock-holder"
    path.unlink()
    path.mkdir()
    with raises(DamageError, ".lock-holder", "damaged", "Is a directory") as refusal:
        store.lock()
    assert repair(store), refusal  # the error, and all that it refers to, is still alive
    store.lock().release()


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


def test_what_a_killed_writer_left_is_removed_by_the_next_one(store):
    for path in (".outer.parquet.1234.tmp", "trials/.part-1.parquet.1234.tmp", "provenance/.x.json.1.tmp"):
        (store.folder / path).parent.mkdir(exist_ok=True)
        (store.folder / path).write_text("half")
    assert keys(store) == []  # a reader leaves them alone, for their writer may be alive
    assert len(list(store.folder.rglob(".*.tmp"))) == 3
    with store.lock() as lock:
        assert len(lock.removed) == 3
    assert not list(store.folder.rglob(".*.tmp"))


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


def test_readers_need_no_lock(store, holder):
    assert store.trials().empty


# -- disks that fail -----------------------------------------------------------------------------


def test_a_results_folder_that_is_a_file_is_named(tmp_path):
    (tmp_path / "results").write_text("")
    with raises(StoreError, "results", "folder", "results/s", "paths.results=DIR"):
        Store(tmp_path / "results" / "s").lock()


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes to read-only folders")
def test_a_read_only_results_folder_is_named(tmp_path):
    tmp_path.chmod(0o500)
    try:
        with raises(StoreError, "Permission denied", "paths.results=DIR"):
            Store(tmp_path / "s").lock()
    finally:
        tmp_path.chmod(0o700)


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


# -- records of runs ---------------------------------------------------------------------------


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


def test_a_study_that_is_not_there_is_told_with_those_that_are(store):
    results = store.folder.parent
    with raises(StoreError, "study 'x'", store.folder.name, "svmbench studies"):
        load_study("x", results)
    with raises(StoreError, "no study"):
        load_study("x", results / "empty")


def test_batches_with_the_same_constants_are_stored_as_one():
    first, second = Records({"study": "s"}, {"key": ["a"]}), Records({"study": "s"}, {"key": ["b", "c"]})
    other, wider = (
        Records({"study": "t"}, {"key": ["d"]}),
        Records({"study": "t"}, {"key": ["e"], "score": [1.0]}),
    )
    found = [(records.constants, records.columns) for records in merged([first, second, other, wider])]
    assert found == [
        ({"study": "s"}, {"key": ["a", "b", "c"]}),
        ({"study": "t"}, {"key": ["d"]}),
        ({"study": "t"}, {"key": ["e"], "score": [1.0]}),
    ]
    assert first.columns == {"key": ["a"]}


def test_parts_that_lack_columns_are_joined_with_gaps():
    joined = Records.joined({}, [{"key": ["a", "b"], "n_sv": [1, 2]}, {"key": ["c"], "score": [0.5]}])
    assert joined.columns == {"key": ["a", "b", "c"], "n_sv": [1, 2, None], "score": [None, None, 0.5]}
    assert len(joined) == 3


def test_lists_keep_their_dictionaries_and_large_parts_their_groups():
    numbers = np.random.default_rng(0).integers(0, 3, (500, 1000)).astype(np.int32)
    table = pa.table({"test_row": pa.array(list(numbers), pa.list_(pa.int32()))})
    file = io.BytesIO()
    arrow_tables.write_table(file, table)
    column = pq.ParquetFile(file).metadata.row_group(0).column(0)
    assert column.has_dictionary_page
    assert [group.num_rows for group in arrow_tables.in_groups([table] * 20)] == [17 * 500, 3 * 500]
