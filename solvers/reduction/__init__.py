"""Reduce a training set to weighted representatives, and certify what their model is worth on all samples.

Only this package knows blocks of one class, balls of unlabelled samples and convex combinations of samples.
This package may import `common` and `kernels`.
"""
