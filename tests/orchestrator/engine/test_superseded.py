"""A plan and a run say which stored trials a changed declaration no longer counts, and what differs."""

import pytest

from orchestrator.cli.main import EXIT_OK, main
from tests.messages import assert_says
from tests.orchestrator.studies import SMALL

pytestmark = pytest.mark.usefixtures("no_pages")

ONE = [*SMALL, "datasets=[iris]", "solvers=[libsvm_l1]", "cluster=serial"]


def test_what_is_trained_again_is_said_before_with_the_key_that_differs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["run", *ONE]) == EXIT_OK
    capsys.readouterr()
    main(["plan", *ONE, "search.space.C=[1,4,16,64]"])  # a wider space keeps its trials
    assert "trained again" not in " ".join(capsys.readouterr().out.split())
    for verb in ("plan", "run"):
        main([verb, *ONE, "protocol.scaling=none"])
        assert_says(capsys.readouterr().out, "iris", "libsvm_l1", "scaling was train", "now none", "again")
    main(["run", *ONE, "protocol.scaling=none"])
    assert "again" not in capsys.readouterr().out
    main(["status", "study=small"])
    assert_says(capsys.readouterr().out, "scaling was train", "now none")


def test_one_sentence_names_all_arms_once_and_none_that_did_not_count_before(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    two = [*SMALL, "datasets=[iris]", "solvers=[libsvm_l1,naive_bayes]", "cluster=serial"]
    assert main(["run", *two]) == EXIT_OK
    assert main(["run", *two, "protocol.scaling=none"]) == EXIT_OK
    capsys.readouterr()
    main(["plan", *ONE, "protocol.scaling=none", "protocol.repeats=2"])
    said = " ".join(capsys.readouterr().out.split())
    assert_says(said, "iris × libsvm_l1", "iris × naive_bayes", "seed was 0", "now [0,1]")
    assert said.count("belong to another") == 1, (
        "one sentence, and nothing of the scaling that was left before"
    )
    assert "scaling was" not in said


@pytest.mark.full
def test_a_table_that_has_changed_is_said_once(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rows = [f"{number % 7},{number % 5},{'yn'[number % 2]}" for number in range(40)]
    table = ["run", "study=t", "datasets=[t.csv]", "label=y", "solvers=[naive_bayes]", "cluster=serial"]
    (tmp_path / "t.csv").write_text("\n".join(["a,b,y", *rows]))
    assert main([*table, "protocol.outer=2", "protocol.inner=2"]) == EXIT_OK
    capsys.readouterr()
    main(["plan", "t", "drop=[b]"])
    said = " ".join(capsys.readouterr().out.split())
    assert_says(said, "t.csv", "another way", "features 2 → 1", "drop", "study=NAME")
    assert "changed since" not in said
    assert "belong to another" not in said
    (tmp_path / "t.csv").write_text("\n".join(["a,b,y", *rows[2:]]))
    main(["plan", "t"])
    said = " ".join(capsys.readouterr().out.split())
    assert_says(said, "t.csv", "has changed since", "rows 40 → 38")
    assert "belong to another" not in said


@pytest.mark.full
def test_nothing_is_said_to_be_trained_again_whose_trials_are_stored(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rows = ["a,b,y", *(f"{number % 7},{number % 5},{'yn'[number % 2]}" for number in range(40))]
    table = ["datasets=[t.csv]", "label=y", "solvers=[naive_bayes]", "cluster=serial"]
    table = [*table, "protocol.outer=2", "protocol.inner=2"]
    for text in (rows, rows[:-2]):
        (tmp_path / "t.csv").write_text("\n".join(text))
        assert main(["run", *table]) == EXIT_OK
    (tmp_path / "t.csv").write_text("\n".join(rows))
    capsys.readouterr()
    main(["plan", *table])
    said = " ".join(capsys.readouterr().out.split())
    assert_says(said, "0 trainings to run", "t.csv", "rows 38 → 40", "count again")
    assert "trained again" not in said
    assert main(["run", *table, "protocol.prepare=none"]) == EXIT_OK
    capsys.readouterr()
    main(["plan", *table])
    said = " ".join(capsys.readouterr().out.split())
    assert_says(said, "0 trainings to run", "another protocol", "count again")
    assert "trained again" not in said
