"""Dask: the client, the processes it starts, and their settings."""
