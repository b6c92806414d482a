"""One command for a table: it runs, says what it stands for, and goes on by the study's name alone."""

import numpy as np
import pandas as pd
import pytest

from orchestrator import load_study
from orchestrator.cli.main import EXIT_BAD, EXIT_OK, main
from orchestrator.cli.remembered import _merged, is_incomplete
from tests.messages import assert_says

pytestmark = pytest.mark.usefixtures("no_pages")

SOLVER = "solvers=[sklearn.naive_bayes.GaussianNB]"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a table whose study has run."""
    made = tmp_path_factory.mktemp("own")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    frame = pd.DataFrame({"id": [f"N{row:03}" for row in range(60)], "a": X[:, 0], "b": X[:, 1]})
    frame["outcome"] = np.where(X[:, 0] + rng.normal(size=60) / 2 > 0, "yes", "no")
    frame.loc[7, "outcome"] = None
    frame.to_csv(made / "churn.csv", index=False)
    frame[:40].to_csv(made / "first.csv", index=False)
    frame[40:].to_csv(made / "rest.csv", index=False)
    return made


@pytest.fixture(autouse=True)
def here(folder, monkeypatch):
    monkeypatch.chdir(folder)
    monkeypatch.setenv("SVMBENCH_CACHE", str(folder / "cache"))


def output_of(capsys, *arguments, code=EXIT_OK):
    assert main([*arguments]) == code
    found = capsys.readouterr()
    return " ".join((found.out + found.err).split())


@pytest.mark.filterwarnings("ignore:.*none of the search's parameters")
def test_a_table_is_run_and_gone_on_with_by_its_name(capsys):
    first = (
        "datasets=[churn.csv]",
        "label=outcome",
        "drop=[id]",
        SOLVER,
        "cluster=serial",
        "protocol.outer=3",
    )
    said = output_of(capsys, "run", *first)
    assert_says(said, "churn", "study=NAME", "1 of 60 rows", "no label", "line 9")
    assert_says(output_of(capsys, "status", "churn"), "complete")
    again = output_of(capsys, "run", "churn")
    assert_says(again, "svmbench run 'datasets=[churn.csv]' label=outcome 'drop=[id]'", "study=churn")
    wider = output_of(capsys, "plan", "churn", "solvers=[sklearn.naive_bayes.GaussianNB,knn]")
    assert_says(wider, "'solvers=[sklearn.naive_bayes.GaussianNB,knn]'", "knn")
    output_of(capsys, "run", "study=churn", "protocol.outer=2")
    command = load_study("churn").provenance[-1]["command"]
    assert [text for text in command if text.startswith("protocol.outer=")] == ["protocol.outer=2"]
    assert "label=outcome" in command


@pytest.mark.filterwarnings("ignore:.*none of the search's parameters")
def test_a_given_split_has_one_outer_fold_of_the_test_rows(capsys):
    said = output_of(
        *(capsys, "run", "train=first.csv", "test=rest.csv", "label=outcome", "drop=[id]", SOLVER),
        "cluster=serial",
    )
    assert_says(said, "one outer fold", "first")
    outer = load_study("first").outer
    assert outer["outer"].tolist() == [0]
    assert outer["n_test"].tolist() == [20]


def test_a_table_is_checked_before_anything_runs(capsys):
    said = output_of(capsys, "data", "check", "churn.csv", "label=outcome")
    assert_says(said, "churn: 59 rows × 3 features, 2 classes", "'id'", "identifier", "drop=[id]", "no label")
    assert "nothing is wrong" not in said
    assert_says(output_of(capsys, "data", "check", "churn.csv", "label=outcome", "drop=[id,b]"), "no label")
    said = output_of(capsys, "data", "check", "churn.csv", code=EXIT_BAD)
    assert_says(said, "label=COLUMN", "id, a, b, outcome", "label=outcome")
    said = output_of(capsys, "data", "check", "rest.csv", "label=outcome", "drop=[id]")
    assert_says(said, "20 rows", "nothing is wrong")


@pytest.mark.parametrize("name", ["a[1].csv", "a{b}.csv", "a,b.csv", "it's.csv", "ü, v.csv", "a=b.csv"])
def test_a_table_is_checked_whatever_the_name_of_its_file_is(capsys, folder, name):
    (folder / name).write_bytes((folder / "churn.csv").read_bytes())
    said = output_of(capsys, "data", "check", name, "churn.csv", "label=outcome")
    assert said.count("59 rows") == 2
    (folder / name).unlink()
    said = output_of(capsys, "data", "check", f"no{name}", "label=outcome", code=EXIT_BAD)
    assert "override" not in said


def test_a_table_with_traps_runs_and_says_first_what_they_are(capsys, folder):
    rng, n = np.random.default_rng(1), 60
    ages = np.where(np.arange(n) % 9 == 4, "unknown", rng.integers(20, 60, n).astype(str))
    table = pd.DataFrame({"since": pd.date_range("2024-01-01", periods=n).strftime("%d.%m.%Y"), "age": ages})
    table["pay"] = np.where(rng.random(n) < 0.6, np.nan, rng.gamma(2, 9, n))
    table = table.assign(who=rng.integers(0, 15, n).astype(str), y=rng.choice([True, False], n))
    table.rename(columns={"who": "patient"}).to_csv(folder / "traps.csv", index=False)
    said = output_of(
        *(capsys, "run", "datasets=[traps.csv]", "label=y", "groups=patient", "solvers=[logistic,tree]"),
        *("cluster=serial", "protocol.outer=2", "protocol.inner=2", "search.space.C=[1]"),
    )
    assert_says(
        said, "'since'", "dates", "TimeSeriesSplit", "gaps: pay", "numbers and texts: age", "0 failed"
    )
    assert load_study("traps").outer["score"].notna().all()


def test_what_names_only_a_study_is_incomplete():
    assert is_incomplete(["study=t"])
    assert is_incomplete(["study=t", "solvers=[knn]", "search.budget=5"])
    assert not is_incomplete(["study=t", "solvers=[knn]", "datasets=[iris]"])
    assert not is_incomplete(["experiment=quickstart"])
    assert not is_incomplete(["datasets=[iris]"])


def test_later_overrides_replace_those_of_the_same_key():
    earlier = [
        "datasets=[a.csv]",
        "cluster=slurm",
        "cluster.workers=9",
        "retry=failed",
        "minutes=10",
        "+search.space.C=[1]",
    ]
    assert _merged(earlier, ["study=t", "cluster=local", "search.space.C=[2]"]) == [
        *("datasets=[a.csv]", "study=t", "cluster=local", "search.space.C=[2]")
    ]


def test_settings_of_solvers_that_a_later_list_leaves_out_are_forgotten():
    earlier = ["study=t", "solvers=[tree,logistic]", "solver.logistic.space.C=[1]", "solver.tree.max_depth=2"]
    assert _merged(earlier, ["study=t", "solvers=[tree,near]"]) == [
        *("solver.tree.max_depth=2", "study=t", "solvers=[tree,near]")
    ]
    assert "solver.logistic.space.C=[1]" in _merged(earlier, ["study=t", "protocol.outer=3"])


def test_columns_of_tables_that_a_later_list_leaves_out_are_forgotten():
    earlier = ["datasets=[a.csv]", "label=y", "drop=[id]", "groups=who", "protocol.outer=3"]
    assert _merged(earlier, ["study=t", "datasets=[b.csv]"]) == [
        *("protocol.outer=3", "study=t", "datasets=[b.csv]")
    ]
    assert _merged(earlier, ["train=b.csv", "test=c.csv", "label=z"])[:2] == ["datasets=[a.csv]", earlier[-1]]
    for later in (["study=t"], ["datasets=[x/a.csv,b.csv]"], ["datasets=['a.csv']"]):
        assert {*earlier[1:]} <= {*_merged(earlier, later)}


def test_a_later_metric_replaces_one_by_its_short_form():
    assert _merged(["metric=f1"], ["protocol.metric=accuracy"]) == ["protocol.metric=accuracy"]
    assert _merged(["protocol.metric=f1"], ["metric=accuracy"]) == ["metric=accuracy"]


def test_settings_of_datasets_that_a_later_list_leaves_out_are_forgotten():
    earlier = ["datasets=[iris,blobs,'my t.csv']", "dataset.blobs.n=500", "dataset.my_t.sep=';'"]
    assert _merged(earlier, ["datasets=[iris]"]) == ["datasets=[iris]"]
    assert _merged(earlier, ["datasets=['a/my t.csv']"]) == [earlier[2], "datasets=['a/my t.csv']"]
    assert _merged(["train=a.csv", "dataset.a.sep=';'"], ["datasets=[iris]"]) == [
        *("train=a.csv", "dataset.a.sep=';'", "datasets=[iris]")
    ]
