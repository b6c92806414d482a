"""Solve the L2 problem exactly: choice of method, support Newton, low rank, features and pair steps.

This package may import `common`, `kernels`, `gram`, `smo`, `hull`, `margin` and `solvers.problem`.
"""
