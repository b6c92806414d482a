"""Client side of a run: prepare, plan, queue, run and resume."""
