"""Make the certificates of a cluster: an authority, and a signed pair for each role."""

import ipaddress
import os
import shutil
import uuid
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeAlias

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from orchestrator.study.errors import ExecutionError
from orchestrator.study.tls import ROLES, Tls, certificate_folder, certificate_of, key_of, user_tls

AUTHORITY_DAYS = 3650
"""Validity of an authority's certificate, in days."""
PAIR_DAYS = 825
"""Validity of a role's certificate, in days. Common verifiers reject longer ones for servers."""

CLOCK_SKEW = timedelta(hours=1)
"""Difference of clocks up to which another host accepts a new certificate at once."""

_Key: TypeAlias = ec.EllipticCurvePrivateKey

_LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")
"""Names and addresses of this host that every certificate contains."""


def make_certificates(folder: Path, hosts: Sequence[str] = ()) -> list[Path]:
    """Make an authority, and pairs for scheduler, worker and client that it has signed.

    Anyone with one of the pairs can join the cluster and run code on it. The authority's key can sign further
    pairs, so do not copy it to the hosts.

    Parameters
    ----------
    folder : Path
        Folder of the files, which is created if it does not exist.
    hosts : sequence of str, default ()
        Names and addresses of the cluster's hosts, for verifiers that check them. Dask does not.

    Returns
    -------
    list of Path
        Paths of the files. Only their owner can read the keys.

    Raises
    ------
    ExecutionError
        If one of the files exists, or cannot be written.
    """
    pairs = {"ca": (folder / "ca.pem", folder / "ca.key")}
    pairs |= {role: (certificate_of(folder, role), key_of(folder, role)) for role in ROLES}
    paths = [path for pair in pairs.values() for path in pair]
    if found := [path for path in paths if path.exists()]:
        raise ExecutionError(
            f"{found[0]} exists already, and a cluster may be using it. "
            "Choose another folder, or remove the old certificates first"
        )
    authority_key = ec.generate_private_key(ec.SECP256R1())
    keys = {"ca": authority_key} | {role: ec.generate_private_key(ec.SECP256R1()) for role in ROLES}
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for role, key in keys.items():
            _write(*pairs[role], _certificate(role, key, authority_key, hosts), key)
    except OSError as error:
        raise ExecutionError(f"cannot write certificates to {folder}: {error}") from error
    return paths


def user_certificates(role: str) -> Tls:
    """Return the pair of a role among the user's certificates, which are made at first use.

    Parameters
    ----------
    role : str
        `scheduler`, `worker` or `client`.

    Returns
    -------
    Tls
        Paths of the pair and of the authority's certificate.

    Raises
    ------
    ExecutionError
        If the files cannot be written or read, or other users can have changed them.
    """
    folder = certificate_folder()
    if _expired(folder):
        shutil.rmtree(folder, ignore_errors=True)
    if not folder.exists():
        draft = folder.with_name(f".certificates-{uuid.uuid4().hex}")
        try:
            make_certificates(draft)
            draft.rename(folder)  # atomic
        except OSError as error:
            if not folder.exists():
                raise ExecutionError(f"cannot write certificates to {folder}: {error}") from error
        finally:
            shutil.rmtree(draft, ignore_errors=True)  # exists only if another process was first
    tls, problems = user_tls(role)
    if tls is None:
        raise ExecutionError(" ".join(problems))
    return tls


def _expired(folder: Path) -> bool:
    """Return whether certificates are so old that verifiers refuse them.

    Parameters
    ----------
    folder : Path
        Folder of the certificates.

    Returns
    -------
    bool
        False if they cannot be read.
    """
    try:
        certificate = x509.load_pem_x509_certificate(certificate_of(folder, "client").read_bytes())
    except (OSError, ValueError):
        return False
    return certificate.not_valid_after_utc < datetime.now(UTC)


def _certificate(role: str, key: _Key, authority_key: _Key, hosts: Sequence[str]) -> x509.Certificate:
    """Return the signed certificate of a role or of the authority.

    Parameters
    ----------
    role : str
        `ca` for the authority, or the role.
    key : _Key
        Private key of the role.
    authority_key : _Key
        Private key of the authority.
    hosts : sequence of str
        Names and addresses of the cluster's hosts.

    Returns
    -------
    x509.Certificate
        Signed certificate, valid from `CLOCK_SKEW` before now.
    """
    now = datetime.now(UTC)
    is_authority = role == "ca"
    builder = (
        x509.CertificateBuilder()
        .subject_name(_name("authority" if is_authority else role))
        .issuer_name(_name("authority"))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCK_SKEW)
        .not_valid_after(now + timedelta(days=AUTHORITY_DAYS if is_authority else PAIR_DAYS))
        .add_extension(
            x509.BasicConstraints(ca=is_authority, path_length=0 if is_authority else None), critical=True
        )
        .add_extension(_key_usage(is_authority), critical=True)
    )
    for extension in _extensions(role, authority_key, hosts):
        builder = builder.add_extension(extension, critical=False)
    return builder.sign(authority_key, hashes.SHA256())


def _extensions(role: str, authority_key: _Key, hosts: Sequence[str]) -> Iterator[x509.ExtensionType]:
    """Yield the optional extensions of a certificate.

    Parameters
    ----------
    role : str
        `ca` for the authority, or the role.
    authority_key : _Key
        Private key of the authority.
    hosts : sequence of str
        Names and addresses of the cluster's hosts.

    Yields
    ------
    x509.ExtensionType
        Extension: a key's identifier, the purposes of the key, or the names of the hosts.
    """
    if role == "ca":
        yield x509.SubjectKeyIdentifier.from_public_key(authority_key.public_key())
        return
    uses = [ExtendedKeyUsageOID.CLIENT_AUTH]
    if role != "client":  # a client's certificate is not accepted from a scheduler or worker
        uses.append(ExtendedKeyUsageOID.SERVER_AUTH)
    yield x509.ExtendedKeyUsage(uses)
    yield x509.SubjectAlternativeName(map(_alternative_name, dict.fromkeys([*_LOOPBACK_NAMES, *hosts])))
    yield x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key())


def _name(role: str) -> x509.Name:
    """Return the distinguished name of a role.

    Parameters
    ----------
    role : str
        Component of the cluster, such as `worker`, or `authority`.

    Returns
    -------
    x509.Name
        Name whose common name states the role.
    """
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"svmbench {role}")])


def _alternative_name(host: str) -> x509.GeneralName:
    """Return a host as an alternative name in a certificate.

    Parameters
    ----------
    host : str
        Name or IP address.

    Returns
    -------
    x509.GeneralName
        The alternative name.
    """
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _key_usage(is_authority: bool) -> x509.KeyUsage:
    """Return the permitted uses of a key.

    Parameters
    ----------
    is_authority : bool
        Whether the key signs certificates.

    Returns
    -------
    x509.KeyUsage
        Extension of a certificate that states these uses.
    """
    unused = ("content_commitment", "key_encipherment", "data_encipherment", "key_agreement")
    return x509.KeyUsage(
        digital_signature=not is_authority,
        key_cert_sign=is_authority,
        crl_sign=is_authority,
        **dict.fromkeys((*unused, "encipher_only", "decipher_only"), False),
    )


def _write(certificate_path: Path, key_path: Path, certificate: x509.Certificate, key: _Key) -> None:
    """Write a certificate and its private key.

    Parameters
    ----------
    certificate_path : Path
        File that receives the certificate in PEM format.
    key_path : Path
        File that receives the private key in PEM format; only its owner may read it.
    certificate : x509.Certificate
        Signed certificate, which is written as PEM.
    key : _Key
        The private key.
    """
    content = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    # The file is created with its final mode, so other users can never read the key.
    with os.fdopen(os.open(key_path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)
    with open(certificate_path, "xb") as file:
        file.write(certificate.public_bytes(serialization.Encoding.PEM))
