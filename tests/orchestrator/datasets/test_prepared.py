import json
import multiprocessing
import re
import shutil

import numpy as np
import pytest
import scipy.sparse

from orchestrator.datasets import DatasetError, checked_files, load, open_prepared, prepare
from orchestrator.datasets.loading import Dataset
from orchestrator.study.study import DatasetSpec
from tests.messages import raises

CHECKERS = DatasetSpec("checkers", "orchestrator.datasets.checkers", {"n": 300})


def libsvm_spec(folder):
    X = scipy.sparse.random(60, 50, 0.05, format="csr", rng=0)
    lines = (
        " ".join([str(i % 3), *(f"{j + 1}:{float(X[i, j])}" for j in X[i].indices)])
        for i in range(X.shape[0])
    )
    (folder / "sparse.libsvm").write_text("\n".join(lines))
    params = {"name": "sparse", "folder": str(folder), "n_features": 50}
    return DatasetSpec("sparse", "orchestrator.datasets.libsvm_file", params)


@pytest.fixture(params=["dense", "sparse"])
def dataset(request, tmp_path):
    return load(CHECKERS if request.param == "dense" else libsvm_spec(tmp_path))


def assert_same(found: Dataset, expected: Dataset):
    assert (found.name, found.fingerprint) == (expected.name, expected.fingerprint)
    assert scipy.sparse.issparse(found.X) == scipy.sparse.issparse(expected.X)
    dense = [X.toarray() if scipy.sparse.issparse(X) else X for X in (found.X, expected.X)]
    assert np.array_equal(*dense)
    assert np.array_equal(found.y, expected.y)
    assert found.codes.dtype == np.int32


def test_a_prepared_dataset_opens_as_read_only_views_of_its_files(dataset, tmp_path):
    folder = prepare(dataset, tmp_path / "cache")
    found = open_prepared(folder)
    assert_same(found, dataset)
    values = found.X.data if scipy.sparse.issparse(found.X) else found.X
    assert type(values) is np.ndarray
    assert not values.flags.owndata
    assert not values.flags.writeable
    rows = np.array([5, 3, 3])
    assert not (found.X[rows] != dataset.X[rows]).sum()
    if scipy.sparse.issparse(found.X):
        assert found.X.indices.dtype == found.X.indptr.dtype == np.int32


def test_preparing_again_writes_nothing(dataset, tmp_path):
    folder = prepare(dataset, tmp_path)
    times = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
    assert prepare(dataset, tmp_path) == folder
    assert {path: path.stat().st_mtime_ns for path in folder.iterdir()} == times


@pytest.mark.parametrize(
    "labels", [[3, 1, 2], [0.5, 1.0, 2.5], [True, False, True], ["b", "a c", "ä/\n"]], ids=str
)
def test_labels_keep_their_type(labels, tmp_path):
    base = load(CHECKERS)
    classes = np.unique(labels)
    dataset = Dataset("a/b c", base.X, classes, base.codes % len(classes), "f" * 64)
    found = open_prepared(prepare(dataset, tmp_path))
    assert found.classes.tolist() == classes.tolist()
    assert found.classes.dtype.kind == classes.dtype.kind
    assert found.name == "a/b c"


@pytest.mark.filterwarnings("ignore:dataset .* was damaged")
def test_a_damaged_folder_is_rebuilt_whatever_was_damaged(dataset, tmp_path):
    folder = prepare(dataset, tmp_path)
    rng = np.random.default_rng(0)
    for name in sorted(path.name for path in folder.iterdir()):
        whole = (folder / name).read_bytes()
        damages = [None, b"", whole[: len(whole) // 2], whole[:-1]]
        for position in rng.integers(len(whole), size=20):
            flipped = bytes([whole[position] ^ int(rng.integers(1, 256))])
            damages.append(whole[:position] + flipped + whole[position + 1 :])
        for damage in damages:
            (folder / name).unlink()
            if damage is not None:
                (folder / name).write_bytes(damage)
            assert prepare(dataset, tmp_path) == folder
            assert_same(open_prepared(folder), dataset)
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(f".{folder.name}.")] == [
        f".{folder.name}.lock"
    ]


def test_a_missing_or_torn_folder_is_refused_by_readers(dataset, tmp_path):
    folder = prepare(dataset, tmp_path)
    (folder / "codes.npy").write_bytes((folder / "codes.npy").read_bytes()[:100])
    for path in (folder, tmp_path / "nowhere"):
        with raises(DatasetError, "missing", "damaged"):
            open_prepared(path)


def test_data_that_changed_on_disk_is_another_dataset(tmp_path):
    spec = libsvm_spec(tmp_path)
    before = prepare(load(spec), tmp_path / "cache")
    path = tmp_path / "sparse.libsvm"
    path.write_text(path.read_text().replace("0 ", "1 ", 1))
    after = prepare(load(spec), tmp_path / "cache")
    assert before != after
    assert open_prepared(before).fingerprint != open_prepared(after).fingerprint


def test_the_same_content_under_two_names_is_kept_under_both(tmp_path):
    first, second = (load(DatasetSpec(name, CHECKERS.target, CHECKERS.params)) for name in ("one", "two"))
    assert first.fingerprint == second.fingerprint
    assert [open_prepared(prepare(item, tmp_path)).name for item in (first, second)] == ["one", "two"]


def _prepare_many(cache):
    for _ in range(5):
        assert open_prepared(prepare(load(CHECKERS), cache)).X.shape == (300, 2)


def test_writers_at_the_same_time_leave_one_whole_folder(tmp_path):
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        pool.map(_prepare_many, [tmp_path] * 4)
    folders = [path for path in tmp_path.iterdir() if path.is_dir()]
    assert len(folders) == 1
    assert_same(open_prepared(folders[0]), load(CHECKERS))


def test_open_maps_survive_the_removal_of_their_folder(tmp_path):
    dataset = load(CHECKERS)
    folder = prepare(dataset, tmp_path)
    found = open_prepared(folder)
    shutil.rmtree(folder)
    assert_same(found, dataset)


def test_a_cache_that_cannot_be_written_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with raises(DatasetError, "dataset 'checkers'", "space", "paths.cache"):
        prepare(load(CHECKERS), tmp_path / "file")


def flipped(path, rng, first=0):
    """Flip a random bit of a file in place, as memory or a disk does: maps of the file see it."""
    content = path.read_bytes()
    place = int(rng.integers(first, len(content)))
    with open(path, "r+b") as file:
        file.seek(place)
        file.write(bytes([content[place] ^ 1 << int(rng.integers(8))]))
    return place


def test_rows_that_are_damaged_after_opening_are_found_when_they_are_checked(dataset, tmp_path):
    folder, rng = prepare(dataset, tmp_path), np.random.default_rng(0)
    names = ["data", "indices"] if scipy.sparse.issparse(dataset.X) else ["X"]
    for name in names * 20:
        found = open_prepared(folder)
        found.require_intact()
        whole = (folder / f"{name}.npy").read_bytes()
        flipped(folder / f"{name}.npy", rng, first=128)
        with pytest.raises(DatasetError, match=rf"{re.escape(str(folder))} .*{name}\.npy"):
            found.require_intact(np.arange(found.X.shape[0]))
        with pytest.raises(DatasetError):
            found.require_intact()
        with open(folder / f"{name}.npy", "r+b") as file:
            file.write(whole)
        found.require_intact()


def test_only_blocks_that_hold_the_rows_are_checked(tmp_path, monkeypatch):
    monkeypatch.setattr(checked_files, "BLOCK", 4096)
    X = np.random.default_rng(0).random((4000, 3))
    codes = np.arange(4000, dtype=np.int32) % 2
    folder = prepare(Dataset("large", X, np.array([0, 1]), codes, "f" * 64), tmp_path)
    found = open_prepared(folder)
    changed = flipped(folder / "X.npy", np.random.default_rng(1), first=128)
    row = (changed - 128) // 24
    per_block = 4096 // 24 + 2
    for rows in (np.array([row]), np.array([3999, row, 0]), np.arange(4000)):
        with pytest.raises(DatasetError, match=r"X\.npy"):
            found.require_intact(rows)
    far = np.array([each for each in range(4000) if abs(each - row) > per_block])
    found.require_intact(far)
    found.require_intact(far[:0])


@pytest.mark.parametrize("size", [0, 1, 4095, 4096, 4097, 3 * (1 << 19), 3 * (1 << 19) + 5])
def test_every_flipped_bit_and_every_word_that_moved_changes_a_checksum(size, tmp_path):
    rng = np.random.default_rng(size)
    content = rng.bytes(size)
    sums = checked_files.write_bytes(tmp_path / "file", content)
    assert checked_files.read_bytes(tmp_path / "file", sums) == content
    assert sums.size == size
    for _ in range(50 if size else 0):
        flipped(tmp_path / "file", rng)
        with pytest.raises(ValueError, match="file"):
            checked_files.read_bytes(tmp_path / "file", sums)
        (tmp_path / "file").write_bytes(content)
    for one, other in rng.integers(0, size // 8, (50, 2)) * 8 if size > 8 else ():
        moved = bytearray(content)
        moved[one : one + 8], moved[other : other + 8] = content[other : other + 8], content[one : one + 8]
        (tmp_path / "file").write_bytes(moved)
        if moved != content:
            with pytest.raises(ValueError, match="file"):
                checked_files.read_bytes(tmp_path / "file", sums)


def test_a_damaged_copy_is_said_and_one_of_an_older_version_is_not(dataset, tmp_path, recwarn):
    folder = prepare(dataset, tmp_path)
    meta = json.loads((folder / "meta.json").read_text())
    (folder / "meta.json").write_text(json.dumps({key: meta[key] for key in meta if key != "checksum"}))
    assert prepare(dataset, tmp_path) == folder
    assert not recwarn
    flipped(folder / "codes.npy", np.random.default_rng(0))
    with pytest.warns(UserWarning, match=rf"'{dataset.name}'.*{re.escape(str(folder))}.*codes\.npy.*again"):
        prepare(dataset, tmp_path)
