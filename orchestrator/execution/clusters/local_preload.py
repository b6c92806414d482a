"""Imported first by local workers, whose terminal is the client's.

Ctrl-C reaches them too, but is meant for the client. A heartbeat that meets a closed scheduler, as happens at
the end of a run on a busy host, is no error: workers end with their scheduler.
"""

import logging
import signal

signal.signal(signal.SIGINT, signal.SIG_IGN)
logging.getLogger("distributed.worker").addFilter(
    lambda record: "Failed to communicate with scheduler during heartbeat" not in record.getMessage()
)
