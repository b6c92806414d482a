"""Whether a study has enough datasets for any significant difference, and the sentence if it has not."""

from dataclasses import dataclass

import pandas as pd

from orchestrator.analysis import findings
from orchestrator.analysis.findings import Findings
from orchestrator.analysis.signed_rank import datasets_needed, smallest_p
from orchestrator.report import format as fmt
from orchestrator.report.adjusted import is_max_t


@dataclass(frozen=True)
class Attainable:
    """What the tests of one kind, of scores or of times, can find whatever the differences are.

    Attributes
    ----------
    n, n_differing : int
        Largest number of datasets of a comparison, and of datasets on which its arms differ.
    factor : int
        Smallest number by which the adjustment multiplies a p-value of this kind.
    needed : int
        Smallest number of datasets that differ with which a comparison can be significant.
    """

    n: int
    n_differing: int
    factor: int
    needed: int

    @property
    def is_too_few(self) -> bool:
        """Whether no comparison can be significant. False without any comparison."""
        return self.n > 0 and self.n_differing < self.needed


def attainable(study: Findings) -> tuple[Attainable, Attainable]:
    """Return what the tests of scores and those of training times can find.

    Both kinds are one family. By Holm's method, differences of one kind that are significant leave a smaller
    factor to those of the other kind.

    Parameters
    ----------
    study : Findings
        The study of the report, with a tested pair.

    Returns
    -------
    scores, times : Attainable
        The two kinds of tests.
    """
    tests, times, alpha = findings.tests(study), findings.time_ratios(study), study.design.alpha
    family, n_scores = int(tests["family"].iloc[0]), len(tests)
    counts = [_counts(tests["n"], tests["n_zero"]), (0, 0)]
    if len(times):
        counts[1] = _counts(times["fit_seconds_n"], times["fit_seconds_n_zero"])
    can_scores, can_times = (family * smallest_p(differing) <= alpha for _, differing in counts)
    left = (family - (family - n_scores) * can_times, family - n_scores * can_scores)
    factors = (1, 1) if is_max_t(study) else left
    scores, of_times = (
        Attainable(*each, factor, datasets_needed(factor, alpha))
        for each, factor in zip(counts, factors, strict=True)
    )
    return scores, of_times


def _counts(n: pd.Series, n_zero: pd.Series) -> tuple[int, int]:
    return int(n.max()), int((n - n_zero).max())


def none_could_have_been(found: Attainable, unit: str) -> str:
    """Return a clause for a sentence that finds no difference, if there are too few datasets for any.

    Parameters
    ----------
    found : Attainable
        The tests of scores or of times.
    unit : str
        Unit that is counted, "dataset" or "family".

    Returns
    -------
    str
        Empty if a difference could have been significant, or if too few of enough datasets differ.
    """
    is_small = found.is_too_few and found.n < found.needed
    return f", and with {fmt.plural(found.n, unit)} none could have been" if is_small else ""


def too_few(study: Findings) -> list[str]:
    """Explain that too few datasets, or too few that differ, cannot give a significant difference of scores.

    Parameters
    ----------
    study : Findings
        The study of the report, with a tested pair.

    Returns
    -------
    list of str
        One sentence or two; empty if a difference could have been significant.
    """
    found, unit, metric = attainable(study)[0], study.design.unit, fmt.metric_name(study.design.metric)
    units = fmt.plural_of(unit)
    most = "" if findings.tests(study)["n"].nunique() == 1 else "at most "
    if not found.is_too_few:
        return []
    has_enough = found.n >= found.needed
    if has_enough and not found.n_differing:
        return [f"The scores are equal on all {units}."]
    if has_enough:
        differ = "differs" if found.n_differing == 1 else "differ"
        over, floor = f"Only {most}{found.n_differing} of {found.n} {units} {differ}, so", found.n_differing
    else:
        a_pair = " for a pair" if most else ""
        over, floor = f"With {most}{fmt.plural(found.n, unit)}{a_pair},", found.n
    over += f" the smallest attainable p is 2/2{fmt.superscript(floor)} = {smallest_p(floor):g}"
    if found.factor > 1:
        over += f", and Holm's adjustment over {found.factor} tests multiplies it by {found.factor}"
    which = " that differ" if has_enough else ""
    return [
        f"{over}. Therefore no difference in {metric} could have been significant at level "
        f"{study.design.alpha:g}, which requires at least {found.needed} {units}{which}."
    ]
