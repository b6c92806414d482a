import bz2
import gzip
import lzma
import time

import numpy as np
import pytest
import scipy.sparse
from hypothesis import example, given
from hypothesis import strategies as st
from sklearn.datasets import dump_svmlight_file

from orchestrator.datasets import (
    DatasetError,
    files,
    find_libsvm_file,
    libsvm,
    libsvm_file,
    libsvm_names,
    libsvm_pieces,
    read_libsvm,
)
from orchestrator.datasets.libsvm import _first_broken_line
from tests.messages import raises

TEXT = b"1 1:0.5 3:-2e-3\n-1 2:7\n\n1 # no features\n"
DENSE = np.array([[0.5, 0, -2e-3], [0, 7, 0], [0, 0, 0]])


@pytest.mark.parametrize(
    ("ending", "compress"),
    [
        (".libsvm", bytes),
        ("", bytes),
        (".libsvm.gz", gzip.compress),
        (".libsvm.bz2", bz2.compress),
        (".libsvm.xz", lzma.compress),
    ],
)
def test_a_file_is_found_by_name_and_read(tmp_path, ending, compress):
    (tmp_path / f"toy{ending}").write_bytes(compress(TEXT))
    X, y = libsvm_file("toy", tmp_path)
    assert np.array_equal(X, DENSE)
    assert X.dtype == np.float64
    assert y.tolist() == [1, -1, 1]
    assert y.dtype == np.int64
    assert np.array_equal(read_libsvm(find_libsvm_file("toy", tmp_path))[0], X)
    assert libsvm_file("toy", str(tmp_path), n_features=5)[0].shape == (3, 5)


def test_labels_that_are_not_whole_stay_floats(tmp_path):
    (tmp_path / "toy.libsvm").write_bytes(b"0.5 1:1\r\n-1e0 1:2\r\n")
    assert libsvm_file("toy", tmp_path)[1].tolist() == [0.5, -1.0]


def test_few_non_zeros_stay_sparse(tmp_path):
    for density, kind in ((0.05, scipy.sparse.csr_matrix), (0.2, np.ndarray)):
        X = scipy.sparse.random(200, 40, density, format="csr", rng=0)
        dump_svmlight_file(X, np.arange(200) % 2, str(tmp_path / "toy.libsvm"), zero_based=False)
        found = libsvm_file("toy", tmp_path, n_features=40)[0]
        assert isinstance(found, kind)
        assert np.allclose(found if kind is np.ndarray else found.toarray(), X.toarray(), rtol=1e-14)


BROKEN = [
    (b"one 1:2", "expected a number as the label, found 'one'"),
    (b"1:2 2:3", "expected a number as the label, found '1:2'"),
    (b"nan 1:2", "expected a number as the label, found 'nan'"),
    (b"<html>", "expected a number as the label, found '<html>'"),
    (b"1 2", "expected index:value, found '2'"),
    (b"1 a:2", "expected index:value, found 'a:2'"),
    (b"1 1.5:2", "expected index:value, found '1.5:2'"),
    (b"1 qid:3 1:2", "expected index:value, found 'qid:3'"),
    (b"1 1_0:2", "expected index:value, found '1_0:2'"),
    (b"1 0x3:2", "expected index:value, found '0x3:2'"),
    (b"1 0:2", "expected feature indices from 1, found '0:2'"),
    (b"1 -1:2", "expected index:value, found '-1:2'"),
    (b"1 2:1 1:1", "expected ascending feature indices, found '1:1' after index 2"),
    (b"1 2:1 2:1", "expected ascending feature indices, found '2:1' after index 2"),
    (b"1 1:", "expected a number after the colon, found '1:'"),
    (b"1 1:x", "expected a number after the colon, found '1:x'"),
    (b"1 1:1:1", "expected a number after the colon, found '1:1:1'"),
    (b"1 1:0,5", "expected a number after the colon, found '1:0,5'"),
    (b"1 1,5", "expected index:value, found '1,5'"),
    (b"1 1:1_0", "expected a number after the colon, found '1:1_0'"),
    (b"1 1:inf", "expected a number after the colon, found '1:inf'"),
    (b"1 1:1e999", "expected a number after the colon, found '1:1e999'"),
    (b"1 9:1", r"expected at most 4 features \(n_features\), found '9:1'"),
    (b"1 99999999999999999999:1", "expected feature indices up to 2,147,483,647"),
    (b"1 1:\xff\x00", r"expected a number after the colon, found '1:\\xff\\x00'"),
]


@pytest.mark.parametrize(("line", "message"), BROKEN)
def test_a_broken_line_is_named(tmp_path, line, message):
    path = tmp_path / "toy.libsvm"
    path.write_bytes(b"1 1:1\n# comment\n" + line + b"\n1 1:1\n")
    with pytest.raises(DatasetError, match=rf"toy\.libsvm, line 3: {message}"):
        libsvm_file("toy", tmp_path, n_features=4)
    path.write_bytes(b"1 1:1\n" + line + b"\n1 1:1\n")  # with no comment, of which the fast reader takes none
    with pytest.raises(DatasetError, match=rf"toy\.libsvm, line 2: {message}"):
        libsvm_file("toy", tmp_path, n_features=4)


token = st.text(st.sampled_from("01:.-+e_naif#q,"), max_size=6)
line = st.lists(st.one_of(token, st.sampled_from(["1:2", "2:1", "3:.5", "-1"])), max_size=4).map(" ".join)


@given(st.lists(line, min_size=1, max_size=4))
@example(["1 qid:"])
@example(["1 qi_d:1"])
def test_what_is_read_is_exactly_what_has_no_broken_line(tmp_path_factory, lines):
    text = "\n".join(["1 1:1", *lines]).encode()
    path = tmp_path_factory.getbasetemp() / "fuzz.libsvm"
    path.write_bytes(text)
    problem = _first_broken_line(text, None)
    if problem is None:
        X, y = read_libsvm(path)
        assert X.shape[0] == len(y) == sum(bool(line.partition("#")[0].strip()) for line in lines) + 1
    else:
        with pytest.raises(DatasetError) as caught:
            read_libsvm(path)
        assert problem in str(caught.value)


@pytest.mark.parametrize(
    ("ending", "compress"), [(".xz", lzma.compress), (".gz", gzip.compress), (".bz2", bz2.compress)]
)
def test_unreadable_and_half_downloaded_files_are_refused(tmp_path, ending, compress):
    path = tmp_path / f"toy.libsvm{ending}"
    whole = compress(TEXT * 1000)
    for cut in (len(whole) - 1, len(whole) // 2, 20):
        path.write_bytes(whole[:cut])
        with raises(DatasetError, "toy.libsvm", "fetch it again"):
            libsvm_file("toy", tmp_path)
    path.write_bytes(b"<html>not found</html>")
    with raises(DatasetError, "toy.libsvm", "fetch it again"):
        libsvm_file("toy", tmp_path)
    path.write_bytes(whole[: len(whole) // 2] + b"garbage!" + whole[len(whole) // 2 + 8 :])
    with pytest.raises(DatasetError, match=r"toy\.libsvm"):
        libsvm_file("toy", tmp_path)


@pytest.mark.parametrize("text", [b"", b" \n\n", b"# a comment only\n"])
def test_empty_files_are_refused(tmp_path, text):
    (tmp_path / "toy.libsvm").write_bytes(text)
    with raises(DatasetError, "toy.libsvm", "empty"):
        libsvm_file("toy", tmp_path)


def test_a_tilde_is_the_home_of_the_user(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "toy.libsvm").write_bytes(TEXT)
    assert libsvm_names("~/data") == ["toy"]
    assert np.array_equal(libsvm_file("toy", "~/data")[0], DENSE)


def test_a_missing_file_is_named_with_the_nearest_that_is_there(tmp_path):
    (tmp_path / "satimage.libsvm.xz").write_bytes(b"")
    (tmp_path / "covtype.libsvm").write_bytes(b"")
    (tmp_path / "covtype.libsvm.part").write_bytes(b"")
    assert libsvm_names(tmp_path) == ["covtype", "satimage"]
    assert libsvm_names(tmp_path / "nowhere") == []
    with raises(DatasetError, "satimge.libsvm.xz", "'satimage'", "svmbench data fetch"):
        libsvm_file("satimge", tmp_path)
    with raises(DatasetError, "folder", "paths.data"):
        libsvm_file("satimage", tmp_path / "nowhere")


def test_a_million_values_take_seconds(tmp_path):
    rng = np.random.default_rng(0)
    path = tmp_path / "large.libsvm"
    dump_svmlight_file(
        rng.integers(0, 999, size=(20_000, 50)), rng.integers(2, size=20_000), str(path), zero_based=False
    )
    start = time.process_time()
    X, _ = read_libsvm(path)
    assert X.shape == (20_000, 50)
    assert time.process_time() - start < 5


@pytest.mark.parametrize("size", [1, 40, 10**6])
def test_pieces_give_what_the_whole_gives(size, tmp_path, monkeypatch):
    monkeypatch.setattr(libsvm_pieces, "PIECE", size)
    monkeypatch.setattr(files, "PIECE", 13)
    text = b"-1 1:0.1 3:1e-3\r\n+1\t2:-.5  4:7. \n2.5\n-1 1:3 2:4 3:5.25 4:0\n" * 9
    path = tmp_path / "t.libsvm"
    for ending in (b"", b"1 4:123456789012345678", b"\n"):
        path.write_bytes(text + ending)
        fast, slow = read_libsvm(path, 5), libsvm._read_line_by_line(path, 5)
        assert all(np.array_equal(*each) for each in zip(fast, slow, strict=True))
    path.write_bytes(text.replace(b"+", b""))
    plain = libsvm_pieces.plain_rows(path)
    assert plain is not None
    assert sum(len(part.labels) for part in plain) == 36
    path.write_bytes(text + b"1 1:2 \xff")
    with raises(DatasetError, "line 37", "index:value"):
        read_libsvm(path, 5)
