"""Find the stored studies that claims need, and decide the claims from them."""

from collections.abc import Callable, Iterable

from orchestrator.analysis.findings import Findings, analyse
from orchestrator.claims.decisions import Decision, decide
from orchestrator.claims.declared import Claim
from orchestrator.claims.terms import Terms
from orchestrator.store.files import StoreError
from orchestrator.store.results import StudyResults

Loader = Callable[[str], StudyResults | None]
"""Function that reads a study by its name; it returns None if no such study is stored."""


def stored_studies(names: Iterable[str], load: Loader) -> tuple[dict[str, Findings], dict[str, str]]:
    """Analyse the stored studies among the named ones. Of unfinished ones, complete dataset × arm count.

    Parameters
    ----------
    names : iterable of str
        Names of the studies.
    load : Loader
        Function that reads a study by its name; see `Loader`.

    Returns
    -------
    found : dict of str to Findings
        Findings of the studies with a complete dataset × arm, by name.
    absent : dict of str to str
        Why a stored study cannot be used, by name.
    """
    found: dict[str, Findings] = {}
    absent: dict[str, str] = {}
    for name in names:
        try:
            loaded = load(name)
        except StoreError as error:  # other studies can still be reported
            absent[name] = f"study {name} cannot be read: {error}"
            continue
        if loaded is not None and _has_complete_pair(loaded):
            found[name] = analyse(loaded)
        elif loaded is not None:
            absent[name] = _no_complete_pair(name)
    return found, absent


def decisions_of(
    findings: Findings, known: Iterable[Claim], load: Loader, terms_of: Callable[[Findings], Terms]
) -> list[Decision]:
    """Decide the claims that use a study, with the other studies that these claims use.

    Parameters
    ----------
    findings : Findings
        Findings of the study.
    known : iterable of Claim
        All declared claims.
    load : Loader
        Function that reads a study by its name; see `Loader`.
    terms_of : callable
        Function that returns the differences between a study and its experiment.

    Returns
    -------
    list of Decision
        The decisions, in the order of `known`.
    """
    name = findings.results.name
    using = [claim for claim in known if name in claim.studies]
    others = dict.fromkeys(other for claim in using for other in claim.studies if other != name)
    found, absent = stored_studies(others, load)
    if _has_complete_pair(findings.results):
        found[name] = findings
    else:
        absent[name] = _no_complete_pair(name)
    terms = {name: terms_of(study) for name, study in found.items()}
    return [decide(claim, found, absent, terms) for claim in using]


def _has_complete_pair(results: StudyResults) -> bool:
    """Return whether some dataset × arm of a study is complete.

    Parameters
    ----------
    results : StudyResults
        Results with the state of each dataset × arm.

    Returns
    -------
    bool
        False for a study without a recorded declaration, which has no states.
    """
    return any(state.complete for state in results.states.values())


def _no_complete_pair(name: str) -> str:
    """Return the message about a study without a complete dataset × arm.

    Parameters
    ----------
    name : str
        Name of the study.

    Returns
    -------
    str
        Text that names the study.
    """
    return f"study {name} has no complete dataset × arm yet"
