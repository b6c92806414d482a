"""The client's side: prepare, plan, queue, run, resume."""
