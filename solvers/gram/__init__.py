"""Blocks of kernel values: gathering, pairs of classes, Cholesky factors, and the outcomes of a path.

May import `common`, `kernels`, `solvers.problem` and `solvers.multiclass`.
"""
