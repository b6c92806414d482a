import os
import ssl
import stat
import subprocess
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID

from orchestrator.execution.certificates import make_certificates
from orchestrator.study.errors import ExecutionError
from orchestrator.study.tls import ROLES, Tls, read_tls
from tests.messages import assert_says, raises

NOTHING = {"folder": None, "ca": None, "cert": None, "key": None}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("certs") / "new"
    make_certificates(folder, ["head.example.org", "10.1.2.3"])
    return folder


def certificate(folder, role):
    return x509.load_pem_x509_certificate((folder / f"{role}.pem").read_bytes())


def test_keys_are_their_owner_s_alone(folder):
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}
    assert sorted(modes) == sorted(f"{role}.{end}" for role in ("ca", *ROLES) for end in ("key", "pem"))
    assert {mode for name, mode in modes.items() if name.endswith(".key")} == {0o600}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_loose_umask_does_not_open_keys(tmp_path):
    before = os.umask(0)
    try:
        make_certificates(tmp_path / "c")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "c" / "worker.key").stat().st_mode) == 0o600


@pytest.mark.parametrize("role", ROLES)
def test_the_authority_has_signed_each_pair(role, folder):
    authority, pair = certificate(folder, "ca"), certificate(folder, role)
    pair.verify_directly_issued_by(authority)
    uses = set(pair.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value)
    assert (ExtendedKeyUsageOID.SERVER_AUTH in uses) == (role != "client")
    assert ExtendedKeyUsageOID.CLIENT_AUTH in uses
    names = pair.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert {"localhost", "head.example.org"} == set(names.get_values_for_type(x509.DNSName))
    assert "10.1.2.3" in map(str, names.get_values_for_type(x509.IPAddress))
    assert not pair.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    now = datetime.now(UTC)
    assert pair.not_valid_before_utc < now
    assert timedelta(days=360) < pair.not_valid_after_utc - now < timedelta(days=826)
    assert pair.not_valid_after_utc < authority.not_valid_after_utc


@pytest.mark.parametrize("role", ROLES)
def test_openssl_agrees(role, folder):
    command = ["openssl", "verify", "-x509_strict", "-CAfile", "ca.pem", f"{role}.pem"]
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    except FileNotFoundError:
        pytest.skip("openssl is not installed")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("left", ["ca.key", "worker.pem"])
def test_nothing_is_overwritten(left, tmp_path):
    (tmp_path / left).write_text("mine")
    with pytest.raises(ExecutionError, match=rf"{left} exists already"):
        make_certificates(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [left]
    assert (tmp_path / left).read_text() == "mine"


def test_a_folder_that_cannot_be_written_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    with raises(ExecutionError, "certificates"):
        make_certificates(tmp_path / "file" / "certs")


def test_a_folder_gives_each_role_its_pair(folder):
    for role in ROLES:
        tls, problems = read_tls({**NOTHING, "folder": str(folder)}, role)
        assert not problems
        assert tls == Tls(folder / "ca.pem", folder / f"{role}.pem", folder / f"{role}.key")
    assert read_tls(NOTHING, "client") == (None, [])


def test_own_files_serve_too(folder):
    node = {"ca": folder / "ca.pem", "cert": folder / "client.pem", "key": folder / "client.key"}
    tls, problems = read_tls(NOTHING | node, "client")
    assert (tls, problems) == (Tls(**node), [])


@pytest.mark.parametrize(
    ("node", "sentence"),
    [
        ({"ca": "ca.pem"}, ("cluster.tls.cert", "missing")),
        ({"folder": "c", "ca": "ca.pem"}, ("folder", "ca", "cert", "key")),
        (
            {"folder": "nowhere"},
            ("authority", "certificate", "nowhere/ca.pem", "DIR"),
        ),
    ],
)
def test_incomplete_settings_are_told(node, sentence):
    tls, (problem,) = read_tls(NOTHING | node, "client")
    assert tls is None
    with raises(AssertionError, *sentence):
        raise AssertionError(problem)


def test_a_key_that_does_not_fit_is_told(folder):
    node = {"ca": folder / "ca.pem", "cert": folder / "client.pem", "key": folder / "worker.key"}
    tls, (problem,) = read_tls(NOTHING | node, "client")
    assert tls is None
    assert_says(problem, "certificate", "authority")


def test_python_accepts_the_chain_in_its_strictest_mode(folder):
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(folder / "ca.pem"))
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_cert_chain(folder / "scheduler.pem", folder / "scheduler.key")
    server, client = ssl.MemoryBIO(), ssl.MemoryBIO()
    other = ssl.create_default_context(cafile=str(folder / "ca.pem"))
    other.load_cert_chain(folder / "client.pem", folder / "client.key")
    there = context.wrap_bio(server, client, server_side=True)
    here = other.wrap_bio(client, server, server_hostname="head.example.org")
    for side in (here, there, here, there):
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            continue
    assert there.getpeercert()["subject"] == ((("commonName", "svmbench client"),),)
