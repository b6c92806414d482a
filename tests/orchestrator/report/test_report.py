import json
import re
from base64 import b64encode
from dataclasses import replace
from hashlib import sha256
from html import unescape
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from matplotlib.container import ErrorbarContainer

from orchestrator.analysis import findings as frames
from orchestrator.analysis.earlier_study import spread_of_earlier
from orchestrator.analysis.findings import analyse
from orchestrator.report import markdown_summary, write_report
from orchestrator.report.format import DIGITS, reproducible
from orchestrator.report.section import Drawing, flat
from orchestrator.report.sections import scores
from orchestrator.report.sections.protocol import protocol
from orchestrator.report.verdict import verdict
from orchestrator.store.files import StoreError
from orchestrator.store.results import StudyResults
from orchestrator.study.errors import ConfigError
from tests.figures import all_figures
from tests.messages import assert_says, assert_sentence, raises
from tests.orchestrator.report.frames import QUICKSTART, arm, drop, edit, empty, make_results, many

ORDER = [
    "protocol",
    "coverage",
    "scores",
    "tests",
    "time",
    "prediction_cost",
    "effort",
    "selections",
    "failures",
    "sensitivity",
    "provenance",
]


class Page(HTMLParser):
    """What a reader finds on the page: its text, its tables, its identifiers, and what it points to."""

    VOID = frozenset({"meta", "link", "br", "wbr", "img", "hr", "input"})

    def __init__(self, path):
        super().__init__()
        self.open, self.text, self.ids, self.targets, self.tables = [], "", [], [], {}
        self.source = path.read_text(encoding="utf-8")
        self.feed(self.source)
        assert self.open == [], "every element is closed"

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.ids += [attributes["id"]] if "id" in attributes else []
        self.targets += [attributes[name] for name in ("src", "href", "xlink:href") if name in attributes]
        if tag not in self.VOID:
            self.open.append(tag)
        if tag == "table":
            self.rows = self.tables[attributes["id"].removeprefix("table-")] = []
        elif tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if {"style", "script"} & {*self.open}:
            return
        self.text += data
        if self.open and self.open[-1] in ("td", "th"):
            self.rows[-1][-1] += data


@pytest.fixture
def quickstart(tmp_path):
    return make_results(tmp_path, QUICKSTART, profile="timing", also=["balanced_accuracy"])


def report(results, folder):
    return read(write_report(results, folder).parent)


def read(folder):
    return Page(folder / "index.html"), json.loads((folder / "report.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def with_figures(tmp_path_factory):
    """The folder of a report with all figures, as SVG and PDF."""
    folder = tmp_path_factory.mktemp("with-figures")
    results = make_results(folder, QUICKSTART, profile="timing", also=["balanced_accuracy"])
    with all_figures():
        return write_report(results, folder / "report").parent


def test_the_page_holds_everything_in_order_and_needs_nothing_else(with_figures):
    page, _ = read(with_figures)
    assert [name for name in page.ids if name in ORDER] == ORDER
    files = [target for target in page.targets if not target.startswith("#")]
    assert {"report.json", "tables/scores.csv", "tables/scores.tex"} <= {*files}
    assert all((with_figures / name).is_file() for name in files)
    assert "@import" not in page.source
    assert len(set(page.ids)) == len(page.ids)
    for name in ("scores", "timing", "profile", "effort", "choices"):
        assert f"figure-{name}" in page.ids


def test_the_files_beside_the_page(with_figures):
    folder = with_figures
    tables = {path.stem for path in (folder / "tables").glob("*.csv")}
    assert tables == {path.stem for path in (folder / "tables").glob("*.tex")}
    assert {"coverage", "scores", "tests", "timing", "effort", "selections", "sensitivity", "runs"} <= tables
    assert {path.stem for path in (folder / "figures").glob("*.svg")} == {
        "answer",
        "scores",
        "scatter",
        "score_profile",
        "timing",
        "profile",
        "prediction_cost",
        "effort",
        "choices",
        "inner_scores",
        "inner_scores_by_dataset",
    }
    assert not [path for path in folder.rglob("*") if path.name.endswith(".tmp")]


def test_figures_are_pdf_too_beside_the_numbers_they_show(quickstart, with_figures):
    _, twin = read(with_figures)
    folder, findings = with_figures / "figures", analyse(quickstart)
    names = {path.stem for path in folder.glob("*.svg")}
    assert (
        names == {path.stem for path in folder.glob("*.pdf")} == {path.stem for path in folder.glob("*.csv")}
    )
    for path in folder.glob("*.pdf"):
        content = path.read_bytes()
        assert content.startswith(b"%PDF-")
        assert b"/FontFile2" in content, "TrueType fonts"
        assert b"CreationDate" not in content
    choices = pd.read_csv(folder / "choices.csv")
    assert choices["count"].tolist() == frames.choices(findings)["count"].tolist()
    assert twin["figures"]["choices"] == frames.choices(findings).to_dict("records")


@pytest.mark.full
@pytest.mark.figures(pdf=True)
def test_a_figure_that_fits_no_page_is_no_pdf(tmp_path):
    means = {f"d{i}": {f"a{j}": 0.8 for j in range(12)} for i in range(9)}
    folder = tmp_path / "report" / "figures"
    write_report(make_results(tmp_path, means), folder.parent)
    assert (folder / "scores.svg").exists()
    assert not (folder / "scores.pdf").exists()
    assert (folder / "ranks.pdf").exists()


@pytest.mark.figures(pdf=True)
def test_two_reports_of_one_study_are_equal_byte_for_byte(quickstart, with_figures, tmp_path):
    write_report(quickstart, tmp_path)
    files = [path for path in with_figures.rglob("*.*") if path.is_file()]
    assert files
    for path in files:
        assert path.read_bytes() == (tmp_path / path.relative_to(with_figures)).read_bytes()


@pytest.mark.figures("timing")
def test_what_an_earlier_report_left_is_removed_if_it_no_longer_applies(quickstart, tmp_path):
    folder = tmp_path / "report"
    write_report(quickstart, folder)
    own = folder / "tables" / "notes.txt"
    own.write_text("mine")
    write_report(make_results(tmp_path, QUICKSTART), folder)
    assert not (folder / "tables" / "timing.csv").exists()
    assert not (folder / "figures" / "timing.svg").exists()
    assert own.exists()


def test_files_of_others_are_neither_removed_nor_overwritten(quickstart, tmp_path):
    theirs = tmp_path / "theirs"
    for name in ("tables/theirs.csv", "figures/theirs.svg", "elsewhere/a.csv"):
        (theirs / name).parent.mkdir(parents=True, exist_ok=True)
        (theirs / name).write_text("theirs")
    (theirs / "tables/link.csv").symlink_to("../elsewhere/a.csv")
    write_report(quickstart, theirs)
    listing = theirs / "report.json"
    content = json.loads(listing.read_text())
    hostile = ["../theirs/elsewhere/a.csv", "tables/../elsewhere/a.csv", "elsewhere/a.csv", "/etc/passwd"]
    content["files"] += [*hostile, "tables/link.csv", "tables", "tables/timing.csv", "tables/gone.csv"]
    listing.write_text(json.dumps(content))
    write_report(make_results(tmp_path, QUICKSTART), theirs)
    assert not (theirs / "tables/timing.csv").exists()
    for name in ("tables/theirs.csv", "figures/theirs.svg", "elsewhere/a.csv", "tables/link.csv"):
        assert (theirs / name).read_text() == "theirs"
    findings = analyse(quickstart)
    for text in ("{}", "[]", "7", json.dumps(content | {"study": "another"}), "[" * 100_000):
        listing.write_text(text)
        scores = (theirs / "tables/scores.csv").read_bytes()
        with raises(StoreError, "found another file", "to=DIR"):
            write_report(quickstart, theirs, findings)
        assert listing.read_text() == text
        assert (theirs / "tables/scores.csv").read_bytes() == scores


def test_printed_numbers_are_those_of_the_json(quickstart, tmp_path):
    page, twin = report(quickstart, tmp_path / "report")
    header, *rows = page.tables["scores"]
    printed = {(row[0], arm): cell for row in rows for arm, cell in zip(header[1:], row[1:], strict=True)}
    for record in twin["tables"]["scores"]["rows"]:
        text = f"{100 * record['mean']:.2f} ± {100 * record['corrected_se']:.2f} ({100 * record['se']:.2f})"
        assert printed[record["dataset"], record["solver"]].startswith(text)
    (test,) = twin["tables"]["tests"]["rows"]
    (row,) = page.tables["tests"][1:]
    assert row[5:8] == [f"{test['p']:.3f}", f"{test['smallest_p']:.3f}", f"{test['p_adjusted']:.3f}"]
    assert test["low"] is None
    assert twin["tables"]["timing"]["rows"][0]["fit_seconds"] == pytest.approx(0.01)
    assert twin["complete"] is True
    assert twin["provenance"] == quickstart.provenance


def test_files_keep_the_digits_that_another_processor_reproduces(quickstart, tmp_path):
    write_report(quickstart, tmp_path / "report")
    frame = pd.read_csv(tmp_path / "report" / "tables" / "scores.csv")
    twin = json.loads((tmp_path / "report" / "report.json").read_text())
    expected = frames.scores(analyse(quickstart))
    for column in ("mean", "corrected_se"):
        numbers = [reproducible(value) for value in expected[column]]
        assert numbers == pytest.approx(expected[column].tolist(), rel=10.0 ** (1 - DIGITS))
        assert frame[column].tolist() == numbers
        assert [row[column] for row in twin["tables"]["scores"]["rows"]] == numbers
    assert frame["mean"].tolist() != expected["mean"].tolist()  # of which some have more digits


def test_the_report_does_not_show_the_last_digits_of_a_processor(quickstart, tmp_path):
    """Two stores whose scores differ as those of two processors may have the same files."""

    def files(folder, factor):
        trials, outer = (
            frame.assign(**{name: frame[name] * factor for name in ("score", "fit_seconds")})
            for frame in (quickstart.trials, quickstart.outer)
        )
        other = StudyResults(
            quickstart.name, quickstart.folder, trials, quickstart.selections, outer, quickstart.provenance
        )
        write_report(other, folder)
        paths = (path for path in folder.rglob("*") if path.suffix in (".csv", ".json"))
        return {path.relative_to(folder): path.read_text() for path in paths}

    first, second = files(tmp_path / "first", 1.0), files(tmp_path / "second", 1 + 2.0**-50)
    assert len(first) > 5
    assert first == second


def test_latex_tables_are_well_formed(tmp_path):
    means = {f"under_score & per%cent {i}": {"a_1": 0.9, "b#2": 0.8} for i in range(3)}
    write_report(make_results(tmp_path, means), tmp_path / "report")
    for path in (tmp_path / "report" / "tables").glob("*.tex"):
        text = path.read_text(encoding="utf-8")
        columns = len(re.search(r"@\{\}([lr]+)@\{\}", text)[1])
        body = text.split(r"\toprule")[1].split(r"\bottomrule")[0]
        lines = [line for line in body.splitlines() if line.endswith(r"\\")]
        assert lines
        for line in lines:
            assert len(re.findall(r"(?<!\\)&", line)) == columns - 1
        assert not re.search(r"(?<!\\)[%#]", text)
        assert not re.search(r"(?<![\\{:a-z])_", body)
    assert r"under\_score \& per\%cent 0" in (tmp_path / "report" / "tables" / "scores.tex").read_text()


def test_three_datasets_are_told_why_they_cannot_show_a_difference(tmp_path):
    quickstart = make_results(tmp_path, QUICKSTART)
    page, twin = report(quickstart, tmp_path / "report")
    for text in (page.text, twin["answer"], markdown_summary(quickstart)):
        assert_says(text, "no evidence", "2/2³ = 0.25", "6 datasets")
    assert "equal" not in twin["answer"]


@pytest.mark.figures("scores", "timing", "choices")
def test_a_partial_study_says_so(quickstart, tmp_path):
    results = drop(quickstart, lambda f: (f.dataset == "wine") & (f.outer > 1))
    page, twin = report(results, tmp_path / "report")
    assert_sentence(page.text, "not complete")
    assert_sentence(page.text, "mnsvm", "wine", "2 of 5")
    assert_says(twin["tables"]["tests"]["caption"], "wine")
    assert_sentence(page.text, "39", "not run")
    assert twin["complete"] is False
    assert "not complete" in markdown_summary(results)


@pytest.mark.figures(sample=False)
def test_a_single_fold_has_no_standard_error(quickstart, tmp_path):
    page, twin = report(drop(quickstart, lambda f: f.outer > 0), tmp_path / "report")
    assert_sentence(page.text, "95.00 ± – (–)", "1 of 5")
    assert twin["tables"]["scores"]["rows"][0]["se"] is None


def test_an_empty_study_gets_one_clear_sentence(tmp_path):
    page, twin = report(empty(tmp_path), tmp_path / "report")
    assert_sentence(page.text, "no", "outer fold")
    assert twin["complete"] is False
    assert "tests" not in page.tables
    assert_sentence(markdown_summary(empty(tmp_path)), "no", "outer fold")


@pytest.mark.figures(sample=False)
def test_a_study_of_which_nothing_is_known(tmp_path):
    full = empty(tmp_path)
    nothing = StudyResults("bare", tmp_path, full.trials, full.selections, full.outer, [])
    page, _ = report(nothing, tmp_path / "report")
    assert_sentence(page.text, "no", "outer fold")


@pytest.mark.figures(sample=False)
def test_rows_without_provenance_still_give_a_report(quickstart, tmp_path):
    lost = StudyResults(
        quickstart.name, tmp_path, quickstart.trials, quickstart.selections, quickstart.outer, []
    )
    page, _ = report(lost, tmp_path / "report")
    assert "not recorded" in page.text
    assert "96.00 ± 0.53 (0.32)" in page.text


@pytest.mark.figures(sample=False)
def test_one_arm_is_reported_without_a_test(tmp_path):
    page, _ = report(make_results(tmp_path, {"iris": {"only": 0.9}}), tmp_path / "report")
    assert_sentence(page.text, "comparison", "second solver")
    assert "tests" not in page.tables


@pytest.mark.figures(sample=False)
def test_a_study_where_every_refit_failed(quickstart, tmp_path):
    results = edit(quickstart, lambda f: f.inner == -1, status="error", score=np.nan, message="no luck")
    page, _ = report(results, tmp_path / "report")
    assert_sentence(page.text, "no", "outer fold")
    assert "no luck" in page.text


def test_times_are_withheld_with_the_reason_unless_measured(tmp_path, quickstart):
    assert "timing" in report(quickstart, tmp_path / "a")[0].tables
    page, _ = report(make_results(tmp_path, QUICKSTART), tmp_path / "b")
    assert "timing" not in page.tables
    assert "protocol.profile=timing" in page.text


@pytest.mark.figures(sample=False)
def test_names_and_messages_cannot_break_the_page(tmp_path):
    hostile = "<script>alert(1)</script>&amp;"
    results = make_results(tmp_path, {hostile: {"$a_b$": 0.9, "c\\d": 0.8}, "e": {"$a_b$": 0.9, "c\\d": 0.8}})
    results = edit(results, lambda f: f.outer == 0, status="diverged", message=hostile)
    page, _ = report(results, tmp_path / "report")
    assert hostile in page.text
    (script,) = re.findall(r"<script\b[^>]*>(.*?)</script>", page.source, re.DOTALL)
    digest = b64encode(sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in unescape(page.source)
    assert "default-src 'none'" in unescape(page.source)


def test_scaling_on_the_whole_dataset_is_owned_up_to(quickstart, tmp_path):
    quickstart.provenance[0]["study"]["protocol"]["scaling"] = "dataset"
    page, _ = report(quickstart, tmp_path / "report")
    assert_sentence(page.text, "scaled", "test rows")


@pytest.mark.figures("sweep")
def test_a_sweep_is_shown_against_its_first_setting_and_called_exploratory(tmp_path):
    etas = (1.0, 1.3)
    means = {
        name: {f"m[eta={eta}]": base + eta / 100 for eta in etas} for name, base in (("a", 0.8), ("b", 0.9))
    }
    results = make_results(tmp_path, means, arms=[arm(f"m[eta={eta}]", "m", eta=eta) for eta in etas])
    page, _ = report(results, tmp_path / "report")
    (row,) = page.tables["sweep"][1:]
    assert row[:6] == ["m: eta", "1.3", "1.0", "2", "2 / 0 / 0", "+0.30"]
    assert "Exploratory" in page.text
    assert "figure-sweep" in page.ids


def test_other_metrics_are_not_read_as_per_cent(tmp_path):
    results = make_results(tmp_path, QUICKSTART)
    results.provenance[0]["study"]["protocol"]["metric"] = "roc_auc"
    page, _ = report(results, tmp_path / "report")
    assert page.tables["scores"][1][1] == "0.9600 ± 0.0053 (0.0032)"
    assert_sentence(page.text, "libsvm_l1", "area under the ROC curve", "0.9727")


@pytest.mark.figures("ranks")
def test_many_arms_are_tested_against_the_first_and_ranked(tmp_path):
    page, twin = report(make_results(tmp_path, many(9, 5)), tmp_path / "report")
    assert_sentence(page.text, "every arm", "solver0")
    assert "figure-ranks" in page.ids
    assert twin["friedman"]["k"] == 5
    assert_sentence(twin["answer"], "4", "pairs")


def test_the_summary_for_the_terminal_is_aligned_markdown(quickstart):
    lines = markdown_summary(quickstart).splitlines()
    tables = [line for line in lines if line.startswith("|")]
    assert "| iris          |     96.00 ± 0.53 (0.32) | **96.70 ± 0.53 (0.32)** |" in tables
    blocks = re.split(r"\n\n", markdown_summary(quickstart))
    for block in blocks:
        rows = [line for line in block.splitlines() if line.startswith("|")]
        assert len({len(row) for row in rows}) <= 1


SE_WORDS = "corrected for the training rows that folds share"


@pytest.mark.figures(sample=False)
def test_the_corrected_standard_error_stands_first_wherever_one_is_shown(quickstart, tmp_path):
    # Folds at mean −0.01 … 0.01: descriptive 0.32 points, corrected 0.53; the ratio of 5 folds is 1.68.
    folder = tmp_path / "report"
    quickstart = edit(quickstart, lambda f: (f.dataset == "iris") & (f.outer == 0), fit_seconds=0.02)
    page, _ = report(quickstart, folder)
    latex = (folder / "tables" / "scores.tex").read_text()
    for text in (page.text, markdown_summary(quickstart), latex.replace(r"$\pm$", "±")):
        assert "96.00 ± 0.53 (0.32)" in text
        assert SE_WORDS in text
    assert_sentence(page.text, "1.68")
    # 20, 10, 10, 10, 10 ms.
    assert page.tables["timing"][1][2] == "12.0 ± 3.0 (1.8)"


def test_the_figures_draw_the_corrected_standard_error(quickstart):
    findings = analyse(quickstart)
    (drawing,) = (part for part in flat(scores.section(findings).content) if isinstance(part, Drawing))
    left, _ = drawing.draw().axes
    (bars,) = [found for found in left.containers if isinstance(found, ErrorbarContainer)]
    first, *_ = bars[2][0].get_segments()
    half = (first[1][0] - first[0][0]) / 2
    assert half == pytest.approx(100 * frames.scores(findings)["corrected_se"].iloc[0])


def test_no_conclusion_is_drawn_from_a_single_dataset(tmp_path):
    results = make_results(tmp_path, {"iris": {"a": 0.90, "b": 0.99}}, spread=0.001)
    page, twin = report(results, tmp_path / "report")
    assert "tests" not in page.tables
    assert "Wilcoxon" not in page.text
    assert_sentence(twin["answer"], "new data of this size")
    assert_sentence(twin["answer"], "nothing", "other datasets")
    assert_sentence(page.text, "single dataset", "others")
    assert "†" not in page.text


def test_zeros_that_leave_too_few_differences_are_named(tmp_path):
    means = {f"d{i}": {"a": 0.8 + (i > 3) * (0.01 + i / 1000), "b": 0.8} for i in range(8)}
    page, twin = report(make_results(tmp_path, means), tmp_path / "report")
    assert_sentence(page.text, "4 of 8", "2^(1−4) = 0.125")
    assert_sentence(twin["answer"], "4 of 8", "2/2⁴ = 0.125")


def test_datasets_without_a_difference_are_ranked_as_a_check(tmp_path):
    points = [0.5, -0.8, 1.7, 3.3, 0.6, -0.5, 0.7, 0, 6.3, 0, 2.2, 4.7, 0.9, 2.1]
    means = {f"d{i}": {"a": 0.8 + value / 100, "b": 0.8} for i, value in enumerate(points)}
    page, twin = report(make_results(tmp_path, means), tmp_path / "report")
    head, row = page.tables["sensitivity"]
    printed = dict(zip(head, row, strict=True))
    assert (printed["p"], printed["No difference"], printed["p, Pratt"]) == ("0.0073", "2", "0.0078")
    assert twin["tables"]["sensitivity"]["rows"][0]["p_pratt"] == 1 / 128
    assert "(Pratt, 1959)" in page.text
    without, _ = report(make_results(tmp_path, QUICKSTART), tmp_path / "without")
    assert "Pratt" not in without.text


def test_probabilities_of_practical_equality(tmp_path):
    points = [0.5, -0.8, 1.7, 3.3, 0.6, -0.5, 0.7, 0, 6.3, 0, 2.2, 4.7, 0.9, 2.1]
    means = {f"d{i}": {"m": 0.8 + value / 100, "C4.5": 0.8} for i, value in enumerate(points)}
    results = edit(make_results(tmp_path, means), lambda f: f.dataset == "d2", n_test=19)
    page, twin = report(results, tmp_path / "report")
    assert page.tables["practical"][1] == ["m − C4.5", "14", "0.67", "0.33", "< 0.01", "8 of 14"]
    (numbers,) = twin["tables"]["practical"]["rows"]
    assert (numbers["rope"], numbers["worse"]) == (0.01, 0)
    assert_sentence(page.text, "at most 1 percentage point")
    assert_sentence(page.text, "too few test rows", "1 percentage point", "d2")
    few, _ = report(make_results(tmp_path, QUICKSTART), tmp_path / "few")
    assert "practical" not in few.tables


def test_differences_on_each_dataset_have_an_interval_and_no_p(tmp_path):
    results = make_results(tmp_path, {"iris": {"b": 0.8, "a": 0.8}, "wine": {"b": 0.9, "a": 0.9}})
    for fold, value in enumerate([0.012, 0.004, 0.019, -0.003, 0.008]):
        base = results.outer.query("dataset == 'iris' and solver == 'b'")["score"].iloc[fold]
        results = edit(
            results,
            lambda f, fold=fold: (
                (f.dataset == "iris") & (f.solver == "a") & (f.inner == -1) & (f.outer == fold)
            ),
            score=base + value,
        )
    page, twin = report(results, tmp_path / "report")
    assert page.tables["differences"] == [
        ["Dataset", "a"],
        ["iris", "+0.80 [−0.74, +2.34]"],
        ["wine", "0.00 [0.00, 0.00]"],
    ]
    first, _ = twin["tables"]["differences"]["rows"]
    assert first["low"] == pytest.approx(-0.007415, abs=5e-7)
    assert_sentence(page.text, "none", "test")


def test_the_protocol_says_what_could_have_been_found(tmp_path):
    means = {f"d{i}": {"a": 0.9, "b": 0.8, "c": 0.85} for i in range(10)}
    _, twin = report(make_results(tmp_path, means, profile="timing"), tmp_path / "report")
    text = twin["protocol_in_words"]["Power"]
    assert_sentence(text, "10 datasets", "5 comparisons", "0.05", "80 %")
    earlier = {f"e{i}": {"a": 0.9 + 0.01 * i, "b": 0.8} for i in range(4)}
    spread = spread_of_earlier(make_results(tmp_path, earlier), "old", "accuracy", ["a", "b", "c"])
    assert spread.typical == pytest.approx(0.01 * np.std(range(4), ddof=1))
    with_earlier = replace(
        make_results(tmp_path, means, profile="timing"),
        read_study=lambda name: make_results(tmp_path, earlier, name=name),
    )
    with_earlier.provenance[0]["report"] = {"earlier": "old"}
    assert_sentence(protocol(analyse(with_earlier))["Power"], "datasets of old", "percentage points")
    with raises(ConfigError, "report.earlier=old", "accuracy", "roc_auc"):
        spread_of_earlier(make_results(tmp_path, earlier), "old", "roc_auc", [])
    _, alone = report(make_results(tmp_path, {"iris": {"a": 0.9}}), tmp_path / "alone")
    assert "Power" not in alone["protocol_in_words"]


def test_a_metric_that_is_no_share_needs_a_region_of_its_own(tmp_path):
    results = make_results(tmp_path, {f"d{i}": {"a": 0.8, "b": 0.8} for i in range(6)})
    results.provenance[0]["study"]["protocol"]["metric"] = "neg_log_loss"
    assert frames.practical(analyse(results)).empty
    results.provenance[0]["report"] = {"rope": 2.5}
    page, _ = report(results, tmp_path / "report")
    assert page.tables["practical"][1] == ["a − b", "6", "< 0.01", "> 0.99", "< 0.01", "6 of 6"]
    assert_sentence(page.text, "at most 2.5")


def test_p_is_not_printed_where_nothing_was_compared(tmp_path):
    results = drop(make_results(tmp_path, QUICKSTART), lambda f: (f.solver == "mnsvm") & (f.outer == 0))
    page, twin = report(results, tmp_path / "report")
    (row,) = page.tables["tests"][1:]
    assert row[4:8] == ["–", "–", "–", "–"]
    assert_says(row[8], "no dataset")
    assert twin["tables"]["tests"]["rows"][0]["p"] is None
    assert "1.000" not in markdown_summary(results)
    assert page.tables["sensitivity"][1][2:] == ["–"] * 4


def test_friedman_s_p_is_explained(tmp_path):
    page, twin = report(make_results(tmp_path, many(5, 4)), tmp_path / "report")
    assert_sentence(page.text, "Friedman", "exact", "permutations")
    assert twin["friedman"]["n_permutations"] is None


@pytest.mark.figures("timing")
def test_stopped_trainings_are_bounds_in_every_table_of_times(quickstart, tmp_path):
    results = edit(
        quickstart,
        lambda f: (f.dataset == "iris") & (f.solver == "libsvm_l1") & (f.inner == -1) & (f.outer > 2),
        status="timeout",
        converged=False,
    )
    page, _ = report(results, tmp_path / "report")
    (row,) = [row for row in page.tables["timing"] if "(2 of 5 stopped)" in row[2]]
    assert row[1] == "libsvm_l1‡"
    assert all(text.startswith("≥ ") for text in (row[2], row[3], row[5]))
    assert row[4] == "–"
    assert page.tables["time_ratios"][1][2] == "≥ 2.0"
    assert "figure-timing" in page.ids


def test_arms_that_are_not_near_their_optimum_are_marked_where_they_are_compared(quickstart, tmp_path):
    unmarked, _ = report(quickstart, tmp_path / "a")
    assert "‡" not in unmarked.text
    mask = lambda f: (f.dataset == "wine") & (f.solver == "mnsvm") & (f.inner == -1)  # noqa: E731
    loose = edit(quickstart, mask, gap=0.4)
    loose = edit(loose, lambda f: mask(f) & (f.outer == 2), gap=0.98)
    loose = replace(loose, outer=loose.outer.assign(stopping="no violator among 590 draws"))
    page, twin = report(loose, tmp_path / "b")
    tables = page.tables
    (effort,) = [row for row in tables["effort"] if row[1] == "mnsvm‡"]
    assert effort[6:] == ["0.4", "0.98", "0 of 5", "no violator among 590 draws (5×)"]
    assert "‡" in tables["scores"][2][1]
    assert "‡" in tables["scores_balanced_accuracy"][2][1]
    assert not [cell for row in tables["scores"] for cell in row[2:] if "‡" in cell]
    assert "mnsvm‡" in [row[1] for row in tables["timing"]]
    assert tables["tests"][1][0] == "mnsvm‡ − libsvm_l1"
    assert_sentence(page.text, "‡", "gap", "0.01")
    for text in (twin["answer"], markdown_summary(loose)):
        assert_sentence(text.replace("\\", ""), "mnsvm", "wine", "gap", "0.98")


def test_arms_whose_trainings_waited_for_a_core_are_named(quickstart, tmp_path):
    mask = lambda f: (f.dataset == "wine") & (f.solver == "mnsvm")  # noqa: E731
    cpu = edit(quickstart, lambda f: f.solver != "", fit_cpu_seconds=0.01)
    idle = edit(cpu, lambda f: f.solver != "", fit_seconds=0.01)
    _, twin = report(idle, tmp_path / "a")
    assert "CPU time" not in twin["answer"]
    _, twin = report(edit(idle, mask, fit_seconds=0.013), tmp_path / "b")
    (said,) = [each["text"] for each in twin["answers"] if "CPU time" in each["text"]]
    assert_says(said, "10 %")
    assert_sentence(said, "mnsvm", "wine", "30 %")
    assert "libsvm_l1" not in said


def test_refits_that_did_not_converge_are_marked_without_a_gap(quickstart, tmp_path):
    mask = lambda f: (f.dataset == "iris") & (f.solver == "libsvm_l1") & (f.inner == -1)  # noqa: E731
    page, twin = report(edit(quickstart, mask, converged=False, gap=np.nan), tmp_path / "report")
    assert_sentence(twin["answer"], "libsvm_l1", "iris", "5 of 5", "converge")
    assert "‡" in page.tables["scores"][1][2]


@pytest.mark.figures(sample=False)
def test_a_gap_that_claims_nothing_is_marked(quickstart, tmp_path):
    mask = lambda f: (f.dataset == "iris") & (f.inner == -1) & (f.solver == "mnsvm") & (f.outer == 0)  # noqa: E731
    page, _ = report(edit(quickstart, mask, gap=np.inf), tmp_path / "report")
    assert page.tables["effort"][1][1] == "mnsvm‡"
    assert page.tables["effort"][1][7] == "∞"


@pytest.mark.figures(sample=False)
def test_stores_without_certificates_are_reported_unmarked(quickstart, tmp_path):
    columns = ["gap", "converged"]
    older = replace(
        quickstart,
        trials=quickstart.trials.drop(columns=columns),
        outer=quickstart.outer.drop(columns=columns),
    )
    page, _ = report(older, tmp_path / "report")
    assert "‡" not in page.text
    assert page.tables["effort"][1][6:] == ["–", "–", "0 of 5", "–"]


def test_a_study_without_any_difference_says_so(tmp_path):
    means = {f"d{i}": {"a": 0.8, "b": 0.8} for i in range(8)}
    findings = analyse(make_results(tmp_path, means))
    assert_sentence(verdict(findings), "equal", "8 datasets")
    (said,) = frames.tests(findings)["verdict"]
    assert_says(said, "no evidence", "none of 8")
    few = analyse(make_results(tmp_path, {"iris": {"a": 0.8, "b": 0.8}}))
    assert_sentence(verdict(few), "a or b", "equal in every split")


def test_copies_and_shared_rows_are_shown_beside_the_datasets(tmp_path):
    results = make_results(tmp_path, QUICKSTART)
    first, second = results.provenance[0]["study"]["datasets"][:2]
    first |= {
        "tested_copies": 0.125,
        "related": {second["name"]: "share 9 of 10 different rows", "gone": "x"},
    }
    page, _ = report(results, tmp_path / "report")
    head, row, *_ = page.tables["datasets"]
    assert row[head.index("Copies tested")] == "12.5"
    assert_sentence(page.text, "counts once", first["name"], second["name"], "9 of 10")
    assert "gone" not in page.text


def test_a_sweep_is_tested_as_a_whole_and_its_selected_setting_as_one_arm(tmp_path):
    etas = (1.0, 1.3, 1.6)
    means = {
        f"d{d}": {f"m[eta={eta}]": 0.8 + d / 100 + eta / 100 + d * eta / 9000 for eta in etas}
        for d in range(8)
    }
    results = make_results(tmp_path, means, arms=[arm(f"m[eta={eta}]", "m", eta=eta) for eta in etas])
    page, twin = report(results, tmp_path / "report")
    first, second = page.tables["sweep_curves"][1:]
    assert [first[1], second[1]] == ["1.3", "1.6"]
    assert first[-1] == "0.0078"
    low, high = map(float, re.findall(r"\d\.\d\d", second[4]))
    assert low < float(second[3][1:]) < high
    (row,) = page.tables["sweep_selected"][1:]
    assert row[:3] == ["m[eta=selected]", "m[eta=1.0]", "8"]
    assert "better at p" not in twin["answer"]
    assert twin["tables"]["sweep_selected"]["rows"][0]["n"] == 8
