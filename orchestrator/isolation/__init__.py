"""Isolation of trainings: child processes, process state, class checks and interrupts."""
