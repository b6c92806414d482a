"""Kernel functions between blocks of samples, and between one sample and many; their features are float64.

May import `common`.
"""
