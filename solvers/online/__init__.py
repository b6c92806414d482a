"""Train a support vector machine in a few passes over the samples, on a set that grows and shrinks (LASVM).

Only this package knows samples that arrive one after the other. `solvers.smo` certifies its models.
This package may import `common`, `kernels`, `gram`, `smo` and `solvers.problem`.
"""
