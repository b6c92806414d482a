"""Run a module on another host, with Dask's working folders where only their user can write.

SSH starts `python -m orchestrator.execution.ssh_host -m MODULE ARGUMENT …` there: settings of the client's
host, which a host takes over otherwise, cannot say where that folder is.
"""

import os
import runpy
import sys

from orchestrator.execution.dask_settings import as_environment, private_scratch


def main() -> None:
    """Run the module that the command line names."""
    os.environ.update(as_environment(private_scratch()))
    module = sys.argv[2]
    sys.argv[1:3] = []
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
