"""Comparison of classifiers from Python: data and estimators in memory become a study, and its result."""
