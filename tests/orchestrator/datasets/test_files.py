"""What is not a file of data is refused at once, by every reader, with its whole path."""

import os
import socket
import time
from pathlib import Path

import pytest

from orchestrator.datasets import DatasetError, load_and_prepare
from orchestrator.datasets.files import existing_file
from orchestrator.study.study import DatasetSpec
from tests.messages import raises

READERS = {
    "csv_file": {"label": "y"},
    "arff_file": {"label": "y"},
    "parquet_file": {"label": "y"},
    "npz_file": {},
    "npy_file": {},
}


def socket_at(path):
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))


KINDS = {
    "pipe": (os.mkfifo, "pipe"),
    "socket": (socket_at, "socket"),
    "device": (lambda path: path.symlink_to("/dev/zero"), "device"),
    "kernel": (lambda path: path.symlink_to("/proc/self/status"), "kernel"),
    "waits": (lambda path: path.symlink_to("/proc/kmsg"), "kernel"),
    "sys": (lambda path: path.symlink_to("/sys/kernel/mm/transparent_hugepage/enabled"), "kernel"),
    "empty": (Path.touch, "empty"),
    "folder": (Path.mkdir, "folder"),
    "nothing": (lambda path: None, "no file"),
    "loop": (lambda path: path.symlink_to(path), "cannot read"),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reader", READERS)
def test_what_is_no_file_of_data_is_refused_at_once(reader, kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make, word = KINDS[kind]
    make(Path("odd"))
    if kind == "sys" and not Path("odd").exists():
        pytest.skip("this system has no such file")
    spec = DatasetSpec("d", f"orchestrator.datasets.{reader}", {"path": "odd", **READERS[reader]})
    start = time.monotonic()
    with pytest.raises(DatasetError) as refusal:
        load_and_prepare(spec, tmp_path / "cache")
    assert time.monotonic() - start < 5
    assert word in str(refusal.value)
    assert str(tmp_path / "odd") in str(refusal.value)


def test_a_file_that_may_not_be_read_is_named(tmp_path):
    file = tmp_path / "t.csv"
    file.write_text("x,y\n1,2\n")
    file.chmod(0)
    if os.access(file, os.R_OK) and os.geteuid() != 0:
        pytest.skip("this system lets everybody read it")
    read, write = os.pipe()
    if (child := os.fork()) == 0:  # root may read everything, so ask as nobody
        try:
            for folder in (tmp_path, *tmp_path.parents[:2]):
                folder.chmod(0o755)
            if os.geteuid() == 0:
                os.setresuid(65534, 65534, 65534)
            existing_file(file)
        except DatasetError as error:
            os.write(write, str(error).encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    os.close(write)
    with os.fdopen(read) as answer:
        text = answer.read()
    assert "permission" in text.lower()
    assert str(file) in text


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/dev/zero")])
def test_a_libsvm_name_of_a_pipe_is_refused_at_once(make, tmp_path):
    make(tmp_path / "a.libsvm")
    spec = DatasetSpec("a", "orchestrator.datasets.libsvm_file", {"name": "a", "folder": str(tmp_path)})
    with raises(DatasetError, "a.libsvm"):
        load_and_prepare(spec, tmp_path / "cache")


def test_a_plus_is_a_number_in_libsvm_files(tmp_path):
    (tmp_path / "a.libsvm").write_text("+1 1:1\n1 1:2\n-1 1:3\n")
    from orchestrator.datasets import libsvm_file

    assert libsvm_file("a", tmp_path)[1].tolist() == [1, 1, -1]
