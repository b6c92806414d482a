"""What is in the place of a study's folders: named, never followed, and the study is still found."""

import errno
import os
import re
import shutil
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

from orchestrator import load_study
from orchestrator.engine.damage_repair import repair
from orchestrator.store.files import DamageError, StoreError
from orchestrator.store.store import Store
from orchestrator.store.study_folders import study_folders
from orchestrator.study.records import Records
from tests.messages import raises

ROW = {"key": "a", "identity": "i", "dataset": "iris", "solver": "svc", "outer": 0, "inner": 0}


@pytest.fixture
def store(tmp_path):
    store = Store(tmp_path / "results" / "s")
    with store.lock():
        store.write_provenance("r", {"started_at": datetime.now(UTC).isoformat()})
        store.append([Records.of({"status": "ok", "run_id": "r"}, [ROW])])
        (store.folder / "logs").mkdir()
    return store


def load(store):
    return load_study("s", store.folder.parent)


@pytest.mark.parametrize("make", [os.mkfifo, Path.touch, lambda path: path.symlink_to("nowhere")])
def test_no_folder_in_the_place_of_the_trials_is_named_and_set_aside(store, make):
    shutil.rmtree(store.trials_folder)
    make(store.trials_folder)
    for use in (partial(load, store), store.lock):
        with raises(DamageError, "s/trials", "damaged", "svmbench repair"):
            use()
    assert "s/trials is damaged" in repair(store)[0]
    assert load(store).trials.empty
    store.lock().release()


def test_a_study_without_trials_is_found(store):
    shutil.rmtree(store.trials_folder)
    assert load(store).provenance[0]["run_id"] == "r"
    with raises(StoreError, "study 'x'"):
        load_study("x", store.folder.parent)


def test_a_folder_that_this_user_may_not_read_hides_no_study(store, monkeypatch):
    def lstat(path, plain=Path.lstat):
        if path.parent.name == "lost+found":
            raise PermissionError(errno.EACCES, "Permission denied")
        return plain(path)

    monkeypatch.setattr(Path, "lstat", lstat)
    (store.folder.parent / "lost+found").mkdir()
    assert study_folders(store.folder.parent) == [store.folder]
    with raises(StoreError, "no study 'x'", "contains s"):
        load_study("x", store.folder.parent)


@pytest.mark.parametrize("name", ["trials", "provenance", "logs"])
def test_a_link_to_a_folder_of_others_is_not_followed(store, tmp_path, name):
    others = tmp_path / "others"
    shutil.move(store.folder / name, others)
    (others / ".precious.tmp").write_text("mine")
    before = sorted(others.iterdir())
    (store.folder / name).symlink_to(others)
    for use in [partial(repair, store), store.lock, *([partial(load, store)] if name != "logs" else [])]:
        with raises(StoreError, f"s/{name}", "link"):
            use()
    assert sorted(others.iterdir()) == before
    assert (store.folder / name).is_symlink()


@pytest.mark.parametrize("make", [Path.touch, lambda path: path.symlink_to("../../others")])
def test_repair_moves_nothing_to_what_is_not_its_folder(store, tmp_path, make):
    (tmp_path / "others").mkdir()
    make(store.folder / "damaged")
    assert repair(store) == []
    (part,) = store.trials_folder.iterdir()
    part.write_bytes(b"")
    with raises(StoreError, "s/damaged", "folder"):
        repair(store)
    assert part.exists()
    assert not list((tmp_path / "others").iterdir())


def test_repair_looks_at_nothing_behind_a_linked_report(store, tmp_path):
    (tmp_path / "others/tables").mkdir(parents=True)
    os.mkfifo(tmp_path / "others/tables/precious")
    (store.folder / "report").symlink_to(tmp_path / "others")
    (done,) = repair(store)
    assert done.startswith(f"{store.folder}/report is damaged")
    assert (tmp_path / "others/tables/precious").exists()


AS_NOBODY = """
import os, sys
from pathlib import Path
from orchestrator.engine.damage_repair import repair
from orchestrator.store.store import Store
os.setgroups([]), os.setresgid(*[65534] * 3), os.setresuid(*[65534] * 3)
try:
    repair(Store(Path(sys.argv[1])))
except Exception as error:
    print(type(error).__name__, error)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start a process as another user")
def test_what_belongs_to_another_user_is_not_called_damaged(store):
    next(store.trials_folder.iterdir()).write_bytes(b"")
    sentences = {
        "s": "Permission denied; choose a writable one with paths.results=DIR",
        "s/.lock": "cannot write .*lock: Permission denied",
        "s/trials": "cannot move .*trials/part.*: Permission denied.*both folders writable",
    }
    with tempfile.TemporaryDirectory() as folder:  # a test's own folder is closed to others
        os.chmod(folder, 0o755)
        shutil.copytree(store.folder, Path(folder) / "s")
        for name, sentence in sentences.items():
            command = [sys.executable, "-c", AS_NOBODY, f"{folder}/s"]
            found = subprocess.run(command, capture_output=True, text=True)
            assert re.match(f"StoreError .*{sentence}", found.stdout), found
            (Path(folder) / name).chmod(0o777)


WITHOUT_THREADS = """
import os, resource, sys
from pathlib import Path
from orchestrator.store.store import Store

os.setgid(65534)
os.setuid(65534)
resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))
store = Store(Path(sys.argv[1]))
print(*sorted(store.stored()), len(store.refits()), store.predictions().num_rows)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start a process as another user")
def test_a_process_that_can_start_no_thread_reads_what_is_stored(store):
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        shutil.copytree(store.folder, Path(folder) / "s")
        command = [sys.executable, "-c", WITHOUT_THREADS, f"{folder}/s"]
        found = subprocess.run(command, capture_output=True, text=True)
        assert (found.stdout.split(), found.stderr) == ([*sorted(store.stored()), "0", "0"], "")
