"""Run a module on another host, in a process that ends with the SSH connection.

SSH starts `python -m orchestrator.execution.clusters.ssh_host -m MODULE ARGUMENT …` there. The host uses the
settings of the client's host, except for the scratch folder. Only its user may be able to write to that
folder.
"""

import os
import runpy
import signal
import sys
import threading
import time

from orchestrator.execution.dask_settings import as_environment, private_scratch

CLOSE_SECONDS = 20.0
"""Longest time that a scheduler or worker may take to close after SIGTERM, in seconds."""


def main() -> None:
    """Run the module that the command line names."""
    threading.Thread(target=_end_with_connection, daemon=True).start()
    os.environ.update(as_environment(private_scratch()))
    module = sys.argv[2]
    sys.argv[1:3] = []
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def _end_with_connection() -> None:
    """End this process when the SSH connection ends: by SIGTERM, or at once after `CLOSE_SECONDS`."""
    while os.read(sys.stdin.fileno(), 4096):
        pass  # nothing is ever sent; the stream ends with the connection
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(CLOSE_SECONDS)
    os._exit(1)


if __name__ == "__main__":
    main()
