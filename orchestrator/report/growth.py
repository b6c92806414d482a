"""Sentences on changes of a study after its first scores, and on the part of its plan that remains."""

from collections.abc import Iterator, Sequence

from orchestrator.analysis import findings
from orchestrator.analysis.findings import Findings
from orchestrator.report import format as fmt
from orchestrator.study.growth import SETTINGS, LateChange
from orchestrator.study.planned import Remaining

_MAX_NAMES = 12
"""Largest number of names that a sentence lists."""


def growth_sentences(study: Findings, with_repeats: bool = True) -> list[str]:
    """State what was changed after scores had been stored, when, and what was declared before.

    Parameters
    ----------
    study : Findings
        The study of the report.
    with_repeats : bool, default=True
        Whether to name repeats that were added to the outer splits.

    Returns
    -------
    list of str
        Empty if the study is as it was declared before its first score.
    """
    parts = [
        f"{f'in {name}, ' if name else ''}{part}"
        for name, changes in findings.growth(study).items()
        for part in _parts([each for each in changes if with_repeats or not each.is_repeats])
    ]
    if not parts:
        return []
    return [
        f"Chosen after results were seen: {'; '.join(parts)}.",
        "No p-value and no interval of this report allows for such a choice.",
    ]


def plan_sentences(study: Findings) -> list[str]:
    """State which datasets, arms and repeats of the declared plan have no score yet.

    Parameters
    ----------
    study : Findings
        The study of the report.

    Returns
    -------
    list of str
        Empty if no plan was declared before the first score, or it is finished.
    """
    parts = [
        f"{f'in {name}, ' if name else ''}{_remaining(remaining)}"
        for name, remaining in findings.remaining_plan(study).items()
    ]
    if not parts:
        return []
    sentences = [f"The declared plan is not finished: {'; '.join(parts)}."]
    if not study.design.choices.sequential:
        sentences.append("No p-value allows for ending the study before the plan is finished.")
    return sentences


def _remaining(remaining: Remaining) -> str:
    """Return which part of a plan has no score yet.

    Parameters
    ----------
    remaining : Remaining
        The part of the plan.

    Returns
    -------
    str
        For example `no score yet of 1 dataset (wine) and of 1 arm (lda), and 2 of 5 repeats`.
    """
    names = [
        f"of {fmt.plural(len(each), noun)} ({_named(each)})"
        for noun, each in (("dataset", remaining.datasets), ("arm", remaining.arms))
        if each
    ]
    texts = [f"no score yet {' and '.join(names)}"] if names else []
    if remaining.repeats < remaining.planned_repeats:
        texts.append(f"{remaining.repeats} of {remaining.planned_repeats} repeats")
    return ", and ".join(texts)


def _parts(changes: Sequence[LateChange]) -> Iterator[str]:
    """Yield a clause for each change; what was there before is listed once for datasets and once for arms.

    Parameters
    ----------
    changes : sequence of LateChange
        Changes of one study.

    Yields
    ------
    str
        For example `2 datasets were added on 2026-11-23 (a and b), before there were 3 (c, d and e)`.
    """
    listed: set[str] = set()
    for change in changes:
        on = f" on {change.date}" if change.date else ""
        if change.kind == SETTINGS:
            yield f"{change.text}{on}"
            continue
        noun = change.kind.removesuffix("s")
        before = ""
        if change.kind not in listed:
            before = f", before there {_was(len(change.before))} {_counted(change.before)}"
            listed.add(change.kind)
        if change.added:
            number = len(change.added)
            yield f"{fmt.plural(number, noun)} {_was(number)} added{on} ({_named(change.added)}){before}"
        else:
            number = len(change.removed)
            last = f", declared last{on}" if on else ""
            names = f"{_named(change.removed)}{last}"
            yield f"{fmt.plural(number, noun)} {_was(number)} removed ({names}){before}"


def _was(number: int) -> str:
    return "was" if number == 1 else "were"


def _counted(names: Sequence[str]) -> str:
    return f"{len(names)} ({_named(names)})"


def _named(names: Sequence[str]) -> str:
    more = len(names) - _MAX_NAMES
    return fmt.listed([*names[:_MAX_NAMES], *([f"{more} more"] if more > 0 else [])])
