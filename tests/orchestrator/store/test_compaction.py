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
