"""A scheduler that is already running, and why one that was named cannot be used."""

import logging
import socket
import ssl
from typing import Any
from urllib.parse import urlsplit

from distributed import Client
from distributed.utils import silence_logging_cmgr

from orchestrator.execution.clusters.deployment import Deployment
from orchestrator.execution.dask_settings import ANSWER_SECONDS, CONNECT_SECONDS
from orchestrator.study.errors import ExecutionError
from orchestrator.study.settings import Cluster
from orchestrator.study.text import shown
from orchestrator.study.tls import Tls, host_and_port, tls_context

PROBE_SECONDS = 5.0
"""How long the other side may take for each step of the search for a reason."""


class Address(Deployment):
    """A scheduler at an address."""

    def __init__(self, settings: Cluster):
        super().__init__(settings)
        self.first_worker_seconds = ANSWER_SECONDS

    def start(self) -> Client:
        """Connect to the scheduler.

        Raises
        ------
        ExecutionError
            When it refuses, or there is none.
        """
        address, tls = str(self.settings.address), self.settings.tls
        with silence_logging_cmgr(logging.CRITICAL + 1):  # the error says it in one sentence
            try:
                return self._resources.enter_context(Client(address, timeout=CONNECT_SECONDS))
            except (OSError, ValueError, TypeError, RuntimeError) as error:
                raise ExecutionError(why_refused(address, tls)) from error


class OfClient(Address):
    """The scheduler of a user's own client, to which a second one connects.

    Parameters
    ----------
    settings : Cluster
    client : distributed.Client
        Stays as it is.
    """

    def __init__(self, settings: Cluster, client: Client):
        super().__init__(settings)
        self._client = client

    def start(self) -> Client:
        """Connect to the scheduler as the client is connected."""
        address, security = self._client.scheduler.address, self._client.security
        return self._resources.enter_context(Client(address, security=security, timeout=CONNECT_SECONDS))


def require_usable(client: Any) -> None:
    """Refuse what `OfClient` cannot use.

    Raises
    ------
    TypeError
        When it is no client of Dask's.
    ExecutionError
        When its workers are threads, or it is closed.
    """
    if not isinstance(client, Client):
        raise TypeError(
            f"client: expected a distributed.Client, such as Client(ADDRESS), found {shown(client)}"
        )
    if client.status != "running" or client.asynchronous:
        state = "asynchronous" if client.asynchronous else client.status
        raise ExecutionError(
            f"the client is {state}; expected one that is connected, such as distributed.Client(ADDRESS)"
        )
    if client.scheduler.address.startswith("inproc:"):
        raise ExecutionError(
            "the client's workers are threads of this process, where trainings would disturb each other; "
            "expected processes, such as LocalCluster(processes=True, threads_per_worker=1)"
        )


def why_refused(address: str, tls: Tls | None) -> str:
    """Find out why a connection to a scheduler has failed.

    Returns
    -------
    str
        One sentence: what was found there, and what to do.
    """
    host, port = host_and_port(address)
    if not host or not port:
        return f"expected an address such as tls://HOST:8786, found {address!r}; correct cluster.address"
    try:
        connection = socket.create_connection((host, port), timeout=PROBE_SECONDS)
    except OSError as error:
        return (
            f"no scheduler answers at {address} ({error}); start one with `svmbench cluster scheduler`, "
            "or correct cluster.address"
        )
    with connection:
        return _why_no_handshake(connection, address, tls)


def _why_no_handshake(connection: socket.socket, address: str, tls: Tls | None) -> str:
    mine = "the pair in cluster.tls" if tls else "a client without a certificate"
    same = "cluster.tls has to name a pair that the cluster's own authority has signed"
    try:
        with tls_context(tls).wrap_socket(connection) as probe:
            probe.settimeout(PROBE_SECONDS)
            # With TLS 1.3 a server's verdict on the client's certificate comes with the first bytes.
            answered = bool(probe.recv(1))
    except ssl.SSLCertVerificationError as error:
        return f"{address} shows a certificate of another authority ({error.verify_message}); {same}"
    except TimeoutError:
        answered = False
    except (ssl.SSLError, OSError) as error:
        reason = getattr(error, "reason", None) or str(error)
        if reason in ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST"):
            return f"the scheduler at {address} does not encrypt; start it without --insecure"
        reason = reason.replace("_", " ").lower()
        return f"the scheduler at {address} refused {mine} ({reason}); {same}"
    if answered and urlsplit(address).scheme != "tls":
        return f"the scheduler at {address} encrypts; write tls:// in cluster.address"
    return f"what listens at {address} does not answer as a Dask scheduler does; correct cluster.address"
