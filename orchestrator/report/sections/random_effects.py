"""On request: the mean differences over datasets by models that know the errors of the folds.

`report.sections=[orchestrator.report.sections.random_effects.section]` adds this section to a report.
"""

import pandas as pd

from orchestrator.analysis import findings
from orchestrator.analysis.findings import Findings, analyse
from orchestrator.report import format as fmt
from orchestrator.report.pair_cells import pair, units
from orchestrator.report.section import Section
from orchestrator.report.table import Printer, Row, print_table
from orchestrator.store.results import StudyResults

TITLE = "Mean differences over datasets"


def section(study: StudyResults) -> Section | None:
    """Return the section; None if no pair of arms has two scored outer folds on a dataset.

    Parameters
    ----------
    study : StudyResults
        The study of the report.

    Returns
    -------
    Section or None
        One table.
    """
    found = study if isinstance(study, Findings) else analyse(study)
    frame, metric = findings.random_effects(found), found.design.metric
    if frame.empty:
        return None
    columns: dict[str, Printer] = {
        "Pair, A − B": pair(found),
        units(found): lambda row: fmt.count(row["n"]),
        "Mean difference": lambda row: _interval(row, metric),
        "Standard deviation": lambda row: fmt.score(row["tau"], metric),
        "p": lambda row: fmt.p_value(row["p"]),
    }
    if "hierarchical_better" in frame:
        for name in ("better", "equal", "worse"):
            columns[name.capitalize()] = _probabilities(name)
    table = print_table("random_effects", TITLE, frame, columns, caption=_caption(found, frame))
    return Section(TITLE, "", [table], link="Means")


def _interval(row: Row, metric: str) -> str:
    """Print the mean with its interval.

    Parameters
    ----------
    row : dict
        A row of `findings.random_effects`.
    metric : str
        Name of the scorer.
    """
    middle, low, high = (fmt.difference(row[name], metric) for name in ("estimate", "low", "high"))
    return middle if pd.isna(row["low"]) else f"{middle} [{low}, {high}]"


def _probabilities(name: str) -> Printer:
    """Return the function that prints a probability of the hierarchical and of the signed-rank test.

    Parameters
    ----------
    name : {"better", "equal", "worse"}
        The case.
    """

    def printed(row: Row) -> str:
        values = (row[f"{test}_{name}"] for test in ("hierarchical", "signed_rank"))
        return " / ".join(fmt.MISSING if pd.isna(value) else fmt.probability(value) for value in values)

    return printed


def _caption(study: Findings, frame: pd.DataFrame) -> str:
    """Return the caption of the table.

    Parameters
    ----------
    study : Findings
        The study of the report.
    frame : DataFrame
        The rows of the table.
    """
    design = study.design
    text = (
        f"Mean difference{fmt.in_unit(design.metric)}: over {fmt.plural_of(design.unit)}, weighted by "
        f"precision, with a {fmt.level(design.alpha)} interval (random effects: variances of Nadeau and "
        "Bengio moderated over datasets, τ² of Paule and Mandel, Student's t of Hartung and Knapp). Standard "
        "deviation: τ, of the true differences between datasets. Intervals and p are not adjusted for the "
        "number of pairs, and decide nothing."
    )
    if "hierarchical_better" in frame:
        text += (
            " Better, equal, worse: probabilities of the hierarchical correlated test (Corani et al., 2017) "
            "/ of the Bayesian signed-rank test, beyond or within "
            f"{fmt.margin(float(frame['rope'].iloc[0]), design.metric)}."
        )
    return text
