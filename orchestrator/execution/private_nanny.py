"""The nannies that SSH starts on other hosts, with working folders that only their user can write to."""

from typing import Any

from distributed import Nanny

from orchestrator.execution.dask_settings import private_scratch


class PrivateNanny(Nanny):
    """A nanny whose worker has its working folder in the user's own cache folder of that host.

    The settings of the client's host, which the other hosts take over, cannot say where that is.
    """

    def __init__(self, *arguments: Any, **options: Any):
        folder = private_scratch()["temporary-directory"]
        super().__init__(*arguments, **{"local_directory": folder} | options)
