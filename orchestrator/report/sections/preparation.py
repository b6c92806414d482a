"""The preparation of the features for each solver, on the short page of a study of few datasets."""

from orchestrator.analysis import findings
from orchestrator.analysis.findings import Findings
from orchestrator.report import format as fmt
from orchestrator.report.section import Section, Terms

TITLE = "What was done to the data"


def section(study: Findings) -> Section | None:
    """Return the section; None for a study of many datasets, or if no preparation is recorded.

    Parameters
    ----------
    study : Findings
        The study of the report.

    Returns
    -------
    Section or None
        The preparations in words, each with the solvers that got it.
    """
    declared = study.declaration.pairs if study.declaration else {}
    solvers: dict[tuple[str, str], list[str]] = {}
    for dataset, arm in study.design.pairs:
        pair = declared.get((dataset, arm))
        if pair is not None and pair.identity is not None:
            words = pair.identity.protocol.preparation.words
            solvers.setdefault((dataset, words), []).append(arm)
    if not solvers or not findings.dataset_answers(study):
        return None
    several = len(study.design.datasets) > 1
    texts = {
        f"{fmt.listed(arms)}{f' on {dataset}' if several else ''}": words
        for (dataset, words), arms in solvers.items()
    }
    return Section(TITLE, "", [Terms(texts)], link="Data")
