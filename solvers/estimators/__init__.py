"""One scikit-learn estimator a file, and what they share.

Checks of parameters, samples and labels, predictions, probabilities, fitted attributes.
May import every other room; nothing but `solvers` itself imports this one.
"""
