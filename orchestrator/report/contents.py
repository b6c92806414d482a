"""The built-in sections in the order of the page. Each is a function, like a user's section."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from orchestrator.analysis import findings
from orchestrator.analysis.findings import Findings
from orchestrator.report.figures import documents
from orchestrator.report.printed import PrintedSection, printed
from orchestrator.report.section import Drawn, SectionFunction
from orchestrator.report.sections import (
    against_reference,
    answer,
    class_rates,
    comparison_matrix,
    coverage,
    effort,
    failures,
    heat_map,
    methods,
    prediction_cost,
    preparation,
    protocol,
    provenance,
    random_splits,
    same_arms,
    score_pictures,
    scores,
    selections,
    sensitivity,
    standings,
    sweep,
    tests,
    time,
)
from orchestrator.report.table import Table

BEFORE: Mapping[str, SectionFunction] = {
    "answer": answer.section,
    "preparation": preparation.section,
    "standings": standings.section,
    "same_arms": same_arms.section,
    "comparison_matrix": comparison_matrix.section,
    "heat_map": heat_map.section,
    "score_pictures": score_pictures.section,
    "protocol": protocol.section,
    "coverage": coverage.section,
    "against_reference": against_reference.section,
    "scores": scores.section,
    "random_splits": random_splits.section,
    "tests": tests.section,
    "sweep": sweep.section,
    "time": time.section,
    "prediction_cost": prediction_cost.section,
    "class_rates": class_rates.section,
    "effort": effort.section,
    "selections": selections.section,
    "failures": failures.section,
    "sensitivity": sensitivity.section,
}
"""Sections before those of users, by name."""

AFTER: Mapping[str, SectionFunction] = {"methods": methods.section, "provenance": provenance.section}
"""Sections after those of users, by name."""


_OVER_DATASETS = {"standings", "comparison_matrix", "heat_map", "score_pictures", "tests", "sensitivity"}
"""Sections that compare arms over datasets, which a study of one dataset does not have."""

_WITHOUT_SELECTION = {"preparation", "protocol", "coverage", "against_reference", "failures", *AFTER}
"""Sections of a study that selects no candidate. The others show scores of selected candidates."""

_SHORT = {"answer", "preparation"}
"""Built-in sections that the page of a study of few datasets shows open."""


def our_sections(study: Findings, functions: Mapping[str, SectionFunction]) -> list[PrintedSection]:
    """Return the sections that apply to a study.

    Parameters
    ----------
    study : Findings
        The study of the report.
    functions : mapping of str to callable
        `BEFORE` or `AFTER`.

    Returns
    -------
    list of PrintedSection
        In the given order.
    """
    without = _OVER_DATASETS if len(study.design.datasets) == 1 else set()
    if not study.design.selects:
        without = {*BEFORE, *AFTER} - _WITHOUT_SELECTION
    found = ((name, function(study)) for name, function in functions.items() if name not in without)
    return [printed(name, name, section) for name, section in found if section is not None]


def all_tables(study: Findings) -> dict[str, Table]:
    """Return the tables of the built-in sections by name.

    Parameters
    ----------
    study : Findings
        The study of the report.

    Returns
    -------
    dict of str to Table
        In the order of the page.
    """
    return tables_of(our_sections(study, {**BEFORE, **AFTER}))


def tables_of(sections: Iterable[PrintedSection]) -> dict[str, Table]:
    """Return the tables of sections by name.

    Parameters
    ----------
    sections : iterable of PrintedSection
        In the order of the page.

    Returns
    -------
    dict of str to Table
        In the same order.
    """
    return {name: table for section in sections for name, table in section.tables.items()}


def drawn_figures(sections: Iterable[PrintedSection], pdf: bool) -> dict[str, Drawn]:
    """Draw the figures of the built-in sections.

    Parameters
    ----------
    sections : iterable of PrintedSection
        The built-in sections.
    pdf : bool
        Whether to make PDFs.

    Returns
    -------
    dict of str to Drawn
        By name, in the order of the page.
    """
    return {drawing.name: documents(drawing, pdf) for section in sections for drawing in section.drawings}


def shown_on_page(sections: Iterable[PrintedSection], study: Findings) -> list[PrintedSection]:
    """Return the sections that the page shows.

    Parameters
    ----------
    sections : iterable of PrintedSection
        All sections, in the order of the page.
    study : Findings
        The study of the report.

    Returns
    -------
    list of PrintedSection
        Without those that need scores, if there are none yet. On the page of a study of few datasets, all
        built-in sections but the answer are folded.
    """
    empty, few = findings.is_empty(study), bool(findings.dataset_answers(study))
    folded = {*BEFORE, *AFTER} - _SHORT if few and not empty else set()
    return [
        replace(section, is_folded=section.name in folded)
        for section in sections
        if not (empty and section.needs_scores)
    ]
