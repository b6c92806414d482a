"""Answers to the main questions about a study, a few sentences each, which begin a report."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from orchestrator.analysis import findings
from orchestrator.analysis.dataset_answer import DatasetAnswer
from orchestrator.analysis.design import Design
from orchestrator.analysis.findings import Findings, computed
from orchestrator.analysis.merged_studies import machines
from orchestrator.analysis.pairwise import HIGHER, LOWER, NO_EVIDENCE
from orchestrator.analysis.ratios import FASTER, SLOWER
from orchestrator.analysis.sequential import OPEN
from orchestrator.analysis.summaries import GAP_LEVEL, WAITED_FROM, rows_by_pair
from orchestrator.report import format as fmt
from orchestrator.report.adjusted import after_adjustment, if_fixed, test_name, tests_all_pairs
from orchestrator.report.brief import brief
from orchestrator.report.choices import choices_sentences
from orchestrator.report.growth import growth_sentences, plan_sentences
from orchestrator.report.one_dataset import answer_lines, answer_sentences
from orchestrator.report.ratio_cells import ratio
from orchestrator.report.sections.sample import disturbed
from orchestrator.report.table import records
from orchestrator.report.too_few import attainable, none_could_have_been, too_few
from orchestrator.study.records import Status
from orchestrator.study.report_choices import LEAVE_OUT
from orchestrator.study.text import format_share

IN_SHORT = "What is the answer in short?"
"""The question whose answer is that of `brief`: sentences that begin with a label each."""


@dataclass(frozen=True)
class Answer:
    """A question about a study, and its answer in a few sentences."""

    question: str
    text: str


def verdict(study: Findings) -> str:
    """Return the answers to all questions as one paragraph.

    Parameters
    ----------
    study : Findings
        The study of the report.
    """
    return " ".join(answer.text for answer in answers(study))


@computed
def answers(study: Findings) -> list[Answer]:
    """Return the answers to the questions that apply to a study, the main one first.

    Parameters
    ----------
    study : Findings
        The study of the report.
    """
    if findings.is_empty(study):
        return [Answer("Result", _nothing(study))]
    texts = {
        "Did the study change after results were seen?": growth_sentences(study, not _is_single(study)),
        "Is the declared plan finished?": plan_sentences(study),
        "Merged studies": _merged(study),
        IN_SHORT: [] if _is_single(study) else brief(study),
        "Choices of this report": choices_sentences(study),
        **(_on_datasets(study) if _is_single(study) else _over_datasets(study)),
        "Was the grid wide enough?": _borders(study),
        "Which arms train faster or slower?": _times(study),
        "Were the timings undisturbed?": _disturbed(study),
        "Were all arms trained to the optimum?": _not_optimal(study),
    }
    return _answered(texts)


def _is_single(study: Findings) -> bool:
    """Return whether the study has a single dataset. The answer for it states added repeats itself.

    Parameters
    ----------
    study : Findings
        The study of the report.
    """
    return len(study.design.datasets) == 1


@computed
def answers_on_datasets(study: Findings) -> list[Answer]:
    """Return the answer for each dataset of a study of two or three; `answers` has that of a single dataset.

    Parameters
    ----------
    study : Findings
        The study of the report.
    """
    if findings.is_empty(study) or _is_single(study):
        return []
    return _answered(_on_datasets(study))


def _answered(texts: Mapping[str, Sequence[str]]) -> list[Answer]:
    return [Answer(question, " ".join(sentences)) for question, sentences in texts.items() if sentences]


def _on_datasets(study: Findings) -> dict[str, list[str]]:
    answers = findings.dataset_answers(study)
    return {_question(name): _on_dataset(study, each) for name, each in answers.items()}


def _question(dataset: str) -> str:
    return f"Which solver is best on {dataset}?"


def _on_dataset(study: Findings, answer: DatasetAnswer) -> list[str]:
    """State for one dataset which solver has the highest mean, and which cannot be told apart from it.

    Parameters
    ----------
    study : Findings
        The study of the report.
    answer : DatasetAnswer
        The answer for the dataset.
    """
    if not answer.complete:
        return [*filter(None, answer_sentences(study, answer))]
    rows, metric = answer.against_reference(), fmt.metric_name(study.design.metric)
    first = next(line for line in answer_lines(study, answer) if line.solver == answer.complete[0])
    said = ", ".join(filter(None, [first.score, first.finding]))
    sentences = [f"{first.solver} has the highest mean {metric}: {said}."]
    words = {HIGHER: "Better than", LOWER: "Worse than", NO_EVIDENCE: "Not told apart from"}
    for verdict, phrase in words.items():
        names = [arm for arm in answer.complete if arm in rows and rows[arm]["verdict"] == verdict]
        if names:
            sentences.append(f"{phrase} {answer.reference}: {_first_few(names)}.")
    return [*sentences, *filter(None, answer_sentences(study, answer, beside_table=True))]


def over_datasets(study: Findings) -> str:
    """Return the answers about all datasets together; empty for a single dataset.

    Parameters
    ----------
    study : Findings
        The study of the report.
    """
    return " ".join(sentence for sentences in _over_datasets(study).values() for sentence in sentences)


def about_report(study: Findings) -> str:
    """Return late changes, what remains of the plan, which studies were merged, and the report's choices.

    Parameters
    ----------
    study : Findings
        The study of the report.
    """
    changed = growth_sentences(study, not _is_single(study))
    return " ".join([*changed, *plan_sentences(study), *_merged(study), *choices_sentences(study)])


def _over_datasets(study: Findings) -> dict[str, list[str]]:
    """Return the questions about all datasets together, with their sentences; none for a single dataset.

    Parameters
    ----------
    study : Findings
        The study of the report.
    """
    if _is_single(study):
        return {}
    arms = list(findings.means(study).columns)
    compared = _one_pair(study) if len(arms) == 2 else _many_pairs(study) if len(arms) > 2 else []
    against = "Do the arms differ?" if tests_all_pairs(study) else f"Which arms differ from {arms[0]}?"
    return {
        "Which arm scores highest?": [_standing(study), *_families(study)],
        "Which arms may be the best?": _near_best(study),
        against: compared,
        "Would failed refits change this?": _failed(study) if compared else [],
        "May the study stop here?": _sequence(study),
    }


def _nothing(study: Findings) -> str:
    states = study.states.values()
    if not study.design.selects:
        return (
            f"The study {study.name} trains every candidate on the outer training rows and selects none. The "
            "best of a grid on test rows is no estimate of accuracy, so this report compares arms only point "
            "by point and decides nothing."
        )
    if states and all(state.complete for state in states):
        return (
            f"All trainings of the study {study.name} have ended, but no outer fold has a score. "
            "The table of failures lists the reasons."
        )
    return (
        f"The study {study.name} has no scored outer fold yet, so no arms can be compared. "
        "Run it, or wait until it finishes, and write the report again."
    )


def _near_best(study: Findings) -> list[str]:
    """Name the arms that may have the highest expected mean, and count those that may not.

    Parameters
    ----------
    study : Findings
        The study of the report.
    """
    frame = findings.standings(study)
    if frame.empty or frame["p_best"].isna().all():
        return []
    tested = frame[frame["p_best"].notna()]
    kept = list(tested.loc[tested["may_be_best"].astype(bool), "solver"])
    removed = list(tested.loc[~tested["may_be_best"].astype(bool), "solver"])
    confidence = f"With {fmt.level(study.design.alpha)} confidence"
    decided = f"{confidence}{if_fixed(study)}"
    if not removed:
        return [
            f"{confidence}, none of the {len(kept)} arms can be excluded: none is shown to be worse than the "
            "best of the others."
        ]
    return [
        f"{decided}, the arm with the highest expected mean of all {len(tested)} is among these "
        f"{len(kept)}: {_first_few(kept)}."
        if len(kept) > 1
        else f"{decided}, {kept[0]} has the highest expected mean of the {len(tested)} arms.",
        f"Excluded, because shown to be worse than the best of the others: {_first_few(removed)}.",
    ]


def _first_few(names: Sequence[str], between: str = ", ") -> str:
    more = len(names) - _MAX_ARMS
    return between.join([*names[:_MAX_ARMS], *([f"and {more} more"] if more > 0 else [])])


_MAX_ARMS = 12
"""Largest number of arms that a sentence names."""


def _merged(study: Findings) -> list[str]:
    """Name the merged studies, and state whether the trials that they share have equal scores.

    Parameters
    ----------
    study : Findings
        The study of the report.
    """
    if not study.studies:
        return []
    frame, studies = findings.same_arms(study), study.studies
    sentences = [f"This report merges the finished runs of {fmt.listed([*studies])}."]
    if len(findings.timing(study)) and len({tuple(machines(each)) for each in studies.values()}) > 1:
        sentences.append(
            "They ran on different machines, so a ratio of times depends on both the arm and the machine."
        )
    if frame.empty:
        return [*sentences, "They have no arm in common."]
    common, agree = int(frame["n_common"].sum()), int(frame["n_agree"].sum())
    if common:
        ending = "equal in all of them" if agree == common else f"different in {common - agree:,} of them"
        sentences.append(
            f"{fmt.plural(common, 'trial')} of two studies have the same key; their scores are {ending}."
        )
    other = frame[frame["differs"] != ""]
    kinds = [f"{arm} ({rows['differs'].iloc[0]})" for arm, rows in other.groupby("arm", sort=False)]
    if kinds:
        sentences.append(f"Arms that differ between studies: {_first_few(kinds)}.")
    return sentences


def _standing(study: Findings) -> str:
    design, metric = study.design, study.design.metric
    complete = findings.compared_means(study).means.dropna()
    what = f"mean {fmt.metric_name(metric)}"
    unit = " %" if fmt.is_percent(metric) else ""
    if complete.empty:
        return f"No dataset is complete for every arm, so there is no {what} over datasets."
    average = complete.mean()
    over = f"over {_completed(study, len(complete), 'every arm')}"
    over += " (a family counts as one)" if design.families else ""
    if len(average) == 1:
        return (
            f"{next(iter(average.index))} reaches a {what} of {fmt.score(average.iloc[0], metric)}{unit} "
            f"{over}. It is the only arm, and a comparison needs a second arm."
        )
    if len(complete) == 1:
        return (
            f"Only {complete.index[0]} is complete for all {len(average)} arms, and one dataset does not "
            "suffice to rank them."
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
    """Join names of arms with commas and “and”; name only the first ones of many.

    Parameters
    ----------
    names : sequence of str
        Names of arms.
    """
    if len(names) <= _MAX_ARMS:
        return fmt.listed(names)
    return f"{', '.join(names[:_MAX_ARMS])} and {len(names) - _MAX_ARMS} more"


def _families(study: Findings) -> list[str]:
    """State the number of families that the tests count, if it is below the number of datasets.

    Parameters
    ----------
    study : Findings
        The study of the report.
    """
    design = study.design
    if not design.families or len(findings.means(study).columns) < 2:
        return []
    n_datasets = fmt.plural(len(design.datasets), "dataset")
    return [
        f"The {n_datasets} form {fmt.plural(design.n_units, 'family')}, and each family counts once in the "
        "tests."
    ]


def _one_pair(study: Findings) -> list[str]:
    (test,) = records(findings.tests(study))
    if test["n"] == 0:
        return []
    units = _completed(study, int(test["n"]))
    counts = [f"higher on {test['wins']}", f"lower on {test['losses']}"]
    counts += [f"equal on {test['n_zero']}"] if test["n_zero"] else []
    sentences = [
        f"On {units}, {test['first']} scores {fmt.listed(counts)}.",
        f"{_finding(test, study.design)} ({test_name(study)}, {_p(test)}){if_fixed(study)}.",
    ]
    return sentences + too_few(study)


def _completed(study: Findings, n: int, by: str = "both") -> str:
    """Count units, of how many if some are not completed: `the 7 of 10 datasets that both completed`.

    Parameters
    ----------
    study : Findings
        The study of the report.
    n : int
        Number of units that the arms completed.
    by : str, default="both"
        Arms that completed the units.
    """
    total, unit = study.design.n_units, study.design.unit
    if n >= total:
        return fmt.plural(n, unit)
    return f"the {n} of {fmt.plural(total, unit)} that {by} completed"


def _not_completed(study: Findings) -> list[str]:
    """State on how many units pairs are compared, if arms lack some of them.

    Parameters
    ----------
    study : Findings
        The study of the report.
    """
    numbers, total = findings.tests(study)["n"], study.design.n_units
    low, high = int(numbers.min()), int(numbers.max())
    if low >= total:
        return []
    units = fmt.plural(total, study.design.unit)
    count = f"{low}" if low == high else f"{low} to {high}"
    return [f"Each pair is compared on the {count} of {units} that both completed."]


def _failed(study: Findings) -> list[str]:
    """State what the other treatment of failed refits would change.

    Parameters
    ----------
    study : Findings
        The study of the report.
    """
    failed, other = findings.failed_refits(study), findings.failure_sensitivity(study)
    if other.empty or len(other) != len(findings.tests(study)):
        return []
    number = fmt.plural(int(failed["n_failed"].sum()), "refit")
    is_left_out = study.design.choices.failed == LEAVE_OUT
    start = f"{number} of {_first_few([*dict.fromkeys(failed['solver'])])} failed or got no score. "
    if is_left_out:
        start += "If each of them scored as the majority class"
    else:
        start += "Each of them scores as the majority class here; if their datasets were left out instead"
    pairs = zip(records(findings.tests(study)), records(other), strict=True)
    changed = [(now, then) for now, then in pairs if _direction(now) != _direction(then)]
    if not changed:
        return [f"{start}, no verdict would change."]
    texts = [
        f"{then['first']} − {then['second']} would be {_direction(then) or 'no evidence of a difference'} "
        f"(adjusted {fmt.p_equals(then['p_adjusted'])}, {fmt.plural(int(then['n']), study.design.unit)})"
        for _, then in changed
    ]
    return [f"{start}, {len(changed)} of {len(other)} verdicts would change: {_first_few(texts, '; ')}."]


def _direction(test: dict[str, Any]) -> str:
    return test["verdict"] if test["verdict"] in (HIGHER, LOWER) else ""


def _sequence(study: Findings) -> list[str]:
    """State which pairs the anytime-valid tests have decided, and after how many datasets.

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
    sentences = [f"Decided pairs, valid under any stopping rule: {_first_few(parts, '; ')}."] if parts else []
    if len(still):
        names = [
            f"{row['first']} − {row['second']} (E = {fmt.evidence(row['evidence'])})"
            for row in records(still)
        ]
        sentences.append(f"Undecided pairs: {_first_few(names)}.")
    if study.design.not_started:
        started, remaining = len(study.design.datasets), len(study.design.not_started)
        part = f"{started} of {started + remaining} datasets"
        sentences.insert(0, f"The study stopped after {part}, because every pair is decided.")
    units = fmt.plural_of(study.design.unit)
    return [
        *sentences,
        "These tests are adjusted by Holm's method, whatever report.adjust is.",
        f"The other tests assume a fixed number of {units} and are not adjusted for early stopping.",
    ]


def _stopped(row: dict[str, Any], needed: float, unit: str) -> str:
    above, below = (
        row[name] for name in (("first", "second") if row["verdict"] == HIGHER else ("second", "first"))
    )
    largest = row["largest_evidence"]
    reached = f" ≥ {needed:g}" if largest >= needed else f", adjusted {fmt.p_equals(row['p_holm'])}"
    after = fmt.plural(int(row["decided_after"]), unit)
    return f"{above} higher than {below} after {after}: E = {fmt.evidence(largest)}{reached}"


def _p(test: dict[str, Any]) -> str:
    adjusted = f", adjusted {fmt.p_equals(test['p_adjusted'])}" if test["family"] > 1 else ""
    return f"{fmt.p_equals(test.get('p_flips', test['p']))}{adjusted}"


def _finding(test: dict[str, Any], design: Design) -> str:
    if test["verdict"] not in (HIGHER, LOWER):
        return f"There is no evidence of a difference in {fmt.metric_name(design.metric)}"
    higher = test["first"] if test["verdict"] == HIGHER else test["second"]
    return f"{higher} scores higher, and the difference is significant at level {design.alpha:g}"


def _many_pairs(study: Findings) -> list[str]:
    tests, alpha = findings.tests(study), study.design.alpha
    metric = fmt.metric_name(study.design.metric)
    found = tests[tests["verdict"].isin([HIGHER, LOWER])]
    pairs = fmt.plural(len(tests), "declared pair")
    if found.empty:
        return [
            f"None of the {pairs} differs significantly in {metric} at level {alpha:g} "
            f"{after_adjustment(study)}.",
            *_not_completed(study),
            *too_few(study),
        ]
    many = not tests_all_pairs(study)
    named = _against_control(found) if many else _named(found)
    sentences = [
        f"Of the {pairs}, {len(found)} {'differs' if len(found) == 1 else 'differ'} significantly in "
        f"{metric} at level {alpha:g} {after_adjustment(study)}{if_fixed(study)}: {named}."
    ]
    rest = len(tests) - len(found)
    if rest:
        others = "pair" if rest == 1 else f"{rest} pairs"
        sentences.append(f"There is no evidence of a difference for the other {others}.")
    return [*sentences, *_not_completed(study)]


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
            parts.append(f"{verdict} than {control}: {names} ({_largest_p(rows['p_adjusted'])})")
    return "; ".join(parts)


def _largest_p(adjusted: pd.Series) -> str:
    return f"{'largest ' if len(adjusted) > 1 else ''}adjusted {fmt.p_equals(adjusted.max())}"


def _named(found: pd.DataFrame) -> str:
    names = [_above(test) for test in records(found.head(_MAX_PAIRS))]
    more = len(found) - len(names)
    return "; ".join([*names, f"and {more} more"] if more else names)


_MAX_PAIRS = 40
"""Largest number of pairs that a sentence names."""


def _above(test: dict[str, Any]) -> str:
    above, below = (
        (test["first"], test["second"]) if test["verdict"] == HIGHER else (test["second"], test["first"])
    )
    return f"{above} higher than {below} (adjusted {fmt.p_equals(test['p_adjusted'])})"


def _borders(study: Findings) -> list[str]:
    """State how many selected candidates lie on a border of their ranges that no candidate inside equals.

    Parameters
    ----------
    study : Findings
        The study of the report.
    """
    frame = findings.borders(study)
    if frame.empty:
        return []
    n, on_border, unmatched = (int(frame[name].sum()) for name in ("n", "n_border", "n_unmatched"))
    border = "lies on a border of its ranges that no candidate inside matches"
    if not unmatched:
        return [f"No selected candidate {border}."]
    folds = f"On {_percent(unmatched / n)} of outer folds ({unmatched} of {n})"
    text = f"{folds} the grid was perhaps too narrow: the selected candidate {border}"
    text += f"; {on_border} lie on a border in all." if on_border > unmatched else "."
    worst = frame.assign(share=frame["n_unmatched"] / frame["n"]).sort_values("share", kind="stable").iloc[-1]
    which = f"Most often for {worst['solver']}" if len(frame) > 1 else "Ends"
    return [text, f"{which}: {worst['ends']}. A wider range may give these arms other scores."]


def _percent(share: float) -> str:
    """Print a share in whole per cent, of which only nothing is 0 % and only the whole is 100 %.

    Parameters
    ----------
    share : float
        Share above 0, up to 1.
    """
    if share < 0.005:
        return "less than 1 %"
    return "more than 99 %" if 0.995 <= share < 1 else format_share(share)


def _times(study: Findings) -> list[str]:
    """Name the arms that are significantly faster or slower than the first.

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
            over = f"{fmt.plural(row['fit_seconds_n'], study.design.unit)}, {_largest_p(rows['p_adjusted'])}"
            times = f"{ratio(records(rows)[0], 'fit_seconds')}× the time"
            than = f"{_ADVERBS[verdict]} than {row['reference']}"
            parts.append(f"{row['solver']} trains {than} ({times}; {over}).")
        elif len(rows):
            each = [f"{row['solver']} ({ratio(row, 'fit_seconds')}×)" for row in records(rows)]
            than = f"{_ADVERBS[verdict]} than {rows['reference'].iloc[0]}"
            parts.append(f"These arms train {than}: {_first_few(each)} ({_largest_p(rows['p_adjusted'])}).")
    if len(frame) and not parts:
        none = none_could_have_been(attainable(study)[1], study.design.unit)
        return [f"No training time differs significantly from that of {frame['reference'].iloc[0]}{none}."]
    if parts and len(machines(study)) == 1:
        parts.append("All trainings ran on one kind of machine; on another one ratios may differ by half.")
    return parts


_ADVERBS = {FASTER: "faster", SLOWER: "more slowly"}


_MAX_DATASETS = 4
"""Largest number of datasets that a sentence names."""


def _disturbed(study: Findings) -> list[str]:
    """Name the arms whose timed trainings had a wall time well above their CPU time.

    Parameters
    ----------
    study : Findings
        The study of the report.
    """
    frame = findings.timing(study)
    rows = frame[frame["wall_per_cpu"] > WAITED_FROM] if len(frame) else frame
    if rows.empty:
        return disturbed(study)
    arms = [
        f"{arm} on {_named_datasets(list(of_arm['dataset']))} (up to {_excess(of_arm['wall_per_cpu'].max())})"
        for arm, of_arm in rows.groupby("solver", sort=False)
    ]
    return [
        f"Wall time exceeded CPU time by more than {_excess(WAITED_FROM)}: {_first_few(arms, '; ')}. Another "
        "process was using the core, or the training waited for a disk or for its child processes, whose CPU "
        "time is not counted. If another process was using the core, these wall times are not comparable.",
        *disturbed(study),
    ]


def _excess(ratio: float) -> str:
    digits = 1 if round(100 * (ratio - 1)) == round(100 * (WAITED_FROM - 1)) and ratio > WAITED_FROM else 0
    return f"{100 * (ratio - 1):.{digits}f} %"


def _named_datasets(names: list[str]) -> str:
    return fmt.listed(names) if len(names) <= _MAX_DATASETS else fmt.plural(len(names), "dataset")


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
        arms.append(f"{arm} on {_named_datasets(list(rows['dataset']))} ({_why_marked(rows)})")
    if len(arms) > _MAX_DATASETS:
        return _many_marked(study)
    return [
        f"The mark {fmt.MARK} denotes a claimed relative duality gap above {GAP_LEVEL:g} or a refit that did "
        f"not converge: {'; '.join(arms)}. The scores and times of these arms are those of the models at "
        "which training stopped."
    ]


def _many_marked(study: Findings) -> list[str]:
    """Name many arms whose refits are not known to be near the optimum, with the numbers of all together.

    Parameters
    ----------
    study : Findings
        The study of the report.
    """
    rows = findings.marked(study)
    arms = list(rows["solver"].unique())
    return [
        f"{len(arms)} of {len(study.design.arms)} arms are not known to be trained to the optimum: "
        f"{_first_few(arms)} ({_why_marked(rows)} on the datasets concerned). "
        f"Their mark {fmt.MARK} denotes a claimed "
        f"relative duality gap above {GAP_LEVEL:g} or a refit that did not converge. Their scores and "
        "times are those of the models at which training stopped."
    ]


def _why_marked(rows: pd.DataFrame) -> str:
    """Return the largest claimed gap, if it is above `GAP_LEVEL`, and the number of refits not converged.

    Parameters
    ----------
    rows : DataFrame
        Rows of `findings.marked`.
    """
    gap = rows["gap_max"].max()
    details = [f"largest claimed gap {fmt.gap(gap)}"] if gap > GAP_LEVEL else []
    if rows["not_converged"].any():
        details.append(f"{rows['not_converged'].sum()} of {rows['n_fits'].sum()} refits did not converge")
    return ", ".join(details)


_LEFT_OUT = (
    "A dataset that an arm has not completed is left out of the arm's tests of scores. Its mean is over the "
    "scored folds only."
)
_CONSTANT = (
    "In tests over datasets, a refit that ended without a score scores as the majority class. Tables of "
    "scores give means over the scored folds only."
)


def incomplete_note(study: Findings) -> str:
    """Return sentences on the arms that still lack scores, or have ended without; empty if there are none.

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
        sentences.append(
            f"This study is not complete. These arms still lack scores: {_first_cells(running)}."
        )
    if ended:
        which = "" if running else "All trainings have ended. "
        sentences.append(
            f"{which}These arms ended without a score on some outer folds: {_first_cells(ended)}."
        )
    return " ".join([*sentences, _LEFT_OUT if study.design.choices.failed == LEAVE_OUT else _CONSTANT])


def _without_score(unscored: Counter[str], n_refits: int, n_outer: int) -> str:
    """Count the outer folds without a score by the reason.

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
        "not run because no candidate had a score": n_outer - n_refits,
    }
    counts = [f"{number} {what}" for what, number in parts.items() if number > 0]
    return f"of {fmt.plural(n_outer, 'refit')}, {fmt.listed(counts)}"


def _first_cells(cells: Sequence[str]) -> str:
    return fmt.listed(cells if len(cells) <= 4 else [*cells[:3], f"{len(cells) - 3} more"])
