"""The page of a study of many arms: what it answers, its table of arms, its matrices, and what it folds."""

import re
from dataclasses import replace

import pytest

from orchestrator.analysis import findings as frames
from orchestrator.analysis.findings import analyse
from orchestrator.report.brief import brief
from orchestrator.report.contents import AFTER, BEFORE, all_tables, our_sections
from orchestrator.report.html import html
from orchestrator.report.verdict import answers, verdict
from orchestrator.study.report_choices import MAX_T
from tests.messages import assert_says, assert_sentence
from tests.orchestrator.report.frames import arm, make_results, thirteen


@pytest.fixture(scope="module")
def findings():
    return analyse(make_results("x", thirteen(), profile="timing", seconds=SECONDS))


SECONDS = {"control": 1.0, "equal0": 0.5, "better": 4.0}


@pytest.fixture(scope="module")
def tables(findings):
    return all_tables(findings)


def printed(table, name):
    (row,) = [row for row in table.rows if row[0].text == name]
    return dict(zip(table.header, row, strict=True))


def test_every_question_has_one_answer(findings):
    found = {answer.question: answer.text for answer in answers(findings)}
    assert len(found) == 6
    assert all(question.endswith("?") for question in found)
    assert verdict(findings) == " ".join(found.values())
    short, highest, near, different, *_ = found.values()
    times = found["Which arms train faster or slower?"]
    assert_says(found["Was the grid wide enough?"], "No selected candidate", "border")
    assert_says(short, "Highest: better", "Real", "Size: better is typically", "Problems")
    assert_says(highest, "better", "highest")
    assert_sentence(near, "95 % confidence", "better has the highest expected mean", "13 arms")
    assert_sentence(near, "Excluded", "worse than the best of the others", "worse0", "open0")
    assert_sentence(different, "lower than control", "worse0")
    assert_sentence(times, "faster than control", "equal0")


def test_each_arm_has_a_row_with_all_that_is_known_of_it(tables):
    table = tables["standings"]
    assert len(table.rows) == 13
    row = printed(table, "equal0")
    assert row["May be the best"].text.startswith("no (p ")
    assert printed(table, "better")["May be the best"].text == "yes"
    for name in ("Mean, %", "Mean rank", "Share of wins"):
        assert re.fullmatch(r"[\d.]+ \[[\d.]+, [\d.]+\]", row[name].text)
    assert row["Training time, ratio"].text == "0.50 [0.50, 0.50]"
    assert re.fullmatch(r"\d+ / \d+ / \d+", row["Wins / ties / losses"].text)
    assert re.fullmatch(r"[+−]\d\.\d\d \[[+−]?\d\.\d\d, [+−]?\d\.\d\d\]", row["Typical difference"].text)
    assert printed(table, "control")["Wins / ties / losses"].text == "control"
    assert printed(table, "worse0")["Adjusted p"].text.endswith(" lower")
    assert table.rows[0][0].text == "better"


def test_a_colour_says_nothing_that_the_text_does_not(tables):
    for row in tables["standings"].rows:
        for cell in row:
            if cell.tone in ("good", "bad"):
                assert re.match("yes|no", cell.text)
    for name in ("heat_map", "comparison_matrix"):
        for row in tables[name].rows:
            for cell in row:
                sign = {"+": 1, "−": -1}.get(cell.text[:1], 0)
                assert sign * cell.shade >= 0
                assert not (cell.shade and not sign) or cell.text.startswith("0.00")


def test_the_heat_map_prints_the_differences_of_the_table_of_intervals(tables, findings):
    head, rows = tables["heat_map"].header, tables["heat_map"].rows
    numbers = frames.differences(findings).set_index(["dataset", "solver"])["difference"]
    for row in rows:
        for name, cell in zip(head[1:], row[1:], strict=True):
            value = float(cell.text.replace("−", "-"))
            assert value == pytest.approx(100 * numbers[row[0].text, name], abs=0.005)
    assert max(abs(cell.shade) for row in rows for cell in row) == 5


def test_a_cell_of_the_matrix_is_the_mirror_of_the_other(tables):
    head, rows = tables["comparison_matrix"].header, tables["comparison_matrix"].rows
    cells = {(row[0].text, name): cell for row in rows for name, cell in zip(head[1:], row[1:], strict=True)}
    difference, counts, p = cells["better", "worse0"].text.split("\n")
    mirrored, back, same = cells["worse0", "better"].text.split("\n")
    assert (mirrored, same) == (difference.replace("+", "−"), p)
    assert back.split("/") == counts.split("/")[::-1]
    assert p.endswith(" *")
    assert cells["better", "worse0"].shade == -cells["worse0", "better"].shade


def page_of(findings):
    return html(findings, our_sections(findings, {**BEFORE, **AFTER}), {})


def test_the_answer_comes_first_and_details_are_folded(findings, tables):
    page = page_of(findings)
    order = ['class="answers"', 'id="table-standings"', 'id="table-comparison_matrix"', 'id="table-heat_map"']
    places = [page.index(text) for text in [*order, 'id="protocol"']]
    assert places == sorted(places)
    for name in ("scores", "differences", "effort", "timing", "selections", "coverage"):
        before = page[: page.index(f'id="table-{name}"')]
        assert before.count("<details>") == before.count("</details>") + 1
    assert_sentence(tables["comparison_matrix"].caption, "p", "not adjusted")


def test_a_small_study_is_folded_nowhere():
    findings = analyse(make_results("x", {"iris": {"a": 0.9, "b": 0.8}}))
    page, tables = page_of(findings), all_tables(findings)
    assert page.count("<details") == page.count('class="folded"')
    assert not {"standings", "comparison_matrix", "heat_map"} & {*tables}


def test_search_spaces_are_said_once_where_all_are_the_same(findings, tables):
    assert "Searched" not in tables["arms"].header
    assert_sentence(tables["arms"].caption, "every arm", "C ∈ {0.25, 1.0, 4.0}", "gamma ∈ {0.1, 1.0}")
    other = arm("b") | {"space": {"C": [1.0, 2.0]}}
    found = analyse(make_results("x", {"iris": {"a": 0.9, "b": 0.8}}, arms=[arm("a"), other]))
    assert all_tables(found)["arms"].header[-1] == "Searched"


def test_what_was_run_is_a_sentence(findings):
    assert_sentence(page_of(findings), "10,985 of 10,985", "trainings")


def test_the_short_answer_has_the_interval_of_the_procedure_that_decides(findings):
    (size,) = [text for text in brief(findings) if text.startswith("Size")]
    assert_says(size, "better is typically", "not adjusted")
    joint = analyse(findings.results, replace(findings.design.choices, adjust=MAX_T))
    (size,) = [text for text in brief(joint) if text.startswith("Size")]
    row = frames.standings(joint).iloc[0]
    low, high = (100 * row[name] for name in ("mean_low", "mean_high"))
    assert_says(size, "better is on average", f"[+{low:.2f}, +{high:.2f}, simultaneous]")
