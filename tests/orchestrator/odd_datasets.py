"""Loaders of datasets that cannot be used: each case is a function of no arguments and a part of the sentence
that refuses it."""

import ctypes
import datetime
import decimal
import fractions
import itertools
import os
import signal
import sys
from asyncio import CancelledError

import numpy as np
import pandas as pd
import scipy.sparse

X = np.random.default_rng(0).random((12, 3))
Y = np.arange(12) % 2
REFUSED = {}


def make(case):
    """The loader of all cases."""
    return REFUSED[case][0]()


def refused(sentence):
    def add(function):
        REFUSED[function.__name__.strip("_")] = function, sentence
        return function

    return add


def add_features(sentence, **cases):
    for name, case in cases.items():
        REFUSED[f"features_{name}"] = (lambda case=case: ((case() if callable(case) else case), Y)), sentence


def add_labels(sentence, **cases):
    for name, case in cases.items():
        REFUSED[f"labels_{name}"] = (lambda case=case: (X, (case() if callable(case) else case))), sentence


# -- sparse matrices -----------------------------------------------------------------------------


def broken(format, part, change):
    def build():
        matrix = scipy.sparse.csr_matrix(np.kron(X > 0.4, np.ones((2, 2)))).asformat(format)
        setattr(matrix, part, change(getattr(matrix, part)))
        return matrix, np.arange(24) % 2

    return build


def with_item(position, value):
    def change(values):
        values = values.astype(np.result_type(values, np.min_scalar_type(value)))
        values[position] = value
        return values

    return change


PARTS = {
    "indices": {
        "negative": with_item(3, -1),
        "most_negative": with_item(0, -(2**31)),
        "too_large": with_item(-1, 1000),
        "huge": with_item(2, 2**31 - 1),
        "short": lambda values: values[:-2],
        "of_floats": lambda values: values.astype(float),
        "of_two_dimensions": lambda values: values[:, None],
        "a_list": lambda values: values.tolist(),
    },
    "indptr": {
        "falling": with_item(2, 0),
        "negative": with_item(1, -5),
        "late": with_item(0, 1),
        "past_the_end": with_item(-1, 10**6),
        "short": lambda values: values[:-1],
        "long": lambda values: np.append(values, values[-1]),
        "of_floats": lambda values: values.astype(float),
        "empty": lambda values: values[:0],
    },
    "data": {"short": lambda values: values[:-1]},
}
for format, (part, changes) in itertools.product(("csr", "csc", "bsr"), PARTS.items()):
    for name, change in changes.items():
        REFUSED[f"{format}_{part}_{name}"] = broken(format, part, change), "X is a broken sparse matrix"


def coo(row=(0, 1, 2), col=(0, 1, 2), data=(1.0, 2.0, 3.0)):
    matrix = scipy.sparse.coo_matrix(([1.0, 2.0, 3.0], ([0, 1, 2], [0, 1, 2])), shape=(12, 3))
    matrix.row, matrix.col, matrix.data = np.array(row), np.array(col), np.array(data)
    return matrix


add_features(
    "X is a broken sparse matrix",
    coo_row_negative=coo(row=(0, -1, 2)),
    coo_row_too_large=coo(row=(0, 12, 2)),
    coo_column_negative=coo(col=(0, 1, -1)),
    coo_column_too_large=coo(col=(0, 1, 3)),
    coo_of_other_lengths=coo(data=(1.0, 2.0)),
)
add_features(
    "no order",
    sparse_complex=scipy.sparse.csr_matrix(X + 1j),
    complex=X.astype(np.complex64),
    list_of_complex=(X + 1j).tolist(),
)
add_features("missing|NaN", sparse_nan=scipy.sparse.csr_matrix(np.where(X > 0.5, np.nan, 0)))
add_features("two dimensions", sparse_line=scipy.sparse.coo_array(np.arange(12.0)))
add_features("at least one row", sparse_without_columns=scipy.sparse.csr_matrix((12, 0)))


def lil():
    matrix = scipy.sparse.lil_matrix(X)
    matrix.rows[3] = [5000]
    matrix.data[3] = [1.0]
    return matrix


def lil_without_values():
    matrix = scipy.sparse.lil_matrix(X)
    matrix.rows[3] = [0, 1, 2]
    matrix.data[3] = [1.0]
    return matrix


def dia():
    matrix = scipy.sparse.dia_matrix(X)
    matrix.offsets = np.arange(100)
    return matrix


add_features("X is a broken sparse matrix|failed", lil_outside=lil, dia_offsets=dia)
add_features("as many rows as data, found 3 of rows, 1 of data", lil_lengths=lil_without_values)


# -- more than memory ----------------------------------------------------------------------------


def wide(d):
    return scipy.sparse.csr_matrix(([1.0] * 12, [d - 1] * 12, range(13)), shape=(12, d))


add_features(
    "fit into|memory they may take",
    repeated=lambda: np.broadcast_to(0.5, (12, 10**10)),
    strided=lambda: np.lib.stride_tricks.as_strided(X, shape=(10**6, 10**5), strides=(0, 0)),
    allocated=lambda: np.zeros((12, 10**11)),
    allocated_and_filled=lambda: np.ones((12, 10**8)),
    small_type=lambda: np.broadcast_to(np.int8(1), (12, 10**7)),
    one_row_often=lambda: [[1.0] * 1000] * 10**6,
    frame=lambda: pd.DataFrame(np.broadcast_to(np.int8(1), (12, 10**7)), copy=False),
    sparse_with_two_billion_columns=lambda: wide(2 * 10**9),
    sparse_identity=lambda: scipy.sparse.eye(10**9, format="csr"),
    endless_list=lambda: list(itertools.count()),
)
add_features("at most 2³¹ - 1", sparse_beyond_32_bits=lambda: wide(2**40))
add_labels(
    "fit into|at most 1000 characters",
    long=["a" * 10**6, "b"] * 6,
    long_array=np.array(["a" * 2000, "b"] * 6),
)
add_labels("a label for each row|fit into", repeated=lambda: np.broadcast_to(1, 10**9))


# -- features of other kinds ---------------------------------------------------------------------

add_features(
    "an array, a frame or a list",
    none=None,
    number=3,
    text="iris",
    mapping={"a": [1, 2]},
    set_=lambda: {1, 2},
    generator=lambda: (row for row in X),
    endless=itertools.count,
    function=lambda: make,
    class_=lambda: int,
    module=sys,
    bytes_=b"123",
    range_=range(12),
)
add_features(
    "two dimensions",
    scalar_array=np.array(1.0),
    line=X[:, 0],
    cube=X[None],
    empty_list=[],
    list_of_numbers=[1.0] * 12,
    series=pd.Series(X[:, 0]),
    list_of_cubes=[[[1.0]]] * 12,
    objects=np.array([None] * 12),
)
add_features(
    "at least one row",
    without_rows=X[:0],
    without_columns=X[:, :0],
    empty=np.empty((0, 0)),
    empty_frame=pd.DataFrame(),
    empty_rows=[[]] * 12,
)
add_features(
    "numbers as features",
    datetimes=np.zeros((12, 3), "M8[s]"),
    timedeltas=np.zeros((12, 3), "m8[s]"),
    structured=np.zeros((12, 3), [("a", float), ("b", int)]),
    void=np.zeros((12, 3), "V8"),
    words=np.full((12, 3), "word"),
    encoded_words=np.full((12, 3), b"word"),
    ragged=[[1.0]] * 11 + [[1.0, 2.0]],
    list_of_words=[["a", "b"]] * 12,
    mappings=np.full((12, 1), {}),
    lists_within=[[1.0, [2.0]]] * 12,
    complex_objects=np.full((12, 1), 1j, dtype=object),
    dates=[[datetime.date(2026, 1, 1)]] * 12,
)
add_features(
    "finite|missing|numbers|failed",
    infinite=np.where(X > 0.5, np.inf, X),
    beyond_float64=np.full((12, 3), np.longdouble("1e4000")),
    beyond_all_floats=[[10**400]] * 12,
    not_a_decimal=[[decimal.Decimal("sNaN")]] * 12,
    sparse_infinite=scipy.sparse.csr_matrix(np.where(X > 0.5, -np.inf, 0)),
)


class Exits:
    def __array__(self, *_, **__):
        raise SystemExit(3)


class Recurses:
    def __array__(self, *_, **__):
        return np.asarray(self)


class Lies:
    shape = (12, 3)

    def __array__(self, *_, **__):
        return np.zeros((5, 5, 5))


class NoShape(np.ndarray):
    @property
    def shape(self):
        raise RuntimeError("no shape here\nnor there")


class NoName(Exception):
    def __str__(self):
        raise ValueError("no text")


class Unprintable:
    def __repr__(self):
        raise ValueError("no text")


class Own(BaseException):
    pass


class Quits:
    def __array__(self, *_, **__):
        os._exit(5)


add_features(
    "failed|numbers|two dimensions|ended",
    that_exit=Exits,
    that_recurse=Recurses,
    that_lie=Lies,
    without_a_shape=lambda: X.view(NoShape),
    that_quit=Quits,
)


# -- results and endings of loaders --------------------------------------------------------------


def add_results(**cases):
    for name, case in cases.items():
        REFUSED[f"result_{name}"] = (lambda case=case: case), r"to return \(X, y\)"


add_results(none=None, array=X, one=(X,), four=(X, Y, Y, Y), nothing=(), text="ab", mapping={"X": X, "y": Y})
REFUSED["result_three"] = (lambda: (X, Y, X)), r"groups with a value for each of \d+ rows, found shape"
REFUSED["result_iterator"] = (lambda: iter((X, Y))), r"to return \(X, y\)"


class Pair(tuple):
    def __len__(self):
        raise KeyboardInterrupt


REFUSED["result_interrupts"] = (lambda: Pair((X, Y))), "failed with KeyboardInterrupt"


def raising(error):
    def loader():
        raise error

    return loader


for name, error in {
    "exit": SystemExit(0),
    "exit_with_text": SystemExit("good\nbye"),
    "interrupt": KeyboardInterrupt(),
    "generator_exit": GeneratorExit(),
    "recursion": RecursionError("maximum recursion depth exceeded"),
    "stop_iteration": StopIteration(3),
    "cancelled": CancelledError(),
    "own_base_exception": Own("mine"),
    "group": BaseExceptionGroup("many", [KeyboardInterrupt(), ValueError()]),
    "no_text": NoName(),
    "surrogate": ValueError("\ud800"),
    "escape": ValueError("\x1b[31mred\x07"),
    "long_text": ValueError("no " * 10**6),
    "lines": ValueError("one\ntwo\r\nthree"),
    "memory": MemoryError(),
    "os_error": FileNotFoundError(2, "No such file", "/nowhere"),
}.items():
    REFUSED[f"raises_{name}"] = raising(error), "failed with|of memory"


@refused("failed with RecursionError")
def recurses():
    return recurses()


@refused("ended its process with exit status 0")
def quits_with_success():
    os._exit(0)


@refused("ended its process with exit status 7")
def quits():
    os._exit(7)


@refused("ended its process by SIGABRT")
def aborts():
    os.abort()


@refused("ended its process by SIGSEGV")
def reads_where_nothing_is():
    ctypes.string_at(8)


@refused("ended its process by SIGKILL, possibly because it used more than")
def is_killed():
    os.kill(os.getpid(), signal.SIGKILL)


@refused("ended its process by SIGTERM")
def is_terminated():
    os.kill(os.getpid(), signal.SIGTERM)


@refused("ended its process|failed")
def closes_every_file():
    os.closerange(0, 4096)
    return X, Y[:3]


@refused("a label for each row")
def replaces_the_streams():
    sys.stdout = sys.stderr = None
    return X, Y[:3]


# -- labels --------------------------------------------------------------------------------------

add_labels(
    "an array or a list of labels",
    none=None,
    number=3,
    text="abababababab",
    mapping={"a": 1},
    set_={1, 2},
    generator=lambda: (label for label in Y),
    endless=itertools.count,
)
add_labels(
    "a label for each row|one label for each row",
    missing=Y[:5],
    too_many=np.tile(Y, 2),
    empty=[],
    scalar=np.array(1),
    table=X,
    nested=[[0, 1]] * 12,
    frame=pd.DataFrame({"a": Y, "b": Y}),
    cube=Y[:, None, None],
)
add_labels("two classes or more", constant=np.zeros(12), one_word=["a"] * 12, no_bool=[False] * 12)
add_labels(
    "expected (strings|numbers|booleans|bytes) as labels",
    words_and_numbers=["a", 1] * 6,
    numbers_and_words=[1, "1"] * 6,
    booleans_and_numbers=[True, 1] * 6,
    numbers_and_booleans=[0, True] * 6,
    bytes_and_words=[b"a", "a"] * 6,
    none_within=["a", None] * 6,
    lists_within=[1, [1]] * 6,
    tuples_and_numbers=np.array([(1,), 2] * 6, dtype=object),
    objects=[Unprintable(), Unprintable()] * 6,
    decimals=[decimal.Decimal("0.1"), decimal.Decimal("0.2")] * 6,
    complex_numbers=[1j, 2j] * 6,
    dates=[datetime.date(2026, 1, day + 1) for day in range(12)],
    classes=[int, float] * 6,
)
add_labels(
    "found dtype|as labels",
    datetimes=np.arange(12).astype("M8[D]"),
    timedeltas=np.arange(12).astype("m8[D]"),
    complex_array=Y + 1j,
    structured=np.zeros(12, [("a", int)]),
    void=np.zeros(12, "V4"),
)
add_labels(
    "64 bits hold",
    beyond_64_bits=[0, 2**70] * 6,
    unsigned=np.array([0, 2**64 - 1] * 6, dtype=np.uint64),
    fractions=[fractions.Fraction(1, 3), 1] * 6,
    close_longdoubles=np.array([1, np.nextafter(np.longdouble(1), 2)] * 6, dtype=np.longdouble),
    close_integers=[2**60, 2**60 + 1, 0.5] * 4,
)
add_labels(
    "UTF-8",
    surrogates=["\ud800", "b"] * 6,
    surrogate_array=np.array(["\udfff", "b"] * 6),
    nul=["a", "a\0"] * 6,
    nul_within=np.array(["a\0b", "a"] * 6),
    latin_1=np.array(["ä".encode("latin-1"), b"b"] * 6),
    latin_1_objects=["ä".encode("latin-1"), b"b"] * 6,
)
add_labels(
    "a label in every row",
    nan=np.where(Y, np.nan, 1.0),
    infinite=np.where(Y, np.inf, 1.0),
    nan_objects=[1, float("nan")] * 6,
    masked=np.ma.masked_equal(Y, 1),
)
add_labels("failed|as labels|each row|ended", that_exit=Exits, that_recurse=Recurses)
