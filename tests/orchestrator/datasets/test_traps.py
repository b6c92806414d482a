"""Tables as people have them: each is checked in sentences that say what is wrong, or is refused in one."""

import gzip
import shlex

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser

from orchestrator.config.override_text import with_quotes
from orchestrator.config.schema import dataset_spec
from orchestrator.datasets.audit import audit
from orchestrator.datasets.csv import csv_file
from orchestrator.datasets.dataset import DatasetError
from orchestrator.datasets.finding import COMMA, CONSTANT, Finding, brief, left_out
from orchestrator.datasets.formats import dataset_name, file_node
from orchestrator.datasets.likely_labels import label_hint, unknown_label
from orchestrator.datasets.loading import load
from orchestrator.datasets.number_texts import number_finding
from orchestrator.datasets.table import notes_of
from tests.messages import assert_says, lacks, raises

N = 120
RNG = np.random.default_rng(0)
Y = np.where(RNG.random(N) < 0.4, "yes", "no")
DAYS = pd.date_range("2023-11-20", periods=N, freq="3D")
SHUFFLED = DAYS[RNG.permutation(N)]


def table(**columns):
    """A table with a column of each kind that nobody remarks on, further columns, and labels."""
    plain = {"size": RNG.normal(size=N).round(6), "kind": RNG.choice(["a", "b", "c"], N)}
    return pd.DataFrame(plain | columns | {"y": columns.get("y", Y)})


def with_row(frame, **values):
    return pd.concat([frame, pd.DataFrame([values])], ignore_index=True)


def some(values, share, other):
    return np.where(np.arange(N) % round(1 / share) == 1, other, values)


WHOLE = RNG.integers(10, 99, N)

TRAPS = {
    # name: (table, facts of a sentence for each finding); a single list of facts in a tuple is a refusal
    "plain": (table(), []),
    "identifiers of text": (
        table(client_no=[f"C-{row:04}" for row in range(N)]),
        [["'client_no'", "identifier"]],
    ),
    "row numbers": (table(row=np.arange(N) + 1), [["'row'", "identifier", "drop=[row]"]]),
    "dates, year first": (table(born=SHUFFLED.strftime("%Y-%m-%d")), [["'born'", "dates"]]),
    "dates, day first": (table(born=SHUFFLED.strftime("%d.%m.%Y")), [["'born'", "dates"]]),
    "dates, month first": (table(born=SHUFFLED.strftime("%m/%d/%y")), [["'born'", "dates"]]),
    "dates in words": (table(born=SHUFFLED.strftime("%d %b %Y")), [["'born'", "dates"]]),
    "dates as numbers": (table(born=SHUFFLED.strftime("%Y%m%d")), [["'born'", "dates", "numbers"]]),
    "rows in order of time": (
        table(day=DAYS.strftime("%Y-%m-%d %H:%M")),
        [["'day'", "dates", "ascending", "TimeSeriesSplit", "protocol.outer"]],
    ),
    "a patient in many rows": (
        table(patient_id=RNG.integers(0, 30, N)),
        [["'patient_id'", "identifiers", "groups=patient_id"]],
    ),
    "a patient by number": (
        table(**{"Patient Nr.": [f"P{number}" for number in RNG.integers(0, 30, N)]}),
        [["'Patient Nr.'", "identifiers", "'groups=Patient Nr.'"]],
    ),
    "a patient by whole number": (
        table(patient=RNG.integers(1000, 1030, N)),
        [["'patient'", "identifiers", "groups=patient"]],
    ),
    "sizes of households": (table(household=RNG.integers(1, 12, N)), []),
    "whole numbers that are rounded": (
        table(tag=2**53 + RNG.integers(0, 60, N) * 2 + 1),
        [["'tag'", "2**53", "rounded", "drop=[tag]"]],
    ),
    "a unit behind numbers": (
        table(weight=[f"{value:.1f} kg" for value in RNG.random(N) * 90]),
        [["'weight'", "numbers with 'kg'"]],
    ),
    "a currency before numbers": (
        table(pay=[f"€{value:.2f}" for value in RNG.random(N) * 90]),
        [["'pay'", "numbers with '€'"]],
    ),
    "mixed types": (
        table(age=some(WHOLE.astype(str), 0.1, "unknown")),
        [["'age'", "numbers", "'unknown'", "12 rows", "na_values"]],
    ),
    "decimal commas": (
        table(price=[f"{value:.2f}".replace(".", ",") for value in RNG.random(N) * 9]),
        [["'price'", "comma", "decimal"]],
    ),
    "decimal commas with three digits": (
        table(price=[f"{value:.3f}".replace(".", ",") for value in RNG.random(N)]),
        [["'price'", "comma", "decimal"]],
    ),
    "thousands": (
        table(pay=[f"{value:,}" for value in RNG.integers(900, 90_000, N)]),
        [["'pay'", "thousands", "','"]],
    ),
    "gaps in the label": (
        table(y=some(Y, 0.1, None)),
        [["12 of 120 rows", "no label", "'y'", "dropped", "line 3"]],
    ),
    "60 % gaps": (
        table(late=np.where(np.arange(N) % 5 < 3, np.nan, WHOLE)),
        [["'late'", "60 %", "gaps", "72 of 120"]],
    ),
    "a constant": (table(one=1), [["'one'", "1", "all rows", "drop=[one]"]]),
    "an empty column": (table(void=None), [["'void'", "no value", "drop=[void]"]]),
    "the label again": (table(left=np.where(Y == "yes", 1, 0)), [["'left'", "label", "drop=[left]"]]),
    "a copy of the label": (table(again=Y), [["'again'", "copy", "label", "drop=[again]"]]),
    "copies of rows": (
        pd.concat([frame := table(), frame[:6]]),
        [["6 rows", "more than once", "120 of its 126 rows", "label included"]],
    ),
    "a rare class": (table(y=np.where(np.arange(N) < 3, "odd", Y)), [["'odd'", "3 rows", "5 folds"]]),
    "two spellings of a label": (
        table(y=np.where(np.arange(N) % 7 == 0, "Yes ", Y)),
        [["labels", "case", "spaces", "'yes'", "'Yes '"]],
    ),
    "two spellings of a text": (
        table(town=RNG.choice(["Ulm", "ULM", "Bonn"], N)),
        [["'town'", "'Ulm'", "'ULM'"]],
    ),
    "a row of totals without a label": (
        with_row(frame := table(pay=WHOLE), size=None, kind=None, pay=WHOLE.sum(), y=None),
        [["1 of 121 rows", "no label", "line 122"]],
    ),
    "a row of totals": (
        with_row(table(pay=WHOLE), size=1, kind="Total", pay=WHOLE.sum(), y="no"),
        [["last row", "totals", "'Total'"]],
    ),
    "names outside ASCII": (table(größe_名前=WHOLE), []),
    "labels of booleans": (table(y=Y == "yes"), []),
    "labels of fractions": (table(y=np.where(Y == "yes", 0.5, 1.5)), ("0.5", "whole numbers", "texts")),
    "labels of floats": (table(y=np.where(Y == "yes", 1.0, 2.0)), []),
    "labels that are measured": (table(y=RNG.normal(size=N)), ("classes", "120", "regression")),
    "one class": (table(y="no"), ("two classes", "'no'", "120 rows")),
    "a class called NA": (
        table(y=np.where(Y == "yes", "NA", "no")),
        ("two classes", "'no'", f"{(Y == 'yes').sum()} of 120 rows", "'NA'", "label_type: text"),
    ),
    "no such column": (table().rename(columns={"y": "yy"}), ("no column 'y'", "'yy'")),
    "free texts": (
        table(note=[" ".join(RNG.choice(list("abcdefgh"), 30)) for _ in range(N)]),
        [["'note'", "120 different texts"]],
    ),
}


def checked(file, label="y"):
    """The sentences of the check of a file; a DatasetError if it is refused."""
    problems = []
    spec = dataset_spec(dataset_name(str(file)), file_node(str(file), label=label), problems)
    assert not problems
    dataset = load(spec)
    return dataset, audit(dataset).sentences(dataset, folds=5)


def assert_told(told, facts):
    """Fail unless each row of facts is in a sentence, and no further sentence finds anything."""
    text = "\n".join(told)
    for row in facts:
        assert_says(text, *row)
    columns = [row[0] for row in facts if row[0].startswith("'")]
    others = [
        sentence
        for sentence in told
        if "column '" in sentence and all(lacks(sentence, each) for each in columns)
    ]
    assert not others
    assert bool(told) == bool(facts)


@pytest.mark.parametrize("name", TRAPS)
def test_what_is_wrong_with_a_table_is_said_column_by_column(name, tmp_path):
    frame, facts = TRAPS[name]
    file = tmp_path / "mine.csv"
    frame.to_csv(file, index=False)
    if isinstance(facts, tuple):
        with pytest.raises(DatasetError) as refusal:
            checked(file)
        assert_says(str(refusal.value), "'mine'", *facts)
        assert "\n" not in str(refusal.value)
    else:
        assert_told(checked(file)[1], facts)


TEXT = "size,kind,y\n" + "".join(f"{row / 8},{'ab'[row % 2]},{'pq'[row % 3 // 2]}\n" for row in range(30))

FILES = {
    "semicolons and commas": (TEXT.replace(",", ";").replace(".", ","), [["'size'", "comma", "decimal"]]),
    "tabs": (TEXT.replace(",", "\t"), []),
    "UTF-16": (TEXT.encode("utf-16"), []),
    "another encoding": (
        TEXT.replace("a", "ä").encode("latin-1"),
        ("UTF-8", "encoding: latin-1", "dataset.mine.KEY=VALUE"),
    ),
    "a title": ("Customers of 2024\n" + TEXT, ("line 2", "skiprows: 1", "dataset.mine.KEY=VALUE")),
    "two lines of comment": (
        "# Customers\n# of 2024\n" + TEXT,
        ("line 3", "skiprows: 2", "dataset.mine.KEY=VALUE"),
    ),
    "only names": ("size,kind,y\n", ("no rows",)),
    "a broken copy": (TEXT[:-5], ("line 31", "incomplete")),
    "two columns of one name": (TEXT.replace("kind", "size", 1), ("two columns", "'size'")),
    "two values of one row": ("1,1,y\n" * 31, ("two columns '1'", "line 1", "header: null")),
    "nothing": ("", ("empty",)),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_of_another_form_is_read_or_refused_in_a_sentence(name, tmp_path):
    content, facts = FILES[name]
    file = tmp_path / "mine.csv"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    if isinstance(facts, tuple):
        with pytest.raises(DatasetError) as refusal:
            checked(file)
        assert_says(str(refusal.value), *facts)
    else:
        dataset, told = checked(file)
        assert dataset.X.shape == (30, 2)
        assert_told(told, facts)


def written(file, frame):
    """Write a table as the format of a file's name."""
    text = frame.to_csv(index=False).encode()
    kinds = {
        ".gz": lambda: file.write_bytes(gzip.compress(text)),
        ".zst": lambda: file.write_bytes(pa.Codec("zstd").compress(text, asbytes=True)),
        ".tsv": lambda: frame.to_csv(file, index=False, sep="\t"),
        ".parquet": lambda: frame.to_parquet(file),
        ".feather": lambda: frame.to_feather(file),
        ".xlsx": lambda: frame.to_excel(file, index=False),
    }
    kinds.get(file.suffix, lambda: file.write_bytes(text))()


@pytest.mark.parametrize(
    "name", ["t.csv", "t.csv.gz", "t.csv.zst", "t.tsv", "t.parquet", "t.feather", "t.xlsx"]
)
def test_the_format_of_a_file_changes_nothing(name, tmp_path):
    if name.endswith("xlsx"):
        pytest.importorskip("openpyxl")
    frame = table(age=some(WHOLE.astype(float), 0.1, np.nan), y=some(Y, 0.25, None))
    for file in (tmp_path / "plain.csv", tmp_path / name):
        written(file, frame)
    (expected, _), (found, told) = checked(tmp_path / "plain.csv"), checked(tmp_path / name)
    assert found.fingerprint == expected.fingerprint
    assert_says("\n".join(told), "30 of 120 rows", "no label", "'age'", "gaps")


def test_a_wide_and_a_long_table_are_checked_in_seconds(tmp_path):
    wide = pd.DataFrame(RNG.normal(size=(40, 2000)).round(2)).assign(y=["p", "q"] * 20)
    wide.to_csv(tmp_path / "wide.csv", index=False)
    dataset, told = checked(tmp_path / "wide.csv")
    assert dataset.X.shape == (40, 2000)
    assert len(told) < 10
    n = 100_000
    long = pd.DataFrame({"id": np.arange(n), "a": RNG.integers(0, 9, n), "t": RNG.choice(["u", "v"], n)})
    long.assign(y=RNG.choice(["p", "q"], n)).to_csv(tmp_path / "long.csv", index=False)
    dataset, told = checked(tmp_path / "long.csv")
    assert dataset.X.shape == (n, 3)
    assert_says("\n".join(told), "'id'", "identifier", "drop=[id]")


@pytest.mark.parametrize("name", ["Größe (cm)", "it's", "a b", "$x", "a\\b", "null"])
def test_the_override_that_leaves_columns_out_can_be_pasted_into_a_shell(name):
    advice = left_out([Finding(CONSTANT, name, "")])
    (override,) = shlex.split(advice.removeprefix("to leave out such columns: "))
    assert OverridesParser.create().parse_override(with_quotes(override)).value() == [name]


def test_a_short_list_says_how_to_read_decimal_commas_as_numbers():
    advice = """set 'dataset.mine.decimal=","'"""
    assert_says(brief([Finding(COMMA, "a", "", advice), Finding(COMMA, "b", "", advice)]), "a, b", advice)


@pytest.mark.parametrize(
    "texts", [["1.234,5", "12,5"], ["1.234,5", "2.345,6"], ["12,5", "3,1"], ["1,234.5", "2"]]
)
def test_the_overrides_that_are_named_make_numbers_of_texts(texts, tmp_path):
    found = number_finding("a", pd.Series(texts), "mine")
    options = {
        override.partition("=")[0].rpartition(".")[2]: override.partition("=")[2].strip('"')
        for override in shlex.split(found.advice)
        if override.startswith("dataset.mine.")
    }
    (tmp_path / "t.csv").write_text("a;y\n" + "".join(f"{text};{row}\n" for row, text in enumerate(texts)))
    X, _ = csv_file(str(tmp_path / "t.csv"), "y", sep=";", **options)
    assert X["a"].dtype.kind in "if"


@pytest.mark.parametrize("odd", ["1,23", "1,234", "1.234.567"])
def test_a_decimal_point_is_never_called_a_mark_between_thousands(odd):
    found = number_finding("a", pd.Series(["0.054", "-1.107", "2.346", "12.5"] * 20 + [odd]), "mine")
    assert 'thousands="."' not in found.advice
    assert "decimal" not in found.advice
    assert odd in found.text


def test_the_columns_are_those_that_the_options_of_the_reader_give(tmp_path):
    (tmp_path / "t.csv").write_text("a report\nx,y\n1,p\n2,q\n")
    node = file_node(str(tmp_path / "t.csv")) | {"skiprows": 1}
    assert unknown_label(node | {"label": "y"}) == []
    assert_says(unknown_label(node | {"label": "z"})[0], "'z'", "it has x, y")
    assert_says(label_hint(node), "t.csv has x, y")
    (tmp_path / "t.csv").write_text("a report\nof today\nx,y\n1,p\n2,q\n")
    node["skiprows"] = 0
    assert_says(label_hint(node), "skiprows: 2", "line 3")
    assert_says(unknown_label(node | {"label": "y"})[0], "skiprows: 2", "line 3")


def test_a_first_row_that_is_taken_for_names_is_not_lost_in_silence(tmp_path):
    rows = "".join(f"{row / 8},{row % 7}.5,{'pq'[row % 3 // 2]}\n" for row in range(30))
    for text, is_told in ((rows, True), ("1.5,2.5,kind\n" + rows, False), ("size,age,p\n" + rows, False)):
        (tmp_path / "mine.csv").write_text(text)
        X, _ = csv_file(str(tmp_path / "mine.csv"), 2)
        assert [note for note in notes_of(X) if "header: null" in note] == list(notes_of(X))
        assert bool(notes_of(X)) == is_told


def test_a_class_that_reads_as_a_missing_label_is_named_with_the_key_that_keeps_it(tmp_path):
    frame = pd.DataFrame({"a": RNG.normal(size=40), "y": ["None", "some", "many", "some"] * 10})
    frame.to_csv(tmp_path / "class.csv", index=False)
    frame.assign(y="None").to_csv(tmp_path / "all.csv", index=False)
    dataset, told = checked(tmp_path / "class.csv")
    assert dataset.X.shape[0] == 30
    assert_says("\n".join(told), "'None'", "label_type: text", "dataset.class.KEY=VALUE")
    with raises(DatasetError, "'y'", "none in 40 rows", "'None'", "label_type: text"):
        checked(tmp_path / "all.csv")
