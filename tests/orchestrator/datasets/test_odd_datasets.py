"""Data that cannot be used are refused in one sentence, in seconds, within the limit of memory."""

import bz2
import gzip
import itertools
import lzma
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import zlib
from pathlib import Path

import numpy as np
import psutil
import pytest
import scipy.sparse

from orchestrator.datasets import DatasetError, libsvm_file, load_and_prepare, open_prepared
from orchestrator.datasets.dataset import fingerprint
from orchestrator.study.study import DatasetSpec
from tests.messages import raises
from tests.orchestrator import odd_datasets
from tests.orchestrator.odd_datasets import REFUSED

ROOT = Path(__file__).parents[3]
LIMIT = 0.2 * 2**30


def refusal_of(spec, cache):
    start = sum(os.times()[:4])
    with pytest.raises(DatasetError) as refusal:
        load_and_prepare(spec, cache, LIMIT)
    assert sum(os.times()[:4]) - start < 10  # of CPU, that of the loader's process included
    text = str(refusal.value)
    assert text.startswith(f"dataset {spec.name!r}: ")
    assert len(text) < 600
    assert text.isprintable()
    assert "Traceback" not in text
    assert " at 0x" not in text
    assert not [path for path in cache.iterdir() if not path.name.endswith(".lock")]
    return text


@pytest.mark.sample(2)
@pytest.mark.parametrize("part", range(4))
def test_odd_data_get_one_sentence(part, tmp_path, capfd):
    """A quarter of the cases in each of four tests."""
    wrong = []
    for name in sorted(REFUSED)[part::4]:
        spec = DatasetSpec(name, f"{odd_datasets.__name__}.make", {"case": name})
        text = refusal_of(spec, tmp_path)
        if not re.search(REFUSED[name][1], text):
            wrong.append(f"{name}: {text}")
    assert not wrong, "\n".join(wrong)
    assert "Traceback" not in "".join(capfd.readouterr())


# -- files ---------------------------------------------------------------------------------------

LINES = b"1 1:1 2:0.5\n2 1:0.5 2:1\n" * 6


def zeros(size):
    """A file of a size that takes no room on the disk."""

    def write(path):
        with open(path, "wb") as file:
            file.truncate(size)

    return write


def bomb(compressor, size):
    """Compressed lines of a size, without ever holding them."""

    def write(path):
        piece = b"1 1:1\n2 1:2\n" * 50_000
        with open(path, "wb") as file:
            for _ in range(size // len(piece)):
                file.write(compressor.compress(piece))
            file.write(compressor.flush())

    return write


def text(content):
    return lambda path: path.write_bytes(content)


FILES = {
    "index_of_two_billion": (".libsvm", text(LINES + b"1 2000000000:1\n"), "fit into"),
    "index_beyond_32_bits": (
        ".libsvm",
        text(LINES + b"1 2147483648:1\n"),
        "line 13: expected feature indices up to",
    ),
    "index_beyond_64_bits": (
        ".libsvm",
        text(LINES + b"1 %d:1\n" % 2**80),
        "line 13: expected feature indices up to",
    ),
    "index_of_many_digits": (
        ".libsvm",
        text(LINES + b"1 " + b"9" * 5000 + b":1\n"),
        "line 13: expected feature indices up to",
    ),
    "large": (".libsvm", zeros(10 * 2**30), "fit into"),
    "of_zeros": (".libsvm", zeros(2**20), "line 1: expected a number"),
    "one_long_line": (".libsvm", text(b"1 " + b"1:1 " * 2**20), "ascending"),
    "of_newlines": (".libsvm", text(b"\n" * 2**20), "is empty"),
    "bomb_xz": (".libsvm.xz", bomb(lzma.LZMACompressor(preset=0), 2**28), "fit into|expands"),
    "bomb_gz": (".libsvm.gz", bomb(zlib.compressobj(9, wbits=31), 2**28), "fit into|expands"),
    "bomb_bz2": (".libsvm.bz2", text(bz2.compress(LINES * 5000) * 200), "fit into|expands"),
    "folder": (".libsvm", lambda path: path.mkdir(), "is a folder"),
    "pipe": (".libsvm", os.mkfifo, "is a named pipe"),
    "dangling_link": (".libsvm", lambda path: path.symlink_to("nowhere"), "found no such file"),
    "link_to_itself": (".libsvm", lambda path: path.symlink_to(path.name), "found no such file"),
    "endless_link": (".libsvm", lambda path: path.symlink_to("/dev/zero"), "is a device"),
    "nul_label": (".libsvm", text(b"\0 1:1\n" + LINES), "line 1: expected a number"),
    "utf_16": (".libsvm", text(LINES.decode().encode("utf-16")), "line 1: expected a number"),
    "half_of_xz": (".libsvm.xz", text(lzma.compress(LINES * 500)[:60]), "broken download"),
    "twice_compressed": (".libsvm.gz", text(gzip.compress(gzip.compress(LINES))), "line 1|failed"),
}


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", FILES)
def test_odd_files_get_one_sentence(name, tmp_path):
    ending, write, sentence = FILES[name]
    write(tmp_path / f"{name}{ending}")
    (tmp_path / "cache").mkdir()
    params = {"name": name, "folder": str(tmp_path)}
    text = refusal_of(DatasetSpec(name, "orchestrator.datasets.libsvm_file", params), tmp_path / "cache")
    assert re.search(sentence, text), text


def test_a_small_file_that_expands_without_end_is_refused_whatever_the_limit(tmp_path):
    bomb(lzma.LZMACompressor(), 2**27)(tmp_path / "small.libsvm.xz")
    assert (tmp_path / "small.libsvm.xz").stat().st_size < 100_000
    with raises(DatasetError, "500"):
        libsvm_file("small", tmp_path)


@pytest.mark.parametrize("number", ["three", 0, -1, 2.5, True, 2**31, [3]])
def test_an_odd_number_of_features_is_refused(number, tmp_path):
    (tmp_path / "toy.libsvm").write_bytes(LINES)
    with raises(DatasetError, "n_features", "whole number", "1"):
        libsvm_file("toy", tmp_path, number)


def test_there_are_enough_of_them():
    assert len(REFUSED) + len(FILES) >= 200


# -- odd data that can be used -------------------------------------------------------------------


def lying_flags():
    matrix = scipy.sparse.csr_matrix(([1.0, 2.0, 3.0, 4.0], [1, 0, 1, 1], [0, 2, 3, 4]), shape=(3, 2))
    matrix.has_sorted_indices = matrix.has_canonical_format = True
    return matrix


def spare_room():
    matrix = scipy.sparse.csr_matrix([[2.0, 1.0], [0.0, 3.0], [0.0, 4.0]])
    matrix.indices = np.append(matrix.indices, [-7, 9]).astype(np.int32)
    matrix.data = np.append(matrix.data, [np.nan, 1.0])
    return matrix


def doubled():
    parts = [1.0, 2.0, 0.5, 0.5, 3.0, 4.0], [1, 0, 1, 1, 1, 1], [0, 2, 5, 6]
    matrix = scipy.sparse.csr_matrix(parts, shape=(3, 2))
    matrix.data[2:5] = [1.0, 1.0, 1.0]
    return matrix


def table():
    return np.array([[2.0, 1.0], [0.0, 3.0], [0.0, 4.0]])


def mapped():
    path = tempfile.NamedTemporaryFile(suffix=".npy")  # noqa: SIM115
    array = np.memmap(path.name, shape=(3, 2), mode="w+")
    array[:] = table()
    return array


def shared_with_labels():
    whole = np.array([[2.0, 1.0, 0.0], [0.0, 3.0, 1.0], [0.0, 4.0, 1.0]])
    return whole[:, :2]


USABLE = {
    "lying_flags": lying_flags,
    "spare_room": spare_room,
    "duplicates": doubled,
    "mapped": mapped,
    "shared": shared_with_labels,
    "fortran": lambda: np.asfortranarray(table()),
    "float16": lambda: table().astype(np.float16),
    "longdouble": lambda: table().astype(np.longdouble),
    "matrix": lambda: np.matrix(table()),
    "objects": lambda: table().astype(object),
    "read_only": lambda: np.broadcast_to(table(), (3, 2)),
    "tuples": lambda: tuple(map(tuple, table().tolist())),
    "big_endian_float32": lambda: table().astype(">f4"),
    "records_of_one_type": lambda: table().view(np.recarray),
}


def usable(case):
    return USABLE[case](), [0, 1, 1]


@pytest.mark.parametrize("name", USABLE)
def test_odd_data_that_can_be_used_are_the_plain_dataset(name, tmp_path):
    spec = DatasetSpec(name, f"{__name__}.usable", {"case": name})
    dataset = open_prepared(load_and_prepare(spec, tmp_path, LIMIT))
    X = dataset.X.toarray() if scipy.sparse.issparse(dataset.X) else dataset.X
    assert X.tolist() == table().tolist()
    assert dataset.y.tolist() == [0, 1, 1]


def changing():
    X = np.zeros((1000, 50))
    threading.Thread(target=lambda: [X.fill(k) for k in itertools.count()], daemon=True).start()
    return X[:, :49], np.arange(1000) % 2


def test_data_that_change_while_they_are_read_are_stored_as_one_reading_of_them(tmp_path):
    spec = DatasetSpec("changing", f"{__name__}.changing")
    dataset = open_prepared(load_and_prepare(spec, tmp_path, LIMIT))
    assert fingerprint(dataset.X, dataset.classes, dataset.codes, {}) == dataset.fingerprint


# -- the process of a loader ---------------------------------------------------------------------


def notes_its_process(path):
    with open(path, "w") as file:
        file.write(str(os.getpid()))
    return table(), [0, 1, 1]


def sleeps(path):
    notes_its_process(path)
    time.sleep(600)


def test_an_interrupted_load_leaves_no_process(tmp_path):
    note, cache = tmp_path / "note", tmp_path / "cache"

    def interrupt():
        while not note.is_file() or not note.read_text():
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # dask_jobqueue sets another on import
    try:
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            load_and_prepare(DatasetSpec("slow", f"{__name__}.sleeps", {"path": str(note)}), cache)
        thread.join()
    finally:
        signal.signal(signal.SIGINT, before)
    assert not psutil.pid_exists(int(note.read_text()))


def test_where_other_threads_run_a_loader_runs_in_their_process(tmp_path):
    note = tmp_path / "note"
    spec = DatasetSpec("toy", f"{__name__}.notes_its_process", {"path": str(note)})
    thread = threading.Thread(target=load_and_prepare, args=(spec, tmp_path))
    thread.start()
    thread.join()
    assert int(note.read_text()) == os.getpid()
    load_and_prepare(spec, tmp_path)
    assert int(note.read_text()) != os.getpid()


def test_a_process_for_a_loader_costs_milliseconds(tmp_path):
    spec = DatasetSpec("checkers", "orchestrator.datasets.checkers", {"n": 50})
    load_and_prepare(spec, tmp_path)
    start = time.process_time()
    for _ in range(20):
        load_and_prepare(spec, tmp_path)
    assert (time.process_time() - start) / 20 < 0.1  # measured: 0.005 of the client


def test_the_command_line_refuses_data_with_a_word_and_exit_status_1(tmp_path):
    folder = tmp_path / "conf" / "dataset"
    folder.mkdir(parents=True)
    cases = {
        "quits": "ended its process",
        "csr_indices_negative": "broken sparse",
        "raises_exit": "SystemExit",
    }
    for name in cases:
        text = f"_target_: {odd_datasets.__name__}.make\ncase: {name}\n"
        (folder / f"{name}.yaml").write_text(text)
    command = [sys.executable, "-m", "orchestrator", "plan", "study=x", f"datasets=[{','.join(cases)}]"]
    command += ["solvers=[libsvm_l1]", "data_memory=0.2", f"--config-dir={folder.parent}"]
    command += [f"paths.cache={tmp_path}/cache", f"paths.results={tmp_path}/results"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 1
    lines = done.stderr.splitlines()
    assert len(lines) == len(cases), done.stderr
    for line, (name, sentence) in zip(lines, cases.items(), strict=True):
        assert re.search(f"^svmbench: dataset '{name}': .*{sentence}", line), line
