"""The tables and records of a study on disk."""
