"""The mark of arms whose refits are not known to be near the optimum of their problem."""

from collections.abc import Collection

from orchestrator.analysis.findings import Findings
from orchestrator.report.format import MARK


def marked_cells(findings: Findings) -> frozenset[tuple[str, str]]:
    """Return the dataset × arm that carry the mark."""
    marked = findings.marked
    return frozenset(zip(marked["dataset"], marked["solver"], strict=True)) if len(marked) else frozenset()


def marked_arms(findings: Findings) -> frozenset[str]:
    """Return the arms that carry the mark on some dataset."""
    return frozenset(arm for _, arm in marked_cells(findings))


def marked_name(arm: str, marked: Collection[str]) -> str:
    """Return an arm's name, followed by the mark where it carries it."""
    return arm + MARK if arm in marked else arm
