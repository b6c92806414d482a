"""The scikit-learn estimators, one class a file, and what they share.

Checks of parameters, samples and labels; predictions; probabilities; fitted attributes; `fit_path`.
May import every other room; only `solvers` itself imports this one.
"""
