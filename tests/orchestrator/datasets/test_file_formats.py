"""One table in every format gives one dataset, and a broken file one sentence."""

import bz2
import gzip
import io
import lzma
import zipfile
from contextlib import suppress
from functools import partial

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_iris

from orchestrator.datasets import (
    DatasetError,
    arff_file,
    csv_file,
    excel_file,
    load,
    npy_file,
    npz_file,
    parquet_file,
)
from orchestrator.datasets.formats import format_problem
from orchestrator.datasets.given_split import two_files
from orchestrator.datasets.memory import limited_to
from orchestrator.datasets.table import notes_of
from orchestrator.study.study import DatasetSpec
from tests.messages import assert_says, raises

IRIS = load_iris(as_frame=True).frame
HEAD = "@relation r\n@attribute x numeric\n@attribute 'a city' {Ulm, 'St. Gallen'}\n@attribute y {a,b}\n"


def written(folder):
    X, y = IRIS.drop(columns="target"), IRIS["target"]
    IRIS.to_csv(folder / "iris.csv", index=False)
    IRIS.to_csv(folder / "iris.tsv.gz", index=False, sep="\t")
    IRIS.to_parquet(folder / "iris.parquet")
    (folder / "hub" / "data").mkdir(parents=True)
    (folder / "hub" / "README.md").write_text("no table")
    for part, rows in enumerate((IRIS[:70], IRIS[70:])):
        rows.to_parquet(folder / "hub" / "data" / f"train-0000{part}-of-00002.parquet")
    np.savez_compressed(folder / "iris.npz", X=X.to_numpy(), y=y)
    np.savez(folder / "floats.npz", X=X.to_numpy(), y=y.astype(float))
    np.save(folder / "iris.npy", IRIS.to_numpy())
    head = "".join(f"@ATTRIBUTE '{name}' REAL\n" for name in IRIS)
    rows = IRIS.to_csv(index=False, header=False)
    (folder / "iris.arff.gz").write_bytes(
        gzip.compress(f"% flowers\n@relation iris\n{head}@data\n{rows}".encode())
    )
    return {
        "csv_file": ["iris.csv", "iris.tsv.gz"],
        "parquet_file": ["iris.parquet", "hub"],
        "npz_file": ["iris.npz", "floats.npz"],
        "npy_file": ["iris.npy"],
        "arff_file": ["iris.arff.gz"],
    }


def test_every_format_of_a_table_has_one_fingerprint(tmp_path):
    found = {}
    for loader, files in written(tmp_path).items():
        label = {} if loader in ("npz_file", "npy_file") else {"label": "target"}
        for file in files:
            params = {"path": str(tmp_path / file), **label}
            found[file] = load(DatasetSpec(file, f"orchestrator.datasets.{loader}", params)).fingerprint
    known = load(DatasetSpec("iris", "sklearn.datasets.load_iris", {"return_X_y": True})).fingerprint
    assert found == dict.fromkeys(found, known)
    assert len(found) == 8


def test_text_and_missing_values_come_from_parquet_and_arff(tmp_path):
    frame = pd.DataFrame(
        {"x": [1.5, None, 3], "city": pd.Categorical(["Ulm", None, "b"]), "y": ["p", "q", "p"]}
    )
    frame.to_parquet(tmp_path / "t.parquet")
    X, y = parquet_file(str(tmp_path / "t.parquet"), label="y")
    assert (X["city"].tolist()[::2], X.isna().sum().tolist()) == (["Ulm", "b"], [1, 1])
    assert y.tolist() == ["p", "q", "p"]
    (tmp_path / "t.arff").write_text(
        f"{HEAD}@data\n1.5,Ulm,a\n\n% a comment\n?, 'St. Gallen' ,b\r\n-2e1,?,a\n"
    )
    X, y = arff_file(str(tmp_path / "t.arff"), label="y")
    assert X["a city"].cat.categories.tolist() == ["Ulm", "St. Gallen"]
    assert X["x"].isna().tolist() == [False, True, False]
    assert X["a city"].isna().tolist() == [False, False, True]
    assert X["a city"].tolist()[:2] == ["Ulm", "St. Gallen"]
    assert y.tolist() == ["a", "b", "a"]
    (tmp_path / "s.arff").write_text("@attribute n string\n@attribute y {1, 1}\n@data\n\"a, 'b'\",1\n")
    assert arff_file(str(tmp_path / "s.arff"), label="y")[0]["n"].tolist() == ["a, 'b'"]


def test_nominal_columns_become_zeros_and_ones_by_the_values_that_are_declared(tmp_path):
    file = tmp_path / "t.arff"
    head = (
        "@attribute x real [0, 9]\n@attribute c {a,b,z}\n@attribute two {no,yes}\n@attribute y {p,q}\n@data\n"
    )
    file.write_text(f"{head}1,b,yes,p\n2,?,no,q\n<null>,a,?,p\n4,a,no,q\n")
    X, y = arff_file(str(file), label="y", one_hot=True)
    assert list(X) == ["x", "c=a", "c=b", "c=z", "two=yes"]
    nan = np.nan
    expected = [[1, 0, 1, 0, 1], [2, nan, nan, nan, 0], [nan, 1, 0, 0, nan], [4, 1, 0, 0, 0]]
    assert np.array_equal(X.to_numpy(), expected, equal_nan=True)
    X, y = arff_file(str(file), label="y", one_hot=True, complete_rows=True)
    assert X.to_numpy().tolist() == [expected[0], expected[3]]
    assert y.tolist() == ["p", "q"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", ("empty",)),
        ("%\n", ("line 1", "@data")),
        ("<html>\n", ("line 1", "@relation", "'<html>'")),
        ("@relation r\n@data\n1\n", ("line 2", "@data", "'@attribute age numeric'")),
        ("@attribute x\n", ("line 1", "'@attribute name type'", "'@attribute x'")),
        (
            "@attribute x relational\n",
            ("line 1", "numeric", "{values}", "'x'"),
        ),
        ("@attribute a,b numeric\n", ("line 1", "@data")),
        (HEAD, ("line 4", "@data")),
        (HEAD + "@data\n", ("rows", "@data", "none")),
        (HEAD + "@data\n1,Ulm,a\n1,Ulm\n", ("line 7", "3", "2")),
        (HEAD + "@data\n1,Ulm,a,b\n", ("line 6", "3", "4")),
        (HEAD + "@data\n1_0,Ulm,a\n", ("line 6", "number", "'x'", "'1_0'")),
        (HEAD + "@data\n\n1e400,Ulm,a\n", ("line 7", "number", "'x'", "'1e400'")),
        (
            HEAD + "@data\n1,Bonn,a\n",
            ("line 6", "'a city'", "'Bonn'"),
        ),
        (HEAD + "@data\n1,'Ulm,a\n", ("line 6", "closing quote")),
        (HEAD + "@data\n{0 1, 2 a\n", ("line 6", "sparse row")),
        (HEAD.replace(" x ", " y ") + "@data\n1,Ulm,a\n", ("two columns", "'y'")),
        (HEAD.replace(" y ", " z ") + "@data\n1,Ulm,a\n", ("column 'y'", "a city", "z")),
    ],
)
def test_broken_arff_is_named_by_its_line(text, sentence, tmp_path):
    file = tmp_path / "t.arff"
    file.write_text(text)
    with pytest.raises(DatasetError) as found:
        arff_file(str(file), label="y")
    assert_says(str(found.value), *sentence)
    assert "t.arff" in str(found.value)


def npz(**arrays):
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def sparse_npz(kind):
    """An archive of a sparse matrix, as `scipy.sparse.save_npz` writes it, and labels."""
    matrix = scipy.sparse.csr_matrix([[0, 1.5], [2, 0]]).asformat(kind)
    arrays = {name: getattr(matrix, name) for name in ("data", "indices", "indptr", "shape")}
    return npz(**arrays, format=kind.encode(), y=[0, 1])


def npy(array):
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def claiming(shape):
    """An archive whose array says that it is larger than it is."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("X.npy", npy(np.zeros((3, 1))).replace(b"(3, 1), }", f"{shape}, }}".encode()))
    return buffer.getvalue()


OBJECTS = np.array([{}, {}], dtype=object)


@pytest.mark.parametrize(
    ("loader", "content", "sentence"),
    [
        (npz_file, b"", ("empty",)),
        (npz_file, b"<html>", ("File is not a zip file",)),
        (npz_file, npz(X=[[1.0]], y=[1])[:-40], ("cannot read", "fetch it again")),
        (npz_file, npz(x=[[1.0]], y=[1]), ("'X'", "'x'", "`features`", "`label`")),
        (npz_file, npz(X=OBJECTS, y=[1, 2]), ("Python objects",)),
        (npz_file, claiming("(9, 9)"), ("'X'", "shape (9, 9)", "152")),
        (npz_file, sparse_npz("csc"), ("CSR", "csc", "tocsr")),
        (npy_file, b"", ("empty",)),
        (npy_file, npy(np.ones((9, 2)))[:-8], ("cannot read", "check")),
        (npy_file, b"x,y\n1,2\n", ("numpy.save", "`path`")),
        (npy_file, npy(OBJECTS), ("objects",)),
        (npy_file, npy(np.ones(3)), ("table", "shape", "(3,)")),
        (npy_file, npz(X=[[1.0]], y=[1]), ("npz_file",)),
        (parquet_file, b"", ("empty",)),
        (parquet_file, b"PAR1" + b"x" * 40 + b"PAR1", ("cannot read", "Parquet")),
        (csv_file, b"", ("empty",)),
        (csv_file, b"x,y\n1,2\n1,2,3,4\n", ("2", "line 3", "4")),
        (csv_file, b"x,y\n1,2,3\n4,5,6\n", ("index_col: 0",)),
        (csv_file, b"y,a,b\np,1,2\nq,3,4\np,5", ("line 4", "incomplete")),
        (csv_file, b"<html>", ("column 'y'", "<html>")),
    ],
)
def test_broken_files_of_other_formats_get_a_sentence(loader, content, sentence, tmp_path):
    file = tmp_path / "t"
    file.write_bytes(content)
    label = {} if loader in (npz_file, npy_file) else {"label": "y"}
    with raises(DatasetError, *sentence):
        loader(str(file), **label)


def test_names_of_rows_and_commas_at_the_ends_of_lines_shift_no_column(tmp_path):
    (tmp_path / "named.csv").write_text('"x","y"\n"a",1,"p"\n"b",2,"q"\n')
    (tmp_path / "ended.csv").write_text("x,y\n1,p,\n2,q,\n")
    for file, options in {"named.csv": {"index_col": 0}, "ended.csv": {}}.items():
        X, y = csv_file(str(tmp_path / file), label="y", **options)
        assert (X["x"].tolist(), y.tolist()) == ([1, 2], ["p", "q"])


@pytest.mark.parametrize("end", ["p,5,", "p,5,6", "p,5,6\n\n", 'p,5,"6\n7"', "p,5\n", "  "])
def test_a_last_line_without_an_end_may_be_whole(end, tmp_path):
    (tmp_path / "t.csv").write_text(f"y,a,b\np,1,2\nq,3,4\n{end}")
    assert len(csv_file(str(tmp_path / "t.csv"), label="y")[1]) == (2 if end == "  " else 3)


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress])
@pytest.mark.parametrize("loader", [arff_file, csv_file])
def test_a_broken_download_of_a_compressed_text_is_named(loader, compress, tmp_path):
    content = compress(np.random.default_rng(0).bytes(9000).hex().encode())
    file = tmp_path / f"t.{ {'gzip': 'gz', 'bz2': 'bz2', 'lzma': 'xz'}[compress.__module__] }"
    for broken in (content[:-9], content[:60] + bytes(40) + content[100:]):
        file.write_bytes(broken)
        with pytest.raises(DatasetError, match=r"cannot read .*/t"):
            loader(str(file), label="y")


def test_a_sparse_matrix_with_labels_is_read_from_an_archive(tmp_path):
    (tmp_path / "sparse.npz").write_bytes(sparse_npz("csr"))
    X, y = npz_file(str(tmp_path / "sparse.npz"))
    assert X.format == "csr"
    assert (X.toarray().tolist(), y.tolist()) == ([[0, 1.5], [2, 0]], [0, 1])


@pytest.mark.parametrize("loader", [arff_file, csv_file, npy_file, npz_file, parquet_file])
def test_a_path_without_a_file_is_named(loader, tmp_path):
    label = {} if loader in (npz_file, npy_file) else {"label": "y"}
    for path in (tmp_path, tmp_path / "no.file"):
        with pytest.raises(DatasetError, match=str(path)):
            loader(str(path), **label)


@pytest.mark.parametrize(
    ("path", "facts"),
    [
        ("a/b.zip", ("suffix .zip", "unpack")),
        ("b.tar.gz", ("suffix .tar", "unpack")),
        ("b.TXT", ("suffix .txt", "rename it to b.csv")),
        ("b.json", ("pandas.read_json('b.json')", "b.csv")),
        ("a/b.npy", ("numpy.load('a/b.npy')", "b.npz")),
        ("b.xls", ("save it as b.xlsx",)),
        ("b.pkl", ("svmbench.compare",)),
        ("b.mat", ("convert it to .csv",)),
        ("b", ("no suffix", "b.csv")),
        (".", ("a folder",)),
    ],
)
def test_a_file_of_another_format_gets_a_remedy(path, facts):
    assert_says(format_problem(path), path, "expected a data file", *facts)


@pytest.mark.parametrize(
    ("train", "test"),
    [("123", "12"), ("123", "124"), ("rst", "rs"), ("rst", "ru"), ("rst", "rr"), ("123", "11")],
)
def test_categories_of_a_given_split_may_differ_between_its_files(train, test, tmp_path):
    for name, values in (("train", train), ("test", test)):
        lines = [f"{value},{row},{'ab'[row % 2]}" for row, value in enumerate(values)]
        (tmp_path / f"{name}.csv").write_text("\n".join(["kind,x,y", *lines, ""]))
    nodes = [
        {
            "_target_": "orchestrator.datasets.csv_file",
            "path": str(tmp_path / f"{name}.csv"),
            "label": "y",
            "categories": ["kind"],
        }
        for name in ("train", "test")
    ]
    X, _, _ = two_files(*nodes)
    assert isinstance(X["kind"].dtype, pd.CategoricalDtype)
    assert list(map(str, X["kind"])) == [*train, *test]


def test_labels_of_a_given_split_are_written_in_one_way(tmp_path):
    truths = np.tile([True, False], 4)
    other = {"text": truths.astype(str), "number": truths.astype(int), "spelling": truths.astype(str)}
    other["spelling"] = np.char.upper(other["spelling"])
    nodes = {"train": truths, **other}
    for name, labels in nodes.items():
        pd.DataFrame({"x": range(8), "y": labels}).to_parquet(tmp_path / f"{name}.parquet")
        path = str(tmp_path / f"{name}.parquet")
        nodes[name] = {"_target_": "orchestrator.datasets.parquet_file", "path": path, "label": "y"}
    _, y, _ = two_files(nodes["train"], nodes["text"])
    assert y.tolist() == ["True", "False"] * 8
    for name, labels in (("number", ("'1'", "'0'")), ("spelling", ("'TRUE'", "'FALSE'"))):
        with raises(DatasetError, f"{name}.parquet", "'True', 'False'", *labels, "in the same way"):
            two_files(nodes["train"], nodes[name])


def test_a_workbook_has_each_name_once_and_no_feature_of_row_numbers(tmp_path):
    pytest.importorskip("openpyxl")
    path, table = str(tmp_path / "t.xlsx"), pd.DataFrame({"x": [1.5, 2.5], "x.1": [3, 4], "y": ["a", "b"]})
    table.to_excel(path)
    X, _ = excel_file(path, "y")
    assert [*X] == ["x", "x.1"]
    assert_says(notes_of(X)[0], "Unnamed: 0", "not a feature")
    table.rename(columns={"x.1": "x"}).to_excel(path, index=False)
    with raises(DatasetError, "t.xlsx", "row 1", "two columns 'x'"):
        excel_file(path, "y")


def test_a_row_is_named_by_its_place_in_the_file_though_rows_before_it_are_dropped(tmp_path):
    path = str(tmp_path / "t.parquet")
    pd.DataFrame({"x": [1.0, 2.0, 3.0], "y": [None, "1", "b"]}).to_parquet(path)
    with raises(DatasetError, "row 2 (from 0)", "'b'"):
        parquet_file(path, "y", label_type="number", unlabelled="drop")


def test_files_of_a_folder_must_be_of_one_table(tmp_path):
    IRIS.to_parquet(tmp_path / "a.parquet")
    IRIS.rename(columns={"target": "kind"}).to_parquet(tmp_path / "b.parquet")
    with raises(DatasetError, "b.parquet", "other columns", "a.parquet", "kind"):
        parquet_file(str(tmp_path), label="target")


def test_files_larger_than_memory_are_refused_before_they_are_read(tmp_path):
    zeros = np.zeros(2_000_000)
    np.savez_compressed(tmp_path / "t.npz", X=zeros[:, None], y=zeros)
    pq.write_table(pa.table({"x": zeros, "y": zeros}), tmp_path / "t.parquet")
    (tmp_path / "t.arff.gz").write_bytes(gzip.compress(b"%" * 16_000_000))
    with limited_to(15e6):
        for loader, name, label in (
            (npz_file, "t.npz", {}),
            (parquet_file, "t.parquet", {"label": "y"}),
            (arff_file, "t.arff.gz", {"label": "y"}),
        ):
            with raises(DatasetError, "data", "14.3 MiB"):
                loader(str(tmp_path / name), **label)


@given(data=st.data())
def test_damaged_files_are_refused_or_read(data, tmp_path_factory):
    """Parquet is left to pyarrow, in a process of its own."""
    folder = tmp_path_factory.getbasetemp()
    good = {
        "t.npz": npz(X=np.arange(6.0).reshape(3, 2), y=[0, 1, 0]),
        "t.npy": npy(np.arange(6.0).reshape(3, 2)),
        "t.arff": f"{HEAD}@data\n1.5,Ulm,a\n?,'St. Gallen',b\n".encode(),
    }
    name = data.draw(st.sampled_from(sorted(good)))
    content = bytearray(good[name])
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    file = folder / name
    file.write_bytes(
        content[: data.draw(st.integers(0, len(content)))] if data.draw(st.booleans()) else content
    )
    read = {"t.npz": npz_file, "t.npy": npy_file}.get(name, partial(arff_file, label="y"))
    with suppress(DatasetError):  # anything else is a failure
        X, y = read(str(file))
        assert name == "t.npz" or len(X) == len(y)
