"""The power of a planned comparison, in words."""

from math import inf, isinf

from orchestrator.analysis.power import POWER, Spread, datasets_for, detectable_effect
from orchestrator.analysis.signed_rank import datasets_needed
from orchestrator.report import format as fmt
from orchestrator.study.report_choices import HOLM, MAX_T


def detectable_points(
    n: int, family: int, alpha: float, spread: Spread, metric: str, adjustment: str = HOLM
) -> str:
    """State the difference that n units can detect in the unit of the metric; empty if there is none.

    Parameters
    ----------
    n : int
        Number of datasets or families.
    family : int
        Number of tests of the family.
    alpha : float
        Level of the tests.
    spread : Spread
        Standard deviation between datasets in an earlier study.
    metric : str
        Name of the metric.
    adjustment : {"holm", "maxt"}, default="holm"
        Procedure that adjusts p-values.
    """
    effect = detectable_effect(n, family, alpha, adjustment) if n > 1 else inf
    if isinf(effect):
        return ""
    pairs = fmt.plural(spread.n_pairs, "pair")
    found, low, high = (
        fmt.difference(effect * sd, metric).lstrip("+") for sd in (spread.typical, spread.low, spread.high)
    )
    unit = " percentage points" if fmt.is_percent(metric) else ""
    between = f" ({low} to {high} over {pairs} of arms)" if spread.n_pairs > 1 else ""
    return (
        f"With the spread between the datasets of {spread.study}, that is a mean difference of {found}{unit}"
        f"{between}."
    )


def detectable_difference(
    n: int, family: int, alpha: float, unit: str = "dataset", adjustment: str = HOLM
) -> str:
    """State the difference that n units can detect, and how many units detect one standard deviation.

    The text is empty for a single unit, on which no test over units is made.

    Parameters
    ----------
    n : int
        Number of datasets or families.
    family : int
        Number of tests of the family.
    alpha : float
        Level of the tests; intervals are at 1 − α.
    unit : str, default='dataset'
        Name of a unit, in the singular: `dataset` or `family`.
    adjustment : {"holm", "maxt"}, default="holm"
        Procedure that adjusts p-values.
    """
    if n < 2:
        return ""
    effect, enough = (
        detectable_effect(n, family, alpha, adjustment),
        datasets_for(1, family, alpha, adjustment),
    )
    plan = f"With {fmt.plural(n, unit)} and {fmt.plural(family, 'comparison')} at level {alpha:g}"
    plan += ", adjusted by max-t" if adjustment == MAX_T and family > 1 else ""
    units = fmt.plural_of(unit)
    power = f"{100 * POWER:g} % power"
    if isinf(effect):
        needed = datasets_needed(1 if adjustment == MAX_T else family, alpha)
        return (
            f"{plan}, no difference can be significant. Significance requires at least "
            f"{needed} {units}, and {power} for a mean difference of 1 standard "
            f"deviation (between {units}) requires {enough}."
        )
    return (
        f"{plan}, {power} requires a mean difference of {effect:.2f} standard deviations (between {units}). "
        f"A difference of 1 standard deviation requires {fmt.plural(enough, unit)}."
    )
