"""Decision lists of linear subproblems, exact on one of two labels (Zapién, Fehr and Burkhardt 2007).

Only this package knows nearest points of hulls, planes without errors on one class, and lists of them.
This package may import `common`, `kernels`, `reduction`, `smo` and `solvers.problem`.
"""
