"""Classify by the geometry of the version space: its ellipsoids, its centre of mass, relative margins.

The version space is the set of all weight vectors that separate the training samples.
This package may import `common`, `kernels`, `gram`, `smo` and `solvers.problem`.
"""
