"""Sequential minimal optimisation for the L1 and the L2 loss with a free bias.

Each algorithm has two forms: on rows of the kernel (`row_*`), and on a block of kernel values (`block_*`).
Newton's method on the free weights, and the certificate, serve both.
This package may import `common`, `kernels`, `gram` and `solvers.problem`.
"""
