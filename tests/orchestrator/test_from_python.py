"""Studies from Python, as in a notebook: run, go on, load, show."""

import os

import pytest
from distributed import Client, LocalCluster

from orchestrator import load_study, run_study
from orchestrator.study.errors import ConfigError, ExecutionError
from tests.messages import assert_says, raises

QUICK = (
    "solvers=[libsvm_l1]",
    "protocol.outer=3",
    "protocol.inner=2",
    "search.space.C=[1]",
    "cluster=serial",
)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("studies")
    return run_study("study=s", "datasets=[iris]", *QUICK, f"paths.results={folder}")


def test_a_study_is_run_and_returned(results):
    assert (results.name, results.outer["status"].tolist()) == ("s", ["ok"] * 3)
    assert results.mean_scores().loc["iris", "libsvm_l1"] == results.outer["score"].mean()
    (run,) = results.provenance
    assert run["command"][:4] == ["svmbench", "run", "study=s", "datasets=[iris]"]


def test_a_name_a_folder_and_a_path_find_it(results, monkeypatch):
    monkeypatch.chdir(results.folder.parent.parent)
    for found in (
        load_study("s", results.folder.parent.name),
        load_study(os.path.relpath(results.folder)),
        load_study(results.folder),
    ):
        assert found.trials.equals(results.trials)


def test_the_same_call_goes_on(results):
    again = run_study("study=s", "datasets=[iris,wine]", *QUICK, f"paths.results={results.folder.parent}")
    iris = again.trials[again.trials["dataset"] == "iris"]
    assert iris["run_id"].unique().tolist() == [results.provenance[0]["run_id"]]
    assert set(again.trials["dataset"]) == {"iris", "wine"}


def test_configurations_and_modules_of_one_s_own_are_found(tmp_path):
    (tmp_path / "solver").mkdir()
    (tmp_path / "solver" / "mine.yaml").write_text("_target_: from_python_mine.Mine\nspace: {C: [1]}\n")
    (tmp_path / "from_python_mine.py").write_text("from sklearn.svm import SVC\n\n\nclass Mine(SVC): ...\n")
    found = run_study(
        *("study=s", "datasets=[iris]", "solvers=[mine]", *QUICK[1:], f"paths.results={tmp_path}"),
        config_dir=tmp_path,
    )
    assert set(found.outer["solver"]) == {"mine"}
    assert found.provenance[0]["command"][-2:] == ["--config-dir", str(tmp_path)]


def test_what_cannot_be_run_is_an_error_with_every_problem(tmp_path):
    with pytest.raises(ConfigError) as raised:
        run_study("study=s", "datasets=[irs]", "solvers=[libsvm]", f"paths.results={tmp_path}")
    assert [("iris" in problem, "libsvm_l1" in problem) for problem in raised.value.problems] == [
        (True, False),
        (False, True),
    ]


def test_results_show_themselves_in_a_notebook(results):
    assert_says(repr(results), "study s", "51 trials", "1 × 1", "0 failed")
    shown = results._repr_html_()
    assert f"{results.outer['score'].mean():.4f}" in shown
    assert "<study" not in shown


ONE_WORKER = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": None}


def test_a_dask_client_of_one_s_own_lends_its_workers_and_stays(results, tmp_path):
    with (
        LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as own,
    ):
        quick = ("study=s", "datasets=[iris]", *QUICK[:4], f"paths.results={tmp_path}")
        found = run_study(*quick, "cluster=slurm", client=own)  # of which nothing is needed
        assert own.submit(sum, [1, 2]).result() == 3
        (worker,) = cluster.workers  # a client's own list is emptied every two seconds
    assert found.outer["score"].tolist() == results.outer["score"].tolist()
    assert set(found.trials["worker"]) == {str(worker)}


def test_a_client_whose_workers_cannot_be_used_is_refused(tmp_path):
    quick = ("study=s", "datasets=[iris]", *QUICK[:4], f"paths.results={tmp_path}")
    refused = raises(ExecutionError, "workers", "threads", "process")
    with Client(processes=False, **ONE_WORKER) as threads, refused:
        run_study(*quick, client=threads)
    with raises(ExecutionError, "client", "closed"):
        run_study(*quick, client=threads)
    with raises(TypeError, "distributed.Client", "'tcp://a:1'"):
        run_study(*quick, client="tcp://a:1")
    assert not (tmp_path / "s").exists()


def test_code_that_was_edited_after_its_import_is_refused(tmp_path):
    (tmp_path / "solver").mkdir()
    (tmp_path / "solver" / "mine.yaml").write_text("_target_: from_python_edited.Mine\nspace: {C: [1]}\n")
    module = tmp_path / "from_python_edited.py"
    module.write_text("from sklearn.svm import SVC\n\n\nclass Mine(SVC): ...\n")
    mine = ("study=s", "solvers=[mine]", *QUICK[1:], f"paths.results={tmp_path}")
    run_study(*mine, "datasets=[iris]", config_dir=tmp_path)
    run_study(*mine, "datasets=[iris,wine]", config_dir=tmp_path)
    module.write_text(module.read_text().replace("...", "edited = True"))
    with raises(ConfigError, "Python", "process", "imported"):
        run_study(*mine, "datasets=[iris]", config_dir=tmp_path)
