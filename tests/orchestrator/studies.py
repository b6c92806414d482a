"""Small studies, run through everything but the command line."""

import io

from rich.console import Console

from orchestrator.cli.display import display
from orchestrator.config.compose import load_settings
from orchestrator.engine.load import read_results
from orchestrator.engine.older_trials import counting_older_trials
from orchestrator.engine.prepare import prepare_study
from orchestrator.engine.progress import Progress
from orchestrator.engine.runner import Runner
from orchestrator.execution.serial import SerialExecutor
from orchestrator.store.store import Store

SMALL = (
    "study=small",
    "datasets=[iris,wine]",
    "solvers=[mnsvm,libsvm_l1]",
    "protocol.outer=3",
    "protocol.inner=3",
    "search.space.C=[0.25,4,64]",
    "search.space.gamma=[0.0625,0.5]",
)


class StudyRun:
    """A prepared study over its store, to be run once.

    Parameters
    ----------
    folder : Path
        Where results and prepared datasets go.
    overrides : sequence of str
        Besides those of `SMALL`.
    executor : Executor
    base : sequence of str
        In place of `SMALL`.
    options : dict
        Of the `Runner`.
    """

    def __init__(
        self, folder, *overrides, executor=None, run_id="run", config_dir=None, base=SMALL, **options
    ):
        paths = [f"paths.results={folder / 'results'}", f"paths.cache={folder / 'cache'}"]
        settings = load_settings([*base, *paths, *overrides], config_dir)
        self.store = Store(settings.paths.results / settings.study.name)
        self.prepared = counting_older_trials(prepare_study(settings), self.store.provenance())
        self.store.lock().release()
        facts = {"run_id": run_id, "number": self.store.next_run_number(), **self.prepared.declaration()}
        self.store.write_provenance(run_id, facts)
        self.output = io.StringIO()
        console = Console(file=self.output, width=200)
        self.progress = Progress(self.prepared.planned_trials(), display(console))
        self.executor = executor or SerialExecutor()
        self.runner = Runner(self.prepared, self.store, self.executor, self.progress, run_id, **options)

    def go(self):
        """Run to the end; return the summary."""
        return self.runner.run()


def run_study(folder, *overrides, **options):
    """Run a small study; return its frames and the run's summary."""
    run = StudyRun(folder, *overrides, **options)
    summary = run.go()
    return read_results(run.store), summary


def write_solver(folder, name, target, **params):
    """Configure a solver in a folder of a user's own."""
    path = folder / "conf" / "solver" / f"{name}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [f"_target_: {target}", *(f"{key}: {value}" for key, value in params.items())]
    path.write_text("\n".join(lines) + "\n")
    return folder / "conf"


class Interrupted(SerialExecutor):
    """Is interrupted after a number of batches."""

    def __init__(self, after, error=KeyboardInterrupt):
        super().__init__()
        self._left, self._error = after, error

    def wait(self, seconds):
        if self._left == 0:
            raise self._error
        self._left -= 1
        return super().wait(seconds)


def settings_for(folder, solver, *overrides):
    """Check a study of iris with one solver, given as the text of its file."""
    (folder / "solver").mkdir(exist_ok=True)
    (folder / "solver/x.yaml").write_text(solver)
    paths = [f"paths.results={folder / 'results'}", f"paths.cache={folder / 'cache'}"]
    tiny = ["study=s", "datasets=[iris]", "solvers=[x]", "protocol.outer=2", "protocol.inner=2"]
    return load_settings([*tiny, "cluster=serial", *paths, *overrides], folder)
