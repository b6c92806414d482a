"""Choices of a report, such as its control and its level, and when they were made."""

from orchestrator.analysis.findings import Findings
from orchestrator.report import format as fmt
from orchestrator.report.adjusted import NAMES
from orchestrator.study.families import APART, ONCE
from orchestrator.study.report_choices import CONSTANT, LEAVE_OUT, MAX_T, ReportChoices

_COUNTED = {ONCE: "a family of datasets counts once", APART: "each dataset of a family counts"}

_FAILED = {
    LEAVE_OUT: "datasets with failed refits left out",
    CONSTANT: "failed refits score as the majority class",
}


def choices(study: Findings) -> tuple[list[str], list[str]]:
    """Return the choices that were declared before any score, and those made after the first ones.

    Parameters
    ----------
    study : Findings
        The study of the report.

    Returns
    -------
    declared, late : list of str
        One phrase for each choice that is not the default, and for each that differs from the first one.
    """
    chosen, default = study.design.choices, ReportChoices()
    control, is_several = next(iter(study.design.arms), None), len(study.design.datasets) > 1
    first = chosen.first or default
    rope = study.design.rope
    region = f"{'no ' if rope is None else ''}region of practical equivalence"
    region += "" if rope is None else f" of ±{fmt.margin(rope, study.design.metric)}"
    without = f"without {fmt.listed(list(chosen.leave_out))}" if chosen.leave_out else "nothing left out"
    phrases = {
        f"control {control}": (
            chosen.control is not None,
            # Without a declared control, all pairs are compared on one dataset, and no arm is the control.
            first.control not in (None, control) and (is_several or chosen.control is not None),
        ),
        f"level {chosen.alpha:g}": (chosen.alpha != default.alpha, chosen.alpha != first.alpha),
        region: (chosen.rope is not None, rope != study.design.rope_of(first)),
        _COUNTED[chosen.families]: (
            chosen.families != default.families,
            chosen.families != first.families,
        ),
        without: (bool(chosen.leave_out), chosen.leave_out != first.leave_out),
        f"adjustment by {NAMES[chosen.adjustment]}": (
            chosen.adjust == MAX_T,
            chosen.adjustment != first.adjustment,
        ),
        _FAILED[chosen.failed]: (chosen.failed != default.failed, chosen.failed != first.failed),
        f"{'' if chosen.sequential else 'no '}tests after each dataset": (
            chosen.sequential,
            chosen.sequential != first.sequential,
        ),
    }
    declared = [text for text, (is_chosen, is_late) in phrases.items() if is_chosen and not is_late]
    late = [text for text, (_, is_late) in phrases.items() if is_late]
    return declared, late


def choices_sentences(study: Findings) -> list[str]:
    """List the choices of this report, and which of them were made after scores were stored.

    Parameters
    ----------
    study : Findings
        The study of the report.
    """
    declared, late = choices(study)
    sentences = [f"Declared before any score: {', '.join(declared)}."] if declared else []
    return sentences + ([f"Chosen post hoc, after the first scores: {', '.join(late)}."] if late else [])
