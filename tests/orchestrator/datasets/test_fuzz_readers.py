"""Damaged files of every format: a sentence of ours, or what the file says; no crash, hang or nonsense.

A file is what a seed makes of a good one. One that was damaged inside a compressed archive must give what the
good one holds, or be refused; LIBSVM text is compared with a reader of a few lines; of the others it is asked
that values are finite and that each row has a label.
"""

import bz2
import gzip
import io
import lzma
import math
import random
import re
import resource
from functools import cache, partial

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from orchestrator.datasets import DatasetError, load, npz_file, read_libsvm
from orchestrator.datasets.memory import limited_to
from orchestrator.isolation.child_process import ProcessEnded, call_in_child
from orchestrator.study.study import DatasetSpec

SAMPLE, ALL = 240, 20_000
SECONDS = 30
MEMORY = 2**28

TOKENS = (
    *(
        b"nan",
        b"inf",
        b"1e400",
        b"-1e-400",
        b"1_0",
        b"0x1",
        b"\0",
        b"\xff",
        b"\xef\xbb\xbf",
        b"\r\n",
        b"\n\n",
    ),
    *(
        b"\t",
        b" ",
        b",",
        b":",
        b"#",
        b"qid:1",
        b"0:1",
        b"-1:1",
        b"2147483648:1",
        b"99999999999:1",
        b"'",
        b'"',
    ),
    *(b"?", b"<null>", b"%", b"@data\n", b"{", b"}", b"1.5", b"7" * 40, b"<html>", b"+1", b"1:2:3"),
)
TABLE = pd.DataFrame(
    {"x": np.arange(12) * 0.25, "city": ["Ulm", "Bonn", None] * 4, "y": list("pqr") * 4},
    columns=["x", "city", "y"],
)
TEXT = b"".join(b"%d 1:%r 3:%d 4:-1.5e-3\n" % (row % 3, row * 0.37, row + 1) for row in range(40))
HEAD = "@relation r\n@attribute x numeric\n@attribute city {Ulm, Bonn}\n@attribute y {p,q,r}\n@data\n"
LABEL = {"label": "y"}


def parquet():
    file = io.BytesIO()
    TABLE.to_parquet(file, write_page_checksum=True)
    return file.getvalue()


def numpy_file(save, *arrays, **named):
    file = io.BytesIO()
    save(file, *arrays, **named)
    return file.getvalue()


ARRAYS = {"X": np.arange(24.0).reshape(12, 2), "y": np.arange(12) % 3}
GOOD = {
    "t.libsvm": TEXT,
    "u.libsvm": TEXT.replace(b" ", b"\t").replace(b"\n", b" # note\r\n", 3),
    "t.libsvm.gz": gzip.compress(TEXT, mtime=0),
    "t.libsvm.bz2": bz2.compress(TEXT),
    "t.libsvm.xz": lzma.compress(TEXT),
    "t.csv": TABLE.to_csv(index=False).encode(),
    "t.tsv": TABLE.to_csv(index=False, sep="\t").encode(),
    "t.arff": (HEAD + TABLE.to_csv(index=False, header=False, na_rep="?")).encode(),
    "t.parquet": parquet(),
    "t.npz": numpy_file(np.savez_compressed, **ARRAYS),
    "t.npy": numpy_file(np.save, np.column_stack(list(ARRAYS.values()))),
}
TARGETS = {
    "csv": "csv_file",
    "tsv": "csv_file",
    "arff": "arff_file",
    "parquet": "parquet_file",
    "npy": "npy_file",
}


def damaged(content, rng):
    """Return content with one to four damages."""
    content = bytearray(content)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(content) + 1)
        span = slice(at, at + rng.choice((1, 2, 8, 60)))
        kind = rng.randrange(6)
        if kind == 0 and at < len(content):
            content[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            content[at:at] = rng.choice(TOKENS)
        elif kind == 2:
            del content[span]
        elif kind == 3:
            content[at:at] = content[span]
        elif kind == 4:
            content[span] = bytes(rng.randrange(256) for _ in content[span])
        elif rng.random() < 0.3:
            del content[at:]
    return bytes(content)


NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def number(token):
    if NUMBER.fullmatch(token) is None or not math.isfinite(float(token)):
        raise ValueError(token)
    return float(token)


def plainly_read(text):
    """Return rows of LIBSVM text as (label, {index: value}); ValueError for what is none."""
    rows = []
    for line in text.split(b"\n"):
        label, *pairs = line.partition(b"#")[0].split() or [None]
        if label is None:
            continue
        values = {}
        for pair in pairs:
            index, value = pair.split(b":")
            if not re.fullmatch(rb"\+?\d+", index) or not max(values, default=0) < int(index) < 2**31:
                raise ValueError(pair)
            values[int(index)] = number(value)
        rows.append((number(label), values))
    if not rows:
        raise ValueError("no rows")
    return rows


def as_rows(X, y):
    X = scipy.sparse.csr_matrix(X)
    starts = zip(X.indptr[:-1], X.indptr[1:], strict=True)
    values = ({int(X.indices[k]) + 1: X.data[k] for k in range(a, b) if X.data[k]} for a, b in starts)
    return [(float(label), row) for label, row in zip(y, values, strict=True)]


def without_zeros(rows):
    return [(label, {at: value for at, value in row.items() if value}) for label, row in rows]


def libsvm_problem(path, content):
    try:
        expected = without_zeros(plainly_read(TEXT if path.suffix != ".libsvm" else content))
    except ValueError:
        expected = None
    try:
        found = as_rows(*read_libsvm(path))
    except DatasetError as error:
        archive = path.suffix != ".libsvm"
        wide = expected is not None and max((max(row, default=0) for _, row in expected), default=0) > 10**6
        return "" if archive or wide or expected is None else f"refused what is good: {error}"
    return "" if found == expected else "read what the file does not say"


def npz_problem(path):
    X, y = npz_file(str(path))
    same = np.array_equal(X, ARRAYS["X"]) and np.array_equal(y, ARRAYS["y"])
    return "" if same else "read what the archive does not hold"


def table_problem(path):
    kind = path.suffix[1:]
    spec = DatasetSpec(
        "t", f"orchestrator.datasets.{TARGETS[kind]}", {"path": str(path)} | (LABEL if kind != "npy" else {})
    )
    dataset = load(spec)
    n = dataset.X.shape[0]
    numbers = (
        dataset.X.select_dtypes("number").to_numpy() if hasattr(dataset.X, "select_dtypes") else dataset.X
    )
    good = (
        len(dataset.codes) == n and not np.isinf(numbers).any() and dataset.codes.max() < len(dataset.classes)
    )
    return "" if good else f"{n} rows, {len(dataset.codes)} labels, infinite: {np.isinf(numbers).any()}"


def problem_of(seed, folder):
    """Damage a file and read it; return what is wrong with how that ended."""
    rng = random.Random(seed)
    names = sorted(GOOD)
    name = names[seed % len(names)]
    content = damaged(GOOD[name], rng)
    path = folder / name
    path.write_bytes(content)
    limit_memory()
    try:
        with limited_to(MEMORY):
            if "libsvm" in name:
                problem = libsvm_problem(path, content)
            else:
                problem = npz_problem(path) if name == "t.npz" else table_problem(path)
    except DatasetError:
        return ""
    except BaseException as error:
        problem = f"{type(error).__name__}: {error}"
    return problem and f"{name}, seed {seed}: {problem}"


@cache
def limit_memory():
    """Let what takes gigabytes fail."""
    most = 2**32
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))


def problems(seeds, folder):
    found = []
    for seed, result in zip(
        seeds, call_in_child(partial(problem_of, folder=folder), seeds, SECONDS), strict=True
    ):
        if isinstance(result, ProcessEnded):
            # Reading is done in a process of its own for that: Arrow crashes on some damaged Parquet files.
            if sorted(GOOD)[seed % len(GOOD)] != "t.parquet" or "within" in result.reason:
                found.append(f"seed {seed}: {result.reason}")
        elif result:
            found.append(result)
    return found


def test_good_files_are_read(tmp_path):
    for name, content in GOOD.items():
        (tmp_path / name).write_bytes(content)
        if "libsvm" in name:
            assert as_rows(*read_libsvm(tmp_path / name)) == without_zeros(plainly_read(TEXT))
        else:
            assert (npz_problem if name == "t.npz" else table_problem)(tmp_path / name) == ""


def test_damaged_files_give_a_sentence_or_what_they_say(tmp_path):
    assert problems(range(SAMPLE), tmp_path) == []


@pytest.mark.full
def test_twenty_thousand_damaged_files_give_a_sentence_or_what_they_say(tmp_path):
    assert problems(range(SAMPLE, SAMPLE + ALL), tmp_path) == []
