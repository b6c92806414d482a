"""A base image out of this machine's own Python, for where no registry can be reached."""

import os
import subprocess
import sys
import sysconfig
import tarfile
from pathlib import Path

TOOLS = ("sh", "mkdir", "rm", "cp", "chown", "test", "sleep", "cat", "ls")
SKIPPED = ("__pycache__", "test", "tests", "idlelib", "site-packages", "ensurepip")
LEFT_OUT = ("svmbench", "_svmbench", "orchestrator", "solvers")


def make_base_image(name: str) -> None:
    """Import a root file system with Python, what is installed here, a shell and a few tools."""
    settings = ["--change", "ENV PATH=/usr/local/bin:/bin", "--change", "ENV LD_LIBRARY_PATH=/usr/local/lib"]
    command = ["docker", "import", *settings, "-", name]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as docker:
        with tarfile.open(fileobj=docker.stdin, mode="w|", dereference=True) as archive:
            _fill(archive)
        docker.stdin.close()
    if docker.returncode:
        raise RuntimeError("docker import failed")


def _fill(archive: tarfile.TarFile) -> None:
    version = f"python3.{sys.version_info.minor}"
    paths = sysconfig.get_paths()
    standard, installed = Path(paths["stdlib"]), Path(paths["purelib"])
    binary = Path(sys.executable).resolve()
    tools = [Path(path) for tool in TOOLS if (path := _which(tool))]
    for target in ("python", "python3", version):
        archive.add(binary, f"usr/local/bin/{target}")
    for tool in tools:
        archive.add(tool, f"bin/{tool.name}")
    archive.add(standard, f"usr/local/lib/{version}", filter=_without(SKIPPED))
    target = f"usr/local/lib/{version}/site-packages"
    for path in sorted(installed.iterdir()):
        if not path.name.startswith(LEFT_OUT):
            archive.add(path, f"{target}/{path.name}", filter=_without(("__pycache__",)))
    for path in sorted(_libraries([binary, *tools, *standard.rglob("*.so"), *installed.rglob("*.so*")])):
        archive.add(path, path.lstrip("/"))
        if path.startswith(str(binary.parents[1])):
            archive.add(path, f"usr/local/lib/{Path(path).name}")
    for path in ("/etc/passwd", "/etc/group", "/etc/nsswitch.conf"):
        archive.add(path, path.lstrip("/"))
    folder = tarfile.TarInfo("tmp")
    folder.type, folder.mode = tarfile.DIRTYPE, 0o1777
    archive.addfile(folder)


def _which(tool: str) -> str | None:
    return next((path for folder in ("/bin", "/usr/bin") if os.path.exists(path := f"{folder}/{tool}")), None)


def _without(names):
    def choose(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
        return None if Path(entry.name).name in names or entry.name.endswith(".a") else entry

    return choose


def _libraries(files: list[Path]) -> set[str]:
    """Return the system's libraries that binaries need, the dynamic loader and name lookup included."""
    found = subprocess.run(["ldd", *map(str, files)], capture_output=True, text=True).stdout
    words = {word for line in found.splitlines() for word in line.split() if word.startswith("/")}
    inside = str(Path(sysconfig.get_paths()["purelib"]))
    paths = {word.rstrip(":") for word in words}
    names = {str(path) for path in Path("/lib/x86_64-linux-gnu").glob("libnss_*.so.2")}
    return {path for path in paths | names if not path.startswith(inside) and ".so" in Path(path).name}
