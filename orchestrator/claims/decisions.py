"""Decide claims of the literature by their declared tests, from the findings of finished studies."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Any

import pandas as pd

from orchestrator.analysis.findings import Findings
from orchestrator.claims import comparisons, exact_numbers, grid_figures, slopes
from orchestrator.claims.declared import Claim, Part, listed
from orchestrator.claims.figures import LARGEST_EXCESS, NO_TEST, Figure, Side, Unanswered, least, side
from orchestrator.claims.terms import Terms, settings
from orchestrator.study.values import cell

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

    A study may have more datasets than the experiment of its name, or other values of a swept parameter of a
    dataset. They are not used, unless it has none of the experiment's datasets.

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
    lack = NOT_RUN if missing else NO_DATA
    if datasets := _absent_datasets(part, studies):
        missing.append(f"no dataset {', '.join(datasets)}")
    claimed = _claimed_datasets(part, studies, terms)
    used = {name for study in part.studies if study in studies for name in _bases(studies[study])}
    swept = _swept_settings(part, studies, terms)
    chosen = _chosen(part.options, claimed if claimed and used & claimed else None, swept)
    of_sweep = _of_sweep(part.options, swept)
    if settings_missing := _absent_settings(part, studies, swept):
        missing.append(f"without {', '.join(settings_missing)}")
    if unused := _unused(part, studies, chosen):
        missing.append(f"no dataset of {', '.join(unused)} has all arms")
        lack = NOT_RUN
    differences = tuple(_differences(part, studies, terms, claimed))
    lack = OTHER_TERMS if differences else lack
    # The figure of a single dataset needs only the study of that dataset. It counts before others are run.
    is_apart = bool(part.options.get("apart"))
    withheld = "" if lack == NO_DATA or (is_apart and lack == NOT_RUN) else lack
    try:
        for figure in _figures(
            part, studies, chosen, of_sweep, looks, _expected(part, chosen, claimed, used)
        ):
            found = verdict_of(figure, part.region)
            but = _exceptions(figure, part.region) if found == REPRODUCED else ""
            # What is missing has an outcome of its own beside figures of single datasets.
            lacking = [] if is_apart or part.test == "figure" else missing
            noted = replace(figure, note="; ".join(filter(None, [figure.note, but, *lacking])))
            reason = withheld or _reason(figure, found, bool(settings_missing))
            yield Outcome(part, found, noted, "", reason, differences)
        if missing and (is_apart or part.test == "figure"):
            yield Outcome(part, UNDECIDED, why="; ".join(missing), reason=lack)
    except Unanswered as error:
        why = "; ".join([str(error), *missing])
        yield Outcome(part, UNDECIDED, why=why, reason=lack, terms=differences)


def _unused(part: Part, studies: Mapping[str, Findings], chosen: Callable[[str], bool]) -> list[str]:
    """Return which of several studies take no part in a test over datasets: each dataset lacks an arm.

    Parameters
    ----------
    part : Part
        Test of the claim, with its options and region.
    studies : mapping of str to Findings
        Findings of the studies, by name.
    chosen : callable
        Function from the name of a dataset to whether the part includes it.
    """
    names = [name for name in listed(part.options.get("study")) if name in studies]
    if len(names) < 2 or part.options.get("apart") or part.test == "figure":
        return []
    arms = listed(part.options.get("arms"))
    arms += [] if part.options.get("against") else listed(part.options.get("reference"))
    unused = []
    for name in names:
        complete = {pair for pair, state in studies[name].results.states.items() if state.complete}
        datasets = filter(chosen, studies[name].design.datasets)
        if not any(all((dataset, arm) in complete for arm in arms) for dataset in datasets):
            unused.append(name)
    return unused


def _bases(study: Findings) -> set[str]:
    """Return the names of a study's datasets, without settings.

    Parameters
    ----------
    study : Findings
        Analysed study.

    Returns
    -------
    set of str
        Names such as `checkers`.
    """
    return {dataset.partition("[")[0] for dataset in study.design.datasets}


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


def _claimed_datasets(
    part: Part, studies: Mapping[str, Findings], terms: Mapping[str, Terms]
) -> frozenset[str] | None:
    """Return the datasets of the experiments to which a claim refers.

    Parameters
    ----------
    part : Part
        Test of the claim, with its options and region.
    studies : mapping of str to Findings
        Findings of the studies, by name.
    terms : mapping of str to Terms
        Differences between the studies and their experiments, by name.

    Returns
    -------
    frozenset of str or None
        None if a study has no experiment, so that all its datasets are meant.
    """
    declared = [terms[name].datasets for name in part.studies if name in studies and name in terms]
    if not declared or None in declared:
        return None
    return frozenset(dataset for datasets in declared for dataset in datasets or ())


def _swept_settings(
    part: Part, studies: Mapping[str, Findings], terms: Mapping[str, Terms]
) -> dict[str, dict[str, float]]:
    """Return the settings of datasets, and of a slope's arms, over which the experiments of a claim sweep.

    Parameters
    ----------
    part : Part
        Test of the claim, with its options and region.
    studies : mapping of str to Findings
        Findings of the studies, by name.
    terms : mapping of str to Terms
        Differences between the studies and their experiments, by name.

    Returns
    -------
    dict of str to dict of str to float
        Values by setting, such as `n=1000`, by the name of the parameter. Other parameters than that of a
        slope over settings are missing if no dataset of the studies has them in its name.
    """
    found: dict[str, dict[str, float]] = {}
    for name in part.studies:
        if name not in studies or name not in terms:
            continue
        axes = {text.partition("=")[0] for full in studies[name].design.datasets for text in settings(full)}
        axes |= {part.options["x"]} if part.options.get("solver") else set()
        for axis, values in terms[name].swept.items():
            if axis in axes:
                found.setdefault(axis, {}).update({f"{axis}={cell(value)}": value for value in values})
    return found


def _absent_settings(
    part: Part, studies: Mapping[str, Findings], swept: Mapping[str, Mapping[str, float]]
) -> list[str]:
    """Return the swept settings that a part needs, and that no dataset and no arm of its studies has.

    Parameters
    ----------
    part : Part
        Test of the claim, with its options and region. Limits of a slope over a swept parameter are limits of
        its settings.
    studies : mapping of str to Findings
        Findings of the studies, by name.
    swept : mapping of str to mapping of str to float
        Settings as `_swept_settings` returns them.

    Returns
    -------
    list of str
        Settings such as `n=1000`.
    """
    stored = [studies[name] for name in part.studies if name in studies]
    names = (full for study in stored for full in (*study.design.datasets, *study.design.arms))
    present = {text for full in names for text in settings(full)}
    least, most = part.options.get("from", -inf), part.options.get("to", inf)
    return [
        text
        for axis, values in swept.items()
        for text, value in values.items()
        if text not in present and (part.options.get("x") != axis or least <= value <= most)
    ]


def _differences(
    part: Part,
    studies: Mapping[str, Findings],
    terms: Mapping[str, Terms],
    claimed: frozenset[str] | None,
) -> Iterator[str]:
    """Yield the differences between the terms of a comparison and those of the claim.

    Parameters
    ----------
    part : Part
        Test of the claim, with its options and region.
    studies : mapping of str to Findings
        Findings of the studies, by name.
    terms : mapping of str to Terms
        Differences between the studies and their experiments, by name.
    claimed : frozenset of str or None
        Datasets of the experiments; None if all are meant.

    Yields
    ------
    str
        One phrase for each difference.
    """
    keys = ("arms", "reference", "over", "minus") if part.test == "figure" else ("arms", "reference")
    names = [name for key in keys for name in listed(part.options.get(key))]
    solvers = {name.partition("[")[0] for name in names} | {*listed(part.options.get("solver"))}
    for name in part.studies:
        if name not in studies:
            continue
        present = _bases(studies[name])
        used = present if claimed is None else present & claimed
        if claimed is not None and not used:
            yield f"study {name}: other datasets, {', '.join(sorted(present))}"
        for phrase in terms.get(name, Terms()).concerning(solvers, used):
            yield f"study {name}: {phrase}"


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


def _expected(
    part: Part, chosen: Callable[[str], bool], claimed: frozenset[str] | None, used: set[str]
) -> list[str]:
    """Return the datasets that a part needs by its experiments, and does not name.

    Parameters
    ----------
    part : Part
        Test of the claim, with its options and region.
    chosen : callable
        Function from the name of a dataset to whether the part includes it.
    claimed : frozenset of str or None
        Datasets of the experiments; None if all are meant.
    used : set of str
        Datasets of the stored studies. If the experiments have none of them, those of the studies are used.

    Returns
    -------
    list of str
        Sorted names without settings. Datasets that a part names are looked up in its studies.
    """
    if part.options.get("datasets") or not claimed or not used & claimed:
        return []
    return sorted(name for name in claimed if chosen(name))


def _figures(
    part: Part,
    studies: Mapping[str, Findings],
    chosen: Callable[[str], bool],
    of_sweep: Callable[[float], bool],
    looks: int,
    expected: Sequence[str],
) -> Iterator[Figure]:
    """Yield the figures of a part of a claim.

    Parameters
    ----------
    part : Part
        Test of the claim, with its options and region.
    studies : mapping of str to Findings
        Findings of the studies, by name.
    chosen : callable
        Function from the name of a dataset to whether the part includes it.
    of_sweep : callable
        Function from a swept value of arms to whether the part includes it.
    looks : int
        Number of comparisons of the claim.
    expected : sequence of str
        Datasets that the part needs, without settings.

    Yields
    ------
    Figure
        Number with its interval.
    """
    options = part.options
    found = [studies[name] for name in listed(options.get("study")) if name in studies]
    if part.test == "unseen_violators":
        yield from exact_numbers.unseen_violators(options["draws"], options["confidence"])
    elif options.get("solver"):
        over_settings = _OVER_SETTINGS[part.test]
        swept = options["solver"], found, options["x"], options["y"], chosen, of_sweep, looks
        yield from over_settings(slopes.Swept(*swept))
    of_arms = [
        _of_arm(part, side(name, found), studies, chosen, looks, expected)
        for name in listed(options.get("arms"))
    ]
    figures = [figure for of_arm in of_arms for figure in of_arm]
    if options.get("refute") == LARGEST_EXCESS:
        # The comparisons of this test are adjusted together, and those of other tests as before.
        figures = comparisons.with_common_level(figures, max(1, looks - len(of_arms) + 1))
    yield from figures


def _of_arm(
    part: Part,
    arm: Side,
    studies: Mapping[str, Findings],
    chosen: Callable[[str], bool],
    looks: int,
    expected: Sequence[str],
) -> Sequence[Figure]:
    """Return the figures of a part for one of its arms.

    Parameters
    ----------
    part : Part
        Test of the claim, with its options and region.
    arm : Side
        The arm, in the studies that have it.
    studies : mapping of str to Findings
        Findings of the studies, by name.
    chosen : callable
        Function from the name of a dataset to whether the part includes it.
    looks : int
        Number of comparisons of the claim.
    expected : sequence of str
        Datasets that the part needs, without settings.

    Returns
    -------
    sequence of Figure
        One figure, or one for each dataset, as the test asks.
    """
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
    others = [name for name in listed(options.get("against")) if name in studies]
    against = [studies[name] for name in others] or list(arm.studies)
    reference = least(listed(options.get("reference")) or [arm.arm], against)
    quantity, ratio = options.get("quantity", "score"), part.test == "ratio"
    apart, over = options.get("apart", False), options.get("over", "")
    return comparisons.compared(arm, reference, quantity, ratio, chosen, apart, looks, over, expected)


def _chosen(
    options: Mapping[str, Any], claimed: frozenset[str] | None, swept: Mapping[str, Collection[str]]
) -> Callable[[str], bool]:
    """Return a function that says whether a part includes a dataset.

    A dataset `name` among the options stands for each `name[setting]` as well.

    Parameters
    ----------
    options : mapping of str to object
        Options of the part, with `datasets` and `except`.
    claimed : frozenset of str or None
        Datasets of the experiments; None if all are meant.
    swept : mapping of str to collection of str
        Settings over which the experiments sweep, by the name of the parameter.

    Returns
    -------
    callable
        Function from the name of a dataset to whether the part includes it.
    """
    names, left_out = set(listed(options.get("datasets"))), set(listed(options.get("except")))

    def chosen(name: str) -> bool:
        both = {name, name.partition("[")[0]}
        included = not names or bool(both & names)
        of_axes = [(text, swept.get(text.partition("=")[0])) for text in settings(name)]
        included = included and all(known is None or text in known for text, known in of_axes)
        return included and not both & left_out and (claimed is None or bool(both & claimed))

    return chosen


def _of_sweep(
    options: Mapping[str, Any], swept: Mapping[str, Mapping[str, float]]
) -> Callable[[float], bool]:
    """Return a function that says whether a slope over settings includes a value.

    Parameters
    ----------
    options : mapping of str to object
        Options of the part, with the parameter `x` and the limits `from` and `to`.
    swept : mapping of str to mapping of str to float
        Settings over which the experiments sweep, by the name of the parameter.

    Returns
    -------
    callable
        Function from a value to whether it lies within the limits, and the experiments sweep over it.
    """
    declared = swept.get(options.get("x", ""))
    least, most = options.get("from", 0), options.get("to", inf)

    def of_sweep(value: float) -> bool:
        return least <= value <= most and (declared is None or value in declared.values())

    return of_sweep
