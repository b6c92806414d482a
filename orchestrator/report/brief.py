"""Short sentences on several arms: which is highest, is it real, how large, are times real, what is wrong."""

import pandas as pd

from orchestrator.analysis import findings
from orchestrator.analysis.findings import Findings, computed
from orchestrator.analysis.pairwise import HIGHER, LOWER
from orchestrator.analysis.ratios import BETWEEN, FASTER, SLOWER
from orchestrator.analysis.summaries import WAITED_FROM
from orchestrator.report import format as fmt
from orchestrator.report.adjusted import if_fixed, is_max_t
from orchestrator.report.choices import choices
from orchestrator.report.ratio_cells import ratio
from orchestrator.report.table import Row, records
from orchestrator.report.too_few import attainable, none_could_have_been

_NARROW = 0.2
"""Smallest share of selections on an unmatched border that is named as a problem."""

_ADVERBS = {FASTER: "faster", SLOWER: "slower"}

_MAX_NAMED = 3
"""Largest number of arms that share the highest mean and are named."""


@computed
def brief(study: Findings) -> list[str]:
    """Return short sentences; none for fewer than three arms, arms of one mean, or one dataset.

    Parameters
    ----------
    study : Findings
        The study of the report.
    """
    frame, best = findings.standings(study), findings.compared_means(study).highest()
    is_too_little = frame.empty or not best or frame["n_complete"].iloc[0] < 2
    if is_too_little or len(best) == len(frame):  # arms of one mean need no short answer
        return []
    rows = {row["solver"]: row for row in records(frame)}
    first = _best(study, best, rows[best[0]]["mean"])
    return [first, _real(study, best), _size(study, best), *_timed(study), _wrong(study)]


def _best(study: Findings, best: list[str], mean: float) -> str:
    metric = study.design.metric
    names = fmt.listed(best) if len(best) <= _MAX_NAMED else f"{len(best)} arms share the highest mean"
    unit = " %" if fmt.is_percent(metric) else ""
    return f"Highest: {names}, with a mean {fmt.metric_name(metric)} of {fmt.score(mean, metric)}{unit}."


def _real(study: Findings, best: list[str]) -> str:
    """State how many declared pairs differ, and whether the best arm's pair with the control is one of them.

    Under `report.sequential` the tests after each dataset decide, because the others assume a fixed number.

    Parameters
    ----------
    study : Findings
        The study of the report.
    best : list of str
        Arms with the highest mean.
    """
    is_sequential, control = study.design.choices.sequential, next(iter(study.design.arms))
    tests = findings.sequence(study) if is_sequential else findings.tests(study)
    by = f" by the tests after each {study.design.unit}" if is_sequential else ""
    found, metric = tests["verdict"].isin([HIGHER, LOWER]), fmt.metric_name(study.design.metric)
    pairs = fmt.plural(len(tests), "declared pair")
    if not found.any():
        none = "" if is_sequential else none_could_have_been(attainable(study)[0], study.design.unit)
        ending = f"{none}; this" if none else ", which"
        return (
            f"Real: no difference in {metric} of the {pairs} is significant{by}{ending} does not make arms "
            "equal."
        )
    number = int(found.sum())
    differ = "differs" if number == 1 else "differ"
    text = f"Real: {number} of {pairs} {differ} significantly in {metric}{by}"
    if control in best:
        return f"{text}."
    # By signed ranks, the arm with the highest mean may even be significantly lower than the control.
    ahead = {
        (row["first"], row["second"]) if row["verdict"] == HIGHER else (row["second"], row["first"])
        for row in records(tests[found])
    }
    lead = "is" if all((arm, control) in ahead for arm in best) else "is not"
    return f"{text}; the lead over {control} {lead} significant."


def _size(study: Findings, best: list[str]) -> str:
    """State the difference of the best arm from the control with its interval, or else the span of the means.

    Parameters
    ----------
    study : Findings
        The study of the report.
    best : list of str
        Arms with the highest mean.
    """
    frame, metric = findings.standings(study), study.design.metric
    control = next(iter(study.design.arms))
    unit = " points" if fmt.is_percent(metric) else ""
    row = next(row for row in records(frame) if row["solver"] == best[0])
    # The verdict beside it decides on the mean by max-t, and else on the typical difference by signed ranks.
    by_mean = is_max_t(study)
    middle, ends = ("mean_difference", "mean_") if by_mean else ("estimate", "")
    known = row["mean_low"] if by_mean else row["confidence"]
    if control in best or pd.isna(row[middle]) or pd.isna(known):
        span = fmt.difference(frame["mean"].max() - frame["mean"].min(), metric).lstrip("+")
        return f"Size: the highest and the lowest mean are {span}{unit} apart."
    low, high = (fmt.difference(row[f"{ends}{name}"], metric) for name in ("low", "high"))
    shift = fmt.difference(abs(row[middle]), metric).lstrip("+")
    side = "above" if row[middle] > 0 else "below" if row[middle] < 0 else "from"
    often, kind = (
        ("on average", ", simultaneous")
        if by_mean
        else ("typically", ", not adjusted for picking the highest")
    )
    return f"Size: {best[0]} is {often} {shift}{unit} {side} {control} [{low}, {high}{kind}]."


def _timed(study: Findings) -> list[str]:
    """Count the arms whose training times differ significantly from the control's; empty without such tests.

    Parameters
    ----------
    study : Findings
        The study of the report.
    """
    frame = findings.time_ratios(study)
    if frame.empty:
        return []
    control, others = frame["reference"].iloc[0], fmt.plural(len(frame), "other arm")
    kinds = {word: records(frame[frame["verdict"] == verdict]) for verdict, word in _ADVERBS.items()}
    parts = [f"{len(rows)} significantly {word} ({_span(rows)})" for word, rows in kinds.items() if rows]
    if parts:
        return [f"Training time against {control}: of {others}, {' and '.join(parts)}{if_fixed(study)}."]
    none = none_could_have_been(attainable(study)[1], study.design.unit)
    return [f"Training time against {control}: no difference is significant{none}."]


def _span(rows: list[Row]) -> str:
    """Print the ratio of one arm, or the smallest and the largest of several.

    Parameters
    ----------
    rows : list of dict
        Rows of `findings.time_ratios`.
    """
    ordered = sorted(rows, key=_middle)
    ends = list(dict.fromkeys(f"{ratio(row, 'fit_seconds')}×" for row in (ordered[0], ordered[-1])))
    return f"{' to '.join(ends)} the time"


def _middle(row: Row) -> float:
    """Return the geometric mean of a ratio of times, or the median if stopped trainings leave the mean open.

    Parameters
    ----------
    row : dict
        A row of `findings.time_ratios`.
    """
    return float(
        row["fit_seconds_median_low"] if row["fit_seconds_bound"] == BETWEEN else row["fit_seconds_ratio"]
    )


def _wrong(study: Findings) -> str:
    """Name the kinds of problems that the other answers explain.

    Parameters
    ----------
    study : Findings
        The study of the report.
    """
    marked, borders, timing = findings.marked(study), findings.borders(study), findings.timing(study)
    failed = findings.failed_refits(study)["n_failed"].sum()
    incomplete = len(findings.incomplete(study))
    lack = "lacks" if incomplete == 1 else "lack"
    narrow = borders["n_unmatched"].sum() / borders["n"].sum() if len(borders) else 0.0
    problems = {
        "the study was changed after results were seen": bool(findings.growth(study)),
        "choices of this report were made after results were seen": bool(choices(study)[1]),
        "test rows took part in the selection of hyper-parameters, in another study": (
            study.design.search.target == "selected"
        ),
        "the declared plan is not finished": bool(findings.remaining_plan(study)),
        f"{fmt.plural(incomplete, 'combination')} of arm and dataset {lack} scores": incomplete > 0,
        f"{fmt.plural(int(failed), 'refit')} failed": failed > 0,
        f"{_arms(study, marked)} not known to be trained to the optimum": len(marked) > 0,
        "another process may have disturbed timings": len(timing) > 0
        and bool((timing["wall_per_cpu"] > WAITED_FROM).any()),
        f"{100 * narrow:.0f} % of selections lie on a border of the grid": narrow >= _NARROW,
    }
    found = [text for text, applies in problems.items() if applies]
    return f"Problems: {'; '.join(found)}." if found else "Problems: the checks of this report found none."


def _arms(study: Findings, marked: pd.DataFrame) -> str:
    number = marked["solver"].nunique() if len(marked) else 0
    return f"{number} of {fmt.plural(len(study.design.arms), 'arm')} {'is' if number == 1 else 'are'}"
