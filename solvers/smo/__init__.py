"""Sequential minimal optimisation for the L1 and the L2 loss, on rows of the kernel.

May import `common`, `kernels` and `solvers.problem`.
"""
