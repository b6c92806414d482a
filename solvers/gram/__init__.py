"""The same problems on a dense block of kernel values, and all machines of a path from one Gram matrix.

Pair steps, Newton's method on the support or in a low-rank space, and the minimal-norm loop.
May import `common`, `kernels`, `hull`, `solvers.problem` and `solvers.multiclass`.
"""
