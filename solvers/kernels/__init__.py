"""Kernel functions between blocks of samples, and between one sample and many; their features are float64.

Also the kernel of one machine in portions, within its deadline.
May import `common`.
"""
