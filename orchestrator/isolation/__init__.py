"""Child processes, process state, class checks, interrupts: what keeps one training from harming another."""
