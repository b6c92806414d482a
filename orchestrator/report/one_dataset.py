"""The answer for one dataset in words: its lines, its sentences, and the text for a terminal."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite, isnan, nan
from textwrap import wrap
from typing import Any

from orchestrator.analysis.dataset_answer import DatasetAnswer
from orchestrator.analysis.design import Design
from orchestrator.analysis.findings import Findings
from orchestrator.analysis.pairwise import HIGHER, LOWER
from orchestrator.report import format as fmt
from orchestrator.study.score_warnings import copies_warning, label_warning
from orchestrator.study.text import format_seconds, printable

WIDTH = 80
"""Width of the text, in characters."""

_HARDLY = 0.9
"""Relative width of an interval above which more repeats are not worth their cost."""

NO_WIDTH = 1e-9
"""Largest width of an interval that only rounding has made; then all splits agree, which is no certainty."""

_WIDEST_NAME = 24
_NARROWEST = 30
"""Least width of the words beside the scores, in characters; else they begin on the next line."""


@dataclass(frozen=True)
class Line:
    """One solver on a dataset.

    Attributes
    ----------
    solver : str
        Name of the arm.
    score : str
        Mean and standard error; empty before any outer split has a score.
    finding : str
        Comparison with the reference or with the baseline.
    """

    solver: str
    score: str
    finding: str


def answer_lines(study: Findings, answer: DatasetAnswer) -> list[Line]:
    """Return a line for each solver, the highest mean first, solvers that are not complete last.

    Parameters
    ----------
    study : Findings
        The study of the report.
    answer : DatasetAnswer
        The answer for the dataset.
    """
    metric, compared = study.design.metric, answer.against_reference()
    lines = []
    for row in answer.arms.to_dict("records"):
        arm = row["solver"]
        if not row["complete"]:
            finding = f"{row['n_folds']} of {answer.n_splits} splits, not compared"
        elif arm == answer.reference:
            finding = "; ".join(filter(None, [_over_baseline(row, answer, metric), _control_word(answer)]))
        elif arm in compared:
            finding = _compared(compared[arm], str(answer.reference), metric)
        else:
            finding = _over_baseline(row, answer, metric)
        lines.append(Line(arm, mean_text(row, metric), finding))
    return lines


def mean_text(row: dict[Any, Any], metric: str) -> str:
    """Print a mean score with its unit and its corrected standard error.

    Parameters
    ----------
    row : dict
        Row of `DatasetAnswer.arms`.
    metric : str
        Name of the metric.
    """
    if isnan(row["mean"]):
        return ""
    unit = " %" if fmt.is_percent(metric) else ""
    is_known = isfinite(row["corrected_se"]) and row["corrected_se"] > NO_WIDTH
    digits = fmt.decimals([row["corrected_se"]] if is_known else [], metric)
    error = f" ± {fmt.score(row['corrected_se'], metric, digits)}" if is_known else ""
    return f"{fmt.score(row['mean'], metric, digits)}{unit}{error}"


def _over_baseline(row: dict[Any, Any], answer: DatasetAnswer, metric: str) -> str:
    if isnan(row["baseline_difference"]):
        return ""
    low, high = (fmt.difference(row[f"baseline_{end}"], metric, 1) for end in ("low", "high"))
    interval = f" ({low} to {high})" if isfinite(row["baseline_low"]) else ""
    if has_no_width(row["baseline_low"], row["baseline_high"]):
        interval = " in every split"
    over = _always(answer) if metric == "accuracy" else "the baseline"
    return f"{fmt.difference(row['baseline_difference'], metric, 1)} over {over}{interval}"


def _always(answer: DatasetAnswer) -> str:
    return "the largest class" if answer.has_largest_class else "always the same class"


def _control_word(answer: DatasetAnswer) -> str:
    return "the control" if answer.control is not None else ""


_WORDS = {HIGHER: "better than {}", LOWER: "worse than {}"}


def _compared(row: dict[str, Any], reference: str, metric: str) -> str:
    digits = comparison_decimals(row, metric)
    mean = fmt.difference(row["difference"], metric, digits)
    if has_no_width(row["holm_low"], row["holm_high"]):
        return f"equal to {reference} in every split" if row["p"] == 1 else f"{mean} in every split"
    if isnan(row["p"]):
        return f"{mean} from {reference}, without an interval"
    words = _WORDS.get(row["verdict"], "cannot be told apart from {}").format(reference)
    low, high = (fmt.difference(row[end], metric, digits) for end in ("holm_low", "holm_high"))
    return f"{words} ({mean}: {low} to {high})"


def comparison_decimals(row: dict[str, Any], metric: str) -> int:
    """Return the number of decimals of a difference and its adjusted interval.

    No end of an interval without 0 is printed as 0, and neither are both ends of another one.

    Parameters
    ----------
    row : dict
        Comparison with the reference; see `DatasetAnswer.against_reference`.
    metric : str
        Name of the metric.
    """
    ends = row["holm_low"], row["holm_high"]
    if row["verdict"] in (HIGHER, LOWER) or not all(map(isfinite, ends)):
        return fmt.decimals([row["difference"], *ends], metric)
    return fmt.decimals([max(ends, key=abs)], metric)


def has_no_width(low: float, high: float) -> bool:
    """Return whether an interval has no width, because the values of all splits are equal.

    Parameters
    ----------
    low, high : float
        Ends of the interval; NaN if there is none.
    """
    return high - low <= NO_WIDTH


def header(study: Findings, dataset: str) -> str:
    """Return the name and the size of a dataset: rows, columns, classes, share of the largest class.

    Parameters
    ----------
    study : Findings
        The study of the report.
    dataset : str
        Name of the dataset.
    """
    description = study.design.datasets[dataset]
    sizes = (("n", "row"), ("d", "column"))
    parts = [fmt.plural(description[key], noun) for key, noun in sizes if key in description]
    if counts := description.get("class_counts"):
        parts += [
            f"{len(counts)} classes",
            f"largest class {fmt.share(max(counts.values()) / sum(counts.values()))} %",
        ]
    return "  ".join(filter(None, [dataset, " · ".join(parts)]))


def answer_sentences(study: Findings, answer: DatasetAnswer, beside_table: bool = False) -> list[str]:
    """Return the conclusion for one dataset, its assumptions, and what would change it.

    Parameters
    ----------
    study : Findings
        The study of the report.
    answer : DatasetAnswer
        The answer for the dataset.
    beside_table : bool, default=False
        Whether the caption of a table explains the numbers, so that these sentences need not.
    """
    if not answer.complete:
        splits = f"all {answer.n_splits} splits" if answer.n_splits > 1 else "the only split"
        none = f"No solver has finished {splits} of {answer.dataset}."
        return [none, budget_note(study)]
    return [
        *_conclusion(study, answer),
        *_hidden_class(answer, study.design.metric),
        *_too_high(study, answer),
        "" if beside_table else _notation(study, answer),
        *_agreement(answer),
        _scope(answer),
        *_repeats(answer),
        *_post_hoc(answer),
        *_missing(answer),
        budget_note(study),
    ]


def _conclusion(study: Findings, answer: DatasetAnswer) -> list[str]:
    """Name the solvers to take, and say if none of them is shown to be better than the baseline.

    Parameters
    ----------
    study : Findings
        The study of the report.
    answer : DatasetAnswer
        The answer for the dataset.
    """
    if answer.n_splits < 2:
        return ["One split gives no interval and no test, so each of these differences may be chance."]
    if answer.reference is None:
        return [f"The control {answer.control} is not complete, so nothing is compared with it."]
    compared, reference, metric = answer.against_reference(), answer.reference, study.design.metric
    better = [arm for arm in answer.complete if arm in compared and compared[arm]["verdict"] == HIGHER]
    same = [arm for arm in answer.complete if arm in compared and _is_open(compared[arm])]
    below = {*answer.arms.loc[answer.arms["baseline_difference"] < 0, "solver"]}
    apart = set() if reference in below else below
    near = [arm for arm in same if arm not in apart and is_near(compared[arm], study.design.rope)]
    unclear = [arm for arm in same if arm not in near]
    told = fmt.plural(answer.n_splits, "split")
    allowed = _allowed([compared[arm] for arm in unclear], study.design)
    if better:
        are = "it is" if len(better) == 1 else "each is"
        text = f"Take {_either(better)}: on data like these {are} better than {reference}"
    elif near:
        text = f"Take {_either([reference, *near])}: on data like these {_near_words(study, near, compared)}"
        if unclear:
            text += f"; whether {_either(unclear)} differs is open{allowed}"
    elif unclear and answer.control is None:
        tied = [arm for arm in unclear if abs(compared[arm]["difference"]) <= NO_WIDTH]
        lower = [arm for arm in unclear if arm not in tied]
        have, them = ("they share the highest mean", "them") if tied else ("it has the highest mean", "it")
        differs = f"{_either(lower)} differs from {them}" if lower else "they differ"
        text = (
            f"Take {_either([reference, *tied])}: on data like these {have}, but {told} cannot tell whether "
            f"{differs}{allowed}"
        )
    elif unclear:
        differs = f"{_either(unclear)} differs from {reference}"
        text = f"On data like these, {told} cannot tell whether {differs}{allowed}"
    elif compared:
        text = f"Take {reference}: on data like these it is better than every other"
    else:
        text = "A comparison needs a second solver" + (" that is complete" if len(answer.arms) > 1 else "")
    if not _none_above_baseline(answer):
        return [f"{text}."]
    return [f"{text}.", f"Nothing is shown to be better than the baseline ({_reached(answer, metric)})."]


def _is_open(row: dict[str, Any]) -> bool:
    return row["verdict"] not in (HIGHER, LOWER)


def is_near(row: dict[str, Any], rope: float | None) -> bool:
    """Return whether a difference is shown to be without practical importance.

    This is a test of equivalence by interval inclusion: the whole adjusted interval of the difference must
    lie in the region of practical equivalence. A wider interval of the same difference is never nearer. An
    interval without width is no evidence, so that only solvers of equal scores in all splits are near.

    Parameters
    ----------
    row : dict
        Comparison with the reference; see `DatasetAnswer.against_reference`.
    rope : float or None
        Largest difference without practical importance, `report.rope`; None if the study has none.
    """
    low, high = row["holm_low"], row["holm_high"]
    if has_no_width(low, high):
        return bool(abs(row["difference"]) <= NO_WIDTH)
    return rope is not None and bool(max(-low, high) <= rope)


def _near_words(study: Findings, near: Sequence[str], compared: dict[str, dict[str, Any]]) -> str:
    """Return a clause that states how far solvers without a difference of importance may be apart.

    Parameters
    ----------
    study : Findings
        The study of the report.
    near : sequence of str
        Solvers that are near the reference.
    compared : dict of str to dict
        Comparisons with the reference, by arm.
    """
    metric, most = study.design.metric, _largest_end([compared[arm] for arm in near])
    if isnan(most):
        return "their scores are equal in every split"
    size = fmt.difference(most, metric, fmt.decimals([most], metric, least=2)).lstrip("+")
    unit = " points" if fmt.is_percent(metric) else ""
    margin = fmt.margin(study.design.rope or 0.0, metric)
    which = "the interval of their difference allows" if len(near) == 1 else "the intervals allow"
    return f"{which} at most {size}{unit}, and up to {margin} has no practical importance (report.rope)"


def _allowed(rows: Sequence[dict[str, Any]], design: Design) -> str:
    """Return the largest difference from the reference that the intervals of open comparisons allow.

    Parameters
    ----------
    rows : sequence of dict
        Comparisons with the reference that show no difference.
    design : Design
        The design of the study.

    Returns
    -------
    str
        A clause. Empty if no interval has a width.
    """
    largest = _largest_end(rows)
    if isnan(largest):
        return ""
    metric = design.metric
    unit = " points" if fmt.is_percent(metric) else ""
    most = fmt.difference(largest, metric, fmt.decimals([largest], metric)).lstrip("+")
    which = "the interval allows" if len(rows) == 1 else "their intervals allow"
    low, high = design.score_bounds
    if low is not None and high is not None and largest >= high - low:  # no scores are further apart
        return f": {which} any difference"
    return f": {which} differences of up to {most}{unit}"


def _largest_end(rows: Sequence[dict[str, Any]]) -> float:
    """Return the end of adjusted intervals that is farthest from 0; NaN if no interval has a width.

    Parameters
    ----------
    rows : sequence of dict
        Comparisons with the reference.
    """
    ends = [
        abs(row[name])
        for row in rows
        if not has_no_width(row["holm_low"], row["holm_high"])
        for name in ("holm_low", "holm_high")
        if isfinite(row[name])
    ]
    return max(ends, default=nan)


def _reached(answer: DatasetAnswer, metric: str) -> str:
    unit = " %" if fmt.is_percent(metric) else ""
    return f"always {_always(answer).removeprefix('always ')}: {fmt.score(answer.baseline, metric, 1)}{unit}"


def _either(names: Sequence[str]) -> str:
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} or {names[-1]}"


def _hidden_class(answer: DatasetAnswer, metric: str) -> list[str]:
    """State what the baseline reaches, and the key that changes the metric, if accuracy hides a class.

    Parameters
    ----------
    answer : DatasetAnswer
        The answer for the dataset.
    metric : str
        Name of the metric.
    """
    if answer.rare_class is None:
        return []
    label, share = answer.rare_class
    hides = f"hides class {printable(label)} ({fmt.share(share)} % of the rows)"
    is_said = isnan(answer.baseline) or _none_above_baseline(answer)
    because = "Accuracy" if is_said else f"The baseline ({_reached(answer, metric)}) shows that accuracy"
    return [f"{because} {hides}: metric=balanced_accuracy counts every class alike."]


def _too_high(study: Findings, answer: DatasetAnswer) -> list[str]:
    """State why scores are too high: columns that give the label, and copies of training rows.

    Parameters
    ----------
    study : Findings
        The study of the report.
    answer : DatasetAnswer
        The answer for the dataset.
    """
    known = study.design.datasets[answer.dataset]
    found = label_warning(known.get("label_columns") or ())
    copies = copies_warning(printable(answer.dataset), known.get("tested_copies") or 0.0)
    return [f"{text[0].upper()}{text[1:]}." for text in (printable(found), copies) if text]


def _none_above_baseline(answer: DatasetAnswer) -> bool:
    lows = answer.arms.loc[answer.arms["complete"].astype(bool), "baseline_low"]
    return bool(lows.notna().any() and not (lows > 0).any())


def _notation(study: Findings, answer: DatasetAnswer) -> str:
    """State which test and which intervals are shown, and their assumption; empty for a single split.

    Parameters
    ----------
    study : Findings
        The study of the report.
    answer : DatasetAnswer
        The answer for the dataset.
    """
    if answer.n_splits < 2:
        return ""
    notation = f"±: standard error; in parentheses {fmt.level(study.design.alpha)} intervals"
    number = len(answer.comparisons)
    if not answer.against_reference():
        return f"{notation}."
    notation += ", those of comparisons adjusted like the test." if number > 1 else "."
    family = "all pairs" if answer.control is None else f"every solver against {answer.control}"
    holm = f", Holm over {number} comparisons ({family})" if number > 1 else ""
    return (
        f"{notation} Test: corrected resampled t over {answer.n_splits} splits{holm}, which takes "
        "differences as normally distributed."
    )


def _agreement(answer: DatasetAnswer) -> list[str]:
    """State that equal values in all splits give no interval, if a mean or a comparison has such values.

    Parameters
    ----------
    answer : DatasetAnswer
        The answer for the dataset.
    """
    if answer.n_splits < 2:
        return []
    rows = answer.arms[answer.arms["complete"].astype(bool)].to_dict("records")
    ends = [(row[f"{of}_low"], row[f"{of}_high"]) for row in rows for of in ("mean", "baseline")]
    ends += [(row["holm_low"], row["holm_high"]) for row in answer.against_reference().values()]
    if not any(has_no_width(*pair) for pair in ends):
        return []
    return [
        "Values that are equal in every split give no interval and no verdict; they may differ in other "
        "splits."
    ]


def _repeats(answer: DatasetAnswer) -> list[str]:
    """State what more repeats would change, if some solvers cannot be told apart.

    Parameters
    ----------
    answer : DatasetAnswer
        The answer for the dataset.
    """
    rows = answer.against_reference().values()
    wide = [row for row in rows if not has_no_width(row["holm_low"], row["holm_high"])]
    if isnan(answer.least_width) or not any(map(_is_open, wide)):
        return []
    least, more = _narrower(answer.least_width), answer.more
    if more is None or more.width > _HARDLY:
        return [f"More repeats would narrow the intervals by at most {least}; more rows would do more."]
    cost = f" ({_minutes(more.seconds)})" if isfinite(more.seconds) else ""
    return [
        f"protocol.repeats={more.total}{cost} would narrow the intervals by {_narrower(more.width)}, "
        f"any number of repeats by at most {least}{_would_be_late(answer, more.total)}."
    ]


def _would_be_late(answer: DatasetAnswer, total: int) -> str:
    """Return a clause on how a report will call repeats that are added now; empty if they were planned.

    Parameters
    ----------
    answer : DatasetAnswer
        The answer for the dataset.
    total : int
        Number of repeats that the sentence proposes.
    """
    if answer.planned_repeats >= total:
        return ""
    return "; a report will call repeats that are added now post hoc, chosen after results were seen"


def _scope(answer: DatasetAnswer) -> str:
    """State which data the numbers describe.

    Parameters
    ----------
    answer : DatasetAnswer
        The answer for the dataset.
    """
    if answer.n_splits < 2:
        return "The means speak of new data of this size. They say nothing of other datasets."
    conservative = ", and are conservative for differences" if answer.against_reference() else ""
    return f"The intervals speak of new data of this size{conservative}. They say nothing of other datasets."


def _narrower(width: float) -> str:
    return f"{100 * (1 - width):.0f} %"


def _minutes(seconds: float) -> str:
    return (
        f"about {format_seconds(seconds if seconds < 90 else 60 * round(seconds / 60)).removesuffix(' 0 s')}"
    )


def _post_hoc(answer: DatasetAnswer) -> list[str]:
    """State that repeats were added after scores had been stored.

    Parameters
    ----------
    answer : DatasetAnswer
        The answer for the dataset.
    """
    if max(answer.first_repeats, answer.planned_repeats) >= answer.repeats:
        return []
    return [
        f"Post hoc: the repeats were raised from {answer.first_repeats} to {answer.repeats} after scores of "
        "this dataset were stored, so the tests are not those that were planned."
    ]


def _missing(answer: DatasetAnswer) -> list[str]:
    if len(answer.complete) == len(answer.arms):
        return []
    number = len(answer.complete)
    return [f"{number} of {len(answer.arms)} solvers {'is' if number == 1 else 'are'} complete."]


def budget_note(study: Findings) -> str:
    """Return a sentence if the budget of the newest run was spent; empty otherwise.

    Parameters
    ----------
    study : Findings
        The study of the report.
    """
    run = study.provenance[-1] if study.provenance else {}
    if not run.get("budget_spent"):
        return ""
    return f"The budget minutes={run['minutes']:g} ended the run."


def answer_block(study: Findings, answer: DatasetAnswer) -> str:
    """Return the answer for one dataset as text of `WIDTH` columns, in which no word is broken.

    Parameters
    ----------
    study : Findings
        The study of the report.
    answer : DatasetAnswer
        The answer for the dataset.
    """
    rows = answer_lines(study, answer)
    names = min(_WIDEST_NAME, max((len(printable(row.solver)) for row in rows), default=0))
    scores = max((len(row.score) for row in rows), default=0)
    lines = filled(printable(header(study, answer.dataset)))
    for row in rows:
        lines += _solver_lines(row, names, scores)
    sentences = filter(None, answer_sentences(study, answer))
    return "\n".join([*lines, *filled(" ".join(sentences))])


def _solver_lines(row: Line, names: int, scores: int) -> list[str]:
    """Return the lines of one solver: its name, its score, and its finding in a column of its own.

    Parameters
    ----------
    row : Line
        The solver.
    names, scores : int
        Widths of the columns.
    """
    start = f"{printable(row.solver):<{names}}  {row.score:<{scores}}"
    column = names + scores + 5
    if column > WIDTH - _NARROWEST or len(start) + 3 > column:
        return [start.rstrip(), *filled(row.finding, "    ")]
    first, *others = filled(row.finding, " " * column) or [""]
    return [f"{start}   {first.strip()}".rstrip(), *others]


_NO_BREAK = "\N{NO-BREAK SPACE}"


def filled(text: str, indent: str = "") -> list[str]:
    """Break a text between words, and neither within a number with its unit nor within an interval.

    Parameters
    ----------
    text : str
        The text, on one line.
    indent : str
        Start of each line. Default: none.
    """
    for whole in (" %", " to +", " to −", ": +", ": −", " ± "):
        text = text.replace(whole, whole.replace(" ", _NO_BREAK))
    lines = wrap(
        text,
        WIDTH,
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line.replace(_NO_BREAK, " ") for line in lines]
