"""What is told of failed trainings: the first of each kind, and no more than a screen holds."""

import pandas as pd

from orchestrator.study.failures import KINDS_OF_AN_ARM, FirstOfEachKind, arms_without_success, failure_lines
from tests.messages import assert_each_says, says

COLUMNS = ["dataset", "solver", "status", "message", "score"]


def trials(*rows):
    return pd.DataFrame([(*row, None if row[2] != "ok" else 0.5) for row in rows], columns=COLUMNS)


def test_messages_that_differ_in_numbers_are_one_kind():
    rows = [("iris", "svc", "error", f"ValueError: {n} rows") for n in (7, 81)]
    other = ("wine", "svc", "worker_lost", "died")
    lines = failure_lines(trials(*rows, ("iris", "svc", "ok", None), other, ("wine", "knn", "error", None)))
    assert_each_says(
        lines,
        ("2 × svc on iris", "ValueError: 7 rows"),
        ("1 × svc on wine", "worker_lost"),
        ("1 × knn on wine", "no message"),
    )


def test_a_kind_on_several_datasets_is_not_told_of_one():
    rows = [(name, "svc", "error", "ValueError: no") for name in ("iris", "wine", "wine", "sonar")]
    assert_each_says(failure_lines(trials(*rows)), ("4 × svc on iris", "2 more datasets", "ValueError"))


def test_a_screen_holds_what_is_told_however_many_arms_and_kinds_there_are():
    letters = "abcdefghijklmnopqrstuvwxyz"
    rows = [("iris", f"arm {a}", "error", f"{kind} " * 500) for a in range(50) for kind in letters]
    lines = failure_lines(trials(*rows))
    assert len(lines) <= 41
    assert all(len(line) < 300 for line in lines)
    assert any(says(line, f"{26 - KINDS_OF_AN_ARM} more kinds", "arm 0") for line in lines)
    first = FirstOfEachKind()
    told = [first.is_new(solver, status, message) for _, solver, status, message in rows]
    assert told[: KINDS_OF_AN_ARM + 1] == [True] * KINDS_OF_AN_ARM + [False]
    assert sum(told) <= 40


def test_nothing_failed_nothing_is_told():
    assert failure_lines(trials(("iris", "svc", "ok", None))) == []
    assert failure_lines(trials()) == []


def test_an_arm_succeeds_by_one_trial_that_is_ok():
    rows = trials(("iris", "a", "ok", None), ("iris", "a", "error", "x"), ("iris", "b", "timeout", "x"))
    assert arms_without_success(["a", "b", "c"], rows) == ["b", "c"]
