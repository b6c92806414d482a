"""A gate at which the trainings of a study wait, so that a test can do something meanwhile."""

from pathlib import Path

from tests.integration.processes import wait_until


class Gate:
    """Where trainings of `sleepy` wait until a test lets them go on: no study can end before."""

    def __init__(self, folder: Path):
        folder.mkdir()
        self.folder = folder
        self.override = f"solver.sleepy.gate={folder}"

    def open(self) -> None:
        """Let all go on, now and from now on."""
        (self.folder / "open").touch()

    def wait_for_processes(self, number: int, host: str = "*") -> None:
        """Wait until so many processes, of one host or of all, have come with a training."""
        what = f"{number} workers to train"
        wait_until(lambda: len(list(self.folder.glob(f"training-{host}-*"))) >= number, what, 300)
