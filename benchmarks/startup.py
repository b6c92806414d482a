"""Measure commands before and after the trainings: user and system CPU seconds, against targets.

    python -m benchmarks.startup [REPEATS]

The first round of each command is not counted, because it fills the file cache and compiles.
"""

import os
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ONE_POINT = ["study=x", "datasets=[iris]", "search.space.C=[1]", "search.space.gamma=[1]", "cluster=serial"]
COMMANDS = {
    "--help": (["--help"], 0.15),
    "list": (["list"], 0.5),
    "run, libsvm_l1": (["run", *ONE_POINT, "solvers=[libsvm_l1]"], 1.8),
    "run, mnsvm": (["run", *ONE_POINT, "solvers=[mnsvm]"], 1.8),
    "status": (["status", "study=x"], 0.5),
    "plan": (["plan", "experiment=quickstart"], 1.5),
}


def cpu_seconds(arguments: list[str], folder: Path) -> float:
    where = [] if arguments == ["--help"] else [f"paths.results={folder}/results"]
    if arguments[0] == "run":
        shutil.rmtree(folder / "results", ignore_errors=True)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "orchestrator", *arguments, *where]
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    os.chdir(Path(__file__).parents[1])
    with tempfile.TemporaryDirectory() as folder:
        print(f"{'command':16}{'least':>8}{'median':>8}{'target':>8}   CPU seconds")
        for name, (arguments, target) in COMMANDS.items():
            cpu_seconds(arguments, Path(folder))
            seconds = sorted(cpu_seconds(arguments, Path(folder)) for _ in range(repeats))
            print(f"{name:16}{seconds[0]:8.2f}{seconds[repeats // 2]:8.2f}{target:8.2f}")


if __name__ == "__main__":
    main()
