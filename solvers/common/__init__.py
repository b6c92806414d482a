"""Helpers that every other folder uses.

Compilation, statuses, selection of samples, rounding bounds, limits, memory, seeds and BLAS threads.
May import nothing else of this package.
"""
