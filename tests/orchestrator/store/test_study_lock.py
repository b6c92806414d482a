import os
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.engine.damage_repair import repair
from orchestrator.store.files import DamageError, remove_temporaries
from orchestrator.store.store import Store, StoreError
from tests.messages import raises
from tests.orchestrator.store.stored_rows import keys

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


def test_a_writer_that_starts_at_the_same_time_is_told_of_the_other(store, holder, monkeypatch):
    touch = Path.touch

    def touched(path, **options):
        touch(path, **options)
        remove_temporaries(store.folder)  # as the other one does, which has the lock

    monkeypatch.setattr(Path, "touch", touched)
    with raises(StoreError, "study 's'", f"process {holder.pid}", "study=NAME"):
        store.lock()


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


def test_what_a_killed_writer_left_is_removed_by_the_next_one(store):
    for path in (".outer.parquet.1234.tmp", "trials/.part-1.parquet.1234.tmp", "provenance/.x.json.1.tmp"):
        (store.folder / path).parent.mkdir(exist_ok=True)
        (store.folder / path).write_text("half")
    assert keys(store) == []  # a reader leaves them alone, for their writer may be alive
    assert len(list(store.folder.rglob(".*.tmp"))) == 3
    with store.lock() as lock:
        assert len(lock.removed) == 3
    assert not list(store.folder.rglob(".*.tmp"))


def test_readers_need_no_lock(store, holder):
    assert store.trials().empty


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
