"""Studies under splitters, from a folder outside the repository, against hand-written scikit-learn loops."""

import json
import random
import shutil
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GroupKFold, RepeatedStratifiedKFold, StratifiedGroupKFold, StratifiedKFold

from orchestrator import load_study
from orchestrator.analysis import findings as frames
from orchestrator.analysis.findings import analyse
from orchestrator.cli.main import main
from orchestrator.config.compose import load_settings
from orchestrator.execution.serial import SerialExecutor
from orchestrator.report import write_report
from orchestrator.store.columns import RUN_COLUMNS
from orchestrator.study.errors import ConfigError
from tests.integration.processes import svmbench
from tests.messages import assert_says, raises
from tests.orchestrator.studies import run_study

EXAMPLE = Path(__file__).parents[2] / "examples" / "resampling"
STUDY = (
    *("study=s", "datasets=[visits]", "solvers=[logistic_two]"),
    *("protocol.scaling=none", "protocol.metric=neg_log_loss", "protocol.seed=7"),
)
POINTS = (0.1, 10)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The example's configuration, outside the repository."""
    copied = Path(shutil.copytree(EXAMPLE, tmp_path / "mine"))
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield copied
    sys.modules.pop("visits", None)


def run(folder, *overrides, **options):
    return run_study(folder.parent, *overrides, config_dir=folder, base=STUDY, **options)[0]


def hand_written(X, y, outer, inner_of, groups=None):
    """Nested resampling as scikit-learn's users write it; the scores of the refits."""
    X, scores = X.to_numpy(dtype=float), []

    def score(train, test, C):
        model = LogisticRegression(C=C).fit(X[train], y[train])
        return -log_loss(y[test], model.predict_proba(X[test]), labels=model.classes_)

    for k, (train, test) in enumerate(outer.split(X, y, groups)):
        inner = inner_of(k).split(X[train], y[train], None if groups is None else groups[train])
        folds = [(train[a], train[b]) for a, b in inner]
        means = [np.mean([score(*fold, C) for fold in folds]) for C in POINTS]
        scores.append(score(train, test, POINTS[int(np.argmax(means))]))
    return scores


def data():
    import visits

    X, y = visits.visits()
    return X.drop(columns=["patient", "fold"]), y.to_numpy(), X["patient"].to_numpy()


def seeds(number):
    return np.random.SeedSequence(7).generate_state(number + 1).tolist()


def comparable(results):
    columns = [name for name in results.trials if name not in RUN_COLUMNS]
    return results.trials[columns].sort_values("key", ignore_index=True)


def test_repeated_folds_score_as_a_hand_written_loop_bit_for_bit(folder):
    (folder / "dataset" / "visits.yaml").write_text("_target_: visits.alone\n")
    with open(folder / "visits.py", "a") as module:
        module.write("\n\ndef alone():\n    X, y = visits()\n    return X[['pulse', 'iron', 'age']], y\n")
    repeated = "{_target_: sklearn.model_selection.RepeatedStratifiedKFold, n_splits: 5, n_repeats: 2}"
    found = run(folder, f"protocol.outer={repeated}", "protocol.inner=2")
    X, y, _ = data()
    expected = hand_written(
        X,
        y,
        RepeatedStratifiedKFold(n_splits=5, n_repeats=2, random_state=seeds(10)[0]),
        lambda k: StratifiedKFold(2, shuffle=True, random_state=seeds(10)[k + 1]),
    )
    assert found.outer["score"].tolist() == expected
    scores = frames.scores(analyse(found)).iloc[0]
    # s²·(1/10 + 1/4): ten splits, each of which tests on a quarter of what it trains on.
    assert scores["corrected_se"] == pytest.approx(np.std(expected, ddof=1) * np.sqrt(0.1 + 28.8 / 115.2))
    halves = np.mean(expected[:5]), np.mean(expected[5:])
    assert scores["repeat_sd"] == pytest.approx(np.std(halves, ddof=1))


def test_groups_score_as_a_hand_written_loop_whatever_was_killed_and_whoever_ran(folder):
    chosen = ("protocol=patients",)
    found = run(folder, *chosen)
    X, y, patient = data()
    expected = hand_written(
        X,
        y,
        GroupKFold(4),
        lambda k: StratifiedGroupKFold(3, shuffle=True, random_state=seeds(4)[k + 1]),
        patient,
    )
    assert found.outer["score"].tolist() == expected

    class Stopping(SerialExecutor):
        """Ends after some batches, each of which it takes in any order."""

        slots = 3

        def __init__(self):
            super().__init__()
            self.left = 4

        def wait(self, seconds):
            random.Random(0).shuffle(self._waiting)
            self.left -= 1
            if not self.left:
                raise KeyboardInterrupt
            return super().wait(seconds)

    other = folder.parent / "other"
    place = (f"paths.results={other}", f"paths.cache={other}")
    with pytest.raises(KeyboardInterrupt):
        run(folder, *chosen, *place, executor=Stopping())
    resumed = run(folder, *chosen, *place, run_id="again")
    pd.testing.assert_frame_equal(comparable(found), comparable(resumed))


def test_a_published_test_set_is_the_only_one(folder):
    found = run(folder, "protocol=published")
    assert found.outer["n_test"].tolist() == [48]
    assert sorted(found.trials["inner"].unique()) == [-1, 0, 1, 2]
    assert np.isnan(frames.scores(analyse(found)).iloc[0]["corrected_se"])  # of one split


@pytest.mark.full
def test_a_splitter_of_ones_own_runs_on_two_workers_as_here(folder):
    here = run(folder, "protocol=hospitals")
    chosen = ("--config-dir", str(folder), *STUDY, "protocol=hospitals")
    done = svmbench(folder.parent / "mine", "run", *chosen, "cluster=local", "cluster.workers=2")
    assert done.returncode == 0, done.stderr
    pd.testing.assert_frame_equal(comparable(here), comparable(load_study(folder / "results" / "s")))
    assert here.outer["n_test"].tolist() == [48, 48, 48]


def test_plan_status_and_report_name_the_scheme(folder, capsys):
    said = "outer splits: GroupKFold, 3 splits; inner splits: StratifiedGroupKFold, 3 splits, shuffle=true"
    chosen = ("protocol=patients", "protocol.outer.n_splits=3")
    found = run(folder, *chosen)
    page = write_report(found, folder.parent / "report")
    report = json.loads((page.parent / "report.json").read_text())
    assert said in report["protocol_in_words"]["Evaluation"]
    for verb, *arguments in (("status", "study=s"), ("plan", "--config-dir", str(folder), *STUDY, *chosen)):
        places = (f"paths.{name}={folder.parent / name}" for name in ("results", "cache"))
        assert main([verb, *arguments, *places]) == 0
        assert said in " ".join(capsys.readouterr().out.split())


def test_several_seeds_repeat_the_outer_splits(folder):
    inner = "protocol.inner={_target_: sklearn.model_selection.GroupKFold, n_splits: 2}"
    outer = "protocol.outer={_target_: sklearn.model_selection.GroupShuffleSplit, n_splits: 2}"
    found = run(folder, outer, inner, "protocol.seed=[0,1,2]")
    assert found.outer["outer"].tolist() == list(range(6))
    assert len(found.trials) == 6 * (2 * 2 + 1)
    means = [found.outer["score"].iloc[2 * k : 2 * k + 2].mean() for k in range(3)]
    assert frames.scores(analyse(found)).iloc[0]["repeat_sd"] == pytest.approx(np.std(means, ddof=1))
    alone = run(folder, "study=alone", outer, inner, "protocol.seed=1")
    assert found.outer["score"].tolist()[2:4] == alone.outer["score"].tolist()


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (
            ["protocol.outer={n_splits: 3}"],
            ("protocol.outer", "whole number", "_target_"),
        ),
        (
            ["protocol.outer={_target_: visits.visits}"],
            ("visits.visits", "tuple", "`split`"),
        ),
        (["protocol.inner={_target_: visits.OneHospitall}"], ("did you mean", "'OneHospital'")),
        (["protocol.inner={_target_: visits.OneHospital, n: 1}"], ("visits.OneHospital", "'n'")),
        (["protocol.outer=x"], ("protocol.outer", "whole number", "2")),
        (["protocol.seed=[1,1]"], ("protocol.seed=[1, 1]",)),
        (
            ["protocol.seed=[]"],
            ("protocol.seed", "whole number", "0"),
        ),
    ],
)
def test_what_is_no_splitter_is_refused_before_data_is_loaded(folder, overrides, message):
    with pytest.raises(ConfigError) as refusal:
        load_settings([*STUDY, *overrides], folder)
    (problem,) = refusal.value.problems
    assert_says(problem, *message)


@pytest.mark.parametrize(
    "file", ["inner: 2", "outer: {_target_: sklearn.model_selection.GroupKFold, n_splits: 2}"]
)
@pytest.mark.parametrize("said", [3, {"_target_": "visits.OneHospital"}])
def test_what_is_said_takes_the_place_of_what_a_file_says_or_leaves_out(folder, file, said):
    (folder / "protocol" / "own.yaml").write_text(file)
    text = str(said).replace("'", "")
    settings = load_settings([*STUDY, "protocol=own", f"protocol.outer={text}"], folder)
    assert settings.study.protocol.outer == said
    assert settings.study.protocol.scaling == "none"


def test_a_splitter_that_ends_its_process_ends_no_study(folder):
    (folder / "quits.py").write_text("import os\n\n\ndef splitter():\n    os._exit(3)\n")
    with raises(ConfigError, "protocol.outer", "quits.splitter", "ended"):
        load_settings([*STUDY, "protocol.outer={_target_: quits.splitter}"], folder)
