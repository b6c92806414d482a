"""Missing values, text and categories: loaded, prepared, sent, sliced, scaled and shared as they are."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.datasets import load_iris

from orchestrator.datasets import DatasetError, csv_file, load, open_prepared, prepare
from orchestrator.datasets.dataset import fingerprint
from orchestrator.execution import dataset_upload
from orchestrator.study.preparation import MINMAX, Preparation
from orchestrator.study.study import DatasetSpec, Protocol
from orchestrator.training.open_data import open_data, prepare_data
from orchestrator.training.shared_arrays import fresh_view, read_only
from orchestrator.training.split_data import fit_scaling, prepared_split
from tests.messages import raises

Y = [0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1]
FRAME = pd.DataFrame(
    {
        "age": [1.5, None, 3, -0.0] * 3,
        "children": pd.array([1, 2, None, 4] * 3, "Int64"),
        "city": ["Ulm", None, "b", "ü"] * 3,
        "size": pd.Categorical(["s", "m", None, "s"] * 3, ["s", "m", "l"], ordered=True),
        "floor": pd.Categorical([1, 2, None, 2] * 3),
    }
)


def mixed(**changed):
    return FRAME.assign(**changed), Y


def numbers(as_frame=True):
    X = FRAME[["age", "children"]]
    return (X if as_frame else X.to_numpy(np.float64, na_value=np.nan)), Y


def spec(name="mixed", **params):
    return DatasetSpec("people", f"{__name__}.{name}", params)


def test_a_frame_with_text_stays_a_frame_and_survives_the_disk(tmp_path):
    dataset = load(spec())
    X = dataset.X
    assert [str(dtype) for dtype in X.dtypes] == ["float64", "float64", "object", "category", "category"]
    assert X["city"].isna().tolist() == [False, True, False, False] * 3
    assert X["size"].cat.categories.tolist() == ["s", "m", "l"]
    folder = prepare(dataset, tmp_path)
    found = open_prepared(folder)
    pd.testing.assert_frame_equal(found.X, X)
    assert (found.fingerprint, found.columns) == (dataset.fingerprint, tuple(FRAME.columns))
    times = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
    assert prepare(dataset, tmp_path) == folder
    assert {path: path.stat().st_mtime_ns for path in folder.iterdir()} == times
    for path in folder.iterdir():
        content = path.read_bytes()
        path.write_bytes(content[:-8])
        prepare(dataset, tmp_path)
        pd.testing.assert_frame_equal(open_prepared(folder).X, X)


def test_missing_numbers_are_nan_whatever_marks_them():
    plain = load(spec("numbers"))
    assert np.array_equal(plain.X[:, 0], [1.5, np.nan, 3, 0] * 3, equal_nan=True)
    assert plain.columns == ("age", "children")
    assert load(spec("numbers", as_frame=False)).fingerprint == plain.fingerprint
    assert load(spec("masked")).fingerprint == plain.fingerprint
    assert load(spec("objects")).fingerprint == plain.fingerprint


def masked():
    X, y = numbers(as_frame=False)
    return np.ma.masked_invalid(X), y


def objects():
    X, y = numbers(as_frame=False)
    return [[None if value != value else value for value in row] for row in X.tolist()], y


def test_the_fingerprint_tells_contents_types_and_names_apart():
    cities = FRAME["city"]
    others = [
        mixed(),
        mixed(age=[1.5, None, 3, 1] * 3),
        mixed(city=["Ulm", "NaN", "b", "ü"] * 3),
        mixed(city=cities.astype("category")),
        mixed(size=FRAME["size"].cat.reorder_categories(["m", "s", "l"])),
        mixed(size=FRAME["size"].cat.as_unordered()),
        mixed(size=FRAME["size"].cat.remove_unused_categories()),
        (FRAME.rename(columns={"age": "years"}), Y),
        (FRAME[FRAME.columns[::-1]], Y),
        (FRAME, Y[::-1]),
    ]
    found = [loaded(*pair).fingerprint for pair in others]
    assert len(set(found)) == len(others)
    same = mixed(age=[1.5, np.float64("-nan"), 3, 0.0] * 3), (FRAME.set_index(np.arange(12)[::-1]), Y)
    assert {loaded(*pair).fingerprint for pair in same} == {found[0]}


GIVEN = []


def given():
    return GIVEN[-1]


def loaded(X, y):
    GIVEN.append((X, y))
    return load(spec("given"))


def test_finite_numbers_keep_the_fingerprints_they_always_had():
    X, y = load_iris(return_X_y=True)
    classes, codes = np.unique(y, return_inverse=True)
    sparse = scipy.sparse.csr_matrix(np.where(X > 2, X, 0))
    assert fingerprint(X, classes, codes, {}).startswith("b1aacf7d84b2d3ad451fddd2dd464049")
    assert fingerprint(sparse, classes, codes, {}).startswith("d651a4fd3cc4fa8080ddc1215d590bd5")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"born": [pd.Timestamp("2020-01-01"), "x"] * 6}, r"column 'born', found Timestamp"),
        (
            {"age": [1, np.inf, 2, 3] * 3},
            r"finite features, found 3 infinite values, .* row 1 \(from 0\), column 'age'",
        ),
        ({"city": ["Ulm", 3, "b", "ü"] * 3}, r"in column 'city', found 3 \(int\)"),
        ({"age": pd.cut(np.arange(12), 2)}, r"column 'age', found Interval"),
        ({"age": [{}] * 12}, r"column 'age', found \{\} \(dict\)"),
    ],
)
def test_columns_of_other_kinds_are_refused_by_name(changed, message):
    with pytest.raises(DatasetError, match=message):
        loaded(*mixed(**changed))


def test_dates_become_texts_and_durations_seconds():
    days = pd.date_range("2020-01-30", periods=12).to_series().where(np.arange(12) != 3)
    data = loaded(
        *mixed(
            born=days.to_numpy(), seen=days.dt.date.to_numpy(), at=days.to_numpy() + np.timedelta64(90, "s")
        )
    )
    assert data.X["born"].tolist()[:3] == ["2020-01-30", "2020-01-31", "2020-02-01"]
    assert pd.isna(data.X["born"][3])
    assert data.X["seen"].equals(data.X["born"])
    assert data.X["at"][0] == "2020-01-30T00:01:30"
    took = loaded(*mixed(took=np.arange(12).astype("timedelta64[m]")))
    assert took.X["took"].tolist()[:2] == [0.0, 60.0]


def test_two_columns_of_one_name_are_refused():
    with raises(DatasetError, "'city'", "twice"):
        loaded(FRAME.rename(columns={"age": "city"}), Y)


def test_a_host_gets_mixed_data_in_pieces(tmp_path, monkeypatch):
    monkeypatch.setenv("SVMBENCH_CACHE", str(tmp_path / "worker"))
    source, dataset, _ = prepare_data(spec(), Protocol(outer=2, inner=2), tmp_path / "client")
    for name, piece in dataset_upload.pieces(source):
        dataset_upload.receive_piece("token", name, piece)
    hidden = replace(source, folder=str(tmp_path / "gone" / source.folder.rpartition("/")[2]))
    dataset_upload.finish_upload("token", hidden)
    pd.testing.assert_frame_equal(open_data(hidden, Protocol(outer=2, inner=2))[0].X, dataset.X)


def test_scaling_is_fitted_on_training_rows_without_regard_to_what_is_missing():
    dataset, rows = load(spec()), np.arange(12)
    split = prepared_split(dataset, rows[:3], rows[3:], Preparation(MINMAX))
    assert split.X_train["age"].tolist()[::2] == [0.0, 1.0]
    assert np.isnan(split.X_train["age"].tolist()[1])
    assert split.X_test["age"].tolist()[:1] == [-1.0]
    others = ["city", "size", "floor"]
    pd.testing.assert_frame_equal(split.X_train[others], dataset.X[others].iloc[:3])
    X = np.array([[np.nan, 1.0], [np.nan, 3.0]])
    assert np.array_equal(fit_scaling(X).apply(X), [[np.nan, 0], [np.nan, 1]], equal_nan=True)


def test_trainings_get_frames_of_their_own():
    shared = read_only(load(spec()).X)
    before = shared.copy(deep=True)
    for _ in range(2):
        own = fresh_view(shared)
        pd.testing.assert_frame_equal(own, before)
        own.iloc[0, 0] = 99.0
        own["city"].array[0] = "elsewhere"
        own["age"].array[2] = 98.0
        own.drop(columns="size", inplace=True)
    pd.testing.assert_frame_equal(shared, before)


def test_a_csv_file_whose_columns_share_a_name_is_refused(tmp_path):
    file = tmp_path / "twice.csv"
    file.write_text("# of two hosts\nx;ill;ill\n1;0;0\n2;1;1\n")
    with raises(DatasetError, "twice.csv", "columns 'ill'"):
        csv_file(str(file), label="ill", sep=";", comment="#")
    file.write_text("x,ill,ill.1\n1,0,0\n2,1,1\n")  # as somebody has named them
    assert list(csv_file(str(file), label="ill")[0].columns) == ["x", "ill.1"]


def test_a_label_that_yaml_reads_as_no_text_is_to_be_quoted(tmp_path):
    file = tmp_path / "odd.csv"
    file.write_text("x,null\n1,0\n2,1\n")
    with raises(DatasetError, "None", "YAML", "quotes"):
        csv_file(str(file), label=None)
    assert csv_file(str(file), label="null")[1].tolist() == [0, 1]


def test_text_that_python_reads_as_a_number_with_underscores_stays_text(tmp_path):
    (tmp_path / "ages.csv").write_text("age,n,ill\n10_19,1,0\n20_29,2,1\n10_19,3,1\n")
    spec = DatasetSpec(
        "ages", "orchestrator.datasets.csv_file", {"path": str(tmp_path / "ages.csv"), "label": "ill"}
    )
    assert load(spec).X["age"].tolist() == ["10_19", "20_29", "10_19"]


def test_names_of_columns_that_are_no_list_are_not_taken_letter_by_letter(tmp_path):
    (tmp_path / "t.csv").write_text("a,b,y\n1,2,0\n3,4,1\n")
    for key in ("drop", "categories"):
        with raises(DatasetError, f"{key}", "list of columns", "'ab'", f"{key}: [ab]"):
            csv_file(str(tmp_path / "t.csv"), label="y", **{key: "ab"})


def test_a_label_may_be_the_position_of_its_column(tmp_path):
    file = tmp_path / "t.csv"
    for head, options in {"a,b,ill\n": {}, "": {"header": None}}.items():
        file.write_text(f"{head}1,2,no\n3,4,yes\n")
        for label in (2, -1):
            X, y = csv_file(str(file), label=label, **options)
            assert (X.to_numpy().tolist(), y.tolist()) == ([[1, 2], [3, 4]], ["no", "yes"])
        with pytest.raises(DatasetError, match="no column 3"):
            csv_file(str(file), label=3, **options)
    file.write_text("7,1\n0,5\n1,6\n")  # where 1 may be the position or the name
    with raises(DatasetError, "column 1", "quotes"):
        csv_file(str(file), label=1)


def test_a_csv_file_is_a_dataset(tmp_path):
    file = tmp_path / "people.csv"
    file.write_text("id;age;city;answer\n1;3;Ulm;yes\n2;;Bonn;no\n3;4;;yes\n", encoding="utf-8")
    X, y = csv_file(str(file), label="answer", drop=["id"], categories=["city"], sep=";")
    assert y.tolist() == ["yes", "no", "yes"]
    assert X.columns.tolist() == ["age", "city"]
    assert isinstance(X["city"].dtype, pd.CategoricalDtype)
    assert X.isna().sum().tolist() == [1, 1]
    with raises(DatasetError, "column 'anser'", "'answer'"):
        csv_file(str(file), label="anser", sep=";")
    with raises(DatasetError, "no file"):
        csv_file(str(tmp_path / "no.csv"), label="answer")
    with raises(DatasetError, "sepp", "sep"):
        csv_file(str(file), label="answer", sepp=";")
