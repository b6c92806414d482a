"""Workers as jobs of SLURM, a real one that has this host as its only node."""

import importlib.util
import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from orchestrator import load_study
from tests.integration.clusters import command, running, sleepy_solver, trainings
from tests.integration.processes import in_process, plain, wait_until
from tests.integration.slurm import Slurm, slurm, why_not
from tests.messages import assert_says

REASON = why_not()
if not REASON and importlib.util.find_spec("dask_jobqueue") is None:
    REASON = "dask-jobqueue is not installed: svmbench[slurm]"
pytestmark = [pytest.mark.skipif(bool(REASON), reason=REASON), pytest.mark.usefixtures("no_pages")]

OUTER, INNER, POINTS = 3, 3, 8
TRIALS = 2 * OUTER * (INNER * POINTS + 1)


@dataclass
class Site:
    """A queue, and a folder from which studies are sent to it."""

    folder: Path
    queue: Slurm

    @property
    def environment(self):
        """What a user's shell would know here, and the jobs by it: the queue, the solver, a cache."""
        places = {"PYTHONPATH": self.folder / "config", "SVMBENCH_CACHE": self.folder / "cache"}
        return self.queue.environment | {name: str(path) for name, path in places.items()}

    def command(self, study, *overrides):
        """Return the command of a study."""
        points = ",".join(str(point + 1) for point in range(POINTS))
        return command(
            *("run", "--config-dir", self.folder / "config", f"study={study}"),
            *("datasets=[iris,wine]", "solvers=[sleepy]", f"solver.sleepy.space.C=[{points}]"),
            *(f"protocol.outer={OUTER}", f"protocol.inner={INNER}"),
            *(f"paths.results={self.folder}", "cluster.memory=1", *overrides),
        )

    def finish(self, line):
        """Run a command to its end, which has to be a good one; return what it said."""
        names = os.environ | self.environment
        done = subprocess.run(line, capture_output=True, text=True, timeout=300, cwd=self.folder, env=names)
        assert (done.returncode, done.stderr) == (0, "")
        return plain(done.stdout)

    def wait_for_rows(self, study):
        """Wait until something of a study is stored."""
        parts = self.folder / study / "trials"
        wait_until(lambda: list(parts.glob("part-*")), "rows to be stored", seconds=300)

    def certificates(self):
        """Return the files of certificates that lie where jobs find them."""
        return set(self.folder.glob(".dask-jobqueue*"))

    def wait_for_silence(self, seconds=300):
        """Wait until no job is left."""
        wait_until(lambda: not self.queue.jobs(), "the queue to be empty", seconds)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A queue, and what a study has to find when it is run in one process."""
    folder = tmp_path_factory.mktemp("slurm")
    sleepy_solver(folder / "config")
    with slurm() as queue:
        site = Site(folder, queue)
        line = site.command("serial", "cluster=serial")
        assert in_process(folder, *line[line.index("run") :]).returncode == 0
        yield site


def rows(site, study):
    """When and by which run each stored trial was computed."""
    trials = load_study(study, site.folder).trials
    return {row.key: (row.run_id, row.finished_at) for row in trials.itertuples()}


def test_a_study_of_jobs_is_that_of_one_process_over_encrypted_links_and_leaves_nothing(site):
    site.finish(site.command("s", "cluster=slurm", "cluster.workers=2", "solver.sleepy.seconds=0.05"))
    site.wait_for_silence()
    assert len(trainings(site.folder, "s")) == TRIALS
    assert trainings(site.folder, "s").equals(trainings(site.folder, "serial"))
    (run,) = load_study("s", site.folder).provenance
    assert run["cluster"]["kind"] == "slurm"
    assert run["cluster"]["scheduler"].startswith("tls://")
    jobs = [plain(path.read_text()) for path in site.folder.glob("slurm-*.out")]
    assert len(jobs) == 2
    assert all("Registered to: tls://" in told for told in jobs)
    assert not site.certificates()


@pytest.mark.full
def test_a_killed_client_s_jobs_end_by_themselves_and_the_study_goes_on_later(site):
    line = site.command("killed", "cluster=slurm", "cluster.workers=2", "solver.sleepy.seconds=0.2")
    with running(line, site.folder / "killed.log", **site.environment) as client:
        site.wait_for_rows("killed")
        assert len(site.queue.jobs()) == 2
        client.kill()
        client.wait()
        site.wait_for_silence()
    before = rows(site, "killed")
    assert 0 < len(before) < TRIALS
    told = site.finish(line)
    assert_says(told, f"{TRIALS - len(before)} trials run", f"{len(before)} found")
    after = rows(site, "killed")
    assert before.items() <= after.items()
    assert len(after) == TRIALS
    site.wait_for_silence()


@pytest.mark.full
@pytest.mark.parametrize("many", ["cluster.workers=2", "cluster.adapt.maximum=2"])
def test_a_cancelled_job_costs_no_training_and_another_follows_it(site, many):
    study = f"cancelled-{many.split('.')[1].split('=')[0]}"
    line = site.command(study, "cluster=slurm", many, "solver.sleepy.seconds=0.3")
    with running(line, log := site.folder / f"{study}.log", **site.environment) as client:
        site.wait_for_rows(study)
        first, *_ = site.queue.jobs()
        site.queue.ask("scancel", first)
        # The first job, the other one, and the one for the first.
        wait_until(lambda: int([0, *site.queue.jobs()][-1]) >= int(first) + 2, "another job", seconds=300)
        assert client.wait(timeout=300) == 0, log.read_text()
    assert trainings(site.folder, study).equals(trainings(site.folder, "serial"))
    site.wait_for_silence()


@pytest.mark.new_interpreters  # Dask sets up its log as it is imported
def test_a_job_that_slurm_refuses_ends_the_run_with_slurm_s_own_words(site):
    line = site.command("refused", "cluster=slurm", "cluster.workers=1", "cluster.options.queue=nowhere")
    names = os.environ | site.environment
    before = site.certificates()  # a killed client's
    done = subprocess.run(line, capture_output=True, text=True, timeout=100, cwd=site.folder, env=names)
    assert done.returncode == 1
    assert re.match(
        "svmbench: cluster=slurm did not start: .*invalid partition specified: nowhere", done.stderr
    )
    assert done.stderr.count("\n") == 1
    assert site.certificates() == before
