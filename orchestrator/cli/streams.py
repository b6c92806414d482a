"""The standard streams of a command, whose reader may end before the command."""

import os
import sys
from contextlib import suppress


def flush() -> None:
    """Flush the standard streams, and drop their output if the reader has ended."""
    for stream in filter(None, (sys.stdout, sys.stderr)):
        try:
            stream.flush()
        except BrokenPipeError:
            drop_output()


def drop_output() -> None:
    """Send the output of closed streams to the null device, so that Python does not fail at exit."""
    with suppress(OSError, ValueError), open(os.devnull, "w") as nothing:
        for stream in filter(None, (sys.stdout, sys.stderr)):
            try:
                stream.flush()
            except OSError:
                os.dup2(nothing.fileno(), stream.fileno())
