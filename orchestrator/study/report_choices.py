"""Choices of a report. The report says which of them were made after the first trial."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from orchestrator.study.families import ONCE
from orchestrator.study.schemes import n_repeats
from orchestrator.study.study import EVERY
from orchestrator.study.targets import did_you_mean

MAX_T, HOLM = "maxt", "holm"
"""Values of `report.adjust`: step-down max-t over sign flips, or Holm's method for signed-rank tests."""

LEAVE_OUT, CONSTANT = "leave_out", "constant"
"""Values of `report.failed`."""

_CHOICES = (
    *("control", "alpha", "rope", "leave_out", "families", "sequential"),
    *("reference", "plan", "failed", "earlier", "adjust"),
)
"""Choices that a run records, by name."""


@dataclass(frozen=True)
class Plan:
    """Final extent of a study that grows, declared before its first run.

    Attributes
    ----------
    datasets, arms : tuple of str
        Names that the finished study has, those of the first run included. Default: none.
    repeats : int or None
        Final number of repeats of the outer splits. None (default) means that of the first run.
    """

    datasets: tuple[str, ...] = ()
    arms: tuple[str, ...] = ()
    repeats: int | None = None

    @classmethod
    def of(cls, recorded: Mapping[str, Any] | None) -> "Plan":
        """Return the plan in a configuration or in the record of a run.

        Parameters
        ----------
        recorded : mapping or None
            Configuration key `report.plan`; None or an empty mapping means no plan.
        """
        recorded = recorded or {}
        names = {name: tuple(recorded.get(name) or ()) for name in ("datasets", "arms")}
        return cls(**names, repeats=recorded.get("repeats"))


@dataclass(frozen=True)
class ReportChoices:
    """Choices of a report; no trial depends on them.

    Attributes
    ----------
    control : str or None
        Arm with which all others are compared. None (default) means the first arm.
    alpha : float
        Significance level of the tests. Default 0.05.
    rope : float or None
        Half the width of the region of practical equivalence, in the unit of the metric. None (default) means
        the default of the metric.
    leave_out : tuple of str
        Names of arms and datasets that the report omits. Default: none.
    families : {"once", "apart"}
        Whether the datasets of a family count once in a test (default), or each.
    sequential : bool
        Whether declared pairs are tested after each dataset, so that a run can end early. Default False.
    reference : tuple of str
        Arms with which the others are compared point by point, in a study that selects no candidates. By
        default, that is the control.
    adjust : {"maxt", "holm"} or None
        How p-values are adjusted for the number of tests. None means the procedure of the study's first run,
        which is "maxt" unless it recorded another one. A run that recorded no such choice used "holm", the
        default of this class.
    failed : {"leave_out", "constant"}
        Whether a dataset on which a refit of an arm failed takes part in no test of the arm (default), or
        the failed refit scores as a classifier that always answers the most frequent class.
    earlier : str or None
        Name of an earlier study. The spread of its differences between datasets turns the detectable
        difference of a plan into points. None (default) means that it is given in standard deviations.
    plan : Plan
        Final extent of a study that grows. By default nothing is planned beyond the first run.
    first : ReportChoices or None
        Choices of the first run that left scores, with the name of its control.
    """

    control: str | None = None
    alpha: float = 0.05
    rope: float | None = None
    leave_out: tuple[str, ...] = ()
    families: str = ONCE
    sequential: bool = False
    reference: tuple[str, ...] = ()
    adjust: str | None = HOLM
    failed: str = LEAVE_OUT
    earlier: str | None = None
    plan: Plan = Plan()
    first: "ReportChoices | None" = None

    @classmethod
    def of(cls, recorded: Mapping[str, Any]) -> "ReportChoices":
        """Return the choices in a configuration or in the record of a run.

        Parameters
        ----------
        recorded : mapping
            Configuration key `report`, or what a run recorded of it. Other keys are ignored.
        """
        known = {name: recorded[name] for name in _CHOICES if name in recorded}
        reference = known.get("reference") or ()
        names = {
            "leave_out": tuple(known.get("leave_out") or ()),
            "reference": (reference,) if isinstance(reference, str) else tuple(reference),
            "plan": Plan.of(known.get("plan")),
        }
        return cls(**known | names)

    @property
    def adjustment(self) -> str:
        """The procedure in force: the chosen one, else that of the first run, else "maxt"."""
        return self.adjust or (self.first.adjust if self.first else None) or MAX_T

    def declared(self) -> dict[str, Any]:
        """Return the choices as a run records them, without `first`."""
        return {name: getattr(self, name) for name in _CHOICES} | {"plan": asdict(self.plan)}

    def unknown_names(self, arms: Sequence[str], datasets: Sequence[str]) -> list[str]:
        """Return one message for each name in the choices that the study does not have.

        Parameters
        ----------
        arms : sequence of str
            Names of the study's arms.
        datasets : sequence of str
            Names of the study's datasets.
        """
        names = [*arms, *datasets]
        problems = [
            f"report.leave_out: the study has no arm or dataset {name!r}"
            + (did_you_mean(name, names) or f"; it has {', '.join(names)}")
            for name in self.leave_out
            if name not in names
        ]
        left = [name for name in arms if name not in self.leave_out]
        if self.leave_out and not (left and set(datasets) - set(self.leave_out)):
            problems.append("report.leave_out leaves no arm or no dataset; leave out fewer")
        elif self.control is not None and self.control not in left:
            near = did_you_mean(self.control, left) or f"; expected one of {', '.join(left)}"
            problems.append(f"report.control: the report has no arm {self.control!r}{near}")
        for name in dict.fromkeys(self.reference):
            if left and name not in left:
                near = did_you_mean(name, left) or f"; expected some of {', '.join(left)}"
                problems.append(f"report.reference: the report has no arm {name!r}{near}")
        return problems

    def outside_plan(self, arms: Sequence[str], datasets: Sequence[str], repeats: int) -> list[str]:
        """Return one message for each part of the plan that is smaller than the study.

        Parameters
        ----------
        arms : sequence of str
            Names of the study's arms.
        datasets : sequence of str
            Names of the study's datasets.
        repeats : int
            Number of repeats of the outer splits.
        """
        problems, plan = [], self.plan
        for kind, planned, names in (("datasets", plan.datasets, datasets), ("arms", plan.arms, arms)):
            without = ", ".join(name for name in names if name not in planned)
            if planned and without:
                problems.append(
                    f"report.plan.{kind}=[{','.join(planned)}] lacks {without}, which the study runs. A plan "
                    f"lists all {kind} of the final study: add {without}, or leave report.plan.{kind} out"
                )
        if plan.repeats is not None and plan.repeats < repeats:
            problems.append(
                f"report.plan.repeats={plan.repeats}: the study runs {repeats} repeats; expected at least "
                f"{repeats}"
            )
        return problems

    def unused_reference(self, search: str) -> list[str]:
        """Return a message if reference arms are named for a study that selects candidates.

        Parameters
        ----------
        search : str
            Name of the study's search.
        """
        if not self.reference or search == EVERY:
            return []
        return [
            f"report.reference={','.join(self.reference)}: arms are compared point by point only in a study "
            f"with search={EVERY}, found search={search}. Leave report.reference out; report.control names "
            "the arm that others are compared with"
        ]


def repeats_when_scored(runs: Sequence[Mapping[str, Any]], fingerprint: str | None) -> int | None:
    """Return the number of repeats that the first run with scores of a dataset declared.

    Parameters
    ----------
    runs : sequence of mapping
        Provenance of every run, oldest first.
    fingerprint : str or None
        Hash of the dataset's content; None if it is not recorded.

    Returns
    -------
    int or None
        None if no run with scores declared the dataset. A larger number of repeats now was chosen post hoc.
    """
    for run in runs:
        study = run.get("study") or {}
        known = [dataset.get("fingerprint") for dataset in study.get("datasets") or ()]
        if fingerprint is not None and fingerprint in known and left_scores(run):
            return n_repeats(study.get("protocol") or {})
    return None


def found_scores(run: Mapping[str, Any]) -> bool | None:
    """Return whether scores were stored when a run started; None if it is not recorded.

    Older runs recorded whether trials were stored, which is returned instead.

    Parameters
    ----------
    run : mapping
        Provenance of the run.
    """
    return run.get("found_scores", run.get("found_trials"))


def left_scores(run: Mapping[str, Any]) -> bool:
    """Return whether scores were stored when a run ended, even if they have been lost since.

    Parameters
    ----------
    run : mapping
        Provenance of the run.
    """
    summary = run.get("summary") or {}
    if "found_scores" in run:
        return bool(run["found_scores"] or summary.get("scores_stored"))
    return any(summary.get(name) for name in ("trials_run", "trials_stored_before"))
