"""What the repository keeps of the report of a published study: `numbers.json` and `README.md`.

`make reports` writes the reports of all published studies, which git ignores, and these two files of each.
"""

import json
import math
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PUBLISHED = ROOT / "results" / "published"

SIGNIFICANT_DIGITS = 10
"""Digits that every processor reproduces: the last ones of `exp` and `log` differ between SIMD loops."""

LEFT_OUT = frozenset({"arms", "checklist", "coverage", "effort", "heat_map", "runs", "selections"})
"""Tables that repeat the trials, the selections and the provenance, or hold no result of the comparison."""


def numbers_of(report: Mapping[str, Any]) -> dict[str, Any]:
    """Return the answers, tests, intervals and ratios of a report, each table by columns.

    Parameters
    ----------
    report : mapping
        The content of a `report.json`.

    Returns
    -------
    dict
        Floats are rounded to `SIGNIFICANT_DIGITS` significant digits.
    """
    tables = {
        name: {column: _column([row.get(column) for row in table["rows"]]) for column in table["rows"][0]}
        for name, table in report["tables"].items()
        if name not in LEFT_OUT and table["rows"]
    }
    kept = {key: report[key] for key in ("study", "complete", "incomplete", "answers", "methods", "friedman")}
    sections = {name: section["text"] for name, section in report["sections"].items()}
    return _rounded({**kept, "sections": sections, "tables": tables})


def differences(first: Any, second: Any, path: str = "") -> list[str]:
    """Return the paths at which two contents of `numbers.json` differ by more than their last digit.

    Parameters
    ----------
    first, second : any
        Values as JSON holds them.
    path : str, default=""
        Where the two stand in their files.

    Returns
    -------
    list of str
        One line a difference; empty when there is none.
    """
    if isinstance(first, dict) and isinstance(second, dict) and first.keys() == second.keys():
        return [line for key in first for line in differences(first[key], second[key], f"{path}/{key}")]
    if isinstance(first, list) and isinstance(second, list) and len(first) == len(second):
        pairs = enumerate(zip(first, second, strict=True))
        return [line for i, (one, other) in pairs for line in differences(one, other, f"{path}/{i}")]
    if isinstance(first, float) and isinstance(second, float):
        # Rounding to n digits may move two neighbours apart by one unit of the last digit.
        same = math.isclose(first, second, rel_tol=2 * 10.0 ** (1 - SIGNIFICANT_DIGITS), abs_tol=1e-12)
        return [] if same else [f"{path}: {first!r} and {second!r}"]
    return [] if type(first) is type(second) and first == second else [f"{path}: {first!r} and {second!r}"]


def _column(values: list[Any]) -> Any:
    """Return a column; one of repeated texts as its `values` and the `codes` that index them."""
    distinct = {value: None for value in values if isinstance(value, str)}
    if len(distinct) > len(values) // 2 or not all(isinstance(value, str) for value in values):
        return values
    code = {value: i for i, value in enumerate(distinct)}
    return {"values": list(distinct), "codes": [code[value] for value in values]}


def _rounded(value: Any) -> Any:
    """Round every float of a JSON value to `SIGNIFICANT_DIGITS` significant digits."""
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    return float(f"{value:.{SIGNIFICANT_DIGITS}g}") if isinstance(value, float) else value


def _json(numbers: Mapping[str, Any]) -> str:
    """Return JSON with one line for each answer and each column of a table."""
    return "{\n" + ",\n".join(f"{_text(key)}: {_lines(value)}" for key, value in numbers.items()) + "\n}\n"


def _lines(value: Any, depth: int = 1) -> str:
    """Return JSON in which the entries of an object or a list of objects have a line each."""
    indent = " " * depth
    if isinstance(value, dict) and value and depth < 3:
        entries = (f"{indent}{_text(key)}: {_lines(item, depth + 1)}" for key, item in value.items())
        return "{\n" + ",\n".join(entries) + "\n" + indent[1:] + "}"
    return _text(value)


def _text(value: Any) -> str:
    """Return compact JSON of a value."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _question(study: str) -> str:
    """Return the description of the experiment: the comment of its configuration after the command.

    An experiment that is run for several sizes has a study for each, with its name and `_SIZE`.
    """
    folder = ROOT / "conf" / "experiment"
    name = study if (folder / f"{study}.yaml").exists() else study.rpartition("_")[0]
    lines = (folder / f"{name}.yaml").read_text(encoding="utf-8").splitlines()
    comment = [line.removeprefix("#").strip() for line in lines if line.startswith("#")]
    return "\n".join(comment[2:])


def readme_of(report: Mapping[str, Any]) -> str:
    """Return the `README.md` of a published study: question, commands, answer.

    Parameters
    ----------
    report : mapping
        The content of a `report.json`.

    Returns
    -------
    str
        Markdown.
    """
    study = report["study"]
    runs = (row["command"].split(" paths.results=")[0] for row in report["tables"]["runs"]["rows"])
    commands = "\n".join(dict.fromkeys(runs))
    answers = "\n".join(f"- **{each['question']}** {each['text']}" for each in report["answers"])
    return f"""# {study}

{_question(study)}

```
{commands}
```

{answers}

`numbers.json` holds the numbers of every table and figure. `make reports` writes the report with its figures.
"""


def main() -> None:
    """Write `numbers.json` and `README.md` of the published studies that have a report."""
    for path in sorted(PUBLISHED.glob("*/report/report.json")):
        report = json.loads(path.read_text(encoding="utf-8"))
        folder = path.parents[1]
        (folder / "numbers.json").write_text(_json(numbers_of(report)), encoding="utf-8")
        (folder / "README.md").write_text(readme_of(report), encoding="utf-8")
        sys.stdout.write(f"{folder.name}: {(folder / 'numbers.json').stat().st_size:,} bytes\n")


if __name__ == "__main__":
    main()
