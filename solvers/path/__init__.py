"""Training for all C of a split at once: one driver over any block solver, its layout and its result.

May import every room but `estimators`.
"""
