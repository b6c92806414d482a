"""Solve the minimal-norm problem and the ball problems: draws, steps, stopping rules and biases.

Each algorithm has two forms: on rows of the kernel, and on a block of kernel values (`block_*`).
This package may import `common`, `kernels`, `gram` and `solvers.problem`.
"""
