"""Two spellings are two values, what is left out of a file is said, and mistakes are named."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.datasets import DatasetError, load, load_and_prepare, open_prepared, parquet_file
from orchestrator.datasets.audit import audit
from orchestrator.datasets.spellings import exact_numbers, typed_category
from orchestrator.study.study import DatasetSpec
from tests.messages import raises

SPELLINGS = st.one_of(
    st.from_regex(r"[+-]?0{0,2}[0-9]{1,20}(\.[0-9]{1,3})?(e[+-]?[0-9])?", fullmatch=True),
    st.sampled_from(["true", "TRUE", "a", "a ", "nan", "NA", "inf", "1_0", "-0", "0", "0.0", "1e400", "١"]),
)


def csv(folder, text, **params):
    (folder / "t.csv").write_text(text, encoding="utf-8")
    params = {"path": str(folder / "t.csv"), "label": "y", **params}
    return DatasetSpec("t", "orchestrator.datasets.csv_file", params)


@given(texts=st.lists(SPELLINGS, min_size=2, max_size=8, unique=True))
def test_auto_merges_nothing(texts, tmp_path_factory):
    folder = tmp_path_factory.getbasetemp()
    rows = "".join(f"{row},{text}\n" for row, text in enumerate(texts))
    numbers = exact_numbers(texts)
    if numbers is not None and (numbers % 1 != 0).any():  # a target of a regression
        with pytest.raises(DatasetError, match="labels"):
            load(csv(folder, f"x,y\n{rows}"))
        return
    if {"NA", "nan"} & set(texts):
        with pytest.raises(DatasetError, match="label_type: text"):
            load(csv(folder, f"x,y\n{rows}"))
        dataset = load(csv(folder, f"x,y\n{rows}", label_type="text"))
    else:
        dataset = load(csv(folder, f"x,y\n{rows}"))
    assert len(dataset.classes) == len(texts)
    if dataset.classes.dtype.kind in "if":
        assert [float(text) for text in texts] == dataset.y.tolist()
    else:
        assert dataset.y.tolist() == texts
    assert len(typed_category(pd.Series(texts)).categories) == len(texts)


def test_numbers_are_those_whose_text_comes_back():
    assert exact_numbers(["1", "-3"]).tolist() == [1, -3]
    assert exact_numbers(["1.0", "2.0"]).tolist() == [1, 2]
    assert exact_numbers(["0.5", "2"]).tolist() == [0.5, 2]
    for texts in (["01"], ["+1"], ["1e3"], ["0.50"], ["1", "1.0"], ["-0", "0"], ["nan"], [str(2**64), "1"]):
        assert exact_numbers(texts) is None, texts


def test_what_is_left_out_is_said_once_by_check_and_kept_with_the_copy(tmp_path):
    spec = csv(tmp_path, ",x,y\n5,1.5,p\n3,2.5,q\n")
    for _ in range(2):
        dataset = open_prepared(load_and_prepare(spec, tmp_path / "cache"))
        assert dataset.columns == ("x",)
        said = [text for text in audit(dataset).sentences(dataset) if "Unnamed: 0" in text]
        assert len(said) == 1


@pytest.mark.parametrize(
    ("column", "stays"),
    [([0, 1, 2], False), ([1, 2, 3], False), ([7, 5, 6], False), ([1, 1, 2], True), ([0.5, 1.5, 2.5], True)],
)
def test_a_column_without_a_name_is_a_feature_unless_it_tells_rows_apart(column, stays, tmp_path):
    rows = "".join(f"{value},{row},{'pq'[row % 2]}\n" for row, value in enumerate(column))
    assert (load(csv(tmp_path, f",x,y\n{rows}")).X.shape[1] == 2) is stays
    assert load(csv(tmp_path, f"id,x,y\n{rows}")).X.shape[1] == 2
    assert (
        load(csv(tmp_path, f",x,y\n{rows}", label="x", drop=["y"], categories=["Unnamed: 0"])).X.shape[1] == 1
    )


def test_indices_that_pandas_saves_are_no_features(tmp_path):
    table = pd.DataFrame({"x": [1.0, 2, 3, 4], "y": [*"pqpq"]})
    file = tmp_path / "t.parquet"
    table.iloc[[2, 0, 1]].to_parquet(file)
    spec = DatasetSpec("t", "orchestrator.datasets.parquet_file", {"path": str(file), "label": "y"})
    dataset = load(spec)
    assert (dataset.columns, dataset.y.tolist()) == (("x",), ["p", "p", "q"])
    assert "__index_level_0__" in dataset.notes[0]
    table.assign(id=[*"abcd"]).set_index(["id", "y"]).to_parquet(file)
    assert [*parquet_file(str(file), label="y")[0]] == ["x"]
    assert [*parquet_file(str(file), label="y", categories=["id"])[0]] == ["x", "id"]


@pytest.mark.parametrize(
    "make", [lambda n: np.arange(n), lambda n: np.sqrt(np.arange(n)), lambda n: -np.arange(n)]
)
def test_a_regression_target_is_called_one(make, tmp_path):
    n = 200
    rows = "".join(f"{row % 7},{value}\n" for row, value in enumerate(make(n).tolist()))
    with raises(DatasetError, "200", "200 rows", "regression"):
        load(csv(tmp_path, f"x,y\n{rows}"))


def test_many_classes_are_no_regression_target(tmp_path):
    rows = "".join(f"{row},{row % 26}\n" for row in range(100))
    assert len(load(csv(tmp_path, f"x,y\n{rows}")).classes) == 26


@pytest.mark.parametrize(
    ("params", "facts"),
    [
        ({}, ["'label'", "label: "]),
        ({"lable": "y"}, ["'lable'", "'label'"]),
    ],
)
def test_a_label_that_is_missing_or_misspelt_is_named(params, facts, tmp_path):
    spec = csv(tmp_path, "x,y\n1,p\n2,q\n")
    given = {name: value for name, value in spec.params.items() if name != "label"}
    with pytest.raises(DatasetError) as refusal:
        load(DatasetSpec("t", spec.target, {**given, **params}))
    assert all(fact in str(refusal.value) for fact in facts)
    assert "positional" not in str(refusal.value)


def test_groups_in_a_file_are_text_too(tmp_path):
    (tmp_path / "groups.txt").write_text("01\n1\n01\n1\n")
    spec = csv(tmp_path, "x,y\n1,p\n2,q\n3,p\n4,q\n", groups="groups.txt")
    assert load(spec).metadata["groups"].tolist() == ["01", "1", "01", "1"]
    (tmp_path / "groups.txt").write_text("a\na \na\nb\n")
    assert load(spec).metadata["groups"].tolist() == ["a", "a ", "a", "b"]


def test_a_column_whose_first_million_values_are_numbers_stays_one_column(tmp_path):
    rows = "1,p\n2,q\n" * 300_000 + "x,p\n"
    assert set(load(csv(tmp_path, f"x,y\n{rows}")).X["x"]) == {"1", "2", "x"}


@pytest.mark.parametrize(
    ("groups", "options"),
    [
        (["01", "1", "01", "1"], {}),
        (["1e3", "1000", "1e3", "2"], {"engine": "python"}),
        (["true", "TRUE", "true", "x"], {}),
        (["7", "07", "7", "7"], {"dtype": {"x": "float"}}),
    ],
)
def test_groups_in_a_column_are_text_too(groups, options, tmp_path):
    rows = "".join(f"{group},{row},{'pq'[row % 2]}\n" for row, group in enumerate(groups))
    dataset = load(csv(tmp_path, f"g,x,y\n{rows}", groups="g", **options))
    assert dataset.metadata["groups"].tolist() == groups
    assert dataset.X.shape[1] == 1


def test_groups_that_a_configuration_calls_numbers_are_numbers(tmp_path):
    text = "g,x,y\n01,1,p\n1,2,q\n02,3,p\n2,4,q\n"
    dataset = load(csv(tmp_path, text, groups="g", dtype={"g": "int64"}))
    assert dataset.metadata["groups"].tolist() == [1, 1, 2, 2]
    assert load(csv(tmp_path, text.replace("0", ""), groups="g")).metadata["groups"].dtype.kind == "i"


def test_two_spellings_of_one_test_fold_are_refused(tmp_path):
    with pytest.raises(DatasetError, match=r"'0' .*line 2.* '00' .*line 4"):
        load(csv(tmp_path, "f,x,y\n0,1,p\n1,2,q\n00,3,p\n1,4,q\n", test_fold="f"))


@pytest.mark.parametrize("values", [["01", "1"], ["1e3", "1000"], ["1", "1.0"], [" 1", "1"], ["nan", "NaN"]])
def test_a_text_feature_merges_nothing(values, tmp_path):
    spec = csv(tmp_path, f"x,y\n{values[0]},p\n{values[1]},q\n", dtype={"x": "str"}, na_filter=False)
    assert load(spec).X["x"].tolist() == values
    (tmp_path / "t.arff").write_text(
        f"@relation r\n@attribute x string\n@attribute y {{p,q}}\n@data\n'{values[0]}',p\n'{values[1]}',q\n"
    )
    params = {"path": str(tmp_path / "t.arff"), "label": "y"}
    assert load(DatasetSpec("t", "orchestrator.datasets.arff_file", params)).X["x"].tolist() == values


def test_texts_of_different_numbers_are_numbers(tmp_path):
    dataset = load(csv(tmp_path, "x,y\n01,p\n2.50,q\n,q\n", dtype={"x": "str"}))
    assert dataset.X[:2, 0].tolist() == [1, 2.5]
