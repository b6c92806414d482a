"""Blocks of kernel values: gathering, pairs of classes, Cholesky factors, and the outcomes of a path.

This package may import `common`, `kernels`, `solvers.problem` and `solvers.multiclass`.
"""
