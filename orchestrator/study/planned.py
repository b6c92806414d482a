"""The final extent of a study that was declared before its first score, and how much of it remains."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orchestrator.study.report_choices import Plan, ReportChoices, found_scores, left_scores


@dataclass(frozen=True)
class Remaining:
    """The part of a declared plan that has no score yet.

    Attributes
    ----------
    datasets, arms : tuple of str
        Planned names without any score. Default: none.
    repeats, planned_repeats : int
        Number of repeats of the outer splits, and the planned number. Equal if none remains.
    """

    datasets: tuple[str, ...] = ()
    arms: tuple[str, ...] = ()
    repeats: int = 1
    planned_repeats: int = 1

    def __bool__(self) -> bool:
        return bool(self.datasets or self.arms or self.repeats < self.planned_repeats)


def number_before_scores(runs: Sequence[Mapping[str, Any]]) -> int:
    """Return the number of runs that started before any score was stored; at least 1 if there is a run.

    Parameters
    ----------
    runs : sequence of mapping
        Provenance of every run, oldest first.
    """
    for index, run in enumerate(runs):
        if index and (found_scores(run) or any(map(left_scores, runs[:index]))):
            return index
    return len(runs)


def declared_plan(runs: Sequence[Mapping[str, Any]]) -> Plan:
    """Return the plan of the last run that started before any score was stored. Later plans have no effect.

    Parameters
    ----------
    runs : sequence of mapping
        Provenance of every run, oldest first.
    """
    early = number_before_scores(runs)
    return ReportChoices.of(runs[early - 1].get("report") or {}).plan if early else Plan()


def remaining_of_plan(
    runs: Sequence[Mapping[str, Any]], datasets: Collection[str], arms: Collection[str], repeats: int
) -> Remaining:
    """Return the part of the declared plan that a study lacks.

    Parameters
    ----------
    runs : sequence of mapping
        Provenance of every run, oldest first.
    datasets, arms : collection of str
        Names that do not count as missing: those with a score, and those that the report omits on purpose.
    repeats : int
        Number of repeats of the outer splits.
    """
    plan = declared_plan([run for run in runs if run.get("study")])
    return Remaining(
        tuple(name for name in dict.fromkeys(plan.datasets) if name not in datasets),
        tuple(name for name in dict.fromkeys(plan.arms) if name not in arms),
        repeats,
        max(repeats, plan.repeats or 0),
    )
