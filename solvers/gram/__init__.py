"""The same problems on a dense block of kernel values, and all machines of a path from one Gram matrix.

Pair steps, Newton's method on the support or in a low-rank space, the minimal-norm loop, and the L1 and L2
problems with a free bias. May import `common`, `kernels`, `hull`, `smo`, `solvers.problem` and
`solvers.multiclass`.
"""
