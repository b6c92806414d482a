"""The texts of a report on its tables and its protocol; see `templates/captions.txt` and `protocol.txt`."""

from dataclasses import replace
from functools import lru_cache
from math import isfinite

from jinja2 import Environment, PackageLoader, StrictUndefined, Template

from orchestrator.analysis.bayesian import DRAWS, EQUAL_FROM, FEWEST_DATASETS
from orchestrator.analysis.findings import Findings
from orchestrator.analysis.pairwise import ALL_PAIRS_UP_TO
from orchestrator.analysis.scaling import FEWEST_SIZES, LEAST_RANGE
from orchestrator.analysis.signed_rank import datasets_needed
from orchestrator.analysis.summaries import GAP_LEVEL, WAITED_FROM
from orchestrator.report import format as fmt
from orchestrator.report.limits import ARMS_SHOWN
from orchestrator.report.power import detectable_difference
from orchestrator.report.table import Table
from orchestrator.study.families import families
from orchestrator.study.schemes import described


def captioned(table: Table, findings: Findings) -> Table:
    """Return a table with its caption, which precedes what it says already of the rows that are shown."""
    # A table of another metric's scores is called `scores_<metric>`.
    macro = getattr(
        _template("captions.txt").module, "scores" if table.name.startswith("scores") else table.name
    )
    return replace(table, caption=macro(findings, table.data) + table.caption)


def arms_note(findings: Findings) -> str:
    """Say which arms are shown, where not all are."""
    return _template("captions.txt").module.left_out(findings)  # type: ignore[attr-defined]


def protocol(findings: Findings) -> dict[str, str]:
    """Return the protocol as terms and their explanations."""
    if not findings.design.protocol:
        return {"Protocol": "not recorded: the study's provenance is missing"}
    template = _template("protocol.txt")
    context = template.new_context({"findings": findings, "p": findings.design.protocol})
    texts = {name.replace("_", " "): "".join(block(context)) for name, block in template.blocks.items()}
    return {term: text for term, text in texts.items() if text}


@lru_cache
def _template(name: str) -> Template:
    environment = Environment(undefined=StrictUndefined)
    environment.filters["metric_name"] = fmt.metric_name
    environment.filters["grid_size"] = lambda arm, design: design.grid_size(arm)
    environment.globals |= {
        "ALL_PAIRS_UP_TO": ALL_PAIRS_UP_TO,
        "GAP_LEVEL": GAP_LEVEL,
        "WAITED_FROM": WAITED_FROM,
        "ARMS_SHOWN": ARMS_SHOWN,
        "DRAWS": DRAWS,
        "EQUAL_FROM": EQUAL_FROM,
        "FEWEST_DATASETS": FEWEST_DATASETS,
        "FEWEST_SIZES": FEWEST_SIZES,
        "LEAST_RANGE": LEAST_RANGE,
        "datasets_needed": datasets_needed,
        "described": described,
        "families": families,
        "detectable_difference": detectable_difference,
        "fmt": fmt,
        "isfinite": isfinite,
    }
    source, *_ = PackageLoader("orchestrator.report").get_source(environment, name)
    return environment.from_string(fmt.flow(source))
