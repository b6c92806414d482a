"""`protocol.predictions=outer`: what refits predict of their test rows is stored beside their scores."""

import pandas as pd
import pytest
from sklearn.datasets import load_iris, load_wine
from sklearn.metrics import balanced_accuracy_score

from orchestrator import load_study, run_study
from orchestrator.analysis.findings import analyse
from orchestrator.cli.main import main
from orchestrator.report import write_report
from orchestrator.report.sections import class_rates
from orchestrator.store.columns import RUN_COLUMNS
from orchestrator.store.store import Store
from tests.messages import assert_says

pytestmark = pytest.mark.usefixtures("no_pages")

TINY = (
    *("datasets=[iris,wine]", "solvers=[libsvm_l1,tree]", "protocol.outer=3", "protocol.inner=2"),
    *("search.space.C=[0.1]", "search.space.gamma=[0.1,1]", "cluster=serial", "study=kept"),
    "protocol.also=[balanced_accuracy]",
)
KEPT = "protocol.predictions=outer"


@pytest.fixture(scope="module")
def config(tmp_path_factory):
    folder = tmp_path_factory.mktemp("config")
    (folder / "solver").mkdir()
    (folder / "solver" / "tree.yaml").write_text("_target_: sklearn.tree.DecisionTreeClassifier\nspace: {}\n")
    return folder


@pytest.fixture(scope="module")
def kept(config):
    return run_study(*TINY, KEPT, f"paths.results={config / 'kept'}", config_dir=config)


def test_scores_follow_from_the_predictions(kept):
    predictions = kept.predictions()
    assert len(predictions) == 2 * (150 + 178)  # every row is tested once by each arm
    refits = kept.outer.set_index(["dataset", "solver", "outer"])
    true = {"iris": load_iris().target.astype(str), "wine": load_wine().target.astype(str)}
    for (dataset, arm, outer), rows in predictions.groupby(["dataset", "solver", "outer"]):
        assert (rows["true"] == true[dataset][rows["row"]]).all()
        refit = refits.loc[dataset, arm, outer]
        assert (rows["true"] == rows["predicted"]).mean() == refit["score"]
        assert balanced_accuracy_score(rows["true"], rows["predicted"]) == refit["score_balanced_accuracy"]


def test_the_report_has_the_rates_of_each_class(kept, tmp_path):
    write_report(kept, tmp_path / "report")
    rates = pd.read_csv(tmp_path / "report" / "tables" / "class_rates.csv", dtype={"class": str})
    rates = rates.set_index(["dataset", "solver", "class"])
    for (dataset, arm), rows in kept.predictions().groupby(["dataset", "solver"]):
        counts = pd.crosstab(rows["true"], rows["predicted"])
        for label in counts.index:
            of_class, others = counts.loc[label], counts.drop(label)
            found, given = of_class[label] / of_class.sum(), others[label].sum() / others.to_numpy().sum()
            row = rates.loc[dataset, arm, label]
            assert row.tolist() == pytest.approx([of_class.sum(), found, given])


def test_predictions_change_no_key_and_no_other_column(kept, config):
    plain = run_study(*TINY, f"paths.results={config / 'plain'}", config_dir=config)
    assert plain.trials["key"].tolist() == kept.trials["key"].tolist()
    columns = [name for name in kept.trials.columns if name not in RUN_COLUMNS]
    assert plain.trials[columns].equals(kept.trials[columns])
    assert plain.predictions().empty
    assert class_rates.section(analyse(plain)) is None


def test_asked_for_later_they_cost_the_refits_alone(config, capsys):
    where = f"paths.results={config / 'later'}"
    before = run_study(*TINY, where, config_dir=config)
    arguments = [*TINY, where, "--config-dir", str(config)]
    main(["plan", *arguments, KEPT])
    assert_says(capsys.readouterr().out, "12 trainings")
    main(["run", *arguments, KEPT])
    assert_says(capsys.readouterr().out, "12 trials run", "24 found")
    after = load_study("kept", config / "later")
    columns = ["key", "status", "score", "n_sv"]
    assert after.trials[columns].equals(before.trials[columns])
    assert len(after.predictions()) == 2 * (150 + 178)
    main(["run", *arguments, KEPT])
    assert_says(capsys.readouterr().out, "0 trials run", "36 found")
    main(["run", *arguments])  # not asked for any more, they stay
    assert len(load_study("kept", config / "later").predictions()) == 2 * (150 + 178)


@pytest.mark.full
def test_workers_and_limits_of_time_store_the_same(kept, config):
    limited = run_study(
        *(*TINY, KEPT, "cluster=local", "cluster.workers=1", "protocol.max_seconds=60"),
        f"paths.results={config / 'limited'}",
        config_dir=config,
    )
    assert limited.predictions().equals(kept.predictions())


def test_readers_of_rows_see_no_lists(kept):
    store = Store(kept.folder)
    assert not {"test_row", "true_class", "predicted_class"} & {*store.trials().columns}
    assert not {"test_row"} & {name for row in store.outer_rows() for name in row}
    assert store.refits_without_predictions() == set()
