import math

import numpy as np
import pandas as pd
import pytest

from orchestrator.report import format as words
from orchestrator.report.figures import spans_decades, value_labels, wrapped
from orchestrator.report.table import records


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0123, "+1.23"),
        (-0.0123, "−1.23"),
        (0.00001, "0.00"),
        (-0.00001, "0.00"),
        (None, "–"),
        (math.nan, "–"),
    ],
)
def test_differences_carry_a_sign_unless_they_print_as_zero(value, text):
    assert words.difference(value, "accuracy") == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(1.0, "1.000"), (0.0625, "0.0625"), (0.00391, "0.0039"), (0.00001, "< 0.0001"), (math.nan, "–")],
)
def test_p_values(value, text):
    assert words.p_value(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(1234.5, "1,234"), (12.345, "12.3"), (0.012345, "0.0123"), (0.0, "0"), (math.nan, "–")],
)
def test_times_have_three_significant_digits(value, text):
    assert words.time(value) == text


@pytest.mark.parametrize(
    ("bound", "value", "median", "text"),
    [
        ("=", 0.4155, (0.4, 0.4), "0.42"),
        ("≤", 0.465, (0.2, 0.5), "≤ 0.47"),
        ("≥", 1234.0, (2.0, 3.0), "≥ 1,234"),
        ("between", math.nan, (0.5, 0.5), "median 0.50"),
        ("between", math.nan, (0.0123, math.inf), "median 0.012 to ∞"),
        ("=", math.nan, (math.nan, math.nan), "–"),
    ],
)
def test_ratios_say_what_stopped_trainings_leave_known(bound, value, median, text):
    assert words.bounded_ratio(bound, value, *median) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.98, "0.98"), (0.0123, "0.012"), (9e-11, "9.0e-11"), (math.inf, "∞"), (math.nan, "–")],
)
def test_gaps(value, text):
    assert words.gap(value) == text


def test_an_error_has_the_decimals_of_its_mean():
    assert words.time(0.0646, like=0.806) == "0.065"
    assert words.time(1.5, like=12345.0) == "2"


def test_counts():
    assert [words.count(value) for value in (5, 52.4, 12345.6, math.nan)] == ["5", "52.4", "12,346", "–"]


def test_lists_and_plurals():
    assert words.listed(["a"]) == "a"
    assert words.listed(["a", "b", "c"]) == "a, b and c"
    assert (words.plural(1, "dataset"), words.plural(1605, "training")) == ("1 dataset", "1,605 trainings")


@pytest.mark.parametrize(
    "name", ["mnsvm[eta=1.3,draws=600]", "a_rather_long_name_of_a_solver", "x" * 70, "short", "a b"]
)
def test_wrapping_a_name_loses_nothing_and_keeps_the_width(name):
    lines = wrapped(name, 24).split("\n")
    assert all(len(line) <= 24 for line in lines)
    assert "".join(lines).replace(" ", "") == name.replace(" ", "")


def test_axis_labels_are_powers_only_where_that_helps():
    assert value_labels([0.5, 1, 2]) == ["0.5", "1", "2"]
    assert value_labels([2**-10, 1, 1024]) == ["$2^{-10}$", "$2^{0}$", "$2^{10}$"]
    assert value_labels([0.001, 0.1]) == ["$10^{-3}$", "$10^{-1}$"]
    assert value_labels([0.001, 0.3]) == ["0.001", "0.3"]


def test_logarithmic_axes_are_for_decades():
    assert spans_decades([0.01, 1.0])
    assert not spans_decades([0.5, 1.0, math.nan, 0.0])
    assert not spans_decades([])


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        (1.1930483046659437, 1.193048305),
        (1.193048304665944, 1.193048305),
        (-1.23456789012345e-20, -1.23456789e-20),
        (0.1, 0.1),
        (12345678901234.0, 12345678901234.0),  # a count of kernel evaluations
        (math.inf, math.inf),
    ],
)
def test_files_have_ten_significant_digits_and_exact_counts(value, kept):
    assert words.reproducible(value) == kept


@pytest.mark.parametrize(
    ("value", "text"),
    [
        *((22.14, "22"), (1.536, "1.5"), (0.5, "0.50"), (0.0144, "0.014"), (9.96, "10"), (0.996, "1.0")),
        *((1234.0, "1,200"), (math.inf, "∞"), (math.nan, "–"), (0.0, "0.00")),
    ],
)
def test_ratios_of_times_have_two_digits(value, text):
    assert words.time_ratio(value) == text


def test_records_are_those_of_pandas():
    frame = pd.DataFrame(
        {
            "whole": [1, 2],
            "real": [1.5, np.nan],
            "single": np.array([1, 2], dtype=np.float32),
            "text": ["x", None],
            "nullable": pd.array([1, None], dtype="Int64"),
            "mixed": np.array([np.int64(1), "z"], dtype=object),
            "lists": [[1], {}],
            "truth": [True, False],
        }
    )
    assert repr(records(frame)) == repr(frame.to_dict("records"))
    assert [[*map(type, row.values())] for row in records(frame)] == [
        [*map(type, row.values())] for row in frame.to_dict("records")
    ]
