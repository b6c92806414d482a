"""What a terminal of 80 columns shows of a study of many arms: a row for each, and every number whole."""

import re

import pytest
from rich.console import Console

from orchestrator.cli.markdown_text import MarkdownText
from orchestrator.report import markdown_summary
from tests.messages import assert_says, assert_sentence
from tests.orchestrator.report.frames import drop, edit, make_results, many, thirteen


def printed(results, width=80):
    console = Console(width=width, color_system=None)
    with console.capture() as capture:
        console.print(MarkdownText(markdown_summary(results)))
    return capture.get()


@pytest.mark.parametrize("means", [thirteen(), many(13, 13)], ids=["short names", "long names"])
def test_thirteen_arms_take_a_row_each_and_no_number_is_broken(means):
    text = printed(make_results("x", means, outer=2))
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= 80
    table = text[text.index("W/T/L") :]
    differences = re.findall(r"[+−]?\d\.\d\d \[[+−]?\d\.\d\d, [+−]?\d\.\d\d\]", table)
    assert len(differences) == 12
    assert len(re.findall(r"\b\d\d\.\d\d\b", table)) == 13
    assert len(re.findall(r"\] +(?:< )?0\.\d\d\d", table)) == 12, "p of each difference, in its row"
    removed = re.findall(r"\bno \((?:< )?0\.\d{3,4}\)", table)
    assert len(removed) + len(re.findall(r"\byes\b", table)) == 13


def test_what_failed_and_what_is_missing_is_said_in_a_sentence():
    results = make_results("x", thirteen(3), outer=2)
    results = edit(results, lambda f: (f.solver == "better") & (f.inner == 0), status="error")
    results = drop(results, lambda f: (f.dataset == "data1") & (f.solver == "worse0"))
    text = printed(results)
    assert_sentence(text, "36 failed (better)", "26 not run")
    assert_sentence(text, "not complete")


def test_a_few_arms_keep_their_scores_on_each_dataset():
    text = printed(make_results("x", many(3, 3), outer=2), width=120)
    assert_says(text, "Accuracy", "outer folds")
