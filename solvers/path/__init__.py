"""Training for all C of a split at once: one driver over any block solver, and its result.

May import every folder but `estimators`.
"""
