"""Count our files that one training enters in a serial run of iris, from the run loop to its stored row.

    python -m benchmarks.hops [SOLVER]

A file counts if one of its functions runs between the submission of a batch of an inner split and the end of
the call that stores its rows, or if it is on the stack above. Imports do not count. The first batch also
loads compiled code and opens its data. The last batch finds both done, and its rows may be stored later, with
those of the refits.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from types import FrameType
from typing import Any

from orchestrator.cli.main import main as svmbench
from orchestrator.study.trials import REFIT

ROOT = Path(__file__).parents[1]
OURS = f"{ROOT / 'orchestrator'}{os.sep}"
SUBMIT, STORE = ("serial.py", "submit"), ("store.py", "append")
PARTS = ("on the stack", "before and after training", "within run_batch")


class Hops:
    """Profile function that collects the files of each batch.

    Attributes
    ----------
    batches : list of dict
        For each batch of an inner split, the functions that ran, by part and file.
    is_stored : bool
        Whether rows were stored while a batch of an inner split was followed.
    """

    def __init__(self) -> None:
        self.batches: list[dict[str, dict[str, set[str]]]] = []
        self.is_stored = self._is_open = False
        self._run_batch: FrameType | None = None

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        if not code.co_filename.startswith(OURS) or event not in ("call", "return"):
            return
        where = (os.path.basename(code.co_filename), code.co_name)
        if event == "return":
            if where == STORE:
                self.is_stored |= self._is_open
                self._is_open = False
            if frame is self._run_batch:
                self._run_batch = None
            return
        if where == SUBMIT:
            self._open(frame)
        if self._is_open and code.co_name != "<module>":
            if code.co_name == "run_batch":
                self._run_batch = frame
            self._count(PARTS[1 if self._run_batch is None else 2], code.co_filename, code.co_name)

    def _open(self, frame: FrameType) -> None:
        paths = frame.f_locals["order"].batch.paths
        self._is_open = all(path.inner != REFIT for path in paths)
        if not self._is_open:
            return
        self.batches.append({part: {} for part in PARTS})
        above = frame.f_back
        while above is not None:
            if above.f_code.co_filename.startswith(OURS):
                self._count(PARTS[0], above.f_code.co_filename, above.f_code.co_name)
            above = above.f_back

    def _count(self, part: str, path: str, function: str) -> None:
        name = path.removeprefix(OURS)
        self.batches[-1][part].setdefault(name, set()).add(function)


def measure(solver: str, folder: Path) -> Hops:
    arguments = ["run", "study=hops", "datasets=[iris]", f"solvers=[{solver}]", "search.space.C=[1,4]"]
    arguments += ["search.space.gamma=[1]", "cluster=serial"]
    # Fill the cache of compiled code first, because compiling under a profile function takes minutes.
    first = [sys.executable, "-m", "orchestrator", *arguments, f"paths.results={folder / 'first'}"]
    subprocess.run(first, stdout=subprocess.DEVNULL, check=True)
    hops = Hops()
    sys.setprofile(hops)
    try:
        code = svmbench([*arguments, f"paths.results={folder / 'second'}"])
    except SystemExit as end:
        code = end.code
    finally:
        sys.setprofile(None)
    # An interrupted run has entered only some of the files.
    if code or not hops.is_stored:
        sys.exit(f"svmbench run ended with {code}, expected 0 and a stored batch. Run the benchmark again.")
    return hops


def main() -> None:
    solver = sys.argv[1] if len(sys.argv) > 1 else "mnsvm"
    with tempfile.TemporaryDirectory() as folder:
        hops = measure(solver, Path(folder))
    for title, batch in (("first batch", hops.batches[0]), ("last batch", hops.batches[-1])):
        files = set().union(*batch.values())
        print(f"\n{title} of {solver}: {len(files)} files")
        for part, found in batch.items():
            print(f"  {part}: {len(found)}")
            for name, functions in sorted(found.items()):
                print(f"    {name:40} {', '.join(sorted(functions))}")


if __name__ == "__main__":
    main()
