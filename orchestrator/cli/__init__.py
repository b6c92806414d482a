"""Verbs of the command line, and their output on a terminal."""
