"""Read claims of the literature, with the tests that decide them, from their configuration."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import inf, nan
from typing import Any

from orchestrator.claims.figures import LARGEST_EXCESS, OVER_MEAN, QUANTITIES
from orchestrator.claims.grid_figures import GRID_QUANTITIES, OF_REFERENCE, OF_SETS
from orchestrator.study.errors import ConfigError
from orchestrator.study.targets import did_you_mean
from orchestrator.study.text import shown
from orchestrator.study.values import is_number

_REGIONS = ("within", "at_least", "at_most", "between")
"""Options that give the region of a claim."""
_CHOICE = ("datasets", "except")
"""Options that choose datasets."""
_COMPARED = (
    "study",
    "arms",
    "reference",
    "quantity",
    "against",
    "apart",
    "over",
    "refute",
    *_CHOICE,
    *_REGIONS,
)
"""Options of tests that compare two arms."""
_OF_SETTINGS = ("study", "solver", "x", "y", "from", "to", *_CHOICE, *_REGIONS)
"""Options of tests of a quantity over the settings of a solver."""
_OPTIONS: dict[str, tuple[str, ...]] = {
    "difference": _COMPARED,
    "ratio": _COMPARED,
    "slope": ("study", "arms", "solver", "x", "y", "from", "to", *_CHOICE, *_REGIONS),
    "line": _OF_SETTINGS,
    "curvature": _OF_SETTINGS,
    "largest": ("study", "arms", "quantity", *_CHOICE, *_REGIONS),
    "candidate_ratio": ("study", "arms", "quantity", "above", "below", *_REGIONS),
    "candidate_steps": ("study", "arms", "quantity", "along", "direction", *_REGIONS),
    "unseen_violators": ("draws", "confidence", *_REGIONS),
    "figure": (
        *("study", "arms", "reference", "quantity", "at", "along", "direction", "over", "minus"),
        *_CHOICE,
        *_REGIONS,
    ),
    "unanswered": ("why",),
}
"""Options of each test."""

_MEASURED = {
    "difference": ("quantity",),
    "ratio": ("quantity", "over"),
    "slope": ("y",),
    "line": ("y",),
    "curvature": ("y",),
    "largest": ("quantity",),
}
"""Options of each test that name a quantity."""

_NEEDED = {
    "difference": ("study", "arms"),
    "ratio": ("study", "arms"),
    "slope": ("study", "x", "y"),
    "line": ("study", "solver", "x", "y"),
    "curvature": ("study", "solver", "x", "y"),
    "largest": ("study", "arms", "quantity"),
    "candidate_ratio": ("study", "arms", "quantity", "above", "below"),
    "candidate_steps": ("study", "arms", "quantity", "along", "direction"),
    "unseen_violators": ("draws", "confidence"),
    "figure": ("study", "arms", "quantity"),
    "unanswered": ("why",),
}
"""Options that each test requires."""


@dataclass(frozen=True)
class Part:
    """One test of a claim.

    Attributes
    ----------
    test : str
        Name of the test.
    options : mapping of str to object
        Options of the test, by name.
    region : (float, float)
        Lower and upper end of the region in which the figure must lie.
    """

    test: str
    options: Mapping[str, Any]
    region: tuple[float, float] = (-inf, inf)

    @property
    def words(self) -> str:
        """Description of the test, for outcomes without a figure."""
        arms = ", ".join(listed(self.options.get("arms")) or listed(self.options.get("solver")))
        others = listed(self.options.get("reference")) or listed(self.options.get("against"))
        against = f" against {', '.join(others)}" if others else ""
        return f"{self.test} of {arms}{against}" if arms else self.test

    @property
    def studies(self) -> tuple[str, ...]:
        """The names of the studies that the test uses."""
        return tuple(
            dict.fromkeys([*listed(self.options.get("study")), *listed(self.options.get("against"))])
        )


@dataclass(frozen=True)
class Claim:
    """A claim of the literature and the tests that decide it.

    Attributes
    ----------
    name : str
        Name of the claim.
    text : str
        Statement of the literature, in one sentence.
    source : str
        Publication, section and figure of the statement.
    published : str
        Numbers that the source gives for the claim.
    parts : tuple of Part
        The tests, all of which must be reproduced.
    """

    name: str
    text: str
    source: str
    published: str
    parts: tuple[Part, ...]

    @property
    def paper(self) -> str:
        """The publication of the claim: its source up to the first comma."""
        return self.source.partition(",")[0]

    @property
    def studies(self) -> tuple[str, ...]:
        """The names of the studies that the claim uses."""
        return tuple(dict.fromkeys(name for part in self.parts for name in part.studies))


def read_claims(nodes: Mapping[str, Mapping[str, Any]]) -> list[Claim]:
    """Return checked claims, sorted by the letters and then the number of their names.

    Parameters
    ----------
    nodes : mapping of str to mapping of str to object
        Content of each file `claim/NAME.yaml`, by name: `claim`, `source`, `published` and `tests`.

    Returns
    -------
    list of Claim
        Claims without problems, in the order of their names.

    Raises
    ------
    ConfigError
        With every problem found.
    """
    problems: list[str] = []
    claims = [_claim(name, node, problems) for name, node in nodes.items()]
    if problems:
        raise ConfigError(problems)
    return sorted(claims, key=lambda claim: _order(claim.name))


def _order(name: str) -> tuple[str, int, str]:
    """Return the sort key of a claim's name.

    Parameters
    ----------
    name : str
        Name such as `A12` or `A12b`.

    Returns
    -------
    (str, int, str)
        Letters, number and name.
    """
    letters, number = re.match(r"(\D*)(\d*)", name).groups()  # type: ignore[union-attr]  # matches any text
    return letters, int(number or 0), name


def _claim(name: str, node: Mapping[str, Any], problems: list[str]) -> Claim:
    """Return a claim and add its problems to a list.

    Parameters
    ----------
    name : str
        Name of the claim.
    node : mapping of str to object
        Content of the claim's file.
    problems : list of str
        List to extend.

    Returns
    -------
    Claim
        The claim, which is not valid if there are problems.
    """
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
    """Return a test and add its problems to a list.

    Parameters
    ----------
    where : str
        Name of the claim and number of the test, for messages.
    node : mapping of str to object
        Configuration of the test.
    problems : list of str
        List to extend.

    Returns
    -------
    Part
        The test, which is not valid if there are problems.
    """
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
        for key in ("study", "against", "arms", "reference", *_CHOICE)
        if key in known and options.get(key) is not None
        if not _are_names(options.get(key))
    ]
    problems += [
        f"{where}: {key} must be {what}, found {shown(options[key])}"
        for key, (what, is_so) in _VALUES.items()
        if key in known and options.get(key) is not None and not is_so(options[key])
    ]
    if test == "figure":
        problems += _figure_problems(f"{where}: figure", options)
    measured = _MEASURED.get(test, ())
    problems += [
        f"{where}: {key} must be one of {', '.join(QUANTITIES)}, found {shown(quantity)}"
        f"{did_you_mean(str(quantity), QUANTITIES)}"
        for key in measured
        if (quantity := options.get(key, "score")) not in QUANTITIES
        and (key, quantity) != ("over", OVER_MEAN)
    ]
    if test in ("difference", "ratio"):
        problems += _compared_problems(f"{where}: {test}", options)
    if test == "slope" and bool(options.get("arms")) == bool(options.get("solver")):
        problems.append(f"{where}: slope: expected either 'arms' (over datasets) or 'solver' (over settings)")
    region = (-inf, inf) if test == "unanswered" else _region(where, options, problems)
    return Part(test, {key: value for key, value in options.items() if value is not None}, region)


def _figure_problems(where: str, options: Mapping[str, Any]) -> Iterator[str]:
    """Yield the problems of a figure over a grid.

    Parameters
    ----------
    where : str
        Name of the claim, number and name of the test, for messages.
    options : mapping of str to object
        Options of the test.

    Yields
    ------
    str
        The problem and its remedy.
    """
    quantity = options.get("quantity")
    if quantity is not None and quantity not in GRID_QUANTITIES:
        near = did_you_mean(str(quantity), GRID_QUANTITIES)
        yield f"{where}: quantity must be one of {', '.join(GRID_QUANTITIES)}, found {shown(quantity)}{near}"
        return
    if (quantity in OF_REFERENCE) != (options.get("reference") is not None):
        need = "needs" if quantity in OF_REFERENCE else "has no use for"
        yield f"{where}: {shown(quantity)} {need} 'reference', the arm to measure against"
    if quantity not in OF_SETS and (options.get("at") or options.get("along")):
        yield f"{where}: 'at' and 'along' are for {' and '.join(OF_SETS)}, found {shown(quantity)}"
    if (options.get("along") is None) != (options.get("direction") is None):
        yield f"{where}: expected 'along' together with 'direction', found one of them. Add the other one"
    if options.get("over") is not None and options.get("minus") is not None:
        yield f"{where}: expected 'over' or 'minus', found both. Write two tests"
    for key in ("over", "minus"):
        if options.get(key) is not None and not _are_names(options[key]):
            yield f"{where}: {key} must be the name of an arm, or a list, found {shown(options[key])}"
    at = options.get("at")
    if at is not None and not (isinstance(at, Mapping) and all(map(is_number, at.values()))):
        yield f"{where}: at must map parameters to numbers, such as {{gamma: 1}}, found {shown(at)}"


def _compared_problems(where: str, options: Mapping[str, Any]) -> Iterator[str]:
    """Yield the problems of a test that compares two arms.

    Options may exclude each other, or an arm may be compared with nothing, with two things, or with itself.

    Parameters
    ----------
    where : str
        Name of the claim, number and name of the test, for messages.
    options : mapping of str to object
        Options of the test.

    Yields
    ------
    str
        The problem and its remedy.
    """
    reference, against = listed(options.get("reference")), listed(options.get("against"))
    over = options.get("over")
    if over == OVER_MEAN and options.get("apart"):
        yield f"{where} has over=mean and 'apart'; expected one of both. Remove one of them"
    if options.get("refute") and options.get("apart") is not True:
        yield f"{where} has 'refute' without apart=true; expected separate figures. Set apart=true"
    if over not in (None, OVER_MEAN) and where.endswith("difference"):
        yield f"{where}: over must be mean, found {shown(over)}"
    if over and over != OVER_MEAN:
        if reference or against:
            yield f"{where} has 'over' and another arm; expected one of both. Remove one of them"
        return
    if not (reference or against):
        yield f"{where} needs 'reference', the arm to compare with, or 'against', its study"
        return
    if len(reference) > 1 and options.get("quantity", "score") == "score":
        yield (
            f"{where} has several references, of which the smallest mean counts, and compares scores; "
            "expected a cost. Name one reference"
        )
    arms, studies = listed(options.get("arms")), listed(options.get("study"))
    itself = not reference or set(reference) & set(arms)
    if itself and (not against or any(name in studies for name in against)):
        found = next((name for name in arms if name in reference or not reference), None)
        yield (
            f"{where} compares {shown(found)} with itself. Set another 'reference', "
            "or another study with 'against'"
        )


def _region(where: str, options: Mapping[str, Any], problems: list[str]) -> tuple[float, float]:
    """Return the region in which a figure must lie, and add a problem to a list.

    Parameters
    ----------
    where : str
        Name of the claim and number of the test, for messages.
    options : mapping of str to object
        Options of the test, one of which must be in `_REGIONS`.
    problems : list of str
        List to extend.

    Returns
    -------
    (float, float)
        Lower and upper end; all numbers if there is a problem.
    """
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
        f"{where}: expected one region, such as within=0.005, at_least=1, at_most=0.5 or "
        f"between=[0.5,1] with the lower end first, found {shown(dict(given))}"
    )
    return -inf, inf


def _are_names(value: Any) -> bool:
    """Return whether an option holds a name or several names.

    Parameters
    ----------
    value : object
        Value of the option.

    Returns
    -------
    bool
        False for empty names.
    """
    names = listed(value)
    return bool(names) and all(isinstance(name, str) and name for name in names)


_TEXT = "text", lambda value: isinstance(value, str) and value != ""
_POSITIVE = "a number above 0", lambda value: is_number(value) and value > 0
_VALUES: dict[str, tuple[str, Callable[[Any], bool]]] = {
    **dict.fromkeys(("solver", "x", "above", "below", "along", "why"), _TEXT),
    **dict.fromkeys(("from", "to"), _POSITIVE),
    "apart": ("true, false or seeds", lambda value: isinstance(value, bool) or value == "seeds"),
    "refute": (LARGEST_EXCESS, lambda value: value == LARGEST_EXCESS),
    "direction": ("rises or falls", lambda value: value in ("rises", "falls")),
    "draws": ("a whole number above 0", lambda value: type(value) is int and value > 0),
    "confidence": ("a number between 0 and 1", lambda value: is_number(value) and 0 < value < 1),
}
"""Expected values of options that are not names of studies, arms or datasets: a description and a check."""


def listed(value: Any) -> list[Any]:
    """Return the values of an option as a list.

    Parameters
    ----------
    value : object
        One value, a list of values, or None.

    Returns
    -------
    list of object
        The items of a list or tuple; a single value as a list; empty for None.
    """
    return list(value) if isinstance(value, (list, tuple)) else [] if value is None else [value]
