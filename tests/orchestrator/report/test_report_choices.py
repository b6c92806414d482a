"""The control, the level and what is left out of a report: declared by the first run, or called post hoc."""

import json

import pytest

import svmbench
from orchestrator import load_study
from orchestrator.analysis import findings as frames
from orchestrator.analysis.findings import analyse
from orchestrator.analysis.ratios import summarise
from orchestrator.cli.main import EXIT_BAD, EXIT_INTERRUPTED, EXIT_NO_SUCCESS, EXIT_OK, main
from orchestrator.config.compose import load_settings
from orchestrator.isolation.exits import interrupt
from orchestrator.report.contents import all_tables
from orchestrator.report.sections.methods import methods
from orchestrator.report.verdict import verdict
from orchestrator.study.errors import ConfigError
from orchestrator.study.recorded_choices import report_choices
from orchestrator.study.report_choices import HOLM, MAX_T
from tests.messages import assert_each_says, assert_says, assert_sentence, says, sentences

pytestmark = pytest.mark.usefixtures("no_pages")

TINY = ("datasets=[iris,wine,breast_cancer]", "protocol.outer=2", "protocol.inner=2", "cluster=serial")
ARMS = ("one", "two", "three", "four", "five")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Studies with and without declared choices, of five arms."""
    folder = tmp_path_factory.mktemp("choices")
    (folder / "solver").mkdir()
    for number, name in enumerate(ARMS, start=1):
        text = "_target_: sklearn.neighbors.KNeighborsClassifier\nspace: {}\n"
        (folder / "solver" / f"{name}.yaml").write_text(f"{text}n_neighbors: {3 * number}\n")
    for study, overrides in {"plain": (), "declared": ("report.control=two", "report.alpha=0.2")}.items():
        assert run(folder, f"study={study}", *overrides) == EXIT_OK
    return folder


def run(folder, *overrides):
    arms = f"solvers=[{','.join(ARMS)}]"
    where = f"paths.results={folder}"
    return main(["run", "--config-dir", str(folder), arms, *TINY, where, "report.adjust=holm", *overrides])


def findings_of(folder, study, **given):
    results = load_study(study, folder)
    return analyse(results, report_choices(results.provenance, given))


def assert_chosen(answer, declared=(), late=()):
    """Fail unless an answer names the choices declared before any score, and then those made later."""
    facts = [("Declared", *declared)] if declared else []
    facts += [("post hoc", *late)] if late else []
    said = [
        sentence
        for sentence in sentences(answer)
        if says(sentence, "before any score") or says(sentence, "post hoc")
    ]
    assert_each_says(said, *facts)
    assert ("post hoc" in answer) == bool(late)


def test_the_control_stands_first_and_the_others_are_tested_against_it(folder):
    findings = findings_of(folder, "plain", control="three")
    assert list(frames.means(findings).columns) == ["three", "one", "two", "four", "five"]
    assert frames.tests(findings)["second"].tolist() == ["three"] * 4
    default = findings_of(folder, "plain")
    assert frames.tests(default)["second"].tolist() == ["one"] * 4
    (new,) = frames.tests(findings).query("first == 'one'").to_dict("records")
    (old,) = frames.tests(default).query("first == 'three'").to_dict("records")
    assert (new["p"], new["estimate"]) == (old["p"], -old["estimate"])


def test_what_is_left_out_takes_no_part_in_any_test(folder):
    findings = findings_of(folder, "plain", leave_out=["one", "wine"])
    assert list(frames.means(findings).columns) == ["two", "three", "four", "five"]
    assert list(frames.means(findings).index) == ["iris", "breast_cancer"]
    for frame in (
        frames.coverage(findings),
        frames.scores(findings),
        frames.effort(findings),
        frames.selections(findings),
    ):
        assert not {"one"} & set(frame["solver"])
        assert not {"wine"} & set(frame["dataset"])
    assert (
        len(frames.tests(findings)) == frames.tests(findings)["family"].iloc[0] == 6
    )  # four arms: all pairs


def test_the_level_decides_verdicts_and_intervals(folder):
    pair = {"leave_out": ["three", "four", "five"]}
    loose = findings_of(folder, "plain", alpha=0.5, **pair)  # three datasets give p = 0.25 at least
    strict = findings_of(folder, "plain", alpha=0.05, **pair)
    assert frames.tests(loose)["p_adjusted"].equals(frames.tests(strict)["p_adjusted"])
    assert (frames.tests(loose)["datasets_needed"] < frames.tests(strict)["datasets_needed"]).all()
    assert all(says(each, "cannot be decided") for each in frames.tests(strict)["verdict"])
    assert not any(says(each, "cannot be decided") for each in frames.tests(loose)["verdict"])
    ratios = frames.means(loose)[["one", "two"]].to_numpy().T
    assert summarise(ratios, 0.5).ratio_high < summarise(ratios, 0.05).ratio_high


def test_choices_of_the_first_run_are_declared_and_all_others_post_hoc(folder, capsys):
    declared = findings_of(folder, "declared")
    assert_chosen(verdict(declared), declared=("control two", "level 0.2"))
    late = findings_of(folder, "declared", alpha=0.05)
    assert_chosen(verdict(late), declared=("control two",), late=("level 0.05",))
    for given in ({}, {"control": "one"}, {"alpha": 0.05}):  # what it would have been anyhow
        assert "post hoc" not in verdict(findings_of(folder, "plain", **given))
    before = load_study("plain", folder).trials
    where = f"paths.results={folder}"
    assert main(["report", "study=plain", "report.control=five", where, f"to={folder / 'report'}"]) == EXIT_OK
    assert_sentence(capsys.readouterr().out, "post hoc", "control five")
    twin = json.loads((folder / "report" / "report.json").read_text())
    assert_chosen(twin["answer"], late=("control five",))
    assert load_study("plain", folder).trials.equals(before)


def test_the_region_of_practical_equivalence_is_a_choice(folder):
    findings = findings_of(folder, "plain", rope=0.02)
    assert findings.design.rope == 0.02
    assert_chosen(verdict(findings), late=("practical equivalence", "±2 percentage points"))
    assert findings_of(folder, "plain").design.rope == 0.01
    for given in (0.01, None):
        assert "post hoc" not in verdict(findings_of(folder, "plain", rope=given))
    wrong = ("report.rope=-1", f"paths.results={folder}")
    assert main(["report", "study=plain", *wrong]) == EXIT_BAD


def test_a_run_that_changes_the_choices_stores_nothing_anew_and_is_post_hoc(folder):
    trials = load_study("declared", folder).trials
    assert run(folder, "study=declared", "report.control=one") == EXIT_OK
    results = load_study("declared", folder)
    assert results.trials.equals(trials)
    assert_chosen(verdict(analyse(results)), late=("control one", "level 0.05"))


@pytest.mark.full
def test_what_a_run_without_trials_declared_does_not_bind(folder, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr("orchestrator.engine.runner.Runner._loop", lambda self: interrupt())
        assert run(folder, "study=early", "report.control=two") == EXIT_INTERRUPTED
    assert run(folder, "study=early", "report.control=three") == EXIT_OK
    assert_chosen(verdict(findings_of(folder, "early")), declared=("control three",))
    assert "post hoc" in verdict(findings_of(folder, "early", control="two"))
    runs = load_study("early", folder).provenance
    runs[0]["summary"] = {"scores_stored": 5}  # which were lost since
    assert report_choices(runs, {}).first.control == "two"


@pytest.mark.full
def test_what_a_run_without_a_score_declared_does_not_bind(folder):
    """Nobody has seen a score of a run whose trainings all failed, though its rows are stored."""
    failing = [f"solver.{name}.n_neighbors={100_000 + i}" for i, name in enumerate(ARMS)]
    assert run(folder, "study=failed", "report.control=two", *failing) == EXIT_NO_SUCCESS
    assert len(load_study("failed", folder).trials)
    assert run(folder, "study=failed", "report.control=three") == EXIT_OK
    assert_chosen(verdict(findings_of(folder, "failed")), declared=("control three",))
    assert run(folder, "study=failed", "report.control=four") == EXIT_OK
    assert_sentence(verdict(findings_of(folder, "failed")), "post hoc", "control four")


@pytest.mark.full
def test_another_order_of_the_arms_makes_another_control_and_that_is_post_hoc(folder):
    arms = f"solvers=[{','.join(reversed(ARMS))}]"
    assert run(folder, "study=ordered") == EXIT_OK
    where = ("--config-dir", str(folder), f"paths.results={folder}")
    assert main(["run", "study=ordered", arms, *TINY, *where]) == EXIT_OK
    found = findings_of(folder, "ordered")
    assert frames.tests(found)["second"].tolist() == ["five"] * 4
    assert_chosen(verdict(found), late=("control five",))


def test_a_new_study_uses_max_t_and_a_stored_one_keeps_its_procedure(folder):
    assert run(folder, "study=new", "report.adjust=null") == EXIT_OK
    new = findings_of(folder, "new")
    assert new.design.adjustment == MAX_T
    assert len(frames.tests(new)) == 10, "all pairs of five arms"
    assert_says(all_tables(new)["tests"].caption, "step-down max-t for the 10 tests")
    assert "post hoc" not in verdict(new)

    # A run of an older version records no procedure; what follows from it is as it was.
    results = load_study("plain", folder)
    for old in results.provenance:
        del old["report"]["adjust"]
    later = {**results.provenance[-1], "report": {"adjust": None}, "found_scores": 30}
    for runs in (results.provenance, [*results.provenance, later]):
        found = analyse(results, report_choices(runs, {}))
        assert found.design.adjustment == HOLM
        assert verdict(found) == verdict(findings_of(folder, "plain"))
    chosen = analyse(results, report_choices(results.provenance, {"adjust": MAX_T}))
    assert_chosen(verdict(chosen), late=("adjustment by step-down max-t",))
    assert_sentence(methods(chosen), "max-t was chosen after scores had been seen")


def test_a_report_from_python_reads_the_earlier_study_that_a_run_named(folder, tmp_path):
    def power(earlier):
        results = load_study("declared", folder)
        # Three datasets can find something in a single test at this level.
        results.provenance[-1]["report"] |= {"alpha": 0.5, "leave_out": ["three", "four", "five"]}
        results.provenance[-1]["report"] |= {"earlier": earlier}
        page = svmbench.write_report(results, tmp_path / str(earlier))
        return json.loads(page.with_name("report.json").read_text())["protocol_in_words"]["Power"]

    assert_sentence(power("plain"), "datasets of plain", "percentage points")
    # Without an earlier study, or if it has been deleted since, the report says nothing of points.
    assert power(None) == power("deleted")
    assert "points" not in power(None)


def test_a_plan_has_all_that_the_study_runs():
    few = ("study=x", "datasets=[iris,wine]", "solvers=[lda,knn]", "cluster=serial", "protocol.repeats=2")
    load_settings([*few, "report.plan.datasets=[wine,iris,heart]", "report.plan.repeats=2"])
    with pytest.raises(ConfigError) as raised:
        load_settings(
            [*few, "report.plan.datasets=[heart,wine]", "report.plan.arms=[lda]", "report.plan.repeats=1"]
        )
    assert_each_says(
        raised.value.problems,
        ("report.plan.datasets=[heart,wine] lacks iris", "add iris"),
        ("report.plan.arms=[lda] lacks knn", "add knn"),
        ("report.plan.repeats=1: the study runs 2 repeats; expected at least 2",),
    )


def test_names_that_the_study_has_not_are_refused_together(folder, capsys):
    wrong = ("report.control=tree", "report.leave_out=[wnie,two]", f"paths.results={folder}")
    assert main(["report", "study=plain", *wrong]) == EXIT_BAD
    errors = capsys.readouterr().err.splitlines()
    assert_each_says(errors, ("'wnie'", "'wine'"), ("'tree'", "'three'"))
    assert run(folder, "study=never", "report.leave_out=[iris,wine,breast_cancer]") == EXIT_BAD
    assert_says(capsys.readouterr().err, "report.leave_out", "dataset")
    assert main(["report", "study=plain", "report.alpha=2", "report.control=[one]", wrong[-1]]) == EXIT_BAD
    assert len(capsys.readouterr().err.splitlines()) == 2
