"""What a study shows, a sentence or two a question: the first of a report."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from orchestrator.analysis import findings
from orchestrator.analysis.bayesian import EQUAL_FROM
from orchestrator.analysis.findings import Findings
from orchestrator.analysis.merged_studies import machines
from orchestrator.analysis.pairwise import ALL_PAIRS_UP_TO, HIGHER, LOWER
from orchestrator.analysis.ratios import FASTER, SLOWER
from orchestrator.analysis.sequential import OPEN
from orchestrator.analysis.signed_rank import smallest_p
from orchestrator.analysis.summaries import GAP_LEVEL, WAITED_FROM, rows_by_pair
from orchestrator.report import format as fmt
from orchestrator.report.ratio_cells import ratio
from orchestrator.report.table import records
from orchestrator.study.families import APART, ONCE
from orchestrator.study.records import Status
from orchestrator.study.report_choices import ReportChoices


@dataclass(frozen=True)
class Answer:
    """What a study says to a question, in a sentence or two."""

    question: str
    text: str


def verdict(study: Findings) -> str:
    """Answer all questions in one paragraph.

    Parameters
    ----------
    study : Findings
        The study of the report.
    """
    return " ".join(answer.text for answer in answers(study))


def answers(study: Findings) -> list[Answer]:
    """Return what a study says to each question that it can be asked, the main one first.

    Parameters
    ----------
    study : Findings
        The study of the report.
    """
    if findings.is_empty(study):
        return [Answer("Result", _nothing(study))]
    arms = list(findings.means(study).columns)
    control = arms[0]
    compared = _one_pair(study) if len(arms) == 2 else _many_pairs(study) if len(arms) > 2 else []
    against = f"Different from {control}?" if len(arms) > ALL_PAIRS_UP_TO else "Different?"
    texts = {
        "Merged": _merged(study),
        "Chosen for this report": _choices(study),
        "Highest score?": [_standing(study), *_families(study)],
        "As good as the best?": _near_best(study),
        against: compared,
        "May it end here?": _sequence(study),
        f"Faster than {control}?": _times(study),
        "Had trainings a core to themselves?": _waited(study),
        "Trained to the optimum?": _not_optimal(study),
    }
    return [Answer(question, " ".join(said)) for question, said in texts.items() if said]


def _nothing(study: Findings) -> str:
    states = study.states.values()
    if states and all(state.complete for state in states):
        return (
            f"No outer fold of the study {study.name} has a score, and nothing is left to run: "
            "the table of failures says why."
        )
    return (
        f"The study {study.name} has no scored outer fold yet, so there is nothing to "
        "compare: run it, or let it finish, and write the report again."
    )


def _near_best(study: Findings) -> list[str]:
    """Name the arms that are practically equal to the best, those that are worse, and those in between.

    Parameters
    ----------
    study : Findings
        The study of the report.
    """
    frame, rope = findings.standings(study), study.design.rope
    if frame.empty or rope is None or frame["equal_to_best"].isna().all():
        return []

    def named(standing: str, *probabilities: str) -> str:
        rows = records(frame[(frame["standing"] == standing) & frame["equal_to_best"].notna()])
        return _first_few([_with_probabilities(row, probabilities) for row in rows]) or "none"

    margin = fmt.margin(rope, study.design.metric)
    return [
        f"Practically equal to {frame['best'].iloc[0]}, within {margin}, with probability {EQUAL_FROM} or "
        f"more: {named('equal', 'equal_to_best')}. Practically worse: {named('worse', 'worse_than_best')}. "
        f"Open: {named('open', 'equal_to_best', 'worse_than_best')}."
    ]


def _with_probabilities(row: dict[str, Any], names: Sequence[str]) -> str:
    kinds = {"equal_to_best": "equal", "worse_than_best": "worse"}
    texts = [fmt.probability(row[name]) for name in names]
    if len(names) > 1:
        texts = [f"{kinds[name]} {text}" for name, text in zip(names, texts, strict=True)]
    return f"{row['solver']} ({', '.join(texts)})"


def _first_few(names: Sequence[str], between: str = ", ") -> str:
    more = len(names) - _MOST_ARMS
    return between.join([*names[:_MOST_ARMS], *([f"and {more} more"] if more > 0 else [])])


_MOST_ARMS = 12


def _merged(study: Findings) -> list[str]:
    """Say which studies were merged, and whether rows that several of them have agree.

    Parameters
    ----------
    study : Findings
        The study of the report.
    """
    if not study.studies:
        return []
    frame, studies = findings.same_arms(study), study.studies
    sentences = [f"Of {fmt.listed([*studies])}, put together after their runs."]
    if len(findings.timing(study)) and len({tuple(machines(each)) for each in studies.values()}) > 1:
        sentences.append(
            "They ran on different machines, so a ratio of times is of arm and machine together."
        )
    if frame.empty:
        return [*sentences, "They have no arm in common."]
    common, agree = int(frame["n_common"].sum()), int(frame["n_agree"].sum())
    if common:
        ending = "all with the same score" if agree == common else f"{common - agree:,} with another score"
        sentences.append(f"{fmt.plural(common, 'trial')} of two studies have the same key, {ending}.")
    other = frame[frame["differs"] != ""]
    kinds = [f"{arm} ({rows['differs'].iloc[0]})" for arm, rows in other.groupby("arm", sort=False)]
    if kinds:
        sentences.append(f"Not the same in all: {_first_few(kinds)}.")
    return sentences


_COUNTED = {ONCE: "a family of datasets counts once", APART: "each dataset of a family counts"}


def _choices(study: Findings) -> list[str]:
    """Say what was chosen for this report, and what of it only after scores were stored.

    Parameters
    ----------
    study : Findings
        The study of the report.
    """
    choices, default = study.design.choices, ReportChoices()
    control = next(iter(study.design.arms), None)
    first = choices.first or default
    rope = study.design.rope
    region = f"{'no ' if rope is None else ''}region of practical equivalence"
    region += "" if rope is None else f" of ±{fmt.margin(rope, study.design.metric)}"
    without = fmt.listed(list(choices.leave_out)) if choices.leave_out else "nothing"
    chosen = {
        f"control {control}": (choices.control is not None, first.control not in (None, control)),
        f"level {choices.alpha:g}": (choices.alpha != default.alpha, choices.alpha != first.alpha),
        region: (choices.rope is not None, rope != study.design.rope_of(first)),
        _COUNTED[choices.families]: (
            choices.families != default.families,
            choices.families != first.families,
        ),
        f"without {without}": (bool(choices.leave_out), choices.leave_out != first.leave_out),
        f"{'' if choices.sequential else 'no '}tests after each dataset": (
            choices.sequential,
            choices.sequential != first.sequential,
        ),
    }
    declared = [text for text, (is_chosen, is_late) in chosen.items() if is_chosen and not is_late]
    late = [text for text, (_, is_late) in chosen.items() if is_late]
    sentences = [f"Declared before any score: {', '.join(declared)}."] if declared else []
    return sentences + ([f"Chosen post hoc, after the first scores: {', '.join(late)}."] if late else [])


def _standing(study: Findings) -> str:
    design, metric = study.design, study.design.metric
    complete = findings.compared_means(study).means.dropna()
    what = f"mean {fmt.metric_name(metric)}"
    unit = " %" if fmt.is_percent(metric) else ""
    if complete.empty:
        return f"No dataset is complete for every arm yet, so no {what} over datasets can be stated."
    average = complete.mean()
    over = f"over {fmt.plural(len(complete), 'dataset')}"
    over += " (a family counts as one)" if design.families else ""
    if len(average) == 1:
        return (
            f"{next(iter(average.index))} reaches a {what} of {fmt.score(average.iloc[0], metric)}{unit} "
            f"{over}; a comparison needs a second arm."
        )
    if len(complete) == 1:
        return (
            f"Only {complete.index[0]} is complete for all {len(average)} arms, and one dataset does not "
            "tell which has the highest score."
        )
    if len(average) == 2:
        (first, a), (second, b) = average.items()
        return (
            f"{first} reaches a {what} of {fmt.score(a, metric)}{unit} and {second} of "
            f"{fmt.score(b, metric)}{unit} {over}."
        )
    means = findings.compared_means(study)
    best = means.highest()
    worst = [arm for arm in means.highest(sign=-1) if arm not in best]
    if len(best) == len(average):
        return f"All {len(best)} arms have the same {what} {over} ({_range(average, metric)}{unit})."
    has = "has" if len(best) == 1 else "have"
    lowest = f" and {_some(worst)} the lowest ({_range(average[worst], metric)}{unit})" if worst else ""
    return (
        f"Of {len(average)} arms compared {over}, {_some(best)} {has} the highest {what} "
        f"({_range(average[best], metric)}{unit}){lowest}."
    )


def _range(means: pd.Series, metric: str) -> str:
    """Print the mean that arms share, or the lowest and the highest of means that tie.

    Parameters
    ----------
    means : Series of float
        Means of the arms.
    metric : str
        Name of the metric.
    """
    low, high = fmt.score(means.min(), metric), fmt.score(means.max(), metric)
    return low if low == high else f"{low} to {high}"


def _some(names: Sequence[str]) -> str:
    """Join the names of arms as a sentence does; of many, name the first ones.

    Parameters
    ----------
    names : sequence of str
        Names of arms.
    """
    if len(names) <= _MOST_ARMS:
        return fmt.listed(names)
    return f"{', '.join(names[:_MOST_ARMS])} and {len(names) - _MOST_ARMS} more"


def _families(study: Findings) -> list[str]:
    """Say how many families the tests count, where they are fewer than the datasets.

    Parameters
    ----------
    study : Findings
        The study of the report.
    """
    design = study.design
    if not design.families or len(findings.means(study).columns) < 2:
        return []
    n_datasets = fmt.plural(len(design.datasets), "dataset")
    return [f"The tests count {fmt.plural(design.n_units, 'family')} of {n_datasets}."]


def _one_pair(study: Findings) -> list[str]:
    (test,) = records(findings.tests(study))
    if test["n"] == 0:
        return []
    higher = f"{test['first']} scores higher on {test['wins']} and lower on {test['losses']}"
    same = f", the same on {test['n_zero']}" if test["n_zero"] else ""
    sentences = [
        f"{higher}{same}.",
        f"{_finding(test, study.design.alpha)} (exact Wilcoxon signed-rank test, {_p(test)}).",
    ]
    return sentences + _too_few(study)


def _sequence(study: Findings) -> list[str]:
    """Say which pairs the anytime-valid tests have decided, and after how many datasets.

    Parameters
    ----------
    study : Findings
        The study of the report.
    """
    frame = findings.sequence(study)
    if frame.empty:
        return []
    decided, still = (frame[mask] for mask in (frame["verdict"] != OPEN, frame["verdict"] == OPEN))
    needed = frame["family"].iloc[0] / study.design.alpha
    parts = [_stopped(row, needed, study.design.unit) for row in records(decided)]
    sentences = [f"Decided, valid under any stopping rule: {_first_few(parts, '; ')}."] if parts else []
    if len(still):
        names = [
            f"{row['first']} − {row['second']} (E = {fmt.evidence(row['evidence'])})"
            for row in records(still)
        ]
        sentences.append(f"Undecided, may continue: {_first_few(names)}.")
    if study.design.not_begun:
        begun, left = len(study.design.datasets), len(study.design.not_begun)
        sentences.insert(0, f"Stopped after {begun} of {begun + left} datasets, for every pair is decided.")
    units = fmt.plural_of(study.design.unit)
    return [*sentences, f"The tests over a fixed number of {units} are not adjusted for stopping."]


def _stopped(row: dict[str, Any], needed: float, unit: str) -> str:
    above, below = (
        row[name] for name in (("first", "second") if row["verdict"] == HIGHER else ("second", "first"))
    )
    largest = row["largest_evidence"]
    reached = f" ≥ {needed:g}" if largest >= needed else f", adjusted {fmt.p_equals(row['p_holm'])}"
    after = fmt.plural(int(row["decided_after"]), unit)
    return f"{above} above {below} after {after}: E = {fmt.evidence(largest)}{reached}"


def _p(test: dict[str, Any]) -> str:
    adjusted = f", adjusted {fmt.p_equals(test['p_holm'])}" if test["family"] > 1 else ""
    return f"{fmt.p_equals(test['p'])}{adjusted}"


def _finding(test: dict[str, Any], alpha: float) -> str:
    if test["verdict"] not in (HIGHER, LOWER):
        return "There is no evidence of a difference"
    higher = test["first"] if test["verdict"] == HIGHER else test["second"]
    return f"{higher} scores higher, and the difference is significant at {alpha:g}"


def _many_pairs(study: Findings) -> list[str]:
    tests, alpha = findings.tests(study), study.design.alpha
    found = tests[tests["verdict"].isin([HIGHER, LOWER])]
    pairs = fmt.plural(len(tests), "declared pair")
    if found.empty:
        return [
            f"None of the {pairs} shows evidence of a difference at {alpha:g} after Holm's adjustment.",
            *_too_few(study),
        ]
    many = len(findings.means(study).columns) > ALL_PAIRS_UP_TO
    sentences = [
        f"Of the {pairs}, {len(found)} {'differs' if len(found) == 1 else 'differ'} at {alpha:g} after "
        f"Holm's adjustment: {_against_control(found) if many else _named(found)}."
    ]
    rest = len(tests) - len(found)
    if rest:
        sentences.append(f"For the other {rest} there is no evidence of a difference.")
    return sentences


def _against_control(found: pd.DataFrame) -> str:
    """Name the arms that differ from the control, in either direction.

    Parameters
    ----------
    found : DataFrame
        The tests that show a difference.
    """
    control, parts = found["second"].iloc[0], []
    for verdict in (HIGHER, LOWER):
        rows = found[found["verdict"] == verdict]
        if len(rows):
            names = _first_few(list(rows["first"]))
            parts.append(f"{verdict} than {control}: {names} ({_largest_p(rows['p_holm'])})")
    return "; ".join(parts)


def _largest_p(adjusted: pd.Series) -> str:
    return f"{'largest ' if len(adjusted) > 1 else ''}adjusted {fmt.p_equals(adjusted.max())}"


def _named(found: pd.DataFrame) -> str:
    names = [_above(test) for test in records(found.head(_MOST_PAIRS))]
    more = len(found) - len(names)
    return "; ".join([*names, f"and {more} more"] if more else names)


_MOST_PAIRS = 40


def _above(test: dict[str, Any]) -> str:
    above, below = (
        (test["first"], test["second"]) if test["verdict"] == HIGHER else (test["second"], test["first"])
    )
    return f"{above} above {below} (adjusted {fmt.p_equals(test['p_holm'])})"


def _too_few(study: Findings) -> list[str]:
    """Say why so few datasets, or so few that differ, could not have shown a difference, where that is so.

    Parameters
    ----------
    study : Findings
        The study of the report.
    """
    tests = findings.tests(study)
    if tests["n"].nunique() > 1:
        return []  # each row of the table of tests says so for its own datasets
    unit = study.design.unit
    units = fmt.plural_of(unit)
    n, differing = int(tests["n"].max()), int((tests["n"] - tests["n_zero"]).max())
    needed, family = int(tests["datasets_needed"].iloc[0]), int(tests["family"].iloc[0])
    if differing >= needed or n == 0:
        return []
    if differing == 0 and n >= needed:
        return [f"None of {n} {units} differs."]
    if n >= needed:
        differ = "differs" if differing == 1 else "differ"
        over = f"Only {differing} of {n} {units} {differ}, so the smallest p this test can give is"
        so, floor = "no difference could have been significant", differing
    else:
        over = f"With {fmt.plural(n, unit)} the smallest p this test can give is"
        so, floor = "whatever the scores, no difference could have been significant", n
    over += f" 2/2{fmt.superscript(floor)} = {smallest_p(floor):g}"
    if family > 1:
        over += f", and Holm's adjustment over {family} tests multiplies the smallest by {family}"
    which = " that differ" if n >= needed else ""
    return [f"{over}, so {so} at {study.design.alpha:g}: that takes at least {needed} {units}{which}."]


def _times(study: Findings) -> list[str]:
    """Say which arms are faster or slower than the first, where that is shown.

    Parameters
    ----------
    study : Findings
        The study of the report.
    """
    frame, parts = findings.time_ratios(study), []
    for verdict in (FASTER, SLOWER) if len(frame) else ():
        rows = frame[frame["verdict"] == verdict]
        if len(rows) == 1:
            row = rows.iloc[0]
            over = f"{fmt.plural(row['fit_seconds_n'], study.design.unit)}, {_largest_p(rows['p_holm'])}"
            parts.append(f"Training {row['solver']} is {verdict} than {row['reference']} ({over}).")
        elif len(rows):
            each = [f"{row['solver']} ({ratio(row, 'fit_seconds')}×)" for row in records(rows)]
            than = f"{verdict} than that of {rows['reference'].iloc[0]}"
            parts.append(f"Training is {than} for {_first_few(each)}; {_largest_p(rows['p_holm'])}.")
    return parts


_MOST_NAMED = 4


def _waited(study: Findings) -> list[str]:
    """Name the arms whose trainings, timed alone, waited for the processor.

    Parameters
    ----------
    study : Findings
        The study of the report.
    """
    frame = findings.timing(study)
    rows = frame[frame["wall_per_cpu"] > WAITED_FROM] if len(frame) else frame
    if rows.empty:
        return []
    arms = [
        f"{arm} on {_places(list(of_arm['dataset']))} (up to {of_arm['wall_per_cpu'].max():.2f} times)"
        for arm, of_arm in rows.groupby("solver", sort=False)
    ]
    return [
        f"Trainings of {_first_few(arms, '; ')} took longer than {WAITED_FROM:g} times their own process had "
        "the processor: another job had it, or they waited for a disk or for processes of their own, whose "
        "time is not counted. Seconds of the clock are no measure of such trainings where it was another job."
    ]


def _places(names: list[str]) -> str:
    return fmt.listed(names) if len(names) <= _MOST_NAMED else fmt.plural(len(names), "dataset")


def _not_optimal(study: Findings) -> list[str]:
    """Name the arms whose refits are not known to be near the optimum of their problem.

    Parameters
    ----------
    study : Findings
        The study of the report.
    """
    if findings.marked(study).empty:
        return []
    arms = []
    for arm, rows in findings.marked(study).groupby("solver", sort=False):
        where = _places(list(rows["dataset"]))
        gap = rows["gap_max"].max()
        details = [f"largest claimed gap {fmt.gap(gap)}"] if gap > GAP_LEVEL else []
        if rows["not_converged"].any():
            details.append(f"{rows['not_converged'].sum()} of {rows['n_fits'].sum()} refits did not converge")
        arms.append(f"{arm} on {where} ({', '.join(details)})")
    return [
        f"Marked {fmt.MARK}, because not trained to within {GAP_LEVEL:g} of the optimum or not converged: "
        f"{'; '.join(arms)}; their scores and times are those of the models at which training stopped."
    ]


def incomplete_note(study: Findings) -> str:
    """Return sentences on what still lacks scores, and on what has ended without; empty for neither.

    Parameters
    ----------
    study : Findings
        The study of the report.
    """
    missing = [(str(row.dataset), str(row.solver)) for row in findings.incomplete(study).itertuples()]
    if not missing:
        return ""
    states, measures = study.states, (["score"], ["status"])
    running, ended = [], []
    for (dataset, arm), refits in rows_by_pair(study.outer, missing, *measures):
        n_outer, n_refits = study.design.n_outer(dataset), len(refits["status"])
        unscored = Counter(refits["status"][~np.isfinite(refits["score"])])
        state = states.get((dataset, arm))
        if state.complete if state else n_refits == n_outer:
            ended.append(f"{arm} on {dataset} ({_without_score(unscored, n_refits, n_outer)})")
        else:
            n_folds = n_refits - unscored.total()
            running.append(f"{arm} on {dataset} ({n_folds} of {n_outer} outer folds scored)")
    sentences = []
    if running:
        sentences.append(f"This study is not complete. Still lacking scores: {_first_cells(running)}.")
    if ended:
        which = "" if running else "Nothing is left to run. "
        sentences.append(f"{which}Ended without a score on every outer fold: {_first_cells(ended)}.")
    return " ".join(
        [
            *sentences,
            "Datasets that an arm has not completed are left out of its tests, and their means are over the "
            "folds that are there.",
        ]
    )


def _without_score(unscored: Counter[str], n_refits: int, n_outer: int) -> str:
    """Say what became of the outer folds without a score, by the statuses of their refits.

    Parameters
    ----------
    unscored : counter of str
        Number of refits without a score, by status.
    n_refits : int
        Number of stored refits.
    n_outer : int
        Number of outer folds.
    """
    stopped = unscored[Status.TIMEOUT]
    parts = {
        "failed": unscored.total() - stopped,
        "stopped at the time limit": stopped,
        "not done, for no candidate had a score": n_outer - n_refits,
    }
    said = [f"{number} {what}" for what, number in parts.items() if number > 0]
    return f"of {fmt.plural(n_outer, 'refit')}, {fmt.listed(said)}"


def _first_cells(cells: Sequence[str]) -> str:
    return fmt.listed(cells if len(cells) <= 4 else [*cells[:3], f"{len(cells) - 3} more"])
