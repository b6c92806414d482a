"""Prepare a local worker, which shares the client's terminal. Its process imports this module first.

The worker receives Ctrl-C as well, although it is meant for the client. At the end of a run on a busy host, a
heartbeat may meet a closed scheduler. This is not an error, because workers end with their scheduler.
"""

import logging
import signal

signal.signal(signal.SIGINT, signal.SIG_IGN)
logging.getLogger("distributed.worker").addFilter(
    lambda record: "Failed to communicate with scheduler during heartbeat" not in record.getMessage()
)
