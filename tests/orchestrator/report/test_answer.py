"""The answer for one to three datasets: text, page, baseline, budget. One small study serves most tests."""

import re
import time
from dataclasses import replace
from html import unescape
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.metrics import log_loss

from orchestrator import load_study, run_study
from orchestrator.analysis import findings
from orchestrator.analysis.findings import analyse
from orchestrator.cli.main import EXIT_OK, EXIT_STOPPED, main
from orchestrator.engine import runner
from orchestrator.execution.serial import SerialExecutor
from orchestrator.report import answer_text, write_report
from orchestrator.report.sections import scores
from orchestrator.report.sections.protocol import class_words
from orchestrator.study.errors import BudgetSpent
from orchestrator.study.recorded_choices import report_choices
from orchestrator.study.report_choices import ReportChoices
from orchestrator.training.open_data import open_data
from tests.messages import assert_says, assert_sentence, lacks, raises, sentences
from tests.orchestrator.report.frames import drop, make_results
from tests.orchestrator.studies import StudyRun, write_solver


def rare(n=200, seed=0):
    """A table in which one row of twenty is of class yes."""
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) % 20 == 0, "yes", "no")
    X = rng.normal(size=(n, 3))
    X[:, 0] += 2 * (y == "yes")
    return X, y


def other(n=90, seed=1):
    """A table of three equal classes that a solver can tell apart."""
    rng = np.random.default_rng(seed)
    y = np.repeat(["a", "b", "c"], n // 3)
    return rng.normal(size=(n, 2)) + 4 * (y[:, None] == "b") - 4 * (y[:, None] == "c"), y


def configure(folder):
    for name in ("rare", "other"):
        (folder / "conf" / "dataset").mkdir(parents=True, exist_ok=True)
        (folder / "conf" / "dataset" / f"{name}.yaml").write_text(f"_target_: {__name__}.{name}\n")
    write_solver(folder, "bayes", "sklearn.naive_bayes.GaussianNB", space="{}")
    write_solver(folder, "deep", "sklearn.tree.DecisionTreeClassifier", space="{}")
    write_solver(folder, "stump", "sklearn.tree.DecisionTreeClassifier", space="{}", max_depth=1)
    return folder / "conf"


def go(folder, study, *overrides):
    arguments = [f"study={study}", "solvers=[bayes,deep,stump]", "protocol.outer=4", "protocol.inner=2"]
    paths = [f"paths.results={folder / 'results'}", f"paths.cache={folder / 'cache'}", "cluster=serial"]
    return run_study(*arguments, *paths, *overrides, config_dir=configure(folder))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("answers")


@pytest.fixture(scope="module")
def one(folder):
    return go(folder, "one", "datasets=[rare]")


@pytest.fixture(scope="module")
def two(folder):
    return go(folder, "two", "datasets=[other,rare]")


def test_the_baseline_is_scikit_learn_s_on_the_same_splits_and_no_arm(folder, one):
    kept = ("datasets", "solvers", "protocol")
    study = [each for each in one.provenance[0]["command"] if each.startswith(kept)]
    run = StudyRun(folder, "study=copy", base=study, config_dir=folder / "conf")
    source, protocol = run.prepared.sources["rare"], run.prepared.study.protocol
    dataset, splits = open_data(source, protocol)
    expected = []
    for at in splits.of_level(refits=True):
        train, test = splits.train_test(*at)
        model = DummyClassifier(strategy="most_frequent").fit(dataset.X[train], dataset.y[train])
        expected.append(model.score(dataset.X[test], dataset.y[test]))
    assert one.provenance[0]["baseline"]["rare"]["scores"] == expected
    assert set(one.trials["solver"]) == set(findings.means(one)) == {"bayes", "deep", "stump"}


def test_solvers_of_the_same_highest_mean_are_all_named(one):
    scores = {"bayes": (0.9, 0.7, 0.8, 0.6), "deep": (0.7, 0.9, 0.6, 0.8)}
    for stump, words in (((0.6, 0.9, 0.7, 0.7), "whether stump differs from them"), (None, "they differ")):
        rows = scores | {"stump": stump or (0.2, 0.1, 0.1, 0.2)}
        outer = one.outer.sort_values(["solver", "outer"])
        outer = outer.assign(score=[score for solver in ("bayes", "deep", "stump") for score in rows[solver]])
        text = " ".join(answer_text(replace(one, outer=outer)).split())
        assert_says(text, "Take bayes or deep: on data like these they share the highest mean", words)


def test_a_metric_of_probabilities_gets_the_shares_of_the_classes(folder):
    found = go(folder, "loss", "datasets=[rare]", "solvers=[bayes]", "protocol.metric=neg_log_loss")
    scores = found.provenance[0]["baseline"]["rare"]["scores"]
    expected = -log_loss(["yes"] * 10 + ["no"] * 190, np.tile([0.95, 0.05], (200, 1)))
    assert np.mean(scores) == pytest.approx(expected, abs=0.01)


def test_the_answer_of_a_rare_class_says_what_accuracy_hides(one):
    text = answer_text(one)
    assert_says(text, "rare", "200 rows", "3 columns", "2 classes", "95.0 %")
    assert_says(text, "Take", "Nothing is shown to be better than the baseline")
    assert_says(text, "class yes (5.0 % of the rows)", "metric=balanced_accuracy", "baseline")
    for solver in ("bayes", "deep", "stump"):
        assert re.search(rf"^{solver} +\d+\.\d % ± \d+\.\d   \S", text, re.MULTILINE)
    assert_says(
        text, "Take", "on data like these", "corrected resampled t", "Holm over 3 comparisons (all pairs)"
    )
    assert max(map(len, text.splitlines())) <= 80


def test_balanced_accuracy_hides_nothing(folder):
    found = go(folder, "balanced", "datasets=[rare]", "solvers=[bayes]", "protocol.metric=balanced_accuracy")
    text = answer_text(found)
    assert_says(text, "over the baseline")
    assert found.provenance[0]["baseline"]["rare"]["scores"] == [0.5] * 4
    assert lacks(text, "metric=balanced_accuracy")


def scored(results, **scores):
    """Return a study with other scores of its arms, in the order of the outer splits."""
    outer = results.outer.sort_values(["solver", "outer"])
    return replace(results, outer=outer.assign(score=np.concatenate([scores[arm] for arm in sorted(scores)])))


def test_near_solvers_are_a_choice_that_says_which_differences_their_interval_allows(one):
    base = np.array([0.9, 0.8, 0.9, 0.8])
    near = scored(one, bayes=base, deep=base - [0.001, -0.001, 0, 0], stump=base - [0.22, 0.06, 0.1, 0.12])
    text = answer_text(near)
    row = findings.dataset_answers(analyse(near))["rare"].against_reference()["deep"]
    most = 100 * max(abs(row["holm_low"]), abs(row["holm_high"]))
    assert most < 1
    assert_sentence(text, "Take bayes or deep", f"at most {most:.2f} points", "1 percentage point")
    assert_sentence(text, "whether stump differs is open", "differences of up to")
    two_arms = analyse(near, report_choices(one.provenance, {"leave_out": ("deep",)}))
    text = answer_text(two_arms)
    assert_sentence(text, "Take bayes", "highest mean", "cannot tell", "stump", "differences of up to")
    assert lacks(text, "Take bayes or")


def test_no_difference_of_more_than_all_rows_is_spoken_of(one):
    """Student's t would give a longer interval."""
    apart = scored(
        one, bayes=np.array([0.9, 0.2, 0.9, 0.8]), deep=np.ones(4) / 2, stump=np.array([0.1, 0.9, 0, 0.9])
    )
    row = findings.dataset_answers(analyse(apart))["rare"].against_reference()["stump"]
    assert max(abs(row["holm_low"]), abs(row["holm_high"])) == 1.0
    text = answer_text(apart)
    assert_says(text, "any difference")
    assert lacks(text, "differences of up to")


def test_a_wider_interval_never_makes_solvers_near(one):
    base, shift = np.array([0.9, 0.8, 0.9, 0.8]), np.array([0.004, -0.004, 0.003, -0.001])
    was_near, seen = True, set()
    for spread in (0, 0.2, 0.5, 1, 2, 5, 20):
        found = scored(one, bayes=base, deep=base - 0.0005 - spread * shift, stump=base - 0.3 - 20 * shift)
        text = answer_text(found)
        answer = findings.dataset_answers(analyse(found))["rare"]
        row = answer.against_reference()[answer.complete[1]]
        ends = (row["holm_low"], row["holm_high"])
        is_now = "Take bayes or deep" in text or "Take deep or bayes" in text
        assert is_now == (spread > 0 and max(map(abs, ends)) <= 0.01), "the whole interval is in the region"
        if spread:
            assert was_near or not is_now
            was_near = is_now
        seen.add(is_now)
    assert seen == {True, False}


def test_solvers_are_near_within_the_region_that_the_study_declares(one):
    base = np.array([0.9, 0.8, 0.9, 0.8])
    found = scored(one, bayes=base, deep=base - [0.0011, -0.001, 0, 0], stump=base - [0.22, 0.06, 0.1, 0.12])
    narrow = analyse(found, report_choices(one.provenance, {"rope": 0.0005}))
    assert "Take bayes:" in answer_text(narrow)
    wide = analyse(found, report_choices(one.provenance, {"rope": 0.9}))
    assert "Take bayes, deep or stump" in answer_text(wide)


def test_a_single_solver_speaks_of_new_data_of_this_size_too(one):
    for left_out in (("deep", "stump"), ("stump",)):
        text = answer_text(analyse(one, report_choices(one.provenance, {"leave_out": left_out})))
        assert_sentence(text, "intervals", "new data of this size")
        assert_sentence(text, "nothing of other datasets")
        assert ("conservative for differences" in " ".join(text.split())) == (len(left_out) == 1)


def test_equal_scores_in_all_splits_give_no_interval_and_no_advice_about_its_width(one):
    equal = replace(one, outer=one.outer.assign(score=1.0))
    text = answer_text(equal)
    assert lacks(text, "± 0.0")
    assert lacks(text, "(0.0: 0.0 to 0.0)")
    assert lacks(text, "narrow the intervals")
    assert_sentence(text, "equal in every split", "no interval")


def test_a_solver_below_the_baseline_is_not_called_as_good_as_one_above_it(one):
    found = scored(
        one, bayes=[1, 0.92, 1, 0.92], deep=[0.98, 0.93, 0.99, 0.93], stump=[0.99, 0.86, 0.93, 0.98]
    )
    text = answer_text(analyse(found, report_choices(one.provenance, {"rope": 0.9})))
    assert_sentence(text, "Take bayes or deep", "whether stump differs is open")
    assert_says(text, "Nothing is shown to be better than the baseline")
    assert all(each.count(" but ") < 2 for each in sentences(text))


def test_equal_classes_have_no_largest_one(two):
    answers = findings.dataset_answers(two)
    assert [answers[name].has_largest_class for name in ("other", "rare")] == [False, True]
    about = dict(zip(answers, answer_text(two).split("\n\n"), strict=False))
    assert_says(about["rare"], "over the largest class")
    assert_says(about["other"], "over always the same class")
    assert lacks(about["other"], "over the largest class")


def test_the_first_solver_of_one_dataset_is_no_control_that_was_chosen_late(one, two):
    order = ReportChoices(first=ReportChoices(control="stump"))
    assert "Chosen post hoc" not in answer_text(analyse(one, order))
    assert_says(answer_text(analyse(two, order)), "post hoc", "control")
    given = ReportChoices(control="deep", first=ReportChoices(control="stump"))
    assert_says(answer_text(analyse(one, given)), "post hoc", "control deep")


def test_tests_over_datasets_are_named_from_two_datasets_on(one, two):
    assert_says(answer_text(two), "With 2 datasets, the smallest attainable p is 2/2² = 0.5")
    assert answer_text(two).count("Take") == 2
    text = unescape(write_report(one, one.folder / "report").read_text())
    assert "Wilcoxon" not in answer_text(one) + text
    assert lacks(answer_text(one), "smallest attainable p")
    assert "Pairwise tests over datasets" not in text


def test_what_can_be_told_apart_is_better_or_worse_than_the_highest(two):
    answer = findings.dataset_answers(two)["other"]
    compared = answer.against_reference()
    assert answer.reference == answer.complete[0]
    assert compared["stump"]["verdict"] == "lower"
    assert compared["stump"]["high"] < 0
    line = next(line for line in answer_text(two).splitlines() if line.startswith("stump"))
    assert_says(line, f"worse than {answer.reference}")


def test_a_declared_control_is_named_and_every_solver_compared_with_it(two):
    study = analyse(two, report_choices(two.provenance, {"control": "stump"}))
    answer = findings.dataset_answers(study)["other"]
    assert [*answer.comparisons["second"]] == ["stump", "stump"]
    assert_says(answer_text(study), "the control", "better than stump", "Holm over 2 comparisons")


def test_one_split_has_no_interval_and_the_answer_says_so(folder):
    splitter = "{_target_: sklearn.model_selection.StratifiedShuffleSplit, n_splits: 1, test_size: 0.5}"
    found = go(folder, "split", "datasets=[other]", f"protocol.outer={splitter}")
    text = answer_text(found)
    assert_says(text, "One split", "no interval", "no test")
    assert "±" not in text
    assert lacks(text, "Take")


def test_repeats_added_after_scores_are_called_post_hoc(folder):
    arguments = ("repeated", "datasets=[other]", "solvers=[bayes,stump]")
    first = answer_text(go(folder, *arguments))
    assert lacks(first, "Post hoc")
    results = go(folder, *arguments, "protocol.repeats=2")
    assert len(results.outer) == 2 * 2 * 4
    assert results.provenance[-1]["study"]["protocol"]["seed"] == [0, 1]
    assert_says(answer_text(results), "Post hoc", "from 1 to 2")
    assert len(results.provenance[-1]["baseline"]["other"]["scores"]) == 8


def test_the_page_is_short_and_links_its_files(one):
    page = write_report(one, one.folder / "report")
    text = unescape(page.read_text())
    visible = re.sub(r"<details>.*?</details>", "", text, flags=re.DOTALL)
    assert visible.count("<table") == 1
    assert_says(visible, "Paired difference from", "Over the baseline")
    assert_says(visible, "What was done to the data", "minmax")
    assert "Reproducibility checklist" in text
    assert "Reproducibility checklist" not in visible
    for name in ("report.json", "tables/answer.csv", "tables/answer.tex"):
        assert f'href="{name}"' in text
        assert (page.parent / name).exists()


def test_a_pipeline_is_shown_by_its_last_step():
    logistic = {"_target_": "sklearn.linear_model.LogisticRegression", "C": 2}
    steps = [["fill", {"_target_": "sklearn.impute.SimpleImputer"}], ["model", logistic]]
    params = {"steps": steps, "model__class_weight": "balanced"}
    found = class_words("sklearn.pipeline.Pipeline", params)
    assert found == "sklearn.linear_model.LogisticRegression after SimpleImputer"
    unnamed = {"_args_": [steps[0][1], logistic]}
    assert class_words("sklearn.pipeline.make_pipeline", unnamed) == found
    assert class_words("sklearn.svm.SVC", {"C": 1}) == "sklearn.svm.SVC"


def test_the_run_ends_with_the_answer_and_the_page(folder, one, capsys):
    arguments = one.provenance[0]["command"][2:]
    assert main(["run", *arguments]) == EXIT_OK
    lines = capsys.readouterr().out.rstrip().splitlines()
    assert "\n".join(lines).endswith(answer_text(load_study(one.folder)))
    assert lines[-1].endswith("index.html")


def test_a_spent_budget_ends_with_4_and_an_answer_that_says_so(folder, capsys):
    arguments = ["study=budget", "datasets=[other]", "solvers=[bayes,stump]", "minutes=0.0001"]
    arguments += [f"paths.results={folder / 'results'}", f"paths.cache={folder / 'cache'}", "cluster=serial"]
    assert main(["run", "--config-dir", str(configure(folder)), *arguments]) == EXIT_STOPPED
    output, errors = capsys.readouterr()
    assert_says(errors, "Resume with")
    assert len(errors.splitlines()) == 1
    assert_says(output, "budget minutes=0.0001 ended the run")


def test_a_budget_that_ended_before_any_score_is_said_once(one):
    spent = {**one.provenance[-1], "budget_spent": True, "minutes": 5}
    text = answer_text(replace(one, outer=one.outer.iloc[:0], provenance=[spent]))
    assert_says(text, "No outer fold", "budget minutes=5 ended the run")
    assert len(sentences(text.partition("Report:")[0].strip())) == 2


def test_the_page_of_a_run_has_the_sections_that_its_command_names(folder, one):
    (configure(folder) / "pagesections.py").write_text(
        "from orchestrator.report import Section\n"
        "def hardest(results): return Section('Hardest folds', 'Of all.', 'Fold 3.')\n"
    )
    arguments = [*one.provenance[0]["command"][2:], "report.sections=[pagesections.hardest]"]
    assert main(["run", *arguments]) == EXIT_OK
    assert "Hardest folds" in (one.folder / "report" / "index.html").read_text()


class Late(SerialExecutor):
    """Moves a clock past every deadline when the first batch of an arm starts."""

    def __init__(self, arm):
        super().__init__()
        self._arm, self.now = arm, 0.0

    def submit(self, order):
        self.now = 2.0 if order.batch.solver == self._arm else self.now
        super().submit(order)


def test_before_a_deadline_one_solver_after_another_is_completed(folder, monkeypatch):
    late = Late("deep")
    clocks = {name: getattr(time, name) for name in ("perf_counter", "process_time", "thread_time")}
    monkeypatch.setattr(runner, "time", SimpleNamespace(monotonic=lambda: late.now, **clocks))
    study = (
        "study=late",
        "datasets=[other]",
        "solvers=[bayes,deep,stump]",
        "protocol.outer=4",
        "protocol.inner=2",
    )
    run = StudyRun(folder, executor=late, base=study, config_dir=configure(folder), deadline=1.0)
    with raises(BudgetSpent, "minutes"):
        run.go()
    results = load_study(run.store.folder)
    results.provenance[-1].update(minutes=5, budget_spent=True)
    text = answer_text(results)
    assert_says(text, "2 of 3 solvers are complete", "minutes=5", "0 of 4 splits, not compared")
    assert max(text.index("bayes"), text.index("deep")) < text.index("stump")


def test_a_single_split_is_counted_in_the_singular(tmp_path):
    results = make_results(tmp_path, {"iris": {"a": 0.9, "b": 0.8}, "wine": {"a": 0.9, "b": 0.8}}, outer=1)
    study = analyse(drop(results, lambda f: (f.dataset == "wine") & (f.inner == -1)))
    assert_says(scores.table(study).caption, "Mean over 1 outer test fold ±")
    assert_says(answer_text(study), "No solver has finished the only split of wine.")
