"""The certificates of one side of a connection."""

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

ROLES = ("scheduler", "worker", "client")

_DESCRIPTIONS = {"ca": "authority's certificate", "cert": "certificate", "key": "key"}


_HOST_NAME = re.compile(r"(?=.{1,253}$)(\w([\w-]{0,61}\w)?\.)*\w([\w-]{0,61}\w)?\.?", re.ASCII)


@dataclass(frozen=True)
class Tls:
    """The authority that both sides trust, and the certificate and key of this side, as PEM files."""

    ca: Path
    cert: Path
    key: Path


def certificate_of(folder: Path, role: str) -> Path:
    """Return where `make_certificates` leaves a role's certificate."""
    return folder / f"{role}.pem"


def key_of(folder: Path, role: str) -> Path:
    """Return where `make_certificates` leaves a role's key."""
    return folder / f"{role}.key"


def own_folder() -> Path:
    """Return where a user's own certificates are, for processes of that user on this host."""
    return platformdirs.user_data_path("svmbench") / "certificates"


def own_tls(role: str) -> tuple[Tls | None, list[str]]:
    """Return the pair of a role among the user's own certificates; None if none were made.

    Returns
    -------
    tls : Tls or None
    problems : list of str
    """
    folder = own_folder()
    if not folder.exists():
        return None, []
    if hasattr(os, "geteuid"):
        found = folder.stat()
        if found.st_uid != os.geteuid() or found.st_mode & 0o077:
            return None, [
                f"the folder of your certificates, {folder}, must be yours and closed to others (mode 0700): "
                "remove it, and `svmbench cluster scheduler` makes a new one"
            ]
    return read_tls({"folder": folder}, role)


def read_tls(node: Mapping[str, Any], role: str) -> tuple[Tls | None, list[str]]:
    """Read the configuration key `cluster.tls`.

    Parameters
    ----------
    node : mapping
        `folder`, made by `svmbench cluster certs`, or the paths `ca`, `cert` and `key`; all null, or
        `insecure: true`: no certificates are named.
    role : {"scheduler", "worker", "client"}
        Whose pair to take from the folder.

    Returns
    -------
    tls : Tls or None
    problems : list of str
    """
    insecure = node.get("insecure") or False
    paths = {
        name: Path(str(path)).expanduser()
        for name, path in node.items()
        if path is not None and name != "insecure"
    }
    if not isinstance(insecure, bool):
        return None, [f"cluster.tls.insecure must be true or false, found {insecure!r}"]
    if insecure and paths:
        return None, ["cluster.tls.insecure=true takes no certificates, and cluster.tls names some; drop one"]
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
            f"cluster.tls: {tls.cert}, {tls.key} and {tls.ca} are no certificate, its key and an authority "
            f"({error}); make some with: svmbench cluster certs DIR"
        )


def tls_context(tls: Tls | None) -> ssl.SSLContext:
    """Return the settings of a TLS client that shows these certificates, or none."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False  # as in Dask: who holds a pair of the cluster's authority belongs to it
    if tls is None:
        context.verify_mode = ssl.CERT_NONE
    else:
        context.load_verify_locations(tls.ca)
        context.load_cert_chain(tls.cert, tls.key)
    return context


def host_and_port(address: str) -> tuple[str | None, int | None]:
    """Split an address such as tls://HOST:PORT; None for what is missing, for both if that is no address."""
    try:
        parts = urlsplit(address)
        return parts.hostname, parts.port
    except ValueError:
        return None, None


def is_host(name: object) -> bool:
    """Return whether something is a host's address, or could be its name."""
    return isinstance(name, str) and (bool(_HOST_NAME.fullmatch(name)) or _is_address(name))


def _is_address(text: str) -> bool:
    try:
        return bool(ipaddress.ip_address(text))
    except ValueError:
        return False


def is_loopback(host: str) -> bool:
    """Return whether only this host itself has such a name or address."""
    return ipaddress.ip_address(host).is_loopback if _is_address(host) else host == "localhost"
