"""Decide claims of the literature by their declared tests, from the findings of finished studies."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf

import pandas as pd

from orchestrator.analysis.findings import Findings
from orchestrator.claims import comparisons, exact_numbers, grid_figures, slopes
from orchestrator.claims.declared import Claim, Part, listed
from orchestrator.claims.figures import LARGEST_EXCESS, NO_TEST, Figure, Side, Unanswered, least, side
from orchestrator.claims.scope import Scope
from orchestrator.claims.terms import Terms

REPRODUCED, NOT_REPRODUCED, UNDECIDED = "reproduced", "not reproduced", "undecided"

NOT_RUN, OTHER_TERMS, NO_DATA, NO_POWER = "not run", "on other terms", "no data", "no power"
REASONS = (NOT_RUN, OTHER_TERMS, NO_DATA, NO_POWER)
"""Why a test is undecided. A claim has the first of the reasons of its tests."""

_DIGITS = 9
"""Decimals to which ends of intervals are rounded before they are compared with a region, so that
round-off decides nothing."""

_OVER_SETTINGS = {
    "slope": slopes.slopes_over_settings,
    "line": slopes.bends_of_lines,
    "curvature": slopes.curvatures,
}
"""Functions that return the figures of tests over the settings of a solver, by test."""

_SAMPLED = ("difference", "ratio", "slope", "line", "curvature")
"""Tests whose figures are estimates from samples."""


@dataclass(frozen=True)
class Outcome:
    """Verdict of one figure about a part of a claim.

    Attributes
    ----------
    part : Part
        The part of the claim.
    found : str
        Verdict of the figure: `REPRODUCED`, `NOT_REPRODUCED` or `UNDECIDED`.
    figure : Figure or None
        The figure, or None if it cannot be computed.
    why : str
        Why there is no figure; else empty.
    reason : str
        One of `REASONS` if the test is undecided; else empty.
    terms : tuple of str
        Differences between the compared studies and their experiments. A verdict on other terms does not
        count.
    """

    part: Part
    found: str
    figure: Figure | None = None
    why: str = ""
    reason: str = ""
    terms: tuple[str, ...] = ()

    @property
    def verdict(self) -> str:
        """`found`, or `UNDECIDED` if there is a reason not to count it."""
        return UNDECIDED if self.reason else self.found

    @property
    def is_test(self) -> bool:
        """Whether the verdict has a level: not for exact numbers, and not for figures without an interval."""
        return self.part.test in _SAMPLED and (self.figure is None or NO_TEST not in self.figure.note)


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
        return _joined([outcome.verdict for outcome in self.outcomes])

    @property
    def tested(self) -> str:
        """The verdict of the outcomes that have a level; empty if there are none."""
        verdicts = [outcome.verdict for outcome in self.outcomes if outcome.is_test]
        return _joined(verdicts) if verdicts else ""

    @property
    def reason(self) -> str:
        """The first of `REASONS` among the outcomes of an undecided claim; empty for other claims."""
        if self.verdict != UNDECIDED:
            return ""
        reasons = {outcome.reason for outcome in self.outcomes}
        return next((reason for reason in REASONS if reason in reasons), "")

    @property
    def elsewhere(self) -> str:
        """The verdict of a claim on other terms, if its figures were counted; empty for other claims."""
        if self.reason != OTHER_TERMS:
            return ""
        return _joined([outcome.found for outcome in self.outcomes])

    def frame(self) -> pd.DataFrame:
        """Return the outcomes as a table.

        Returns
        -------
        DataFrame
            One row for each outcome. Columns: claim, what, estimate, low, high, least and most (the region of
            the claim), n, unit, p, verdict, reason, note.
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
                    "reason": outcome.reason,
                    "note": figure.note if figure else outcome.why,
                }
            )
        return pd.DataFrame(rows)


def _joined(verdicts: Sequence[str]) -> str:
    """Return the verdict of a claim whose tests have the given ones.

    Parameters
    ----------
    verdicts : sequence of str
        Verdicts of the tests.

    Returns
    -------
    str
        `NOT_REPRODUCED` if one is, `REPRODUCED` if all are, else `UNDECIDED`.
    """
    if NOT_REPRODUCED in verdicts:
        return NOT_REPRODUCED
    return REPRODUCED if set(verdicts) == {REPRODUCED} else UNDECIDED


def decide(
    claim: Claim,
    studies: Mapping[str, Findings],
    absent: Mapping[str, str],
    terms: Mapping[str, Terms] | None = None,
    n_claims: int = 1,
) -> Decision:
    """Decide a claim by the findings of studies.

    A part is reproduced if the interval of its figure lies inside the region of the claim, and not reproduced
    if it lies outside. So equivalence needs two one-sided tests (TOST), each at level `LEVEL`, and never
    follows from a large p.

    If a part has several arms or datasets, all must be reproduced, which needs no adjustment. Any one of them
    may refute the claim, so the intervals for refutation are adjusted (Bonferroni). The adjustment counts
    tests and arms, and also datasets where each has a separate figure.

    A study may have more datasets than the experiment of its name, or other values of a swept parameter. They
    are not used; see `Scope`.

    Parameters
    ----------
    claim : Claim
        Statement of the literature with its tests.
    studies : mapping of str to Findings
        Findings of the studies, by name. Only complete dataset × arm count.
    absent : mapping of str to str
        Why other studies cannot be used, by name. Studies that are not named have not been run.
    terms : mapping of str to Terms, optional
        Differences between the studies and their experiments, by name. A verdict on other terms does not
        count.
    n_claims : int, default 1
        Number of claims that share the level of a refutation, such as those of one paper.

    Returns
    -------
    Decision
        Verdict of the claim, with one outcome for each test.
    """
    looks = n_claims * sum(
        max(1, len(listed(part.options.get("arms")))) for part in claim.parts if part.test in _SAMPLED
    )
    outcomes = tuple(
        outcome for part in claim.parts for outcome in _outcomes(part, studies, absent, terms or {}, looks)
    )
    return Decision(claim, outcomes)


def _outcomes(
    part: Part,
    studies: Mapping[str, Findings],
    absent: Mapping[str, str],
    terms: Mapping[str, Terms],
    looks: int,
) -> Iterator[Outcome]:
    """Yield the outcomes of a part of a claim.

    Parameters
    ----------
    part : Part
        Test of the claim, with its options and region.
    studies : mapping of str to Findings
        Findings of the studies, by name.
    absent : mapping of str to str
        Why other studies cannot be used, by name.
    terms : mapping of str to Terms
        Differences between the studies and their experiments, by name.
    looks : int
        Number of comparisons in the claim. Each of them can refute it.

    Yields
    ------
    Outcome
        One outcome for each figure, or one without a figure.
    """
    if part.test == "unanswered":
        yield Outcome(part, UNDECIDED, why=str(part.options["why"]), reason=NO_DATA)
        return
    missing = [
        absent.get(name, f"study {name} has not been run") for name in part.studies if name not in studies
    ]
    for key in ("study", "against"):
        names = listed(part.options.get(key))
        if names and not set(names) & studies.keys():
            yield Outcome(part, UNDECIDED, why="; ".join(missing), reason=NOT_RUN)
            return
    scope = Scope(part, studies, terms)
    lack = NOT_RUN if missing or scope.unused_studies else NO_DATA
    missing += scope.missing
    differences = tuple(scope.differences())
    lack = OTHER_TERMS if differences else lack
    # The figure of a single dataset needs only the study of that dataset. It counts before others are run.
    is_apart = bool(part.options.get("apart"))
    withheld = "" if lack == NO_DATA or (is_apart and lack == NOT_RUN) else lack
    try:
        for figure in _figures(scope, looks):
            found = verdict_of(figure, part.region)
            but = _exceptions(figure, part.region) if found == REPRODUCED else ""
            # What is missing has an outcome of its own beside figures of single datasets.
            lacking = [] if is_apart or part.test == "figure" else missing
            noted = replace(figure, note="; ".join(filter(None, [figure.note, but, *lacking])))
            reason = withheld or _reason(figure, found, bool(scope.absent_settings))
            yield Outcome(part, found, noted, "", reason, differences)
        if missing and (is_apart or part.test == "figure"):
            yield Outcome(part, UNDECIDED, why="; ".join(missing), reason=lack)
    except Unanswered as error:
        why = "; ".join([str(error), *missing])
        yield Outcome(part, UNDECIDED, why=why, reason=lack, terms=differences)


def _reason(figure: Figure, found: str, lacks_settings: bool) -> str:
    """Return why a figure leaves a test undecided.

    Parameters
    ----------
    figure : Figure
        The figure with its interval.
    found : str
        Its verdict.
    lacks_settings : bool
        Whether the studies lack swept settings of datasets that the test needs.

    Returns
    -------
    str
        One of `REASONS`; empty if the test is decided.
    """
    if found != UNDECIDED:
        return ""
    return NO_DATA if figure.n == 0 or lacks_settings else NO_POWER


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


def _figures(scope: Scope, looks: int) -> Iterator[Figure]:
    """Yield the figures of a part of a claim.

    Parameters
    ----------
    scope : Scope
        The part, its studies and what it includes.
    looks : int
        Number of comparisons of the claim.

    Yields
    ------
    Figure
        Number with its interval.
    """
    options, test = scope.part.options, scope.part.test
    found = [scope.studies[name] for name in listed(options.get("study")) if name in scope.studies]
    if test == "unseen_violators":
        yield from exact_numbers.unseen_violators(options["draws"], options["confidence"])
    elif options.get("solver"):
        swept = options["solver"], found, options["x"], options["y"], scope.includes, scope.includes_arm
        yield from _OVER_SETTINGS[test](slopes.Swept(*swept, looks))
    of_arms = [_of_arm(scope, side(name, found), looks) for name in listed(options.get("arms"))]
    figures = [figure for of_arm in of_arms for figure in of_arm]
    if options.get("refute") == LARGEST_EXCESS:
        # The comparisons of this test are adjusted together, and those of other tests as before.
        figures = comparisons.with_common_level(figures, max(1, looks - len(of_arms) + 1))
    yield from figures


def _of_arm(scope: Scope, arm: Side, looks: int) -> Sequence[Figure]:
    """Return the figures of a part for one of its arms.

    Parameters
    ----------
    scope : Scope
        The part, its studies and what it includes.
    arm : Side
        The arm, in the studies that have it.
    looks : int
        Number of comparisons of the claim.

    Returns
    -------
    sequence of Figure
        One figure, or one for each dataset, as the test asks.
    """
    part, chosen = scope.part, scope.includes
    options = part.options
    if part.test == "slope":
        limits = options.get("from", 0), options.get("to", inf)
        return slopes.slope_over_datasets(arm, options["x"], options["y"], chosen, *limits, looks)
    if part.test == "candidate_ratio":
        return exact_numbers.candidate_ratios(arm, options["quantity"], options["above"], options["below"])
    if part.test == "candidate_steps":
        rises = options["direction"] == "rises"
        return exact_numbers.candidate_steps(arm, options["quantity"], options["along"], rises)
    if part.test == "figure":
        return list(grid_figures.grid_figures(arm, options, chosen))
    if part.test == "largest":
        return exact_numbers.largest(arm, options["quantity"], chosen)
    others = [name for name in listed(options.get("against")) if name in scope.studies]
    against = [scope.studies[name] for name in others] or list(arm.studies)
    reference = least(listed(options.get("reference")) or [arm.arm], against)
    quantity, ratio = options.get("quantity", "score"), part.test == "ratio"
    apart, over = options.get("apart", False), options.get("over", "")
    return comparisons.compared(arm, reference, quantity, ratio, chosen, apart, looks, over, scope.expected)
