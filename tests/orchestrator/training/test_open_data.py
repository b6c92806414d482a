import re
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.datasets import DatasetError, load
from orchestrator.execution import dataset_upload
from orchestrator.study.study import DatasetSpec, Protocol
from orchestrator.training.environment import cache_token
from orchestrator.training.open_data import DataNotHere, load_from_origin, open_data, prepare_data
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


def test_an_upload_that_cannot_be_stored_leaves_nothing(tmp_path, monkeypatch):
    """Several attempts would fill a disk that is almost full, and the next run's as well."""
    monkeypatch.setenv("SVMBENCH_CACHE", str(tmp_path))
    dataset_upload.receive_piece("token", "X.npy", b"all that fits")
    (tmp_path / ".incoming-token" / "codes.npy").mkdir()  # in place of a full disk
    with pytest.raises(OSError, match=r"codes\.npy"):
        dataset_upload.receive_piece("token", "codes.npy", b"x")
    assert not list(tmp_path.iterdir())


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
