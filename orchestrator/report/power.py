"""What a planned comparison can find, in words."""

from math import isinf

from orchestrator.analysis.power import POWER, datasets_for, detectable_effect
from orchestrator.analysis.signed_rank import datasets_needed
from orchestrator.report import format as fmt


def detectable_difference(n: int, family: int, alpha: float, unit: str = "dataset") -> str:
    """Say which difference n datasets, or families, can find with so many tests, and how many others take.

    Parameters
    ----------
    n : int
        Number of datasets or families.
    family : int
        Number of tests of the family.
    alpha : float
        Level of the tests; intervals are at 1 − α.
    unit : str, default='dataset'
        What a test counts.
    """
    effect, enough = detectable_effect(n, family, alpha), datasets_for(1, family, alpha)
    plan = f"With {fmt.plural(n, unit)} and {fmt.plural(family, 'comparison')} at level {alpha:g}"
    units = fmt.plural_of(unit)
    power = f"{100 * POWER:g} % power"
    if isinf(effect):
        return (
            f"{plan} no difference can be found, whatever the scores: that takes at least "
            f"{datasets_needed(family, alpha)} {units}, and {power} for a mean difference of 1 standard "
            f"deviation (between {units}) takes {enough}."
        )
    return (
        f"{plan}, {power} takes a mean difference of {effect:.2f} standard deviations (between {units}); "
        f"1 standard deviation takes {fmt.plural(enough, unit)}."
    )
