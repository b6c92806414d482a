"""ARFF against a second reader, liac-arff, value by value; where that is wrong, against the grammar."""

import random
import re

import arff as liac
import numpy as np
import pytest

from orchestrator.datasets import DatasetError, arff_file, load
from orchestrator.datasets.dataset import Dataset
from orchestrator.study.study import DatasetSpec
from tests.messages import raises

WORDS = (
    *(
        "a",
        "b c",
        "d,e",
        "f%",
        "%g",
        "h'i",
        'j"k',
        "l\\m",
        "{n}",
        "",
        " o ",
        "?",
        "p\tq",
        "r\ns",
        "é",
        "1",
        "01",
    ),
    *("<null>", "T", "@data", "u'v\"w", "\\n", "x=1"),
)


BARE = re.compile(r"""[^\s,{}%'"?][^\s,{}]*""")


def written(word, rng):
    """Write a text as the grammar has it: bare where it may be, or in quotes of either kind."""
    if BARE.fullmatch(word) and word != "<null>" and rng.random() < 0.5:
        return word
    quote = rng.choice("'\"")
    escaped = word.replace("\\", "\\\\").replace(quote, f"\\{quote}")
    for character, escape in (("\n", "\\n"), ("\t", "\\t"), ("%", rng.choice(["%", "\\%"]))):
        escaped = escaped.replace(character, escape)
    return f"{quote}{escaped}{quote}"


def generated(seed):
    """Return the names, the rows and the text of a file, with some values missing."""
    rng = random.Random(seed)
    names = rng.sample([word for word in WORDS if word], 4)
    kinds = [rng.choice(["real", "string", rng.sample(WORDS, 5)]) for _ in names]
    rows = [[*(_value(kind, rng) for kind in kinds), rng.choice("pq")] for _ in range(6)]
    comma = rng.choice([",", ", ", " ,"])
    text = "% made\n@relation r\n"
    for name, kind in zip(names, kinds, strict=True):
        kind = kind if isinstance(kind, str) else f"{{{comma.join(written(word, rng) for word in kind)}}}"
        text += f"@attribute {written(name, rng)} {kind}\n"
    text += "@attribute label {p,q}\n@data\n"
    for row in rows:
        fields = ("?" if v is None else written(v, rng) if isinstance(v, str) else repr(v) for v in row)
        text += comma.join(fields) + "\n"
    return names, rows, text


def _value(kind, rng):
    if rng.random() < 0.15:
        return None
    if kind == "real":
        return rng.choice([0.0, -1.5, 1e300, 12345.678, rng.random()])
    return rng.choice(WORDS if kind == "string" else kind)


def values_of(path):
    X, y = arff_file(str(path), label="label")
    plain = X.astype(object).where(X.notna(), None)
    return [[*row, label] for row, label in zip(plain.to_numpy().tolist(), y.tolist(), strict=True)], [*X]


@pytest.mark.parametrize("part", range(2))
def test_values_are_those_that_were_written(part, tmp_path):
    file = tmp_path / "t.arff"
    for seed in range(250 * part, 250 * part + 250):
        names, rows, text = generated(seed)
        file.write_text(text, encoding="utf-8", newline="")
        assert values_of(file) == (rows, names), seed


def test_a_second_reader_finds_the_same_values(tmp_path):
    """Where liac-arff reads a file at all: lines with both kinds of quotes are beyond it."""
    read, differ = 0, set()
    for seed in range(600):
        _, rows, text = generated(seed)
        try:
            found = liac.loads(text)["data"]
        except (liac.ArffException, ValueError):
            continue
        read += 1
        pairs = zip(rows, found, strict=True)
        differ |= {(a, b) for ours, theirs in pairs for a, b in zip(ours, theirs, strict=True) if a != b}
    assert read >= 100
    assert not differ


def test_sparse_rows_are_those_of_the_second_reader(tmp_path):
    rng = np.random.default_rng(0)
    X = np.where(rng.random((40, 6)) < 0.3, rng.normal(size=(40, 6)).round(3), 0)
    attributes = [*((f"x{at}", "REAL") for at in range(6)), ("label", ["p", "q"])]
    data = [
        {at: value for at, value in enumerate(row) if value} | {6: "pq"[at % 2]} for at, row in enumerate(X)
    ]
    text = liac.dumps({"relation": "r", "attributes": attributes, "data": data})
    assert "{" in text.partition("@DATA")[2]
    (tmp_path / "t.arff").write_text(text)
    found, y = arff_file(str(tmp_path / "t.arff"), label="label")
    assert np.array_equal(found.to_numpy(), X)
    assert y.tolist() == ["p", "q"] * 20


def weighted(folder):
    (folder / "w.arff").write_text("@attribute x real\n@attribute y {0,1}\n@data\n1,0,{2}\n2,1,{3}\n3,0\n")
    return DatasetSpec("w", "orchestrator.datasets.arff_file", {"path": str(folder / "w.arff"), "label": "y"})


def test_weights_of_rows_are_read_past_and_that_is_said(tmp_path):
    dataset = load(weighted(tmp_path))
    assert isinstance(dataset, Dataset)
    assert dataset.X.tolist() == [[1], [2], [3]]
    assert ["2 of 3" in note and "weights" in note for note in dataset.notes] == [True]


def test_a_date_may_be_dropped(tmp_path):
    file = tmp_path / "t.arff"
    file.write_text(
        '@attribute d date "yyyy"\n@attribute x real\n@attribute y {a,b}\n@data\n2020,1,a\n2021,2,b\n'
    )
    assert [*arff_file(str(file), label="y", drop=["d"])[0]] == ["x"]


def test_labels_are_as_declared_unless_the_configuration_says_otherwise(tmp_path):
    file = tmp_path / "t.arff"
    file.write_text("@attribute x real\n@attribute n real\n@attribute y {1,01,2}\n@data\n1,1,1\n2,2,2\n")
    read = [
        arff_file(str(file), label=label, label_type=label_type)[1].tolist()
        for label, label_type in (("y", "auto"), ("y", "number"), ("n", "auto"), ("n", "text"))
    ]
    assert read == [["1", "2"], [1, 2], [1, 2], ["1", "2"]]
    file.write_text(file.read_text() + "3,3,01\n")
    with raises(DatasetError, "'1'", "line 5", "'01'", "line 7"):
        arff_file(str(file), label="y", label_type="number")


def test_a_row_beside_the_data_mark_is_refused(tmp_path):
    file = tmp_path / "t.arff"
    head = "@attribute x real\n@attribute y {a,b}\n"
    file.write_text(f"{head}@data 1,a\n2,b\n3,a\n")
    with raises(DatasetError, "line 3", "rows", "'1,a'"):
        arff_file(str(file), label="y")
    file.write_text(f"{head}@DATA\t% now\n2,b\n3,a\n")
    assert arff_file(str(file), label="y")[1].tolist() == ["b", "a"]


@pytest.mark.parametrize(
    ("attributes", "row", "twice"),
    [
        ("@attribute x {p,q,r}\n@attribute 'x=q' real", "p,1", "x=q"),
        ("@attribute 'x=q' real\n@attribute x {p,q}", "1,p", "x=q"),
        ("@attribute x {p,'q=r'}\n@attribute 'x=q' {s,r}", "p,s", "x=q=r"),
    ],
)
def test_one_hot_replaces_no_column_by_another(attributes, row, twice, tmp_path):
    file = tmp_path / "t.arff"
    file.write_text(f"{attributes}\n@attribute y {{a,b}}\n@data\n{row},a\n{row},b\n")
    with pytest.raises(DatasetError, match=f"two columns '{twice}'"):
        arff_file(str(file), label="y", one_hot=True)
    assert arff_file(str(file), label="y")[0].shape == (2, 2)
