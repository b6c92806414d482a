"""The bias of a machine from its point of the hull (Strack 2013, 2.98, 5.24, 5.28)."""

import numpy as np


def class_biases(rule, label, alpha, g, square_norm, n_classes):
    """Return y_t·b for every class t.

    Parameters
    ----------
    rule : {"theoretic", "average", "none"}
    label : ndarray of int
        Class of each support vector.
    alpha, g : ndarray
        Its weight, and x̃_i · c.
    square_norm : float
        ‖c‖².
    n_classes : int
        Two for a binary machine, whose bias is that of its first class.

    Notes
    -----
    With g_i = Σ_j α_j (y_i·y_j) k(i, j) + (y_i·b) + α_i/C put into it, (5.28) says that the average bias is
    the theoretic one plus the mean over S_t of ‖c‖² − g_i.
    """
    if rule == "none":
        return np.zeros(n_classes)
    weight = np.bincount(label, alpha, n_classes)
    biases = weight - (weight.sum() - weight) / (n_classes - 1)
    if rule == "average":
        if n_classes == 2:  # (5.24) averages over both classes
            slack = np.where(label == 0, square_norm - g, g - square_norm).mean()
            return biases + np.array([slack, -slack])
        size = np.maximum(np.bincount(label, minlength=n_classes), 1)
        biases += np.bincount(label, square_norm - g, n_classes) / size
    return biases
