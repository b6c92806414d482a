"""The minimal-norm and the ball problems on rows of the kernel, without a Gram matrix.

Draws, steps, stopping rules, biases, and the certificate of a machine; an algorithm a file.
May import `common`, `kernels` and `solvers.problem`.
"""
