"""The memory that a call takes at most."""

import tracemalloc


def peak_bytes(call):
    """What a call allocates at most beyond what was there, and what it returns."""
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        result = call()
        return tracemalloc.get_traced_memory()[1] - before, result
    finally:
        tracemalloc.stop()
