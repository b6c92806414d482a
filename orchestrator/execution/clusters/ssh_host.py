"""Run a module on another host, in a process that ends with the SSH connection.

SSH starts `python -m orchestrator.execution.clusters.ssh_host -m MODULE ARGUMENT …` there. Settings of the
client's host, which a host takes over otherwise, cannot say where only its own user can write.
"""

import os
import runpy
import signal
import sys
import threading
import time

from orchestrator.execution.dask_settings import as_environment, private_scratch

CLOSE_SECONDS = 20.0
"""How long a scheduler or a worker may take to close after SIGTERM."""


def main() -> None:
    """Run the module that the command line names."""
    threading.Thread(target=_end_with_connection, daemon=True).start()
    os.environ.update(as_environment(private_scratch()))
    module = sys.argv[2]
    sys.argv[1:3] = []
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def _end_with_connection() -> None:
    while os.read(sys.stdin.fileno(), 4096):
        pass  # nothing is ever sent; the stream ends with the connection, however that came to end
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(CLOSE_SECONDS)
    os._exit(1)


if __name__ == "__main__":
    main()
