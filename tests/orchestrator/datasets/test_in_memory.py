"""Data in memory are written so that the file has the content, or are refused in a sentence."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from orchestrator.datasets import DatasetError, load
from orchestrator.datasets.in_memory import label_hint_of, written_dataset
from orchestrator.study.study import DatasetSpec
from tests.messages import assert_says, raises

TEXT = ["north", "south", None, "north"]
FRAME = pd.DataFrame(
    {
        "number": [1.5, np.nan, 2, 3],
        "whole": [1, 2, 3, 4],
        "nullable": pd.array([1, None, 3, 4], dtype="Int64"),
        "flag": [True, False, True, False],
        "text": TEXT,
        "category": pd.Categorical(TEXT, categories=["south", "north", "unused"], ordered=True),
        "coded": pd.Categorical([3, 1, 3, 1]),
        7: [0.1, 0.2, 0.3, 0.4],
    },
    index=[5, 3, 3, 1],
)
LABELS = ["a", "b", "a", "b"]
RAW = {"frame": (FRAME, LABELS), "array": (np.arange(8).reshape(4, 2), LABELS)}


def raw(form):
    """A loader of the data themselves."""
    return RAW[form]


def loaded(node):
    node = dict(node)
    return load(DatasetSpec("d", node.pop("_target_"), node))


@pytest.mark.parametrize("form", RAW)
def test_the_file_has_the_content_of_the_data(form, tmp_path):
    X, y = RAW[form]
    node = written_dataset(tmp_path, "d", X, y)
    expected = loaded({"_target_": f"{__name__}.raw", "form": form})
    assert loaded(node).fingerprint == expected.fingerprint
    assert written_dataset(tmp_path, "d", X, y) == node  # the same content, the same file
    assert len([*tmp_path.iterdir()]) == 1


def test_a_frame_with_its_labels_equals_labels_apart(tmp_path):
    apart = loaded(written_dataset(tmp_path, "d", FRAME, LABELS))
    within = loaded(written_dataset(tmp_path, "d", FRAME.assign(y=LABELS), "y"))
    named = loaded(written_dataset(tmp_path, "d", FRAME, pd.Series(LABELS, name="text")))
    assert apart.fingerprint == within.fingerprint == named.fingerprint


def test_groups_and_sparse_matrices_are_kept(tmp_path):
    found = loaded(written_dataset(tmp_path, "d", FRAME.assign(y=LABELS), "y", groups="whole"))
    assert found.metadata["groups"].tolist() == [1, 2, 3, 4]
    matrix = scipy.sparse.coo_array(([1.0, 2.0], ([0, 3], [1, 0])), shape=(4, 2))
    sparse = loaded(written_dataset(tmp_path, "d", matrix, np.array([[0], [1], [0], [1]])))
    assert (sparse.X.toarray() == matrix.toarray()).all()


class Table:
    """A table of another library."""

    columns = FRAME.columns

    def to_pandas(self):
        return FRAME


def test_a_table_of_another_library_is_converted(tmp_path):
    of_frame = written_dataset(tmp_path, "d", FRAME, "whole")
    assert written_dataset(tmp_path, "d", Table(), "whole") == of_frame
    assert_says(label_hint_of(Table()), "number", "category", "likely")


@pytest.mark.parametrize(
    ("X", "y", "facts"),
    [
        (FRAME, "wole", ("label='wole'", "'whole'")),
        (FRAME, ["a", "b"], ("4 labels", "(2,)")),
        (FRAME, ["a", None, "b", "b"], ("1 without",)),
        (FRAME, ["a", 1, "b", 2], ("one type", "int, str")),
        (FRAME.assign(mixed=["a", 1, 2.5, "b"]), "whole", ("mixed", "one type")),
        (pd.concat([FRAME, FRAME[["text"]]], axis=1), "whole", ("'text'", "twice")),
        (np.arange(4), LABELS, ("two dimensions", "(4,)")),
        ([[1, 2], [3]], LABELS, ("one length",)),
    ],
)
def test_what_cannot_be_written_is_refused_in_a_sentence(X, y, facts, tmp_path):
    with raises(DatasetError, *facts):
        written_dataset(tmp_path, "d", X, y)
    assert [*tmp_path.iterdir()] == []


def test_groups_of_an_array_are_refused(tmp_path):
    with raises(DatasetError, "groups='g'", "frame"):
        written_dataset(tmp_path, "d", np.ones((4, 2)), LABELS, groups="g")


@pytest.mark.parametrize(
    "names", [pd.Index([5, 6]), pd.MultiIndex.from_tuples([("m", "a"), ("t", "y")]), pd.Index([0.5, 1.5])]
)
def test_the_last_name_of_any_index_of_columns_names_the_labels(names, tmp_path):
    frame = pd.DataFrame([[0.5, 1], [1.5, 2], [2.5, 1], [3.5, 2]]).set_axis(names, axis=1)
    node = written_dataset(tmp_path, "d", frame, frame.columns[-1])
    assert node["label"] == str(names[-1])
