"""Solve the L1 and L2 problems on large training sets, without a Gram matrix.

Only the samples near the margin get a block of kernel values. The gradient of all samples is exact.
This package may import `common`, `kernels`, `gram`, `smo`, `hull` and `solvers.problem`.
"""
