from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.datasets import DatasetError, load
from orchestrator.execution import dataset_upload
from orchestrator.study.study import DatasetSpec, Protocol
from orchestrator.training.environment import cache_token
from orchestrator.training.split_data import DataNotHere, load_from_origin, open_data, prepare_data

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
        open_data(elsewhere[1])


def test_what_arrives_in_pieces_is_what_was_sent(elsewhere, tmp_path, monkeypatch):
    monkeypatch.setattr(dataset_upload, "PIECE_BYTES", 1000)
    source, hidden = elsewhere
    send(source)
    dataset_upload.finish_upload("token", hidden)
    dataset, folds = open_data(hidden)
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
    dataset, found = open_data(hidden)
    assert dataset.metadata["groups"].tolist() == spec.params["groups"]
    assert (found.hash, found.n_inner) == (splits.hash, (3, 3, 3))


def test_other_folds_of_a_dataset_join_what_is_there(elsewhere, tmp_path):
    source, hidden = elsewhere
    others, *_ = prepare_data(IRIS, Protocol(seed=1), tmp_path / "client")
    for sent in (source, others):
        send(sent, sent.split_hash)
        dataset_upload.finish_upload(sent.split_hash, replace(sent, folder=hidden.folder))
    for sent in (source, others):
        assert open_data(replace(sent, folder=hidden.folder))[1].hash == sent.split_hash


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
        open_data(hidden)


def test_the_origin_serves_where_nothing_else_does(elsewhere):
    load_from_origin(elsewhere[1], Protocol())
    dataset, _ = open_data(elsewhere[1])
    assert dataset.fingerprint == load(IRIS).fingerprint


def test_an_origin_with_other_data_is_refused(elsewhere):
    other = replace(elsewhere[1], fingerprint="f" * 64)
    with pytest.raises(DatasetError, match=r"'iris' on this host differs from the client's .*paths.cache"):
        load_from_origin(other, Protocol())


def test_a_cache_has_one_token_and_another_cache_another(tmp_path):
    assert cache_token(tmp_path / "a") == cache_token(tmp_path / "a") != cache_token(tmp_path / "b")
