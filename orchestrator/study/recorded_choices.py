"""The choices of a report that the runs of a study recorded."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from orchestrator.study.declaration import current_declaration
from orchestrator.study.report_choices import ReportChoices, found_scores, left_scores


def report_choices(runs: Sequence[Mapping[str, Any]], given: Mapping[str, Any]) -> ReportChoices:
    """Return the choices of the newest run, updated by those that are given.

    A run decides only about its own arms. So references and the control that an earlier run named, and that
    later runs did not train, are kept.

    Parameters
    ----------
    runs : sequence of mapping
        Provenance of every run, oldest first.
    given : mapping
        Choices by name, which replace recorded ones.
    """
    # Choices of a run that ended without a stored score do not count: nobody had seen a result.
    without = [index for index, run in enumerate(runs) if found_scores(run) is False]
    runs = runs[max((index for index in without if not any(map(left_scores, runs[:index]))), default=0) :]
    recorded = [ReportChoices.of(run.get("report") or {}) for run in runs] or [ReportChoices()]
    first = recorded[0]
    arms = ((runs[0].get("study") or {}).get("arms") or [{}]) if runs else [{}]
    if first.control is None:
        first = replace(first, control=arms[0].get("name"))
    newest = _with_arms_of_earlier_runs(runs, recorded)
    return replace(ReportChoices.of(newest.declared() | dict(given)), first=first)


def _with_arms_of_earlier_runs(
    runs: Sequence[Mapping[str, Any]], recorded: Sequence[ReportChoices]
) -> ReportChoices:
    """Return the choices of the newest run, with references and a control that later runs did not train.

    Parameters
    ----------
    runs : sequence of mapping
        Provenance of every run, oldest first.
    recorded : sequence of ReportChoices
        Choices of each run, at least one.
    """
    newest = recorded[-1]
    reference, control = recorded[0].reference, recorded[0].control
    for run, choices in zip(runs[1:], recorded[1:], strict=True):
        own = {arm.get("name") for arm in (run.get("study") or {}).get("arms") or ()}
        kept = [name for name in reference if name not in own or name in choices.reference]
        # The newest run gives the order, unless it names only some of the earlier references.
        in_order = kept if {*kept} > {*choices.reference} else [*choices.reference, *kept]
        reference = tuple(dict.fromkeys(in_order))
        control = control if choices.control is None and control not in own else choices.control
    if (reference, control) == (newest.reference, newest.control):
        return newest
    declaration = current_declaration(runs)
    arms = declaration.arms if declaration else {}
    reference = tuple(name for name in reference if name in arms)
    return replace(newest, reference=reference, control=control if control in arms else newest.control)
