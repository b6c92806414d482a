"""Which of the studies that claims take are finished, and the decisions that follow from them."""

from collections.abc import Callable, Iterable

from orchestrator.analysis.findings import Findings, analyse
from orchestrator.claims.decisions import Decision, decide
from orchestrator.claims.declared import Claim
from orchestrator.store.files import StoreError
from orchestrator.store.results import StudyResults

Loader = Callable[[str], StudyResults | None]
"""Function that reads a study by its name; it returns None if no such study is stored."""


def finished_studies(names: Iterable[str], load: Loader) -> tuple[dict[str, Findings], dict[str, str]]:
    """Analyse the finished studies among the named ones.

    Parameters
    ----------
    names : iterable of str
        The studies' names.
    load : callable
        See `Loader`.

    Returns
    -------
    found : dict of str to Findings
        By name, what the finished studies found.
    absent : dict of str to str
        By name, why a stored study cannot be used.
    """
    found: dict[str, Findings] = {}
    absent: dict[str, str] = {}
    for name in names:
        try:
            loaded = load(name)
        except StoreError as error:  # a damaged study must not keep others from their reports
            absent[name] = f"study {name} cannot be read: {error}"
            continue
        if loaded is not None and _is_finished(loaded):
            found[name] = analyse(loaded)
        elif loaded is not None:
            absent[name] = _unfinished(name)
    return found, absent


def decisions_of(findings: Findings, known: Iterable[Claim], load: Loader) -> list[Decision]:
    """Decide the claims that take a study, with the other studies that these claims take.

    Parameters
    ----------
    findings : Findings
        Those of the study.
    known : iterable of Claim
        All declared claims.
    load : callable
        See `Loader`.

    Returns
    -------
    list of Decision
        In the order of `known`.
    """
    name = findings.results.name
    own = [claim for claim in known if name in claim.studies]
    others = dict.fromkeys(other for claim in own for other in claim.studies if other != name)
    found, absent = finished_studies(others, load)
    if _is_finished(findings.results):
        found[name] = findings
    else:
        absent[name] = _unfinished(name)
    return [decide(claim, found, absent) for claim in own]


def _is_finished(results: StudyResults) -> bool:
    return bool(results.states) and all(state.complete for state in results.states.values())


def _unfinished(name: str) -> str:
    return f"study {name} is not finished"
