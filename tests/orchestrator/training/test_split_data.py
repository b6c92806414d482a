import ctypes
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from orchestrator.datasets import DatasetError, load
from orchestrator.execution import dataset_upload
from orchestrator.study.study import DatasetSpec, Protocol
from orchestrator.training.environment import cache_token
from orchestrator.training.open_data import DataNotHere, load_from_origin, open_data, prepare_data
from orchestrator.training.shared_arrays import checksum, fresh_view, private_copy, read_only, read_only_view
from orchestrator.training.split_data import forget_splits, open_split
from tests.messages import raises

IRIS = DatasetSpec("iris", "sklearn.datasets.load_iris", {"return_X_y": True})


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """A source as the client has it, and as a host with other paths and a cache of its own sees it."""
    monkeypatch.setenv("SVMBENCH_CACHE", str(tmp_path / "worker"))
    source, *_ = prepare_data(IRIS, Protocol(), tmp_path / "client")
    hidden = tmp_path / "not here" / Path(source.folder).name
    return source, replace(source, folder=str(hidden))


def send(source, token="token"):
    for name, piece in dataset_upload.pieces(source):
        dataset_upload.receive_piece(token, name, piece)


def test_a_host_without_the_data_says_so(elsewhere):
    with pytest.raises(DataNotHere, match="iris"):
        open_data(elsewhere[1], Protocol())


def test_what_arrives_in_pieces_is_what_was_sent(elsewhere, tmp_path, monkeypatch):
    monkeypatch.setattr(dataset_upload, "PIECE_BYTES", 1000)
    source, hidden = elsewhere
    send(source)
    dataset_upload.finish_upload("token", hidden)
    dataset, folds = open_data(hidden, Protocol())
    assert dataset.fingerprint == load(IRIS).fingerprint
    assert (dataset.X == load(IRIS).X).all()
    assert folds.hash == source.split_hash
    assert not list((tmp_path / "worker").glob(".incoming-*"))


def test_groups_and_splits_of_any_kind_arrive_with_the_data(tmp_path, monkeypatch):
    monkeypatch.setenv("SVMBENCH_CACHE", str(tmp_path / "worker"))
    spec = replace(IRIS, params={**IRIS.params, "groups": [row // 3 for row in range(150)]})
    by_groups = {"_target_": "sklearn.model_selection.GroupKFold", "n_splits": 3}
    source, _, splits = prepare_data(spec, Protocol(outer=by_groups, inner=by_groups), tmp_path / "client")
    hidden = replace(source, folder=str(tmp_path / "not here" / Path(source.folder).name))
    send(source)
    dataset_upload.finish_upload("token", hidden)
    dataset, found = open_data(hidden, Protocol())
    assert dataset.metadata["groups"].tolist() == spec.params["groups"]
    assert (found.hash, found.n_inner) == (splits.hash, (3, 3, 3))


def test_other_folds_of_a_dataset_join_what_is_there(elsewhere, tmp_path):
    source, hidden = elsewhere
    others, *_ = prepare_data(IRIS, Protocol(seed=1), tmp_path / "client")
    for sent in (source, others):
        send(sent, sent.split_hash)
        dataset_upload.finish_upload(sent.split_hash, replace(sent, folder=hidden.folder))
    for sent in (source, others):
        assert open_data(replace(sent, folder=hidden.folder), Protocol())[1].hash == sent.split_hash


@pytest.mark.parametrize("damage", ["X.npy", "meta.json", "splits"])
def test_damage_on_the_way_is_found(damage, elsewhere, tmp_path):
    source, hidden = elsewhere
    for name, piece in dataset_upload.pieces(source):
        middle = len(piece) // 2
        hurt = piece[:middle] + bytes([piece[middle] ^ 1]) + piece[middle + 1 :]
        dataset_upload.receive_piece("token", name, hurt if name.startswith(damage) else piece)
    with pytest.raises(DatasetError):
        dataset_upload.finish_upload("token", hidden)
    assert not list((tmp_path / "worker").glob("*/X.npy"))
    with pytest.raises(DataNotHere):
        open_data(hidden, Protocol())


def test_the_origin_serves_where_nothing_else_does(elsewhere):
    load_from_origin(elsewhere[1], Protocol())
    dataset, _ = open_data(elsewhere[1], Protocol())
    assert dataset.fingerprint == load(IRIS).fingerprint


def test_an_origin_with_other_data_is_refused(elsewhere):
    other = replace(elsewhere[1], fingerprint="f" * 64)
    with raises(DatasetError, "'iris'", "this host", "paths.cache"):
        load_from_origin(other, Protocol())


def test_a_cache_has_one_token_and_another_cache_another(tmp_path):
    assert cache_token(tmp_path / "a") == cache_token(tmp_path / "a") != cache_token(tmp_path / "b")


# -- damage ------------------------------------------------------------------------------------------


def damage(path):
    """Flip a bit of a file in place; a map of it changes as well."""
    with open(path, "r+b") as file:
        content = bytearray(file.read())
        content[-1] ^= 1
        file.seek(0)
        file.write(content)


def clear():
    open_data.cache_clear()
    forget_splits()


@pytest.fixture
def source(tmp_path):
    clear()
    yield prepare_data(IRIS, Protocol(), tmp_path / "client")[0]
    clear()


def assert_rows_of_iris(source, outer):
    split = open_split(source, Protocol(scaling="none"), outer, -1)
    train, test = open_data(source, Protocol(scaling="none"))[1].train_test(outer)
    assert (split.X_train == load(IRIS).X[train]).all()
    assert (split.X_test == load(IRIS).X[test]).all()
    assert (split.y_test == load(IRIS).y[test]).all()


@pytest.mark.parametrize("name", ["X.npy", "codes.npy", "meta.json", "splits"])
def test_a_copy_that_is_damaged_before_it_is_opened_is_prepared_again(name, source):
    (path,) = Path(source.folder).glob(f"{name}*")
    whole = path.read_bytes()
    damage(path)
    with pytest.warns(UserWarning, match=f"{re.escape(source.folder)}.*again"):
        assert_rows_of_iris(source, 0)
    assert path.read_bytes() == whole


def test_a_copy_that_is_damaged_while_it_is_open_is_prepared_again(source):
    assert_rows_of_iris(source, 0)
    damage(Path(source.folder) / "X.npy")
    with pytest.warns(UserWarning, match=r"'iris'.*X\.npy.*again"):
        assert_rows_of_iris(source, 1)
    assert_rows_of_iris(source, 2)


@pytest.mark.parametrize("scaling", ["train", "dataset"])
def test_scaling_learns_nothing_from_damaged_rows(scaling, source):
    protocol = Protocol(scaling=scaling)
    whole = open_split(source, protocol, 0, 0)
    forget_splits()
    damage(Path(source.folder) / "X.npy")
    with pytest.warns(UserWarning, match="again"):
        assert open_split(source, protocol, 0, 0).checksum() == whole.checksum()


def test_a_damaged_copy_without_a_source_is_refused(source):
    lost = replace(source, spec=DatasetSpec("iris", "nowhere.load"))
    damage(Path(source.folder) / "X.npy")
    with pytest.raises(DatasetError, match=f"'iris'.*{re.escape(source.folder)}.*nowhere"):
        open_split(lost, Protocol(), 0, 0)


def test_a_source_that_has_changed_does_not_take_the_place_of_a_damaged_copy(tmp_path):
    clear()
    (tmp_path / "t.csv").write_text("x,y\n" + "".join(f"{row},{row % 2}\n" for row in range(40)))
    spec = DatasetSpec("t", "orchestrator.datasets.csv_file", {"path": str(tmp_path / "t.csv"), "label": "y"})
    source, *_ = prepare_data(spec, Protocol(), tmp_path / "client")
    (tmp_path / "t.csv").write_text("x,y\n" + "".join(f"{row + 1},{row % 2}\n" for row in range(40)))
    damage(Path(source.folder) / "X.npy")
    with pytest.raises(DatasetError, match=r"'t'.*have changed"):
        open_data(source, Protocol())


def test_a_damaged_copy_that_was_sent_to_a_host_is_sent_again(elsewhere, tmp_path):
    clear()
    source, hidden = elsewhere
    send(source)
    dataset_upload.finish_upload("token", hidden)
    kept = tmp_path / "worker" / Path(source.folder).name
    damage(kept / "X.npy")
    with pytest.raises(DataNotHere):
        open_data(hidden, Protocol())
    send(source, "again")
    dataset_upload.finish_upload("again", hidden)
    assert (open_data(hidden, Protocol())[0].X == load(IRIS).X).all()


DTYPES = [np.float64, np.float32, np.int64, np.int32, np.bool_, np.dtype("<U5")]
ANY_ARRAY = st.sampled_from(DTYPES).flatmap(
    lambda dtype: arrays(dtype, array_shapes(min_dims=1, max_dims=2, min_side=0, max_side=40))
)


def same(A, B):
    return A.dtype == B.dtype and A.shape == B.shape and A.tobytes() == B.tobytes()


def bases(X):
    """Everything that leads to the memory of an array from Python."""
    while X is not None:
        yield X
        X = getattr(X, "base", None) if isinstance(X, np.ndarray) else getattr(X, "obj", None)


@given(ANY_ARRAY)
def test_values_stay_the_same(X):
    shared = read_only(X)
    for Y in (shared, fresh_view(shared), private_copy(shared), fresh_view(read_only_view(X))):
        assert same(X, Y)
    assert private_copy(shared).flags.writeable


@pytest.mark.parametrize("share", [read_only, lambda X: fresh_view(read_only(X))])
def test_no_way_from_python_leads_to_memory_that_can_be_written(share):
    for thing in bases(share(np.arange(12.0).reshape(4, 3))):
        if isinstance(thing, np.ndarray):
            with raises(ValueError, "WRITEABLE"):
                thing.flags.writeable = True
        else:
            assert isinstance(thing, bytes) or thing.readonly


def test_a_view_cannot_be_made_writeable_while_its_owner_goes_on_writing():
    X = np.zeros((4, 3))
    view = fresh_view(read_only_view(X))
    with raises(ValueError, "WRITEABLE"):
        view.flags.writeable = True
    X[1] = 5
    assert (view[1] == 5).all()


def test_what_is_set_on_a_view_stays_its_own():
    shared = read_only(np.arange(12.0).reshape(4, 3))
    view = fresh_view(shared)
    for thing in bases(view):
        assert thing is not shared
    assert same(fresh_view(shared), np.arange(12.0).reshape(4, 3))


def test_sparse_matrices_are_shared_part_by_part():
    X = scipy.sparse.random(30, 20, 0.2, format="csr", random_state=0)
    shared = read_only(X)
    view = fresh_view(shared)
    for name in ("data", "indices", "indptr"):
        assert same(getattr(view, name), getattr(X, name))
        with raises(ValueError, "WRITEABLE"):
            getattr(view, name).flags.writeable = True
    view.data = view.data * 0
    assert (fresh_view(shared) != X).nnz == 0
    copy = private_copy(shared)
    copy.data[:] = 0
    assert (shared != X).nnz == 0


@given(ANY_ARRAY.filter(lambda X: X.nbytes), st.data())
def test_any_changed_byte_changes_the_checksum(X, data):
    shared = read_only(X)
    before = checksum(shared)
    place = data.draw(st.integers(0, X.nbytes - 1))
    flipped = bytearray(shared.tobytes())
    flipped[place] ^= data.draw(st.integers(1, 255))
    assert checksum(shared) == before
    assert checksum(np.ndarray(X.nbytes, np.uint8, buffer=flipped).reshape(-1)) != checksum(
        np.ndarray(X.nbytes, np.uint8, buffer=shared.tobytes())
    )


@pytest.mark.parametrize("shape", [(30, 4), (3000, 40)])
@pytest.mark.parametrize("axis", [0, 1])
def test_values_that_change_places_change_the_checksum(shape, axis):
    X = np.random.default_rng(0).random(shape)
    assert checksum(np.ascontiguousarray(np.flip(X, axis))) != checksum(X)


def test_memory_written_through_a_pointer_is_noticed():
    shared = read_only(np.ones((30, 4)))
    before = checksum(shared)
    ctypes.memset(fresh_view(shared).ctypes.data, 0, 8)
    assert checksum(shared) != before
