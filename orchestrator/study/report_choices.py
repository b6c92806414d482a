"""What a report compares: declared before the first trial, or chosen later and then called so."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from orchestrator.study.families import ONCE
from orchestrator.study.names import did_you_mean

_CHOICES = ("control", "alpha", "rope", "leave_out", "families", "sequential")


@dataclass(frozen=True)
class ReportChoices:
    """What a report compares with what; no trial depends on it.

    Attributes
    ----------
    control : str or None
        The arm with which others are compared; None: the first.
    alpha : float
        Level of the tests.
    rope : float or None
        Half the width of the region of practical equivalence, in the unit of the metric; None: that of the
        metric.
    leave_out : tuple of str
        Arms and datasets that the report does without.
    families : {"once", "apart"}
        Whether the datasets of one family count once in a test, or each.
    sequential : bool
        Whether the declared pairs are tested after each dataset, too.
    first : ReportChoices or None
        Those of the first run that left scores, with the name of the control that it had.
    """

    control: str | None = None
    alpha: float = 0.05
    rope: float | None = None
    leave_out: tuple[str, ...] = ()
    families: str = ONCE
    sequential: bool = False
    first: "ReportChoices | None" = None

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> "ReportChoices":
        """Return the choices of a configuration, or of what a run recorded of it."""
        known = {name: facts[name] for name in _CHOICES if name in facts}
        return cls(**known | {"leave_out": tuple(known.get("leave_out") or ())})

    def declared(self) -> dict[str, Any]:
        """Return what a run records."""
        return {name: getattr(self, name) for name in _CHOICES}

    def unknown_names(self, arms: Sequence[str], datasets: Sequence[str]) -> list[str]:
        """Return what is wrong with the choices for a study of these arms and datasets."""
        names = [*arms, *datasets]
        problems = [
            f"report.leave_out: the study has no arm or dataset {name!r}{did_you_mean(name, names)}"
            for name in self.leave_out
            if name not in names
        ]
        left = [name for name in arms if name not in self.leave_out]
        if self.leave_out and not (left and set(datasets) - set(self.leave_out)):
            problems.append("report.leave_out leaves no arm or no dataset; leave out fewer")
        elif self.control is not None and self.control not in left:
            near = did_you_mean(self.control, left)
            problems.append(f"report.control: the report has no arm {self.control!r}{near}")
        return problems


def report_choices(runs: Sequence[Mapping[str, Any]], given: Mapping[str, Any]) -> ReportChoices:
    """Return the choices of the newest run, or those given in their place.

    Parameters
    ----------
    runs : sequence of mapping
        The provenance of every run, oldest first.
    given : mapping
        Choices by name.
    """
    # Nobody has seen a score of runs that ended before any was stored.
    begun = [place for place, run in enumerate(runs) if _found_scores(run) is False]
    runs = runs[max((place for place in begun if not any(map(_left_scores, runs[:place]))), default=0) :]
    recorded = [ReportChoices.of(run.get("report") or {}) for run in runs] or [ReportChoices()]
    first = recorded[0]
    arms = ((runs[0].get("study") or {}).get("arms") or [{}]) if runs else [{}]
    if first.control is None:
        first = replace(first, control=arms[0].get("name"))
    return replace(ReportChoices.of(recorded[-1].declared() | dict(given)), first=first)


def _found_scores(run: Mapping[str, Any]) -> bool | None:
    """Whether scores were stored when a run began; older runs recorded whether trials were."""
    return run.get("found_scores", run.get("found_trials"))


def _left_scores(run: Mapping[str, Any]) -> bool:
    """Whether scores were stored when a run ended, even if they have been lost since."""
    summary = run.get("summary") or {}
    if "found_scores" in run:
        return bool(run["found_scores"] or summary.get("scores_stored"))
    return any(summary.get(name) for name in ("trials_run", "trials_stored_before"))
