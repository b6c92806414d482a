"""TLS certificates of one side of a connection."""

import ipaddress
import os
import re
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import platformdirs

from orchestrator.study.text import shown

ROLES = ("scheduler", "worker", "client")
"""Kinds of processes of a cluster. Each has its own certificate."""

_DESCRIPTIONS = {"ca": "authority's certificate", "cert": "certificate", "key": "key"}


_HOST_NAME = re.compile(r"(?=.{1,253}$)(\w([\w-]{0,61}\w)?\.)*\w([\w-]{0,61}\w)?\.?", re.ASCII)


@dataclass(frozen=True)
class Tls:
    """PEM files of one side of a connection.

    Attributes
    ----------
    ca : Path
        Certificate of the authority that both sides trust.
    cert, key : Path
        Certificate and private key of this side.
    """

    ca: Path
    cert: Path
    key: Path


def certificate_of(folder: Path, role: str) -> Path:
    """Return the path at which `make_certificates` writes the certificate of a role.

    Parameters
    ----------
    folder : Path
        Folder of the certificates.
    role : {"scheduler", "worker", "client"}
        Process that uses the certificate.
    """
    return folder / f"{role}.pem"


def key_of(folder: Path, role: str) -> Path:
    """Return the path at which `make_certificates` writes the private key of a role.

    Parameters
    ----------
    folder : Path
        Folder of the certificates.
    role : {"scheduler", "worker", "client"}
        Process that uses the key.
    """
    return folder / f"{role}.key"


def certificate_folder() -> Path:
    """Return the folder of the user's certificates, for processes of that user on this host."""
    return platformdirs.user_data_path("svmbench") / "certificates"


def user_tls(role: str) -> tuple[Tls | None, list[str]]:
    """Return the certificate and key of a role from the folder of the user's certificates.

    Parameters
    ----------
    role : {"scheduler", "worker", "client"}
        Process that uses them.

    Returns
    -------
    tls : Tls or None
        Certificate and key, or None if they do not exist or cannot be used.
    problems : list of str
        One message for each problem. Missing certificates are not a problem.
    """
    folder = certificate_folder()
    if not folder.exists():
        return None, []
    if hasattr(os, "geteuid"):
        found = folder.stat()
        if found.st_uid != os.geteuid() or found.st_mode & 0o077:
            return None, [
                f"{folder}: expected your folder of certificates to belong to you and to have mode 0700; "
                "remove it, and `svmbench cluster scheduler` makes a new one"
            ]
    return read_tls({"folder": folder}, role)


def read_tls(node: Mapping[str, Any], role: str) -> tuple[Tls | None, list[str]]:
    """Read the configuration key `cluster.tls`.

    Parameters
    ----------
    node : mapping
        Value of the key: `folder`, as `svmbench cluster certs` makes it, or the paths `ca`, `cert` and `key`.
        If all are null, or `insecure` is true, no certificates are used.
    role : {"scheduler", "worker", "client"}
        Process whose certificate and key are taken from the folder.

    Returns
    -------
    tls : Tls or None
        Certificates to use, or None if none are named or there are problems.
    problems : list of str
        One message for each problem.
    """
    insecure = node.get("insecure") or False
    paths = {
        name: Path(str(path)).expanduser()
        for name, path in node.items()
        if path is not None and name != "insecure"
    }
    if not isinstance(insecure, bool):
        return None, [f"cluster.tls.insecure must be true or false, found {shown(insecure)}"]
    if insecure and paths:
        return None, [
            "cluster.tls.insecure=true takes no certificates, but cluster.tls names some; remove one of them"
        ]
    if not paths:
        return None, []
    if folder := paths.pop("folder", None):
        if paths:
            return None, ["cluster.tls takes a folder, or ca, cert and key, but not both"]
        tls = Tls(folder / "ca.pem", certificate_of(folder, role), key_of(folder, role))
    elif missing := [name for name in ("ca", "cert", "key") if name not in paths]:
        return None, [f"cluster.tls.{missing[0]} is missing; TLS takes ca, cert and key, or a folder"]
    else:
        tls = Tls(**paths)
    problems = list(_problems(tls))
    return (None if problems else tls), problems


def _problems(tls: Tls) -> Iterator[str]:
    for name, path in vars(tls).items():
        try:
            path.read_bytes()
        except OSError as error:
            yield (
                f"cluster.tls: cannot read the {_DESCRIPTIONS[name]} {path} ({error.strerror}); "
                "make certificates with: svmbench cluster certs DIR"
            )
            return
    try:
        tls_context(tls)
    except ssl.SSLError as error:
        yield (
            f"cluster.tls: {tls.cert}, {tls.key} and {tls.ca} do not belong together as certificate, key and "
            f"authority ({error}); make certificates with: svmbench cluster certs DIR"
        )


def tls_context(tls: Tls | None) -> ssl.SSLContext:
    """Return the SSL context of a TLS client.

    Parameters
    ----------
    tls : Tls or None
        Certificates that the client presents. Without them it presents none and verifies none.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # As in Dask, every certificate of the cluster's authority is accepted, for any host name.
    context.check_hostname = False
    if tls is None:
        context.verify_mode = ssl.CERT_NONE
    else:
        context.load_verify_locations(tls.ca)
        context.load_cert_chain(tls.cert, tls.key)
    return context


def host_and_port(address: str) -> tuple[str | None, int | None]:
    """Split an address such as ``tls://HOST:PORT`` into host and port.

    Parameters
    ----------
    address : str
        Address with a scheme. Host or port is None if it is missing, and both are for an invalid address.
    """
    try:
        parts = urlsplit(address)
        return parts.hostname, parts.port
    except ValueError:
        return None, None


def is_host(name: object) -> bool:
    """Return whether a value is an IP address or a valid host name.

    Parameters
    ----------
    name : object
        Any value. Only a text can be one.
    """
    return isinstance(name, str) and (bool(_HOST_NAME.fullmatch(name)) or _is_address(name))


def _is_address(text: str) -> bool:
    try:
        return bool(ipaddress.ip_address(text))
    except ValueError:
        return False


def is_loopback(host: str) -> bool:
    """Return whether a host is the loopback interface, which only this host can reach.

    Parameters
    ----------
    host : str
        Name or IP address.
    """
    return ipaddress.ip_address(host).is_loopback if _is_address(host) else host == "localhost"
