"""Decide claims of the literature by their declared tests, from what finished studies found."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Any

import pandas as pd

from orchestrator.analysis.findings import Findings
from orchestrator.claims import figures
from orchestrator.claims.declared import Claim, Part, listed
from orchestrator.claims.figures import Figure, Side, Unanswered, side

REPRODUCED, NOT_REPRODUCED, UNDECIDED = "reproduced", "not reproduced", "undecided"

_DIGITS = 9
"""Decimals to which ends of intervals are compared with a region: round-off must decide nothing."""

_SAMPLED = ("difference", "ratio", "slope")
"""The tests whose figures are estimates."""


@dataclass(frozen=True)
class Outcome:
    """What a figure says of a part of a claim; without a figure, why there is none."""

    part: Part
    verdict: str
    figure: Figure | None = None
    why: str = ""


@dataclass(frozen=True)
class Decision:
    """A claim with all its outcomes."""

    claim: Claim
    outcomes: tuple[Outcome, ...]

    @property
    def verdict(self) -> str:
        """`NOT_REPRODUCED` if an outcome is, `REPRODUCED` if all are, else `UNDECIDED`."""
        verdicts = {outcome.verdict for outcome in self.outcomes}
        if NOT_REPRODUCED in verdicts:
            return NOT_REPRODUCED
        return REPRODUCED if verdicts == {REPRODUCED} else UNDECIDED

    def frame(self) -> pd.DataFrame:
        """Return a row for each outcome.

        Columns: claim, what, estimate, low, high, least, most (the region that the claim asks for), n, unit,
        p, verdict, note.
        """
        rows = []
        for outcome in self.outcomes:
            figure = outcome.figure
            least, most = outcome.part.region
            rows.append(
                {
                    "claim": self.claim.name,
                    "what": figure.what if figure else outcome.part.words,
                    **{name: getattr(figure, name, None) for name in ("estimate", "low", "high")},
                    "least": least,
                    "most": most,
                    **{name: getattr(figure, name, None) for name in ("n", "unit", "p")},
                    "verdict": outcome.verdict,
                    "note": figure.note if figure else outcome.why,
                }
            )
        return pd.DataFrame(rows)


def decide(claim: Claim, studies: Mapping[str, Findings], absent: Mapping[str, str]) -> Decision:
    """Decide a claim by what the studies found.

    Parameters
    ----------
    claim : Claim
    studies : mapping of str to Findings
        The finished ones, by name.
    absent : mapping of str to str
        Why others cannot be used; of those not named it is that they have not been run.

    Notes
    -----
    A part is reproduced if the interval of its figure lies in the region that the claim asks for, and not
    reproduced if the interval lies outside; so equivalence takes two one-sided tests (TOST), each at level
    `LEVEL`, and never follows from a large p. Of several arms or datasets all have to be reproduced, which
    needs no adjustment; the intervals by which any of them may refute are adjusted (Bonferroni) for the
    number of tests, arms and, where each is looked at by itself, datasets.
    """
    looks = sum(
        max(1, len(listed(part.options.get("arms")))) for part in claim.parts if part.test in _SAMPLED
    )
    outcomes = tuple(outcome for part in claim.parts for outcome in _outcomes(part, studies, absent, looks))
    return Decision(claim, outcomes)


def _outcomes(
    part: Part, studies: Mapping[str, Findings], absent: Mapping[str, str], looks: int
) -> Iterator[Outcome]:
    if part.test == "unanswered":
        yield Outcome(part, UNDECIDED, why=str(part.options["why"]))
        return
    lacking = [
        absent.get(name, f"study {name} has not been run") for name in part.studies if name not in studies
    ]
    for key in ("study", "against"):
        names = listed(part.options.get(key))
        if names and not set(names) & studies.keys():
            yield Outcome(part, UNDECIDED, why="; ".join(lacking))
            return
    if datasets := _absent_datasets(part, studies):
        lacking.append(f"no dataset {', '.join(datasets)}")
    try:
        for figure in _figures(part, studies, looks):
            verdict = verdict_of(figure, part.region)
            but = _exceptions(figure, part.region) if verdict == REPRODUCED else ""
            noted = replace(figure, note="; ".join(filter(None, [figure.note, but, *lacking])))
            yield Outcome(part, verdict, noted)
        if lacking and part.options.get("apart"):
            yield Outcome(part, UNDECIDED, why="; ".join(lacking))
    except Unanswered as error:
        yield Outcome(part, UNDECIDED, why="; ".join([str(error), *lacking]))


def _exceptions(figure: Figure, region: tuple[float, float]) -> str:
    """Name what lies outside a region in which the typical value lies."""
    least, most = region
    outside = [name for name, value in figure.of_each.items() if not least <= round(value, _DIGITS) <= most]
    if not outside:
        return ""
    return f"typically; {len(outside)} of {figure.n} {figure.unit} outside: {', '.join(outside)}"


def _absent_datasets(part: Part, studies: Mapping[str, Findings]) -> list[str]:
    """Return the datasets that a part names and its studies do not have."""
    used = [studies[name] for name in listed(part.options.get("study")) if name in studies]
    there = {
        name for study in used for full in study.design.datasets for name in (full, full.partition("[")[0])
    }
    return [name for name in listed(part.options.get("datasets")) if name not in there]


def verdict_of(figure: Figure, region: tuple[float, float]) -> str:
    """Return what the interval of a figure says of a region."""
    least, most = region
    low, high = (round(end, _DIGITS) for end in (figure.low, figure.high))
    if least <= low and high <= most:
        return REPRODUCED
    low, high = (round(end, _DIGITS) for end in figure.refuting)
    return NOT_REPRODUCED if high < least or low > most else UNDECIDED


def _figures(part: Part, studies: Mapping[str, Findings], looks: int) -> Iterator[Figure]:
    options = part.options
    found = [studies[name] for name in listed(options.get("study")) if name in studies]
    if part.test == "unseen_violators":
        yield from figures.unseen_violators(options["draws"], options["confidence"])
    elif part.test == "slope" and options.get("solver"):
        limits = options.get("from", 0), options.get("to", inf)
        of_solver = options["solver"], found, options["x"], options["y"]
        yield from figures.slopes_over_settings(*of_solver, _chosen(options), *limits, looks)
    for name in listed(options.get("arms")):
        yield from _of_arm(part, side(name, found), studies, looks)


def _of_arm(part: Part, arm: Side, studies: Mapping[str, Findings], looks: int) -> Sequence[Figure]:
    options = part.options
    if part.test == "slope":
        limits = options.get("from", 0), options.get("to", inf)
        of_arm = arm, options["x"], options["y"], _chosen(options)
        return figures.slope_over_datasets(*of_arm, *limits, looks)
    if part.test == "candidate_ratio":
        return figures.candidate_ratios(arm, options["quantity"], options["above"], options["below"])
    if part.test == "candidate_steps":
        rises = options["direction"] == "rises"
        return figures.candidate_steps(arm, options["quantity"], options["along"], rises)
    others = [name for name in listed(options.get("against")) if name in studies]
    against = [studies[name] for name in others] or list(arm.studies)
    reference = side(options.get("reference") or arm.arm, against)
    quantity, ratio = options.get("quantity", "score"), part.test == "ratio"
    apart, over = bool(options.get("apart")), options.get("over", "")
    return figures.compared(arm, reference, quantity, ratio, _chosen(options), apart, looks, over)


def _chosen(options: Mapping[str, Any]) -> Callable[[str], bool]:
    """Return what tells whether a dataset takes part: by its name, or that before its axes."""
    names, left_out = set(listed(options.get("datasets"))), set(listed(options.get("except")))

    def chosen(name: str) -> bool:
        both = {name, name.partition("[")[0]}
        return (not names or bool(both & names)) and not both & left_out

    return chosen
