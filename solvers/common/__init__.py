"""What every room uses.

Compilation, statuses, selection of samples, bounds of rounding, limits, memory, seeds and BLAS.
May import nothing of this package.
"""
