"""Train for the hinge loss by one-slack cutting planes, on features or on a basis of kernel functions.

This package may import `common` and `kernels`.
"""
