"""Kinds of clusters, one class each: how to start, scale and close one."""
