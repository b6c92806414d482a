"""Several studies in one report: what is the same becomes one arm, what is not is told apart."""

import json
import shutil

import numpy as np
import pandas as pd
import pytest
from scipy.stats import gmean

from orchestrator import load_study
from orchestrator.analysis import findings as frames
from orchestrator.analysis.findings import analyse
from orchestrator.analysis.merged_studies import merge, merged_choices
from orchestrator.analysis.signed_rank import signed_rank
from orchestrator.cli.main import EXIT_BAD, EXIT_OK, main
from orchestrator.report.verdict import answers
from orchestrator.study.errors import ConfigError
from tests.messages import assert_says, assert_sentence, raises, sentences

pytestmark = pytest.mark.usefixtures("no_pages")

SETS = [f"d{i}" for i in range(6)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Studies of small classifiers: `a`, `b` with another neighbour and times, `c` with another split."""
    folder = tmp_path_factory.mktemp("merged")
    for group, texts in {
        "solver": {
            "near": "_target_: sklearn.neighbors.KNeighborsClassifier\nspace: {n_neighbors: [1, 3]}\n",
            "bayes": "_target_: sklearn.naive_bayes.GaussianNB\nspace: {}\n",
            "dummy": "_target_: sklearn.dummy.DummyClassifier\nspace: {}\n",
        },
        "dataset": {
            name: f"_target_: sklearn.datasets.make_blobs\nn_samples: {60 + 5 * i}\nrandom_state: {i}\n"
            "centers: 3\ncluster_std: 4.0\n"
            for i, name in enumerate(SETS)
        },
    }.items():
        (folder / group).mkdir()
        for name, text in texts.items():
            (folder / group / f"{name}.yaml").write_text(text)
    run(folder, "study=a", "solvers=[near,bayes]")
    shutil.copytree(folder / "a", folder / "other" / "a")
    (folder / "solver" / "near.yaml").write_text(
        "_target_: sklearn.neighbors.KNeighborsClassifier\nspace: {n_neighbors: [1, 3]}\nweights: distance\n"
    )
    run(folder, "study=b", "solvers=[bayes,near,dummy]", "protocol.profile=timing")
    run(folder, "study=b2", "solvers=[bayes,near,dummy]")
    run(folder, "study=c", "solvers=[bayes]", "protocol.seed=7", "datasets=[d0,d1]")
    run(folder, "study=f1", "solvers=[bayes]", "datasets=[d0]", "protocol.metric=f1_macro")
    return folder


def run(folder, *overrides):
    base = ("--config-dir", str(folder), f"datasets=[{','.join(SETS)}]", "cluster=serial")
    base += ("protocol.outer=2", "protocol.inner=2", f"paths.results={folder}")
    assert main(["run", *base, *overrides]) == EXIT_OK


def merged(folder, *names, **given):
    found = merge([load_study(folder / name) for name in names], given.get("leave_out", ()))
    return analyse(found, merged_choices(found, given))


def test_arms_that_mean_the_same_are_one_and_others_carry_the_name_of_their_study(folder):
    findings = merged(folder, "a", "b2")
    assert list(findings.design.arms) == ["near@a", "bayes", "near@b2", "dummy"]
    assert frames.is_complete(findings)
    near, bayes = frames.same_arms(findings).to_dict("records")
    assert (near["arm"], near["differs"], near["n_common"]) == ("near", "settings", 0)
    assert (bayes["arm"], bayes["differs"], bayes["n"]) == ("bayes", "", 6)
    assert bayes["n_common"] == bayes["n_agree"] == 6 * 2
    a, b = (load_study(folder / name).mean_scores() for name in ("a", "b2"))
    differences = (b["near"] - a["near"]).round(12)
    assert near["p"] == signed_rank(differences).p
    walsh = [(x + y) / 2 for i, x in enumerate(differences) for y in differences[i:]]
    assert near["estimate"] == pytest.approx(np.median(walsh))
    assert near["p_holm"] == pytest.approx(min(1, 2 * near["p"]))
    pd.testing.assert_series_equal(frames.means(findings)["near@b2"], b["near"], check_names=False)
    trials = findings.results.trials
    assert not trials["key"].duplicated().any()
    assert set(trials["solver"]) == set(findings.design.arms)


def test_scores_that_disagree_and_machines_that_are_slower_are_found(folder):
    first, second = load_study(folder / "b"), load_study(folder / "b")
    twin = folder / "twin"
    wrong = second.trials["key"].isin(second.trials["key"].head(5))
    second.trials.loc[wrong, "score"] += 0.01
    second.outer["fit_seconds"] = first.outer["fit_seconds"] * 2.5
    object.__setattr__(second, "folder", twin / "b")
    findings = analyse(found := merge([first, second]), merged_choices(found, {}))
    assert list(findings.design.arms) == ["bayes", "near", "dummy"]
    frame = frames.same_arms(findings)
    assert (frame["n_common"] - frame["n_agree"]).sum() == 5
    assert frame["time_ratio"].tolist() == pytest.approx([2.5] * 3)
    assert frame["n_timed"].tolist() == [6] * 3
    for run in second.provenance:
        run["hosts"] = [{"cpu": "another", "cores": 64}]
    findings = analyse(found := merge([first, second]), merged_choices(found, {}))
    assert "bayes@twin/b" in findings.design.arms
    assert set(frames.same_arms(findings)["differs"]) == {"machine"}
    assert_sentence(answers(findings)[0].text, "different machines", "times")
    seconds = [study.outer.groupby(["solver", "dataset"])["fit_seconds"].mean() for study in (first, second)]
    ratio = gmean((seconds[1] / seconds[0])["near"])
    assert frames.same_arms(findings).set_index("arm")["time_ratio"]["near"] == pytest.approx(ratio)


def test_other_protocols_are_named_and_other_splits_refused(folder):
    findings = merged(folder, "a", "b")
    assert list(findings.design.arms) == ["near@a", "bayes@a", "bayes@b", "near@b", "dummy@b"]
    assert_says(findings.design.protocol["profile"], "throughput in a", "timing in b")
    assert frames.same_arms(findings)["differs"].tolist() == ["settings, protocol", "protocol"]
    assert frames.time_ratios(findings).empty, "the control was not timed"
    assert frames.tests(findings)["family"].tolist() == [10] * 10
    with raises(ConfigError, "d0", "d1", "a", "c", "splits", "report.leave_out=[d0,d1]") as caught:
        merged(folder, "a", "c")
    assert len(caught.value.problems) == 1
    with raises(ConfigError, "accuracy in a", "f1_macro in f1"):
        merged(folder, "a", "f1")
    with raises(ConfigError, "study", "twice"):
        merged(folder, "a", "a")


def test_the_verb_merges_into_a_folder_of_its_own(folder, tmp_path, capsys):
    base = ["report", "study=a,b2", f"paths.results={folder}", "--config-dir", str(folder)]
    assert main(base) == EXIT_BAD
    assert_says(capsys.readouterr().err, "folder", "to=DIR")
    assert main([*base, f"to={tmp_path / 'm'}"]) == EXIT_OK
    output = " ".join(capsys.readouterr().out.split())
    assert_sentence(output, "a and b2")
    assert_sentence(output, "12 trials", "same key", "equal in all")
    twin = json.loads((tmp_path / "m" / "report.json").read_text())
    assert twin["study"] == "a + b2"
    assert [row["arm"] for row in twin["tables"]["same_arms"]["rows"]] == ["near", "bayes"]
    assert [row["study"] for row in twin["tables"]["runs"]["rows"]] == ["a", "b2"]
    first, second, *_ = sentences(twin["methods"])
    assert_says(first, "a and b2")
    assert_says(second, "4 arms", "6 datasets")
    assert "near@b2" in (tmp_path / "m" / "index.html").read_text()
    assert main([*base, f"to={tmp_path / 'm'}", "report.control=near@b2"]) == EXIT_OK
    assert_sentence(capsys.readouterr().out, "post hoc", "control near@b2")
    assert main([*base, f"to={tmp_path / 'm'}", "study=a,"]) == EXIT_BAD
    assert_says(capsys.readouterr().err, "study", "empty name", "study=A,B")
    other = f"study={folder / 'a'},{folder / 'other' / 'a'}"
    assert main([*base, f"to={tmp_path / 'same'}", other]) == EXIT_BAD
    assert_says(capsys.readouterr().err, "name", "folder")


def test_a_study_and_its_copy_in_another_folder_agree_in_every_trial(folder):
    findings = merged(folder, "a", "other/a")
    assert list(findings.design.arms) == ["near", "bayes"]
    same = frames.same_arms(findings)
    assert same["n_common"].sum() == same["n_agree"].sum() == len(load_study(folder / "a").trials)


@pytest.mark.full
@pytest.mark.figures("sweep")
def test_sweeps_of_two_studies_with_the_same_settings_are_drawn(folder, tmp_path):
    swept = ("solvers=[near]", "sweep.leaf_size=[10,30]", "datasets=[d0,d1]")
    run(folder, "study=s1", *swept)
    run(folder, "study=s2", *swept, "protocol.profile=timing")
    base = ["report", "study=s1,s2", f"paths.results={folder}", "--config-dir", str(folder)]
    assert main([*base, f"to={tmp_path / 'm'}"]) == EXIT_OK
    assert (tmp_path / "m" / "figures" / "sweep.svg").is_file()
