"""What another user of this host reaches: `other_user.py` as that user, and certificates that it may read."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

PROGRAM = Path(__file__).with_name("other_user.py")


def why_not() -> str:
    """Say why there is no other user here; an empty string if there is."""
    if not sys.platform.startswith("linux"):
        return "looks for sockets as Linux shows them"
    return "" if os.geteuid() == 0 else "only root can start a process as another user"


REASON = why_not()


@contextmanager
def open_to_all(certs: Path):
    """Copy a client's certificates to where everybody can read them; a test's folder is closed to others."""
    with tempfile.TemporaryDirectory(prefix="other-user") as name:
        os.chmod(name, 0o755)
        paths = [Path(shutil.copy(certs / file, name)) for file in ("ca.pem", "client.pem", "client.key")]
        for path in paths:
            path.chmod(0o644)
        yield list(map(str, paths))


def reached(places, certificates, sockets=(), files=()):
    """What the other user reaches of all this."""
    task = {
        "places": sorted(places),
        "certificates": certificates,
        "sockets": sorted(sockets),
        "files": sorted(map(str, files)),
    }
    line = [sys.executable, str(PROGRAM), json.dumps(task)]
    done = subprocess.run(line, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])
