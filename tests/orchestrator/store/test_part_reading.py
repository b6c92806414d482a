import os
import random
import socket
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from orchestrator.engine.damage_repair import repair
from orchestrator.engine.load import read_results
from orchestrator.engine.overview import overview
from orchestrator.store import files
from orchestrator.store.columns import SCHEMA_VERSION
from orchestrator.store.files import DamageError
from orchestrator.store.store import StoreError
from orchestrator.study.declaration import Declaration
from tests.messages import assert_says, raises
from tests.orchestrator.store.stored_rows import keys, parts, records, trial


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
