"""Exact solution of the L2 problem: choice of a method, support Newton, low rank, features, pair steps.

May import `common`, `kernels`, `gram`, `smo`, `hull`, `margin` and `solvers.problem`.
"""
