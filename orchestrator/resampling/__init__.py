"""Outer and inner splits of the rows of a dataset."""
