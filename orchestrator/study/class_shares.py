"""The share of the rows below which a class is rare."""

_RARE = 0.25
"""Share of the rows of a rare class, relative to that of equal classes."""


def rare_share(n_classes: int) -> float:
    """Return the share of the rows below which accuracy hides a class.

    Parameters
    ----------
    n_classes : int
        Number of classes.
    """
    return _RARE / n_classes
