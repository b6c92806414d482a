"""Say in words how much time is left."""

import math
from collections.abc import Mapping, Sequence

from orchestrator.study.text import format_seconds
from orchestrator.study.trials import Pair

_NAMED = 3
"""Largest number of arms that a part of a line names."""


def time_left(seconds: Mapping[Pair, float]) -> str:
    """Return the remaining time, and the arms whose time it does not contain because it is not known yet.

    Parameters
    ----------
    seconds : mapping of Pair to float
        Expected wall seconds of the remaining trials by dataset × arm; NaN where no training shows them.

    Returns
    -------
    str
        Such as `about 3 min 20 s left`.
    """
    unknown = [*dict.fromkeys(arm for (_, arm), value in seconds.items() if math.isnan(value))]
    if seconds and len(unknown) == len({arm for _, arm in seconds}):
        return f"the time of {first_names(unknown)} is not known yet"
    known = sum(value for value in seconds.values() if not math.isnan(value))
    text = f"about {format_seconds(known)} left"
    return f"{text} without {first_names(unknown)}, whose time is not known yet" if unknown else text


def first_names(arms: Sequence[str]) -> str:
    """Return the first names of arms, and how many more there are.

    Parameters
    ----------
    arms : sequence of str
        Names of arms.
    """
    more = f" and {len(arms) - _NAMED:,} more" if len(arms) > _NAMED else ""
    return f"{', '.join(arms[:_NAMED])}{more}"
