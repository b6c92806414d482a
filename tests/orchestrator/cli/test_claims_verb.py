"""The claims of the literature: what is declared about them, and the verb that decides them."""

import re
import shutil
from functools import cache
from math import isinf
from pathlib import Path

import pytest

from orchestrator.claims.decisions import REPRODUCED, UNDECIDED, decide, verdict_of
from orchestrator.claims.declared import read_claims
from orchestrator.claims.figures import Figure
from orchestrator.cli.claims import declared_claims
from orchestrator.config.compose import claim_nodes, load_settings
from orchestrator.study.errors import ConfigError
from tests.integration.processes import in_process
from tests.messages import assert_says, raises

pytestmark = pytest.mark.usefixtures("no_pages")

CLAIMS = declared_claims([], None)
ROOT = Path(__file__).parents[3]

OWN = """\
# SVC with and without shrinking is the same machine.
claim: "Shrinking | changes nothing"
source: "nobody, 2026"
published: "0 points"
tests:
  - test: difference
    study: mine
    arms: ["libsvm_l1[shrinking=false]"]
    reference: "libsvm_l1[shrinking=true]"
    apart: true
    within: 0.0001
  - test: ratio
    study: mine
    arms: ["libsvm_l1[shrinking=false]"]
    reference: "libsvm_l1[shrinking=true]"
    quantity: n_sv
    at_least: 0.5
"""


PAPERS = {
    "A": ("Strack 2013, ", 15),
    "E": ("Nandan et al. 2014, ", 14),
    "M": ("Nguyen, ", 2),
    "R": ("Nguyen, ", 4),
    "S": ("Strack 2013, ", 20),
    "T": ("Zapién et al. 2007, ", 10),
    "V": ("Momma 2011, ", 8),
}
"""Beginning of the source and number of the claims, by the first letter of their names."""


def test_the_claims_of_the_papers_are_there_in_order():
    names = [claim.name for claim in CLAIMS]
    numbers = list(dict.fromkeys(name.rstrip("abc") for name in names))
    assert numbers == [f"{letter}{i}" for letter, (_, n) in PAPERS.items() for i in range(1, n + 1)]
    assert names.index("S1b") < names.index("S2") < names.index("S10") < names.index("S11a")
    for claim in CLAIMS:
        assert claim.source.startswith(PAPERS[claim.name[0]][0])


NOT_AVAILABLE = {"seizure", "localization", "epsilon-published", "w8a-published"}
"""Datasets that Nandan et al. (2014) speak of and no experiment has. Their tests stay undecided."""
TOO_LARGE = {"svmperf": "covtype-binary-published", "aesvm_poly": "covtype-binary-published"}
"""Datasets that experiments leave out for their hours, by experiment."""


@cache
def declared(name):
    """The study that the experiment of a name declares."""
    return load_settings([f"experiment={name}"]).study


@pytest.mark.sample(11)
@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.name)
def test_a_claim_asks_for_arms_and_datasets_that_its_experiments_have(claim):
    for part in claim.parts:
        having = [declared(name) for name in part.studies]
        for name, study in zip(part.studies, having, strict=True):
            arms = {arm.name for arm in study.arms}
            against, reference = part.options.get("against"), {*_names(part, "reference")}
            if name != against or not reference:  # without a reference an arm is compared with itself
                assert {*_names(part, "arms")} <= arms
            if against in (None, name):
                assert reference <= arms
            assert {*_names(part, "solver")} <= {arm.solver for arm in study.arms}
            quantities = [part.options.get(key) for key in ("quantity", "over", "y")]
            seconds = [value for value in quantities if "seconds" in str(value)]
            assert study.protocol.profile == "timing" or not seconds
            if part.test == "figure":
                assert {name for key in ("over", "minus") for name in _names(part, key)} <= arms
        datasets = {dataset.name for study in having for dataset in study.datasets}
        if part.test == "figure":
            datasets |= NOT_AVAILABLE | {TOO_LARGE[name] for name in part.studies if name in TOO_LARGE}
        assert {
            name for key in ("datasets", "except", "above", "below") for name in _names(part, key)
        } <= datasets


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    "name",
    [
        *("medium", "large", "overrelaxation", "draws", "multiclass", "bias_free"),
        *("toolkit", "toolkit_pattern", "pattern_search", "pattern_search_grid"),
    ],
)
def test_an_experiment_of_accuracies_has_one_of_times_on_a_sample_of_its_trainings(name):
    accuracies, times = declared(name), declared(f"{name}_time")
    assert [arm.name for arm in accuracies.arms] == [arm.name for arm in times.arms]
    assert [data.name for data in accuracies.datasets] == [data.name for data in times.datasets]
    assert (times.search.target, times.search.options["study"]) == ("sample", name)
    assert (accuracies.protocol.profile, times.protocol.profile) == ("throughput", "timing")
    folds = [(each.protocol.outer, each.protocol.inner, each.protocol.seed) for each in (accuracies, times)]
    assert folds[0] == folds[1]


def test_claims_that_compare_two_studies_compare_them_under_one_protocol():
    for claim in CLAIMS:
        for part in claim.parts:
            if part.options.get("against"):
                protocols = [declared(name).protocol for name in part.studies]
                terms = [(each.outer, each.inner, each.profile) for each in protocols]
                assert terms.count(terms[0]) == len(terms)


def test_equal_arms_show_neither_a_gain_nor_a_loss():
    """A one-sided region that ended at no difference would hold the interval [0, 0] of equal scores."""
    same = Figure("", 0.0, 0.0, 0.0, 9, "datasets")
    for claim in CLAIMS:
        for part in claim.parts:
            lower, upper = part.region
            if part.test == "difference" and (isinf(lower) or isinf(upper)):
                assert (verdict_of(same, part.region) == REPRODUCED) == (lower < 0 < upper)


PUBLISHED = {
    ("T2", "difference"): [0.9324 - 0.9642, 0.9349 - 0.9642, 0.9376 - 0.9582],
    ("T3", "difference"): [0.9025 - 0.9364, 0.9094 - 0.9343],
    ("T10", "dna-splice"): [2.35 / 1.84, 2.62 / 2.11],
    ("T10", "fourclass"): [0.30 / 0.09, 0.10 / 0.18],
    ("T10", "usps-reversed"): [27.52 / 35.26, 44.74 / 22.70],
}
"""Numbers of Zapién et al. (2007), Tables 5.1 to 5.10, by claim and by test or dataset."""


@pytest.mark.parametrize(("name", "chosen"), PUBLISHED)
def test_the_numbers_of_a_paper_lie_in_the_region_of_the_claim_that_states_them(name, chosen):
    (claim,) = [claim for claim in CLAIMS if claim.name == name]
    parts = [part for part in claim.parts if chosen in (part.test, *_names(part, "datasets"))]
    assert parts
    for part in parts:
        for value in PUBLISHED[name, chosen]:
            assert part.region[0] <= value <= part.region[1]


def test_over_relaxation_is_claimed_of_the_choice_and_the_draws_of_the_thesis():
    (claim,) = [claim for claim in CLAIMS if claim.name == "S9b"]
    arms = {arm.name: arm for arm in declared("overrelaxation_small_time").arms}
    asked = {name for part in claim.parts for name in (*_names(part, "arms"), part.options["reference"])}
    params = [arms[name].params for name in asked]
    assert len(params) == 5
    for each in params:
        assert (each["pair"], each["track_margins"], each["exhaustive"]) == ("mdm", False, False)


def _names(part, key):
    value = part.options.get(key, [])
    return value if isinstance(value, list) else [value]


def test_without_studies_every_claim_but_the_formula_is_undecided_and_says_what_is_missing():
    for claim in CLAIMS:
        decision = decide(claim, {}, {})
        if claim.name == "S15":
            assert decision.verdict == "reproduced"
            continue
        assert decision.verdict == UNDECIDED
        assert all(re.search(r"has not been run|no solver publishes", each.why) for each in decision.outcomes)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a claim of a user's own, and the study that decides it."""
    folder = tmp_path_factory.mktemp("claims")
    (folder / "own" / "claim").mkdir(parents=True)
    (folder / "own" / "claim" / "shrinking.yaml").write_text(OWN)
    run = in_process(
        folder,
        "run",
        *("study=mine", "datasets=[iris,wine]", "solvers=[libsvm_l1]", "sweep.shrinking=[true,false]"),
        *("protocol.outer=2", "protocol.inner=2", "search.space.C=[1]", "search.space.gamma=[1]"),
        "cluster=serial",
    )
    assert run.returncode == 0, run.stderr
    return folder


def test_the_terminal_lists_all_claims_and_the_page_has_a_row_for_each(folder, monkeypatch, full_size):
    if not full_size:  # composing all experiments takes long; the page of the manual has hours
        monkeypatch.setattr("orchestrator.cli.claims.experiment_hours", lambda *arguments: {})
    printed = in_process(folder, "claims", "--config-dir", "own").stdout
    n = len(CLAIMS) + 1
    assert_says(printed, f"{n} claims", "1 reproduced", "S15", "0 not reproduced", f"{n - 1} undecided")
    assert_says(printed, "shrinking undecided", "Shrinking | changes nothing", "theirs", "0 points", "ours")
    written = in_process(folder, "claims", "--config-dir", "own", "to=page.md")
    assert written.returncode == 0, written.stderr
    page = (folder / "page.md").read_text(encoding="utf-8")
    rows = re.findall(r"^<tr><td><a href=.*</tr>$", page, re.MULTILINE)
    assert len(rows) == n
    (row,) = [row for row in rows if 'href="#shrinking"' in row]
    assert_says(row, "Shrinking | changes nothing", "undecided", "0 points", "<svg", "#study-mine")
    (counts,) = re.findall(r'<table class="verdicts">.*</table>', page)
    assert sum(map(int, re.findall(r"<td>(\d+)</td>", counts))) == n
    (details,) = re.findall(r'<details id="shrinking">.*</details>', page)
    assert_says(details, "libsvm_l1[shrinking=false]", "+0.00 points", "2^−2 = 0.25", "0.05")
    (study,) = re.findall(r'<details id="study-mine">.*</details>', page)
    assert_says(study, "iris, wine", "2 × 2 folds")


def test_a_report_prints_the_claims_that_its_study_decides(folder):
    run = in_process(folder, "report", "study=mine", "--config-dir", "own")
    assert run.returncode == 0, run.stderr
    assert_says(run.stdout, "shrinking", "undecided", "Shrinking | changes nothing")
    page = (folder / "results" / "mine" / "report" / "index.html").read_text(encoding="utf-8")
    assert "shrinking: undecided" in page
    without = in_process(folder, "report", "study=mine")
    assert "Claim" not in without.stdout
    assert "shrinking: undecided" not in (folder / "results/mine/report/index.html").read_text(
        encoding="utf-8"
    )


def test_bad_input_of_the_verb_gets_one_sentence(folder):
    assert_says(in_process(folder, "claims", "to=").stderr, "to=", "to=FILE")
    broken = folder / "broken" / "claim"
    broken.mkdir(parents=True)
    (broken / "x.yaml").write_text("claim: [")
    assert "is not YAML" in in_process(folder, "claims", "--config-dir", "broken").stderr


def test_a_file_of_ones_own_is_read_beside_ours(folder):
    assert "shrinking" in claim_nodes((), Path(folder / "own"))
    with raises(ConfigError, "shrinking", "unknown", "'tets'", "'tests'"):
        read_claims({"shrinking": {**claim_nodes((), Path(folder / "own"))["shrinking"], "tets": 1}})


def test_a_study_that_is_not_the_experiment_of_its_name_decides_on_other_terms(folder):
    (folder / "own" / "experiment").mkdir()
    (folder / "own" / "experiment" / "mine.yaml").write_text(
        "# @package _global_\nstudy: mine\ndatasets: [iris, digits]\nsolvers: [libsvm_l1]\n"
        "protocol: {seed: 3, max_seconds: 60}\nsolver: {libsvm_l1: {tol: 0.01}}\n"
    )
    terms = (
        "without digits; with wine; another libsvm_l1.shrinking; another libsvm_l1.tol; "
        "another search.space.C; another search.space.gamma; protocol.outer=2 in place of 5; "
        "protocol.inner=2 in place of 5; protocol.seed=0 in place of 3; "
        "protocol.max_seconds=None in place of 60."
    )
    printed = in_process(folder, "claims", "shrinking", "--config-dir", "own", "to=terms.md")
    assert printed.returncode == 0, printed.stderr
    page = (folder / "terms.md").read_text(encoding="utf-8")
    assert_says(page, terms, "on other terms")
    (counts,) = re.findall(r'<table class="verdicts">.*</table>', page)
    assert re.findall(r"<td>(\d+)</td>", counts) == ["0", "0", "0", "1", "0", "0"]
    report = in_process(folder, "report", "study=mine", "--config-dir", "own")
    sentence = f"experiment of the claims: {terms}"
    assert sentence in " ".join(report.stdout.split())
    assert sentence in (folder / "results/mine/report/index.html").read_text(encoding="utf-8")


def test_a_space_of_ones_own_is_compared_with_the_one_that_the_solver_has(folder):
    """A solver with its own space does not use the search's, of which its class lacks gamma."""
    own = folder / "cuts"
    for group in ("claim", "experiment", "solver"):
        (own / group).mkdir(parents=True)
    claim = OWN.replace("mine", "cuts").replace("libsvm_l1[shrinking", "linear[dual")
    (own / "claim" / "cuts.yaml").write_text(claim)
    linear = "_target_: sklearn.svm.LinearSVC\nspace: {C: [1, 4]}\n"
    (own / "solver" / "linear.yaml").write_text(linear)
    (own / "experiment" / "cuts.yaml").write_text(
        "# @package _global_\nstudy: cuts\ndatasets: [iris]\nsolvers: [linear]\n"
        "sweep: {dual: [true, false]}\nprotocol: {outer: 2, inner: 2}\ncluster: {kind: serial}\n"
    )
    run = in_process(folder, "run", "experiment=cuts", "--config-dir", "cuts")
    assert run.returncode == 0, run.stderr
    assert "on other terms" not in in_process(folder, "claims", "cuts", "--config-dir", "cuts").stdout
    (own / "solver" / "linear.yaml").write_text(linear.replace("4", "8"))
    assert in_process(folder, "claims", "cuts", "--config-dir", "cuts", "to=cuts.md").returncode == 0
    assert_says((folder / "cuts.md").read_text(encoding="utf-8"), "on other terms", "another linear.space.C")


def test_a_solver_with_a_space_of_its_own_may_be_trained_at_what_another_study_has_selected(folder):
    own = folder / "at"
    for group in ("claim", "experiment", "solver"):
        (own / group).mkdir(parents=True)
    (own / "claim" / "fixed.yaml").write_text(OWN.replace("mine", "fixed").replace("libsvm_l1[s", "linear[s"))
    linear = (
        "_target_: sklearn.svm.SVC\nkernel: linear\nspace: {C: [0.01, 0.1, 1, 10]}\n"  # two folds select two
    )
    (own / "solver" / "linear.yaml").write_text(linear)
    text = (
        "# @package _global_\nstudy: STUDY\ndatasets: [iris]\nsolvers: [linear]\n"
        "sweep: {shrinking: [true, false]}\nprotocol: {outer: 2, inner: 2}\ncluster: {kind: serial}\n"
    )
    (own / "experiment" / "grid.yaml").write_text(text.replace("STUDY", "grid"))
    at = text.replace("STUDY", "fixed") + "defaults: [{override /search: selected}]\nsearch: {study: grid}\n"
    (own / "experiment" / "fixed.yaml").write_text(at)
    for name in ("grid", "fixed"):
        run = in_process(folder, "run", f"experiment={name}", "--config-dir", "at")
        assert run.returncode == 0, run.stderr
    printed = in_process(folder, "claims", "fixed", "--config-dir", "at")
    assert_says(printed.stdout, "fixed", "no power")
    assert "on other terms" not in printed.stdout


def test_a_study_without_inner_splits_decides_on_the_terms_of_its_experiment(folder):
    own = folder / "every"
    for group in ("claim", "experiment"):
        (own / group).mkdir(parents=True)
    (own / "claim" / "points.yaml").write_text(OWN.replace("mine", "points"))
    (own / "experiment" / "points.yaml").write_text(
        "# @package _global_\nstudy: points\ndatasets: [iris]\nsolvers: [libsvm_l1]\n"
        "defaults: [{override /search: every}]\nsearch: {space: {C: [1], gamma: [1]}}\n"
        "sweep: {shrinking: [true, false]}\nprotocol: {outer: 2}\ncluster: {kind: serial}\n"
    )
    run = in_process(folder, "run", "experiment=points", "--config-dir", "every")
    assert run.returncode == 0, run.stderr
    printed = in_process(folder, "claims", "points", "--config-dir", "every", "to=points.md")
    assert "on other terms" not in printed.stdout
    page = (folder / "points.md").read_text(encoding="utf-8")
    assert "Differences from its experiment" not in page
    assert_says(page, "points", "2 folds, profile throughput")


def test_a_damaged_study_keeps_no_other_from_its_report(folder):
    text = OWN.replace("study: mine", "study: [mine, torn]")
    (folder / "torn" / "claim").mkdir(parents=True)
    (folder / "torn" / "claim" / "x.yaml").write_text(text)
    shutil.copytree(folder / "results" / "mine", folder / "results" / "torn")
    (part,) = (folder / "results" / "torn" / "trials").glob("*.parquet")
    part.write_bytes(part.read_bytes()[:300])
    run = in_process(folder, "report", "study=mine", "--config-dir", "torn")
    assert run.returncode == 0, run.stderr
    assert_says(in_process(folder, "claims", "x", "--config-dir", "torn").stdout, "study torn", "read")


def test_the_page_of_the_manual_is_what_the_published_studies_say(tmp_path):
    run = in_process(tmp_path, "claims", f"paths.results={ROOT / 'results' / 'published'}", "to=claims.md")
    assert run.returncode == 0, run.stderr
    assert (tmp_path / "claims.md").read_text() == (ROOT / "docs" / "claims.md").read_text()
