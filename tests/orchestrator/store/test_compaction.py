import os
import subprocess
import sys

import pandas as pd
import pyarrow.parquet as pq
import pytest

from tests.orchestrator.store.stored_rows import keys, parts, records, trial


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


def test_rows_of_runs_without_a_record_are_merged(store):
    for key in ("a", "b"):
        store.append([records(trial(key, run_id="nowhere"))])
    store.compact()
    assert len(parts(store)) == 1


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


def test_a_reader_sees_whole_tables_while_a_writer_compacts(store):
    store.append([records(*(trial(f"k{number}") for number in range(8)))])
    with subprocess.Popen([sys.executable, "-c", COMPACT, store.folder]) as writer:
        reads = [len(store.stored())]
        while writer.poll() is None:
            reads.append(len(store.stored()))
    assert writer.returncode == 0
    assert set(reads) == {8}
    assert len(reads) > 5


def cell(identity, n_rows):
    return records(*(trial(f"{identity}{number}", identity=identity) for number in range(n_rows)))


def test_a_large_pair_gets_its_own_part_and_finished_parts_stay_as_they_are(store):
    sizes = {"a": 1500, "b": 1200, "small": 40, "tiny": 5}
    for identity, n_rows in sizes.items():
        store.append([cell(identity, n_rows)])
        store.compact(everything=False)
    before = store.trials()
    store.compact()
    held = {path: {*pq.read_table(path)["identity"].to_pylist()} for path in parts(store)}
    assert sorted(map(sorted, held.values())) == [["a"], ["b"], ["small", "tiny"]]
    pd.testing.assert_frame_equal(store.trials(), before)
    finished = [path for path, names in held.items() if names <= {"a", "b"}]
    store.append([cell("c", 1100)])
    store.append([cell("another", 3)])
    store.compact()
    assert {*finished} < {*parts(store)}
    assert len(parts(store)) == 4
    store.append([records(trial("a one more", identity="a"))])
    store.compact()
    assert len({*finished} & {*parts(store)}) == 1
    assert len(keys(store)) == sum(sizes.values()) + 1100 + 3 + 1


def test_a_part_that_is_full_of_small_pairs_is_finished(store):
    for number in range(30):
        store.append([cell(f"first{number}", 40)])
    store.compact()
    (full,) = parts(store)
    for number in range(3):
        store.append([cell(f"second{number}", 40)])
        store.compact()
    assert full in parts(store)
    assert len(parts(store)) == 2
