"""What a planned comparison can find, in words."""

from math import isinf

from orchestrator.analysis.power import POWER, datasets_for, detectable_effect
from orchestrator.analysis.signed_rank import datasets_needed
from orchestrator.report import format as fmt


def detectable_difference(n: int, family: int, alpha: float) -> str:
    """Say which difference n datasets can find with a family of tests, and how many another one takes."""
    effect, enough = detectable_effect(n, family, alpha), datasets_for(1, family, alpha)
    plan = f"With {fmt.plural(n, 'dataset')} and {fmt.plural(family, 'comparison')} at level {alpha:g}"
    power = f"{100 * POWER:g} % power"
    if isinf(effect):
        return (
            f"{plan} no difference can be found, whatever the scores: that takes at least "
            f"{datasets_needed(family, alpha)} datasets, and {power} for a mean difference of 1 standard "
            f"deviation (between datasets) takes {enough}."
        )
    return (
        f"{plan}, {power} takes a mean difference of {effect:.2f} standard deviations (between datasets); "
        f"1 standard deviation takes {fmt.plural(enough, 'dataset')}."
    )
