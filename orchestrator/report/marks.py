"""The mark of arms whose refits are not known to be near the optimum of their problem."""

from collections.abc import Collection

from orchestrator.analysis.findings import Findings, marked
from orchestrator.analysis.summaries import GAP_LEVEL
from orchestrator.report.format import MARK


def marked_cells(study: Findings) -> frozenset[tuple[str, str]]:
    """Return the dataset × arm that carry the mark.

    Parameters
    ----------
    study : Findings
        The study of the report.

    Returns
    -------
    frozenset of (dataset, arm)
        Names.
    """
    frame = marked(study)
    return frozenset(zip(frame["dataset"], frame["solver"], strict=True)) if len(frame) else frozenset()


def marked_arms(study: Findings) -> frozenset[str]:
    """Return the arms that carry the mark on some dataset.

    Parameters
    ----------
    study : Findings
        The study of the report.

    Returns
    -------
    frozenset of str
        Names of arms.
    """
    return frozenset(arm for _, arm in marked_cells(study))


def marked_name(arm: str, marked: Collection[str]) -> str:
    """Return the name of an arm, followed by the mark if the arm carries it.

    Parameters
    ----------
    arm : str
        Name of the arm.
    marked : collection of str
        The arms that carry the mark.

    Returns
    -------
    str
        The name as a table prints it.
    """
    return arm + MARK if arm in marked else arm


def mark_note(study: Findings) -> str:
    """Return the end of a caption that explains the mark; empty if no arm carries it.

    Parameters
    ----------
    study : Findings
        The study of the report.

    Returns
    -------
    str
        Sentences after a space.
    """
    if marked(study).empty:
        return ""
    return (
        f" {MARK}: a refit claims a relative duality gap above {GAP_LEVEL:g}, or did not converge. Its "
        "objective may then be more than one per cent off the optimum; support vector machines are commonly "
        "trained to a tenth of that. The scores and times are those of the model at which training stopped."
    )
