"""The scikit-learn estimators, one class a file, and the code that they share.

Checks of parameters, samples and labels; predictions; probabilities; fitted attributes; `fit_path`.
May import every other folder. Only `solvers` itself imports this one.
"""
