"""The minimal-norm problem and the ball problems: draws, steps, stopping rules, biases.

Each algorithm stands here in two forms: by rows of the kernel and on a block of kernel values (`block_*`).
May import `common`, `kernels`, `gram` and `solvers.problem`.
"""
