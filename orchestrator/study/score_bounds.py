"""Lowest and highest values of scikit-learn's scorers, by their names."""

_ONE = (
    "accuracy", "average_precision", "balanced_accuracy", "d2_brier_score", "d2_log_loss_score", "f1",
    "jaccard", "matthews_corrcoef", "precision", "recall", "roc_auc", "top_k_accuracy",
)  # fmt: skip
"""Prefixes of the names of scorers with the highest value 1."""

_BELOW_ZERO = {"matthews_corrcoef": -1.0, "d2_brier_score": None, "d2_log_loss_score": None}
"""Lowest values of the scorers of `_ONE` that may be negative; None without one."""


def lowest_score(metric: str) -> float | None:
    """Return the lowest value of one of scikit-learn's scorers; None if it has none, or it is unknown.

    Parameters
    ----------
    metric : str
        Name of the scorer.
    """
    return _BELOW_ZERO.get(metric, 0.0) if metric.startswith(_ONE) else None


def highest_score(metric: str) -> float | None:
    """Return the highest value of one of scikit-learn's scorers; None if it is unknown.

    Parameters
    ----------
    metric : str
        Name of the scorer.
    """
    if metric.startswith("neg_"):  # the negated quantity is an error or loss, which is at least 0
        return 0.0
    return 1.0 if metric.startswith(_ONE) else None
