"""Groups and test folds of rows: from columns, files, lists and loaders; part of what a dataset is."""

import numpy as np
import pandas as pd
import pytest

from orchestrator.datasets import DatasetError, load, open_prepared, prepare
from orchestrator.datasets.csv import csv_file
from orchestrator.study.study import DatasetSpec
from tests.messages import raises

WHO = ["b", "b", "a", "a", "c", "c"]
FOLD = [0, 0, -1, -1, 1, 1]
Y = [0, 1] * 3


def table():
    return pd.DataFrame({"x": np.arange(6.0), "who": WHO, "fold": FOLD}), Y


def numbers(third=None):
    X = np.arange(6.0)[:, None]
    return (X, Y) if third is None else (X, Y, third)


def stored(folder):
    return numbers()


def asked(groups):
    """A loader with an argument of that name, which it is given."""
    return numbers(groups)


def loaded(loader, **params):
    return load(DatasetSpec("t", f"{loader.__module__}.{loader.__name__}", params))


def test_columns_that_say_something_of_the_rows_are_no_features():
    dataset = loaded(table, groups="who", test_fold="fold")
    assert dataset.X.tolist() == [[0], [1], [2], [3], [4], [5]]
    assert dataset.metadata["groups"].tolist() == WHO
    assert dataset.metadata["test_fold"].tolist() == FOLD


def test_groups_come_from_files_lists_and_loaders_alike(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("who.npy", np.array(WHO))
    (tmp_path / "who.txt").write_text("\n".join(WHO) + "\n")
    (tmp_path / "fold.txt").write_text("\n".join(map(str, FOLD)))
    found = [loaded(numbers, groups=source) for source in ("who.npy", "who.txt", WHO)]
    (tmp_path / "data").mkdir()
    (tmp_path / "who.txt").rename(tmp_path / "data" / "who.txt")
    found += [loaded(stored, folder="data", groups="who.txt")]
    found += [loaded(numbers, third=WHO), loaded(asked, groups=WHO)]
    assert all(each.metadata["groups"].tolist() == WHO for each in found)
    assert len({each.fingerprint for each in found}) == 1
    assert loaded(numbers, test_fold="fold.txt").metadata["test_fold"].tolist() == FOLD


def test_a_byte_order_mark_makes_no_group_of_the_first_row(tmp_path):
    (tmp_path / "who.txt").write_text("\r\n".join(WHO), encoding="utf-8-sig", newline="")
    (tmp_path / "fold.txt").write_text("\r\n".join(map(str, FOLD)), encoding="utf-8-sig", newline="")
    found = loaded(numbers, groups=str(tmp_path / "who.txt"), test_fold=str(tmp_path / "fold.txt"))
    assert found.metadata["groups"].tolist() == WHO
    assert found.metadata["test_fold"].tolist() == FOLD


def test_groups_of_a_csv_file_are_a_column_or_a_file_beside_it(tmp_path):
    lines = [
        f"{x},{color},{who},{label}" for x, color, who, label in zip("12 456", "rgbrgb", WHO, Y, strict=True)
    ]
    (tmp_path / "t.csv").write_text("\n".join(["x,color,who,ill", *lines]))
    (tmp_path / "who.txt").write_text("\n".join(WHO))
    said = {"path": str(tmp_path / "t.csv"), "label": "ill"}
    of_column, of_file = loaded(csv_file, **said, groups="who"), loaded(csv_file, **said, groups="who.txt")
    assert (of_column.columns, of_file.columns) == (("x", "color"), ("x", "color", "who"))
    assert of_column.metadata["groups"].tolist() == of_file.metadata["groups"].tolist() == WHO


def test_names_of_groups_that_python_reads_as_one_number_stay_apart(tmp_path):
    names = ["1_23", "12_3", "1_23", "4", "12_3", "4"]
    (tmp_path / "who.txt").write_text("\n".join(names))
    assert loaded(numbers, groups=str(tmp_path / "who.txt")).metadata["groups"].tolist() == names


def test_groups_are_part_of_what_a_dataset_is_and_of_its_prepared_copy(tmp_path):
    without = loaded(numbers)
    # As before there were groups, so that the trials stored since keep their keys.
    assert without.fingerprint == "7217bac65940e94b38fb576e8c96318c7c7754e00dc59ecb9d1f5b3c7e1be612"
    one, other = (loaded(numbers, groups=groups) for groups in (WHO, WHO[::-1]))
    assert len({without.fingerprint, one.fingerprint, other.fingerprint}) == 3
    opened = open_prepared(prepare(one, tmp_path))
    assert opened.metadata["groups"].tolist() == WHO
    assert opened.fingerprint == one.fingerprint
    assert open_prepared(prepare(without, tmp_path)).metadata == {}
    np.save(next(tmp_path.glob("*/groups.npy")), np.array(WHO[::-1]))
    assert open_prepared(prepare(one, tmp_path)).metadata["groups"].tolist() == WHO


@pytest.mark.parametrize(
    ("loader", "params", "message"),
    [
        (table, {"groups": "whom"}, ("groups='whom'", "features (x, who, fold)")),
        (numbers, {"groups": [1, 2]}, ("groups", "6 rows", "shape", "(2,)")),
        (numbers, {"groups": [1, None, 2, 2, 3, 3]}, ("groups", "None", "row 1")),
        (numbers, {"groups": ["a"] * 6}, ("at least", "groups", "'a'", "6 rows")),
        (numbers, {"test_fold": [0] * 6}, ("at least", "test_fold", "0", "6 rows")),
        (
            numbers,
            {"test_fold": [0, -2, 1, 1, 1, 1]},
            ("0", "test_fold", "-1", "-2"),
        ),
        (table, {"groups": "fold", "test_fold": "who"}, ("0", "test_fold", "'a'")),
    ],
)
def test_what_cannot_be_read_is_refused_with_the_dataset(loader, params, message):
    with raises(DatasetError, "dataset 't'", *message):
        loaded(loader, **params)
