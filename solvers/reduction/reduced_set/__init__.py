"""Reduced sets: sums of kernel functions replaced by sums over fewer vectors, with a bound on the error.

May import common and kernels. `expansion` describes the sums, and `choice` selects the method.
"""
