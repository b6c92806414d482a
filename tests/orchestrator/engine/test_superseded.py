"""A plan and a run say which stored trials a changed declaration no longer counts, and what differs."""

from orchestrator.cli.main import EXIT_OK, main
from tests.messages import assert_says
from tests.orchestrator.studies import SMALL

ONE = [*SMALL, "datasets=[iris]", "solvers=[libsvm_l1]", "cluster=serial"]


def test_what_is_trained_again_is_said_before_with_the_key_that_differs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["run", *ONE]) == EXIT_OK
    capsys.readouterr()
    main(["plan", *ONE, "search.space.C=[1,4,16,64]"])  # a wider space keeps its trials
    assert "trains them again" not in " ".join(capsys.readouterr().out.split())
    for verb in ("plan", "run"):
        main([verb, *ONE, "protocol.scaling=none"])
        assert_says(capsys.readouterr().out, "iris", "libsvm_l1", "scaling was train", "now none", "again")
    main(["run", *ONE, "protocol.scaling=none"])
    assert "again" not in capsys.readouterr().out
    main(["status", "study=small"])
    assert_says(capsys.readouterr().out, "scaling was train", "now none")
