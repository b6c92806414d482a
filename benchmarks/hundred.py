"""Load the datasets of `experiment=hundred` in a new environment without a network, and print them.

Run `python benchmarks/hundred.py` in the checkout. The script creates an environment in a temporary folder
and installs `.[datasets]` there. It needs a package index only for this installation.
"""

import subprocess
import sys
import tempfile
import venv
from pathlib import Path

LOAD = """
import socket, sys

def refused(*arguments, **options):
    raise OSError("no network here")

socket.socket.connect = socket.getaddrinfo = refused
from orchestrator.config.compose import compose_settings
from orchestrator.config.schema import dataset_spec
from orchestrator.datasets import load
from orchestrator.datasets.about import read_about
from orchestrator.datasets.description import shape_problems

nodes = compose_settings(["experiment=hundred"])["dataset"]
found = {}
for name, node in nodes.items():
    dataset, about = load(dataset_spec(name, node, [])), read_about(node)
    assert not shape_problems(dataset, about), (name, shape_problems(dataset, about))
    n, d = dataset.X.shape
    print(f"{name:31} {n:6,} x {d:3} {len(dataset.classes):3} classes  {about.source}")
    found[name] = dataset.fingerprint
families = {node.get("family") or name for name, node in nodes.items()}
print(f"{len(set(found.values()))} distinct datasets of {len(families)} families")
"""


def main():
    checkout = Path(__file__).resolve().parents[1]
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = Path(folder) / "bin" / "python"
        install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*install, f"{checkout}[datasets]"], check=True)
        return subprocess.run([python, "-c", LOAD], cwd=folder).returncode


if __name__ == "__main__":
    sys.exit(main())
