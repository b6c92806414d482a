"""The bias of a subproblem, computed from its hull point (Strack 2013, 2.98, 5.24, 5.28)."""

import numpy as np


def class_biases(rule, label, alpha, g, square_norm, n_classes):
    """Return y_t·b for every class t.

    Parameters
    ----------
    rule : {"theoretic", "average", "none"}
        Formula of the bias; "none" returns zeros.
    label : ndarray of int
        Class of each support vector.
    alpha : ndarray
        Weight of each support vector in the hull point.
    g : ndarray
        Inner product x̃_i · c of each support vector with the hull point c.
    square_norm : float
        Squared norm ‖c‖² of the current point c.
    n_classes : int
        Number of classes. A binary subproblem has two, and its bias is that of its first class.

    Returns
    -------
    ndarray of shape (n_classes,)
        y_t·b of each class, not divided by the margin.

    Notes
    -----
    Substituting g_i = Σ_j α_j (y_i·y_j) k(i, j) + (y_i·b) + α_i/C into (5.28) shows that the average bias is
    the theoretic bias plus the mean of ‖c‖² − g_i over S_t.
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
