"""All C of a split in one go: one driver for any block solver, its input, its result, and `fit_path`.

May import `gram` and what `gram` may.
"""
