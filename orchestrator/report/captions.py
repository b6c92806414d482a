"""The captions of a report's tables, which explain every number in them; see `templates/captions.txt`."""

from dataclasses import replace
from functools import lru_cache
from importlib.resources import files
from math import isfinite

from jinja2 import Environment, StrictUndefined
from jinja2.environment import TemplateModule

from orchestrator.analysis.findings import Findings
from orchestrator.analysis.pairwise import ALL_PAIRS_UP_TO, ALPHA
from orchestrator.analysis.summaries import GAP_LEVEL
from orchestrator.report import format as fmt
from orchestrator.report.limits import MOST_ARMS
from orchestrator.report.table import Table


def captioned(table: Table, findings: Findings) -> Table:
    """Return a table with its caption, which precedes what it says already of the rows that are shown."""
    # A table of another metric's scores is called `scores_<metric>`.
    macro = getattr(_macros(), "scores" if table.name.startswith("scores") else table.name)
    return replace(table, caption=macro(findings, table.data) + table.caption)


def arms_note(findings: Findings) -> str:
    """Say which arms are shown, where not all are."""
    return _macros().left_out(findings)  # type: ignore[attr-defined]


@lru_cache(maxsize=1)
def _macros() -> TemplateModule:
    environment = Environment(undefined=StrictUndefined)
    environment.globals |= {
        "ALL_PAIRS_UP_TO": ALL_PAIRS_UP_TO,
        "ALPHA": ALPHA,
        "GAP_LEVEL": GAP_LEVEL,
        "MOST_ARMS": MOST_ARMS,
        "fmt": fmt,
        "isfinite": isfinite,
    }
    source = (files("orchestrator.report") / "templates" / "captions.txt").read_text(encoding="utf-8")
    return environment.from_string(fmt.flow(source)).module
