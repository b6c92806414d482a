"""Decide claims of the literature by their declared tests, from the findings of finished studies."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Any

import pandas as pd

from orchestrator.analysis.findings import Findings
from orchestrator.claims import comparisons, exact_numbers, slopes
from orchestrator.claims.declared import Claim, Part, listed
from orchestrator.claims.figures import Figure, Side, Unanswered, side

REPRODUCED, NOT_REPRODUCED, UNDECIDED = "reproduced", "not reproduced", "undecided"

_DIGITS = 9
"""Decimals to which ends of intervals are rounded before they are compared with a region, so that
round-off decides nothing."""

_SAMPLED = ("difference", "ratio", "slope")
"""Tests whose figures are estimates from samples."""


@dataclass(frozen=True)
class Outcome:
    """Verdict of one figure about a part of a claim.

    Attributes
    ----------
    part : Part
        The part of the claim.
    verdict : str
        `REPRODUCED`, `NOT_REPRODUCED` or `UNDECIDED`.
    figure : Figure or None
        The figure, or None if it cannot be computed.
    why : str
        Reason why there is no figure; else empty.
    """

    part: Part
    verdict: str
    figure: Figure | None = None
    why: str = ""


@dataclass(frozen=True)
class Decision:
    """A claim and the outcomes of its parts.

    Attributes
    ----------
    claim : Claim
        Statement of the literature with its tests.
    outcomes : tuple of Outcome
        One outcome for each figure, or for each part without one.
    """

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
        """Return the outcomes as a table.

        Returns
        -------
        DataFrame
            One row for each outcome. Columns: claim, what, estimate, low, high, least and most (the region of
            the claim), n, unit, p, verdict, note.
        """
        rows = []
        for outcome in self.outcomes:
            figure = outcome.figure
            lower, upper = outcome.part.region
            rows.append(
                {
                    "claim": self.claim.name,
                    "what": figure.what if figure else outcome.part.words,
                    **{name: getattr(figure, name, None) for name in ("estimate", "low", "high")},
                    "least": lower,
                    "most": upper,
                    **{name: getattr(figure, name, None) for name in ("n", "unit", "p")},
                    "verdict": outcome.verdict,
                    "note": figure.note if figure else outcome.why,
                }
            )
        return pd.DataFrame(rows)


def decide(claim: Claim, studies: Mapping[str, Findings], absent: Mapping[str, str]) -> Decision:
    """Decide a claim by the findings of studies.

    A part is reproduced if the interval of its figure lies inside the region of the claim, and not reproduced
    if it lies outside. So equivalence needs two one-sided tests (TOST), each at level `LEVEL`, and never
    follows from a large p.

    If a part has several arms or datasets, all must be reproduced, which needs no adjustment. Any one of them
    may refute the claim, so the intervals for refutation are adjusted (Bonferroni). The adjustment counts
    tests and arms, and also datasets where each has a separate figure.

    Parameters
    ----------
    claim : Claim
        Statement of the literature with its tests.
    studies : mapping of str to Findings
        Findings of the finished studies, by name.
    absent : mapping of str to str
        Why other studies cannot be used, by name. Studies that are not named have not been run.

    Returns
    -------
    Decision
        Verdict of the claim, with one outcome for each test.
    """
    looks = sum(
        max(1, len(listed(part.options.get("arms")))) for part in claim.parts if part.test in _SAMPLED
    )
    outcomes = tuple(outcome for part in claim.parts for outcome in _outcomes(part, studies, absent, looks))
    return Decision(claim, outcomes)


def _outcomes(
    part: Part, studies: Mapping[str, Findings], absent: Mapping[str, str], looks: int
) -> Iterator[Outcome]:
    """Yield the outcomes of a part of a claim.

    Parameters
    ----------
    part : Part
        Test of the claim, with its options and region.
    studies : mapping of str to Findings
        Findings of the finished studies, by name.
    absent : mapping of str to str
        Why other studies cannot be used, by name.
    looks : int
        Number of comparisons in the claim. Each of them can refute it.

    Yields
    ------
    Outcome
        One outcome for each figure, or one without a figure.
    """
    if part.test == "unanswered":
        yield Outcome(part, UNDECIDED, why=str(part.options["why"]))
        return
    missing = [
        absent.get(name, f"study {name} has not been run") for name in part.studies if name not in studies
    ]
    for key in ("study", "against"):
        names = listed(part.options.get(key))
        if names and not set(names) & studies.keys():
            yield Outcome(part, UNDECIDED, why="; ".join(missing))
            return
    if datasets := _absent_datasets(part, studies):
        missing.append(f"no dataset {', '.join(datasets)}")
    try:
        for figure in _figures(part, studies, looks):
            verdict = verdict_of(figure, part.region)
            but = _exceptions(figure, part.region) if verdict == REPRODUCED else ""
            noted = replace(figure, note="; ".join(filter(None, [figure.note, but, *missing])))
            yield Outcome(part, verdict, noted)
        if missing and part.options.get("apart"):
            yield Outcome(part, UNDECIDED, why="; ".join(missing))
    except Unanswered as error:
        yield Outcome(part, UNDECIDED, why="; ".join([str(error), *missing]))


def _exceptions(figure: Figure, region: tuple[float, float]) -> str:
    """Return a note on single values outside a region that contains the typical value.

    Parameters
    ----------
    figure : Figure
        Number with its intervals.
    region : (float, float)
        Lower and upper end.

    Returns
    -------
    str
        The note, or an empty string.
    """
    lower, upper = region
    outside = [name for name, value in figure.of_each.items() if not lower <= round(value, _DIGITS) <= upper]
    if not outside:
        return ""
    return f"typically; {len(outside)} of {figure.n} {figure.unit} outside: {', '.join(outside)}"


def _absent_datasets(part: Part, studies: Mapping[str, Findings]) -> list[str]:
    """Return the datasets that a part names and its studies do not have.

    Parameters
    ----------
    part : Part
        Test of the claim, with its options and region.
    studies : mapping of str to Findings
        Findings of the finished studies, by name.

    Returns
    -------
    list of str
        Names of datasets.
    """
    used = [studies[name] for name in listed(part.options.get("study")) if name in studies]
    present = {
        name for study in used for full in study.design.datasets for name in (full, full.partition("[")[0])
    }
    return [name for name in listed(part.options.get("datasets")) if name not in present]


def verdict_of(figure: Figure, region: tuple[float, float]) -> str:
    """Return the verdict on a figure, given the region in which it must lie.

    Parameters
    ----------
    figure : Figure
        The figure with its intervals.
    region : (float, float)
        Lower and upper end.

    Returns
    -------
    str
        `REPRODUCED`, `NOT_REPRODUCED` or `UNDECIDED`.
    """
    lower, upper = region
    low, high = (round(end, _DIGITS) for end in (figure.low, figure.high))
    if lower <= low and high <= upper:
        return REPRODUCED
    low, high = (round(end, _DIGITS) for end in figure.refuting)
    return NOT_REPRODUCED if high < lower or low > upper else UNDECIDED


def _figures(part: Part, studies: Mapping[str, Findings], looks: int) -> Iterator[Figure]:
    """Yield the figures of a part of a claim.

    Parameters
    ----------
    part : Part
        Test of the claim, with its options and region.
    studies : mapping of str to Findings
        Findings of the finished studies, by name.
    looks : int
        Number of comparisons of the claim.

    Yields
    ------
    Figure
        Number with its interval.
    """
    options = part.options
    found = [studies[name] for name in listed(options.get("study")) if name in studies]
    if part.test == "unseen_violators":
        yield from exact_numbers.unseen_violators(options["draws"], options["confidence"])
    elif part.test == "slope" and options.get("solver"):
        limits = options.get("from", 0), options.get("to", inf)
        of_solver = options["solver"], found, options["x"], options["y"]
        yield from slopes.slopes_over_settings(*of_solver, _chosen(options), *limits, looks)
    for name in listed(options.get("arms")):
        yield from _of_arm(part, side(name, found), studies, looks)


def _of_arm(part: Part, arm: Side, studies: Mapping[str, Findings], looks: int) -> Sequence[Figure]:
    """Return the figures of a part for one of its arms.

    Parameters
    ----------
    part : Part
        Test of the claim, with its options and region.
    arm : Side
        The arm, in the studies that have it.
    studies : mapping of str to Findings
        Findings of the finished studies, by name.
    looks : int
        Number of comparisons of the claim.

    Returns
    -------
    sequence of Figure
        One figure, or one for each dataset, as the test asks.
    """
    options = part.options
    if part.test == "slope":
        limits = options.get("from", 0), options.get("to", inf)
        of_arm = arm, options["x"], options["y"], _chosen(options)
        return slopes.slope_over_datasets(*of_arm, *limits, looks)
    if part.test == "candidate_ratio":
        return exact_numbers.candidate_ratios(arm, options["quantity"], options["above"], options["below"])
    if part.test == "candidate_steps":
        rises = options["direction"] == "rises"
        return exact_numbers.candidate_steps(arm, options["quantity"], options["along"], rises)
    others = [name for name in listed(options.get("against")) if name in studies]
    against = [studies[name] for name in others] or list(arm.studies)
    reference = side(options.get("reference") or arm.arm, against)
    quantity, ratio = options.get("quantity", "score"), part.test == "ratio"
    apart, over = bool(options.get("apart")), options.get("over", "")
    return comparisons.compared(arm, reference, quantity, ratio, _chosen(options), apart, looks, over)


def _chosen(options: Mapping[str, Any]) -> Callable[[str], bool]:
    """Return a function that says whether a part includes a dataset.

    An option `name` applies to `name[setting]` as well.

    Parameters
    ----------
    options : mapping of str to object
        Options of the part, with `datasets` and `except`.

    Returns
    -------
    callable
        Function from the name of a dataset to whether the part includes it.
    """
    names, left_out = set(listed(options.get("datasets"))), set(listed(options.get("except")))

    def chosen(name: str) -> bool:
        both = {name, name.partition("[")[0]}
        return (not names or bool(both & names)) and not both & left_out

    return chosen
