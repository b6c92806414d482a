"""Measure commands before and after the trainings, in user and system CPU seconds on one thread.

    python -m benchmarks.startup [REPEATS]

A target is a number of seconds, or a multiple of `import solvers`, which is measured in the same rounds. The
first round is not counted, because it fills the caches and compiles.
"""

import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ONE_POINT = ["study=x", "datasets=[iris]", "search.space.C=[1]", "search.space.gamma=[1]", "cluster=serial"]
REFERENCE = "import solvers"
COMMANDS = {
    REFERENCE: (["-c", REFERENCE], None),
    "import orchestrator": (["-c", "import orchestrator"], 0.1),
    "import svmbench": (["-c", "import svmbench"], 0.2),
    "--help": (["-m", "orchestrator", "--help"], 0.1),
    "list": (["-m", "orchestrator", "list"], 0.3),
    "status": (["-m", "orchestrator", "status", "x"], 0.5),
    "plan": (["-m", "orchestrator", "plan", "experiment=quickstart"], f"1.25 × {REFERENCE}"),
    "run, libsvm_l1": (["-m", "orchestrator", "run", *ONE_POINT, "solvers=[libsvm_l1]"], 1.8),
    "run, mnsvm": (["-m", "orchestrator", "run", *ONE_POINT, "solvers=[mnsvm]"], 1.8),
}
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")


def cpu_seconds(arguments: list[str], results: Path) -> float:
    verb = arguments[2] if arguments[0] == "-m" else ""
    if verb == "run":
        shutil.rmtree(results, ignore_errors=True)
    where = [] if verb in ("", "--help") else [f"paths.results={results}"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, *arguments, *where]
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True, env={**os.environ, **ONE_THREAD})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    os.chdir(Path(__file__).parents[1])
    seconds: dict[str, list[float]] = {name: [] for name in COMMANDS}
    with tempfile.TemporaryDirectory() as folder:
        stored, other = Path(folder, "stored"), Path(folder, "other")
        cpu_seconds(["-m", "orchestrator", "run", *ONE_POINT, "solvers=[libsvm_l1]"], stored)
        for number in range(repeats + 1):
            for name, (arguments, _) in COMMANDS.items():
                spent = cpu_seconds(arguments, other if name.startswith("run") else stored)
                if number:
                    seconds[name].append(spent)
    medians = {name: statistics.median(each) for name, each in seconds.items()}
    print(f"{'command':20}{'least':>8}{'median':>8}{'÷ import solvers':>18}   target   (CPU seconds)")
    for name, (_, target) in COMMANDS.items():
        ratio = medians[name] / medians[REFERENCE]
        limit = (
            target if isinstance(target, float) else 1.25 * medians[REFERENCE] if target else medians[name]
        )
        missed = "" if medians[name] <= limit else "   missed"
        print(f"{name:20}{min(seconds[name]):8.3f}{medians[name]:8.3f}{ratio:18.2f}   {target or ''}{missed}")


if __name__ == "__main__":
    main()
