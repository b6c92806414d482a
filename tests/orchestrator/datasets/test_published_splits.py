"""Splits, scalings and rows of publications: the rows that a paper trained on, and those it tested on."""

import os
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from omegaconf import OmegaConf

from orchestrator.config.schema import dataset_spec
from orchestrator.datasets import (
    DatasetError,
    frequent_words,
    kdd99_distinct,
    kdd99_full_distinct,
    libsvm_split,
    load,
    localization,
    splice_bits,
)
from tests.messages import raises

CONF = Path(__file__).parents[3] / "conf" / "dataset"


@pytest.fixture
def file(tmp_path):
    """A folder with the file `t` of seven rows: row i holds i and 2 i, and labels alternate."""
    lines = [f"{i % 2} 1:{i} 2:{2 * i}" for i in range(7)]
    (tmp_path / "t.libsvm").write_text("\n".join(lines).replace(" 1:0 2:0", ""))
    return tmp_path


def test_the_first_rows_train_and_the_others_test(file):
    X, y, metadata = libsvm_split("t", file, 2, 1, n_train=5)
    assert metadata["test_fold"].tolist() == [-1] * 5 + [0] * 2
    assert X[:, 0].tolist() == [*range(7)]
    assert y.tolist() == [-1, 1] * 3 + [-1]
    X, _, metadata = libsvm_split("t", file, n_train=2, test_from=4, divide=2)
    assert X[:, 1].tolist() == [0, 1, 4, 5, 6]
    assert metadata["test_fold"].tolist() == [-1, -1, 0, 0, 0]


def test_a_reversed_split_tests_the_first_rows(file):
    _, _, metadata = libsvm_split("t", file, n_train=5, reverse=True)
    assert metadata["test_fold"].tolist() == [0] * 5 + [-1] * 2


def test_splice_junctions_have_three_bits_a_position(tmp_path):
    """A is 100, C 010, G 001 and T 000; the row with N is left out, and X is refused."""
    path = tmp_path / "s.dat"
    head = "@relation s\n@attribute P1 {A, C, N, X}\n@attribute P2 {G, T}\n@attribute Class {EI, N}\n@data\n"
    path.write_text(head + "A, G, EI\nC, T, N\nN, T, N\n")
    X, y = splice_bits(str(path), "Class")
    assert [*X.columns] == ["P1=A", "P1=C", "P1=G", "P2=A", "P2=C", "P2=G"]
    assert X.to_numpy().tolist() == [[1, 0, 0, 0, 0, 1], [0, 1, 0, 0, 0, 0]]
    assert y.tolist() == ["EI", "N"]
    path.write_text(head + "A, G, EI\nX, T, N\n")
    with raises(DatasetError, "A, C, G, T", "'X'"):
        splice_bits(str(path), "Class")


def test_features_are_scaled_by_the_training_rows(file):
    X, _, _ = libsvm_split("t", file, n_train=5, unit=True)
    assert X[:, 0].tolist() == X[:, 1].tolist() == [i / 4 for i in range(7)]
    X, _, metadata = libsvm_split("t", file, n_folds=3, unit=True)
    assert X.max() == 1
    assert metadata["test_fold"].tolist() == [0, 0, 0, 1, 1, 2, 2]  # as KFold(3) without shuffling


def test_copies_of_training_rows_stand_for_test_rows_that_a_file_lacks(file):
    X, y, metadata = libsvm_split("t", file, n_train=7, n_copies=2)
    assert X[7:].tolist() == X[:2].tolist()
    assert y[7:].tolist() == y[:2].tolist()
    assert metadata["test_fold"].tolist() == [-1] * 7 + [0] * 2


def test_another_order_shuffles_the_training_rows(file):
    X, y, metadata = libsvm_split("t", file, n_train=5, order=1)
    assert X[5:, 0].tolist() == [5, 6]
    assert X[:, 0].tolist() != [*range(7)]
    assert sorted(X[:5, 0]) == [*range(5)]
    assert y.tolist() == (X[:, 0] % 2).tolist()
    assert metadata["test_fold"].tolist() == [-1] * 5 + [0] * 2
    again = libsvm_split("t", file, n_train=5, order=1)[0]
    assert again.tolist() == X.tolist()
    with pytest.raises(DatasetError, match="order, found -1"):
        libsvm_split("t", file, n_train=5, order=-1)


@pytest.mark.parametrize(
    ("split", "said"),
    [
        ({"n_train": 7}, "found n_train=7 and test_from=7; is the file complete"),
        ({"n_train": 3, "test_from": 2}, "1 ≤ n_train ≤ test_from < 7"),
        ({"n_folds": 8}, "n_folds from 2 to 7"),
        ({}, "either n_train or n_folds"),
    ],
)
def test_a_split_that_does_not_fit_is_refused(file, split, said):
    with pytest.raises(DatasetError, match=said):
        libsvm_split("t", file, **split)


def test_equal_connections_become_one_with_the_label_of_most(tmp_path):
    # Three equal training rows of which two are normal, one tie, and a test row with other symbols.
    rows = ["1 1:4 39:1 42:1 109:1"] * 2 + ["-1 1:4 39:1 42:1 109:1"]
    rows += ["1 1:2 40:1 42:1 109:1", "-1 1:2 40:1 42:1 109:1", "-1 39:1 108:1 119:1"]
    (tmp_path / "k.libsvm").write_text("\n".join(rows))
    X, y, metadata = kdd99_distinct("k", tmp_path, n_train=5)
    assert X.shape == (3, 41)
    assert y.tolist() == [1, -1, -1]
    assert metadata["test_fold"].tolist() == [-1, -1, 0]
    # The first feature is 4 and 2 in training, and protocols are 0 and 1; the test row has 0 and protocol 0.
    assert X[:, 0].tolist() == [1, 0, -1]
    assert X[:, 38].tolist() == [0, 1, 0]
    with pytest.raises(DatasetError, match="Append the corrected test file"):
        kdd99_distinct("k", tmp_path, n_train=6)


def test_symbols_of_the_original_files_become_numbers(tmp_path):
    numbers = ",".join(["0"] * 37)
    (tmp_path / "train").write_text(
        f"0,tcp,http,SF,{numbers},normal.\n1,udp,http,SF,{numbers},smurf.\n0,tcp,http,SF,{numbers},normal.\n"
    )
    (tmp_path / "test").write_text(f"2,icmp,http,SF,{numbers},neptune.\n")
    X, y, metadata = kdd99_full_distinct(tmp_path / "train", tmp_path / "test")
    assert y.tolist() == [1, -1, -1]
    assert X[:, :2].tolist() == [[0, 0], [1, 1], [2, -1]]  # tcp is 1 and udp is 2 of icmp, tcp, udp
    assert metadata["test_fold"].tolist() == [-1, -1, 0]


def test_lying_is_told_from_the_other_activities_by_five_features(tmp_path):
    lines = [
        f"A0{i % 2},010-{i % 4},63379022605,27.05.2009 14:03:25:127,{i}.5,2.0,0.5,{activity}"
        for i, activity in enumerate(["walking", "lying", "lying down", "falling", "sitting"])
    ]
    (tmp_path / "t.txt").write_text("\n".join(lines))
    X, y, metadata = localization(tmp_path / "t.txt")
    assert y.tolist() == [-1, 1, 1, -1, -1]
    assert X[:, 0].tolist() == [0, 1, 0, 1, 0]
    assert X[:, 1] == pytest.approx([0, 1 / 3, 2 / 3, 1, 0])
    assert X[:, 2].tolist() == [0, 0.25, 0.5, 0.75, 1]
    assert metadata["test_fold"].tolist() == [*range(5)]


ROWS = {  # training rows and test rows in the paper's Section 5.1
    "ijcnn1-published": (49_990, 91_701),
    "a9a-published": (32_561, 16_281),
    "mnist-0": (60_000, 10_000),
    "w8a-train": (49_749, 1_000),
    "kdd99-distinct-published": (145_584, 77_216),
    "covtype-binary-published": (0, 581_012),
}


@pytest.mark.full
@pytest.mark.parametrize("name", ROWS)
def test_files_at_hand_have_the_rows_of_the_paper(name):
    folder = os.environ.get("SVMBENCH_DATA", "")
    config = OmegaConf.create({"paths": {"data": folder}, "dataset": OmegaConf.load(CONF / f"{name}.yaml")})
    node = OmegaConf.to_container(config.dataset, resolve=True)
    if not folder or not (Path(folder) / f"{node['name']}.libsvm.xz").is_file():
        pytest.skip(f"set SVMBENCH_DATA to a folder that holds {node['name']}.libsvm.xz")
    dataset = load(dataset_spec(name, node, []))
    training = int((dataset.metadata["test_fold"] == -1).sum())
    assert (training, len(dataset.codes) - training) == ROWS[name]
    assert len(dataset.classes) == 2
    assert np.abs(dataset.X[:100]).max() < 4


def test_frequent_words_are_weighted_by_the_training_rows(tmp_path):
    """Training counts are 3, 2 and 1; the last word is dropped, although it leads among the test rows."""
    (tmp_path / "words.libsvm").write_text("1 1:1 2:2\n2 1:2 3:1\n1 1:1 3:9\n")
    X, y, metadata = frequent_words("words", tmp_path, 3, n_train=2, n_words=2)
    rare = np.log(3 / 2) + 1
    expected = np.array([[1, 2 * rare], [2, 0], [1, 0]])
    assert_allclose(X.toarray(), expected / np.linalg.norm(expected, axis=1, keepdims=True))
    assert (y.tolist(), metadata["test_fold"].tolist()) == ([1, 2, 1], [-1, -1, 0])
    with raises(DatasetError, "n_words=4", "1", "3"):
        frequent_words("words", tmp_path, 3, n_train=2, n_words=4)
