"""Kernel functions between blocks of samples, and between one sample and many. Features are float64.

Also the kernel of one subproblem, computed in parts within its deadline.
May import `common`.
"""
