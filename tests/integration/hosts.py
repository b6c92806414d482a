"""Hosts for a test, as network namespaces of this machine: own addresses, names and views of the disk."""

import os
import shutil
import subprocess
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import psutil

NETWORK = "10.77.0"


def why_not() -> str:
    """Say why hosts cannot be made here; an empty string if they can."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        return "network namespaces take root"
    if missing := [tool for tool in ("ip", "unshare", "mount") if shutil.which(tool) is None]:
        return f"{missing[0]} is not installed"
    trial = f"svmb{os.getpid()}-trial"
    made = subprocess.run(["ip", "netns", "add", trial], capture_output=True, text=True)
    if made.returncode:
        return f"no network namespaces here: {made.stderr.strip()}"
    subprocess.run(["ip", "netns", "delete", trial], check=True)
    return ""


class Network:
    """Hosts joined by a switch; the switch is a bridge in a namespace of its own."""

    def __init__(self, names):
        self._prefix = f"svmb{os.getpid()}"
        self.addresses = {name: f"{NETWORK}.{number}" for number, name in enumerate(names, start=1)}

    def __enter__(self):
        with ExitStack() as stack:
            self._add("switch", stack)
            self._in("switch", "link", "add", "bridge", "type", "bridge")
            self._in("switch", "link", "set", "bridge", "up")
            for name, address in self.addresses.items():
                self._add(name, stack)
                peer = ("peer", "name", name, "netns", self._space("switch"))
                self._in(name, "link", "add", "eth0", "type", "veth", *peer)
                self._in(name, "address", "add", f"{address}/24", "dev", "eth0")
                self._in("switch", "link", "set", name, "master", "bridge")
                self._in(name, "link", "set", "eth0", "up")
                self.plug_in(name)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *error):
        self._stack.close()

    def _space(self, name):
        return f"{self._prefix}-{name}"

    def _add(self, name, stack):
        _ip("netns", "add", self._space(name))
        stack.callback(_ip, "netns", "delete", self._space(name))
        self._in(name, "link", "set", "lo", "up")

    def _in(self, name, *arguments):
        _ip("-n", self._space(name), *arguments)

    def unplug(self, name):
        """Cut a host off."""
        self._in("switch", "link", "set", name, "down")

    def plug_in(self, name):
        """Join a host to the others."""
        self._in("switch", "link", "set", name, "up")

    def processes(self, name) -> set[psutil.Process]:
        """Return what runs on a host, whoever started it."""
        listed = subprocess.run(
            ["ip", "netns", "pids", self._space(name)], check=True, capture_output=True, text=True
        )
        found = set()
        for number in map(int, listed.stdout.split()):
            with suppress(psutil.NoSuchProcess):
                process = psutil.Process(number)
                if process.status() != psutil.STATUS_ZOMBIE:
                    found.add(process)
        return found

    def at(self, name, *hidden: Path) -> tuple[str, ...]:
        """Return what to put before a command to run it on a host that does not see some folders."""
        script = (
            f'hostname {name}; for path in "${{@:1:{len(hidden)}}}"; do mount -t tmpfs none "$path"; done; '
        )
        script += f'shift {len(hidden)}; exec "$@"'
        return (
            *("ip", "netns", "exec", self._space(name)),
            *("unshare", "--uts", "bash", "-ec", script, "bash", *map(str, hidden)),
        )


def _ip(*arguments):
    subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True)


@contextmanager
def unplugged(network: Network, name: str):
    """Cut a host off for a while."""
    network.unplug(name)
    try:
        yield
    finally:
        network.plug_in(name)
