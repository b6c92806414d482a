"""Datasets that are no independent evidence are found, and others are not."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.preprocessing import minmax_scale

from orchestrator.datasets import find_libsvm_file, read_libsvm
from orchestrator.datasets.families import relations
from tests.messages import says

WINE, IRIS = load_wine().data, load_iris().data
ROWS, COLUMNS = np.random.default_rng(0).permutation(178), np.random.default_rng(0).permutation(13)


def why(first, second):
    return [relation.why for relation in relations({"a": first, "b": second}, {})]


@pytest.mark.parametrize(
    ("other", "facts"),
    [
        (WINE[ROWS[:40]], {"40 of 40"}),
        (pd.DataFrame(WINE[ROWS]), {"178 of 178"}),
        (scipy.sparse.csr_matrix(WINE), {"178 of 178"}),
        (minmax_scale(WINE)[ROWS], {"178 of 178", "scaling"}),
        (WINE[ROWS[:40]][:, COLUMNS], {"40 of 40", "columns"}),
        (
            minmax_scale(WINE, (-1, 1))[:, COLUMNS],
            {"178 of 178", "scaling", "columns"},
        ),
    ],
)
def test_shared_rows_are_found(other, facts):
    (reason,) = why(WINE, other)
    assert {fact for fact in ("40 of 40", "178 of 178", "scaling", "columns") if says(reason, fact)} == facts


def test_most_rows_of_a_copy_with_six_digits_are_found():
    (sentence,) = why(WINE, np.round(minmax_scale(WINE, (-1, 1)), 6))
    assert int(sentence.split()[1]) > 120


def test_datasets_of_their_own_are_not_related():
    binary = np.random.default_rng(0).random((2, 400, 30)) < 0.5
    assert why(*binary.astype(float)) == []  # rows with as many ones as others are no copies
    assert why(*np.random.default_rng(0).random((2, 5000, 2))) == []
    assert why(IRIS[:, :3], IRIS) == []
    assert why(WINE, load_breast_cancer().data[:, :13]) == []
    few = np.random.default_rng(0).random((100, 4))
    few[:9] = IRIS[:9]
    assert why(IRIS, few) == []


def test_rows_of_a_grid_are_equal_by_chance():
    grid = np.stack(np.meshgrid(*[np.arange(5.0)] * 4), axis=-1).reshape(-1, 4)
    some = grid[np.random.default_rng(0).permutation(625)[:90]]
    assert why(grid, some) == []
    assert why(pd.DataFrame(grid).astype(str), pd.DataFrame(some).astype(str)) == []
    assert why(grid[:, [0, 1, 2, 3, 0]], some[:, [0, 1, 2, 3, 0]]) == ["share 90 of 90 different rows"]


def test_a_declared_family_needs_no_shared_row():
    features = {"a": WINE, "b": IRIS, "c": IRIS[:, :2], "d": WINE[:, :1]}
    (relation,) = relations(features, {"a": "wine", "c": "iris", "b": "iris", "d": ""})
    assert (relation.first, relation.second) == ("b", "c")
    assert relation.why == "declare the family 'iris'"


def test_digits_are_found_in_optdigits():
    folder = os.environ.get("SVMBENCH_DATA")
    if not folder or not list(Path(folder).glob("optdigits.libsvm*")):
        pytest.skip("set SVMBENCH_DATA to a folder that holds optdigits.libsvm.xz")
    optdigits, _ = read_libsvm(find_libsvm_file("optdigits", folder), 64)
    assert why(load_digits().data, optdigits) == ["share 1,797 of 1,797 different rows"]
