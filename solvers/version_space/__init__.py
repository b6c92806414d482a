"""Machines that the version space motivates: Bayes points, ellipsoids, relative margins and soft balls.

The version space of a training set is the set of unit normals that classify all its samples correctly.
This package may import `common`, `kernels`, `gram`, `smo` and `solvers.problem`.
"""
