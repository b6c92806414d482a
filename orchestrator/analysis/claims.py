"""Claims of the literature, each decided by declared tests of finished studies."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, nan
from typing import Any

import pandas as pd

from orchestrator.analysis import claim_figures
from orchestrator.analysis.claim_figures import QUANTITIES, Figure, Side, Unanswered, side
from orchestrator.analysis.findings import Findings
from orchestrator.study.errors import ConfigError
from orchestrator.study.names import did_you_mean
from orchestrator.study.text import shown
from orchestrator.study.values import is_number

REPRODUCED, NOT_REPRODUCED, UNDECIDED = "reproduced", "not reproduced", "undecided"

_DIGITS = 9
"""Decimals to which ends of intervals are compared with a region: round-off must decide nothing."""

_REGIONS = ("within", "at_least", "at_most", "between")
_CHOICE = ("datasets", "except")
_COMPARED = ("study", "arms", "reference", "quantity", "against", "apart", *_CHOICE, *_REGIONS)
_OPTIONS: dict[str, tuple[str, ...]] = {
    "difference": _COMPARED,
    "ratio": (*_COMPARED, "over"),
    "slope": ("study", "arms", "solver", "x", "y", "from", "to", *_CHOICE, *_REGIONS),
    "candidate_ratio": ("study", "arms", "quantity", "above", "below", *_REGIONS),
    "candidate_steps": ("study", "arms", "quantity", "along", "direction", *_REGIONS),
    "unseen_violators": ("draws", "confidence", *_REGIONS),
    "unanswered": ("why",),
}
"""The tests, and what each takes."""

_SAMPLED = ("difference", "ratio", "slope")
"""The tests whose figures are estimates."""

_NEEDED = {
    "difference": ("study", "arms"),
    "ratio": ("study", "arms"),
    "slope": ("study", "x", "y"),
    "candidate_ratio": ("study", "arms", "quantity", "above", "below"),
    "candidate_steps": ("study", "arms", "quantity", "along", "direction"),
    "unseen_violators": ("draws", "confidence"),
    "unanswered": ("why",),
}


@dataclass(frozen=True)
class Part:
    """One test of a claim.

    Attributes
    ----------
    test : str
    options : mapping
    region : (float, float)
        Where the figure has to lie.
    """

    test: str
    options: Mapping[str, Any]
    region: tuple[float, float] = (-inf, inf)

    @property
    def words(self) -> str:
        """What it asks for, where there is no figure that says so."""
        arms = ", ".join(_listed(self.options.get("arms")) or _listed(self.options.get("solver")))
        others = _listed(self.options.get("reference")) or _listed(self.options.get("against"))
        against = f" against {', '.join(others)}" if others else ""
        return f"{self.test} of {arms}{against}" if arms else self.test

    @property
    def studies(self) -> tuple[str, ...]:
        """The names of the studies that the test takes."""
        return tuple(
            dict.fromkeys([*_listed(self.options.get("study")), *_listed(self.options.get("against"))])
        )


@dataclass(frozen=True)
class Claim:
    """What somebody has claimed, and the tests that decide it.

    Attributes
    ----------
    name, text, source, published : str
        The claim, where it is made, and the numbers given there.
    parts : tuple of Part
        All have to be reproduced.
    """

    name: str
    text: str
    source: str
    published: str
    parts: tuple[Part, ...]

    @property
    def studies(self) -> tuple[str, ...]:
        """The names of the studies that it takes."""
        return tuple(dict.fromkeys(name for part in self.parts for name in part.studies))


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


# -- from a configuration ------------------------------------------------------------------------


def read_claims(nodes: Mapping[str, Mapping[str, Any]]) -> list[Claim]:
    """Return claims by their configurations, which are checked.

    Parameters
    ----------
    nodes : mapping of str to mapping
        By name, what a file `claim/NAME.yaml` holds: `claim`, `source`, `published` and `tests`.

    Raises
    ------
    ConfigError
        With every problem found.
    """
    problems: list[str] = []
    claims = [_claim(name, node, problems) for name, node in nodes.items()]
    if problems:
        raise ConfigError(problems)
    return claims


def _claim(name: str, node: Mapping[str, Any], problems: list[str]) -> Claim:
    known = ("claim", "source", "published", "tests")
    problems += [
        f"claim {name}: unknown key {key!r}{did_you_mean(str(key), known)}"
        for key in node
        if key not in known
    ]
    texts = {key: node.get(key) for key in known[:3]}
    problems += [
        f"claim {name}: {key} must be text, found {shown(text)}"
        for key, text in texts.items()
        if not isinstance(text, str)
    ]
    tests = node.get("tests")
    if not isinstance(tests, list) or not tests or not all(isinstance(test, Mapping) for test in tests):
        problems.append(
            f"claim {name}: tests must be a list of tests such as [{{test: ratio, …}}], found {shown(tests)}"
        )
        tests = []
    parts = tuple(_part(f"claim {name}, test {i}", test, problems) for i, test in enumerate(tests, start=1))
    return Claim(name, str(texts["claim"]), str(texts["source"]), str(texts["published"]), parts)


def _part(where: str, node: Mapping[str, Any], problems: list[str]) -> Part:
    test, options = node.get("test"), {key: value for key, value in node.items() if key != "test"}
    if not isinstance(test, str) or test not in _OPTIONS:
        problems.append(
            f"{where}: test must be one of {', '.join(_OPTIONS)}, found {shown(test)}"
            f"{did_you_mean(str(test), _OPTIONS)}"
        )
        return Part("unanswered", options)
    known = _OPTIONS[test]
    problems += [
        f"{where}: {test} has no {key!r}{did_you_mean(str(key), known)}"
        for key in options
        if key not in known
    ]
    problems += [f"{where}: {test} needs {key!r}" for key in _NEEDED[test] if options.get(key) is None]
    problems += [
        f"{where}: {key} must be a name, or a list of names, found {shown(options[key])}"
        for key in ("study", "against", "arms", *_CHOICE)
        if key in known and options.get(key) is not None
        if not _are_names(options.get(key))
    ]
    problems += [
        f"{where}: {key} must be {what}, found {shown(options[key])}"
        for key, (what, is_so) in _VALUES.items()
        if key in known and options.get(key) is not None and not is_so(options[key])
    ]
    measured = {"difference": ("quantity",), "ratio": ("quantity", "over"), "slope": ("y",)}.get(test, ())
    problems += [
        f"{where}: {key} must be one of {', '.join(QUANTITIES)}, found {shown(quantity)}"
        f"{did_you_mean(str(quantity), QUANTITIES)}"
        for key in measured
        if (quantity := options.get(key, "score")) not in QUANTITIES
    ]
    if test in ("difference", "ratio"):
        problems += _compared_problems(f"{where}: {test}", options)
    if test == "slope" and bool(options.get("arms")) == bool(options.get("solver")):
        problems.append(
            f"{where}: slope needs 'arms' to look over datasets, or 'solver' to look over settings"
        )
    region = (-inf, inf) if test == "unanswered" else _region(where, options, problems)
    return Part(test, options, region)


def _compared_problems(where: str, options: Mapping[str, Any]) -> Iterator[str]:
    """Say whether an arm has nothing to be compared with, or is compared with itself."""
    reference, against = options.get("reference"), _listed(options.get("against"))
    if options.get("over"):
        if reference or against:
            yield f"{where} takes 'over', a quantity of the same arm, or another arm, not both"
        return
    if not (reference or against):
        yield f"{where} needs 'reference', the arm to compare with, or 'against', its study"
        return
    arms, studies = _listed(options.get("arms")), _listed(options.get("study"))
    itself = reference is None or reference in arms
    if itself and (not against or any(name in studies for name in against)):
        found = arms[0] if reference is None and arms else reference
        yield (
            f"{where} compares {shown(found)} with itself; name another 'reference', "
            "or another study 'against'"
        )


def _region(where: str, options: Mapping[str, Any], problems: list[str]) -> tuple[float, float]:
    """Return where a figure has to lie: one of `_REGIONS`."""
    given = [(key, options[key]) for key in _REGIONS if key in options]
    if len(given) == 1:
        key, value = given[0]
        if key == "between" and isinstance(value, list) and len(value) == 2 and all(map(is_number, value)):
            region = float(value[0]), float(value[1])
        elif key != "between" and is_number(value):
            number = float(value)
            region = {"within": (-number, number), "at_least": (number, inf), "at_most": (-inf, number)}[key]
        else:
            region = nan, nan
        if region[0] <= region[1]:
            return region
    problems.append(
        f"{where}: expected where the figure has to lie by one of within=0.005, at_least=1, at_most=0.5 and "
        f"between=[0.5,1], lower end first, found {shown(dict(given))}"
    )
    return -inf, inf


def _are_names(value: Any) -> bool:
    names = _listed(value)
    return bool(names) and all(isinstance(name, str) and name for name in names)


_TEXT = "text", lambda value: isinstance(value, str) and value != ""
_POSITIVE = "a number above 0", lambda value: is_number(value) and value > 0
_VALUES: dict[str, tuple[str, Callable[[Any], bool]]] = {
    **dict.fromkeys(("reference", "solver", "x", "above", "below", "along", "why"), _TEXT),
    **dict.fromkeys(("from", "to"), _POSITIVE),
    "apart": ("true or false", lambda value: isinstance(value, bool)),
    "direction": ("rises or falls", lambda value: value in ("rises", "falls")),
    "draws": ("a whole number above 0", lambda value: type(value) is int and value > 0),
    "confidence": ("a number between 0 and 1", lambda value: is_number(value) and 0 < value < 1),
}
"""What options other than names of studies, arms and datasets must be."""


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [] if value is None else [value]


# -- decisions -----------------------------------------------------------------------------------


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
        max(1, len(_listed(part.options.get("arms")))) for part in claim.parts if part.test in _SAMPLED
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
        names = _listed(part.options.get(key))
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
    used = [studies[name] for name in _listed(part.options.get("study")) if name in studies]
    there = {
        name for study in used for full in study.design.datasets for name in (full, full.partition("[")[0])
    }
    return [name for name in _listed(part.options.get("datasets")) if name not in there]


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
    found = [studies[name] for name in _listed(options.get("study")) if name in studies]
    if part.test == "unseen_violators":
        yield from claim_figures.unseen_violators(options["draws"], options["confidence"])
    elif part.test == "slope" and options.get("solver"):
        limits = options.get("from", 0), options.get("to", inf)
        of_solver = options["solver"], found, options["x"], options["y"]
        yield from claim_figures.slopes_over_settings(*of_solver, _chosen(options), *limits, looks)
    for name in _listed(options.get("arms")):
        yield from _of_arm(part, side(name, found), studies, looks)


def _of_arm(part: Part, arm: Side, studies: Mapping[str, Findings], looks: int) -> Sequence[Figure]:
    options = part.options
    if part.test == "slope":
        limits = options.get("from", 0), options.get("to", inf)
        of_arm = arm, options["x"], options["y"], _chosen(options)
        return claim_figures.slope_over_datasets(*of_arm, *limits, looks)
    if part.test == "candidate_ratio":
        return claim_figures.candidate_ratios(arm, options["quantity"], options["above"], options["below"])
    if part.test == "candidate_steps":
        rises = options["direction"] == "rises"
        return claim_figures.candidate_steps(arm, options["quantity"], options["along"], rises)
    others = [name for name in _listed(options.get("against")) if name in studies]
    against = [studies[name] for name in others] or list(arm.studies)
    reference = side(options.get("reference") or arm.arm, against)
    quantity, ratio = options.get("quantity", "score"), part.test == "ratio"
    apart, over = bool(options.get("apart")), options.get("over", "")
    return claim_figures.compared(arm, reference, quantity, ratio, _chosen(options), apart, looks, over)


def _chosen(options: Mapping[str, Any]) -> Callable[[str], bool]:
    """Return what tells whether a dataset takes part: by its name, or that before its axes."""
    names, left_out = set(_listed(options.get("datasets"))), set(_listed(options.get("except")))

    def chosen(name: str) -> bool:
        both = {name, name.partition("[")[0]}
        return (not names or bool(both & names)) and not both & left_out

    return chosen
