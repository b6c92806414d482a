"""Every number that the page prints in a table is in `report.json`, unrounded."""

import json
import math
import re

import pytest

from orchestrator.analysis.findings import analyse
from orchestrator.report.contents import all_tables
from orchestrator.report.report_json import report_json
from tests.orchestrator.report.frames import QUICKSTART, arm, drop, edit, make_results, thirteen

ETAS = (1.0, 1.3, 1.6)
SWEPT = {
    f"d{d}": {f"m[eta={eta}]": 0.8 + d / 100 + eta / 100 + d * eta / 9000 for eta in ETAS} for d in range(8)
}


def partial():
    return drop(make_results("x", QUICKSTART), lambda f: (f.dataset == "wine") & (f.outer > 2))


def sequential():
    results = make_results("x", QUICKSTART)
    results.provenance[0]["report"] = {"sequential": True}
    return results


def sweep():
    return make_results("x", SWEPT, arms=[arm(f"m[eta={eta}]", "m", eta=eta) for eta in ETAS])


def stopped():
    results = make_results("x", QUICKSTART, profile="timing", also=["balanced_accuracy"])
    slow = lambda f: (f.dataset == "iris") & (f.solver == "libsvm_l1") & (f.outer > 2)  # noqa: E731
    return edit(results, slow, status="timeout", converged=False)


def of_thirteen_arms():
    # As many test rows as the means have digits: fewer would make ties of them.
    return make_results("x", thirteen(), profile="timing", n_test=1_000_000)


def numbers_in(value):
    """All numbers in a value of `report.json`, those in its texts among them."""
    if isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from numbers_in(each)
    elif isinstance(value, str):
        yield from (float(text) for text in re.findall(r"\d+\.?\d*", value))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield abs(float(value))


def is_printed_from(text, known):
    """Whether a printed number is one of the known ones, rounded as it is, perhaps in per cent, ms or µs."""
    number = text.replace(",", "")
    value, digits = float(number), len(number.partition(".")[2].partition("e")[0])
    reach = 0.5000001 * 10.0**-digits if "e" not in number else 0.06 * value
    return any(
        math.isclose(value, each * scale, abs_tol=reach) for each in known for scale in (1, 100, 1e3, 1e6)
    )


@pytest.mark.sample(2)
@pytest.mark.parametrize("study", [of_thirteen_arms, partial, sequential, sweep, stopped])
def test_the_tables_of_a_study(study):
    findings = analyse(study())
    tables = all_tables(findings)
    twin = json.loads(report_json(findings, tables))
    checked = 0
    for table in tables.values():
        known = sorted(set(numbers_in(twin["tables"][table.name])))
        for row in table.rows:
            for column, cell in enumerate(row):
                if table.is_text(column):
                    continue
                for text in re.findall(r"(?<![\w.⁺⁻^])(?<![<>] )\d[\d,]*\.?\d*(?:e[+-]?\d+)?", cell.text):
                    assert is_printed_from(text, known), (table.name, table.header[column], cell.text)
                    checked += 1
    assert checked > 50
    said = [each["text"] for each in twin["answers"]]
    assert " ".join(said) == twin["answer"]
