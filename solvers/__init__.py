"""Geometric support vector machines as scikit-learn estimators over numba kernels."""
