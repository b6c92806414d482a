"""The section on reference arms: its tables, its figures, and what it leaves out."""

import json

import numpy as np
import pandas as pd
import pytest

from orchestrator.analysis.findings import against_references, analyse
from orchestrator.report import markdown_summary, write_report
from orchestrator.report.format import time_ratio
from orchestrator.report.limits import ARMS_SHOWN
from orchestrator.report.sections.against_reference import tables
from orchestrator.report.sections.methods import checklist
from orchestrator.report.sections.protocol import protocol
from orchestrator.study.report_choices import ReportChoices
from tests.messages import assert_says, says
from tests.orchestrator.points import SPACE, study, trials_of
from tests.orchestrator.report.frames import QUICKSTART, make_results

ARMS = dict.fromkeys(("exact", "fast", "other"), SPACE)


@pytest.fixture
def trials():
    generator = np.random.default_rng(1)
    frames = [
        trials_of(
            arm,
            *(lambda *_, low=low: low + generator.random() for low in (0.0, 1.0, 5.0)),
            dataset=dataset,
            reduction=0.1 if arm == "fast" else np.nan,
        )
        for dataset in ("d", "e")
        for arm in ARMS
    ]
    return pd.concat(frames, ignore_index=True)


def report_of(trials, folder, *references):
    results = study(trials, ARMS)
    findings = analyse(results, ReportChoices(reference=references))
    page = write_report(results, folder, findings, pdf=False)
    return page.read_text(encoding="utf-8"), json.loads((folder / "report.json").read_text())


@pytest.mark.figures("grid_points", "against_reference", "against_reference_2")
def test_each_reference_has_its_table_and_its_figure(trials, tmp_path):
    page, report = report_of(trials, tmp_path, "exact", "other")
    found = against_references(analyse(study(trials, ARMS), ReportChoices(reference=("exact", "other"))))
    for name, reference in (("against_reference", "exact"), ("against_reference_2", "other")):
        rows = report["tables"][name]["rows"]
        expected = found[found["reference"] == reference]
        assert [row["solver"] for row in rows] == [*ARMS] * 2
        for measure in ("rmse", "ets", "ots", "ecs", "ocs", "maximum", "mean", "sd", "sd_of_means"):
            assert [row[measure] for row in rows] == pytest.approx(expected[measure].tolist(), rel=1e-9)
        assert name in report["figures"]
        assert (tmp_path / "figures" / f"{name}.svg").exists()
    assert len(report["figures"]["grid_points"]) == 2 * 3 * 6
    first = report["tables"]["against_reference"]["rows"][1]
    assert_says(page, f"{100 * first['rmse']:.2f}", time_ratio(first["ots"]), "Every arm against exact")


def test_representative_sets_have_a_table_by_gamma(trials, tmp_path):
    sizes = pd.Series(25.0, index=trials.index).where(trials["solver"] == "fast")
    page, report = report_of(trials.assign(n_representatives=sizes, n_train=100), tmp_path)
    rows = report["tables"]["representative_sets"]["rows"]
    assert [(row["dataset"], row["parameters"]) for row in rows] == [
        (dataset, f"gamma={gamma}") for dataset in "de" for gamma in ("0.25", "0.5", "1")
    ]
    assert {row["share"] for row in rows} == {0.25}
    assert_says(page, "Representative sets", "25.0 (0.100 s)", "M/N")


def test_no_interval_and_no_test_is_printed(trials, tmp_path):
    page, report = report_of(trials, tmp_path)
    assert report["answers"] == [{"question": "Result", "text": report["answer"]}]
    assert_says(page, "no estimate of accuracy", "no sample")
    printed = {name for table in report["tables"].values() for row in table["rows"] for name in row}
    assert not {name for name in printed if name in ("low", "high", "p", "p_holm", "corrected_se")}


def test_no_power_of_tests_that_are_not_done_is_given(trials, tmp_path):
    _, report = report_of(trials, tmp_path)
    answers = {row["item"]: row["answer"] for row in report["tables"]["checklist"]["rows"]}
    assert (answers["Significance"], answers["Statistical power"]) == ("none", "no test")
    assert "Power" not in protocol(analyse(study(trials, ARMS)))


def test_the_checklist_counts_arms_that_are_not_trained_to_the_optimum(trials):
    def answer(trials):
        rows = checklist(analyse(study(trials, ARMS))).data.set_index("item")
        return rows.loc["Trained to the optimum", "answer"]

    assert answer(trials) == "yes, for all arms that report it"
    trials = trials.assign(converged=pd.Series(True, trials.index, dtype="boolean"), gap=1e-3)
    assert answer(trials) == "yes, for all arms that report it"
    fast, other = trials["solver"] == "fast", trials["solver"] == "other"
    trials.loc[fast & (trials["outer"] == 1), "converged"] = False
    trials.loc[other & (trials["dataset"] == "d"), ["converged", "gap"]] = [None, 0.5]
    assert answer(trials) == "not known for 3 dataset × arm"


def test_the_first_of_many_arms_are_shown_because_there_are_no_ranks(trials):
    arms = dict.fromkeys([*ARMS, *(f"a{k}" for k in range(ARMS_SHOWN))], SPACE)
    (table,) = tables(analyse(study(trials, arms)))
    assert_says(table.caption, f"Of {len(arms)} arms, the first {ARMS_SHOWN} are shown.")
    assert "rank" not in table.caption


def test_missing_points_are_counted_in_the_table(trials, tmp_path):
    trials.loc[(trials["solver"] == "fast") & (trials["param_C"] == 4), ["status", "score"]] = [
        "error",
        np.nan,
    ]
    page, report = report_of(trials, tmp_path)
    assert [row["n_points"] for row in report["tables"]["against_reference"]["rows"][:3]] == [12, 6, 12]
    assert "6 of 12" in page
    assert "6 of 12" in markdown_summary(study(trials, ARMS))


def test_without_timings_there_are_no_times(trials):
    results = study(trials, ARMS)
    results.trials["profile"] = "throughput"
    text = markdown_summary(results)
    assert says(text, "Every arm against exact")
    found = against_references(results)
    assert found[["ets", "ots"]].isna().all(axis=None)
    assert found[["rmse", "ecs", "ocs"]].notna().all(axis=None)


def test_without_a_score_the_page_has_no_such_section(trials, tmp_path):
    failed = trials.assign(status="error", score=np.nan)
    _, report = report_of(failed, tmp_path)
    assert "against_reference" not in report["tables"]
    assert "grid_points" not in report["figures"]


def test_a_study_with_selections_has_no_such_section(tmp_path):
    results = make_results(tmp_path, QUICKSTART)
    write_report(results, tmp_path / "report", pdf=False)
    report = json.loads((tmp_path / "report" / "report.json").read_text())
    assert not {"against_reference", "grid_points"} & {*report["tables"], *report["figures"]}
