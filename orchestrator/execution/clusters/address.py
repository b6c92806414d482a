"""Connect to a running scheduler, or find out why the connection fails."""

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
from orchestrator.study.text import represented
from orchestrator.study.tls import Tls, host_and_port, tls_context

PROBE_SECONDS = 5.0
"""Time limit of each step of the search for the reason of a failure, in seconds."""


class Address(Deployment):
    """A scheduler at an address.

    Parameters
    ----------
    settings : Cluster
        Configuration of the cluster.
    """

    def __init__(self, settings: Cluster):
        super().__init__(settings)
        self.first_worker_seconds = ANSWER_SECONDS

    def start(self) -> Client:
        """Connect to the scheduler.

        Returns
        -------
        Client
            The connected client.

        Raises
        ------
        ExecutionError
            If the scheduler refuses the connection, or there is no scheduler at the address.
        """
        address, tls = str(self.settings.address), self.settings.tls
        with silence_logging_cmgr(logging.CRITICAL + 1):  # the exception below contains the reason
            try:
                return self._resources.enter_context(Client(address, timeout=CONNECT_SECONDS))
            except (OSError, ValueError, TypeError, RuntimeError) as error:
                raise ExecutionError(why_refused(address, tls)) from error


class OfClient(Address):
    """Scheduler to which the user's client is connected. A second client connects to it.

    Parameters
    ----------
    settings : Cluster
        Configuration of the cluster.
    client : Client
        Client of the user, which is not changed.
    """

    def __init__(self, settings: Cluster, client: Client):
        super().__init__(settings)
        self._client = client

    def start(self) -> Client:
        """Connect to the scheduler as the user's client is connected.

        Returns
        -------
        Client
            The connected client.
        """
        address, security = self._client.scheduler.address, self._client.security
        return self._resources.enter_context(Client(address, security=security, timeout=CONNECT_SECONDS))


def require_usable(client: Any) -> None:
    """Raise if `OfClient` cannot use a client.

    Parameters
    ----------
    client : object
        The client of the user.

    Raises
    ------
    TypeError
        If it is not a `distributed.Client`.
    ExecutionError
        If its workers are threads, or it is closed or asynchronous.
    """
    if not isinstance(client, Client):
        raise TypeError(
            f"client: expected a distributed.Client, such as Client(ADDRESS), found {represented(client)}"
        )
    if client.status != "running" or client.asynchronous:
        state = "asynchronous" if client.asynchronous else client.status
        raise ExecutionError(
            f"the client is {state}; expected a connected one, such as distributed.Client(ADDRESS)"
        )
    if client.scheduler.address.startswith("inproc:"):
        raise ExecutionError(
            "the client's workers are threads of this process, where trainings would disturb each other. "
            "Use processes, such as LocalCluster(processes=True, threads_per_worker=1)"
        )


def why_refused(address: str, tls: Tls | None) -> str:
    """Return why a connection to a scheduler has failed.

    Parameters
    ----------
    address : str
        Address of the scheduler.
    tls : Tls or None
        Certificates of the client, or None.

    Returns
    -------
    str
        Message: finding at the address, and remedy.
    """
    host, port = host_and_port(address)
    if not host or not port:
        return (
            f"cluster.address={address}: expected an address such as tls://HOST:8786. Correct cluster.address"
        )
    try:
        connection = socket.create_connection((host, port), timeout=PROBE_SECONDS)
    except OSError as error:
        return (
            f"no scheduler answers at {address} ({error}). Start one with `svmbench cluster scheduler`, "
            "or correct cluster.address"
        )
    with connection:
        return _why_no_handshake(connection, address, tls)


def _why_no_handshake(connection: socket.socket, address: str, tls: Tls | None) -> str:
    """Return why a TLS handshake with a scheduler fails, or what else is wrong.

    Parameters
    ----------
    connection : socket.socket
        Connection to the address, which is closed.
    address : str
        Address of the scheduler.
    tls : Tls or None
        Certificates of the client, or None.

    Returns
    -------
    str
        Message: finding at the address, and remedy.
    """
    mine = "the pair in cluster.tls" if tls else "a client without a certificate"
    same = "Set cluster.tls to a pair that the cluster's authority has signed"
    try:
        with tls_context(tls).wrap_socket(connection) as probe:
            probe.settimeout(PROBE_SECONDS)
            # In TLS 1.3, a server accepts or refuses the client's certificate with the first bytes.
            answered = bool(probe.recv(1))
    except ssl.SSLCertVerificationError as error:
        return f"{address} has a certificate of another authority ({error.verify_message}). {same}"
    except TimeoutError:
        answered = False
    except (ssl.SSLError, OSError) as error:
        reason = getattr(error, "reason", None) or str(error)
        if reason in ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST"):
            return f"the scheduler at {address} does not encrypt. Start it without --insecure"
        reason = reason.replace("_", " ").lower()
        return f"the scheduler at {address} refused {mine} ({reason}). {same}"
    if answered and urlsplit(address).scheme != "tls":
        return f"the scheduler at {address} encrypts. Write tls:// in cluster.address"
    return f"the process at {address} does not answer like a Dask scheduler. Correct cluster.address"
