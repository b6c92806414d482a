"""Distributed nested cross-validation: declares, schedules, stores and reports comparisons of classifiers."""

__version__ = "0.1.0"
