"""Dask client, the processes that it starts, and their settings."""
