"""A sample that is the same makes rows of older code current. If a trial differs, its arm is not accepted."""

import ast
import itertools
import pathlib
import re
import shutil
import sys

import pytest

from orchestrator.cli.main import main
from orchestrator.engine.acceptance import _Journal
from orchestrator.engine.load import load_study
from orchestrator.engine.retraining import Unit, bound, sample
from orchestrator.store.files import StoreError
from orchestrator.study.equivalences import EQUIVALENCES
from orchestrator.study.study import Candidate
from orchestrator.study.trials import REFIT, Path
from orchestrator.training import source_hash
from tests.messages import assert_says

pytestmark = pytest.mark.usefixtures("no_pages")

SOLVER = """
from sklearn.neighbors import KNeighborsClassifier
SHIFT = 0.0
class {name}(KNeighborsClassifier):
    def predict(self, X):
        return super().predict(X + SHIFT)
"""
OUT_OF_TIME = """
from sklearn.neighbors import KNeighborsClassifier
SHIFT = 0.0
class Slow(KNeighborsClassifier):
    fit_status_, converged_ = 2, False
    def __init__(self, n_neighbors=5, max_seconds=None):
        super().__init__(n_neighbors)
        self.max_seconds = max_seconds
"""
EDITS = {"the same": "0.0 * 2", "another": "0.75", "a comment": "0.0  # A comment."}

NUMBERS = itertools.count()
FULL_DISK = pathlib.Path("/dev/full")


@pytest.fixture
def study(tmp_path, monkeypatch, capfd):
    """Run a study of two solvers whose sources can be edited; return a function that runs a verb on it."""
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "solver").mkdir()
    for name in ("first", "second"):
        module = f"accepted_{name}_{next(NUMBERS)}"  # a process imports a module once
        (tmp_path / f"{module}.py").write_text(SOLVER.format(name=name.title()))
        target = f"_target_: {module}.{name.title()}\nspace: {{n_neighbors: [1, 5, 9]}}\n"
        (tmp_path / "solver" / f"{name}.yaml").write_text(target)
    places = f"--config-dir={tmp_path}", f"paths.results={tmp_path}/results", f"paths.cache={tmp_path}/cache"

    def command(verb, *arguments, code=0, name=("x",)):
        capfd.readouterr()
        assert main([verb, *name, *places, *arguments]) == code
        return " ".join(capfd.readouterr().out.split())

    fixed = "protocol.outer=2", "protocol.inner=2", "cluster=serial", "report.sections=[]"
    command("run", "datasets=[iris,wine]", "solvers=[first,second]", *fixed)
    return command


def edit(folder, name, value):
    """Edit a source, and let this process run the edited code as a new process would."""
    (path,) = folder.glob(f"accepted_{name}_*.py")
    path.write_text(re.sub("SHIFT = .*", f"SHIFT = {value}", path.read_text()))
    sys.modules[path.stem].SHIFT = ast.literal_eval(value.partition(" ")[0])


def results(tmp_path):
    return load_study("x", tmp_path / "results")


def test_an_arm_is_accepted_and_an_edited_one_is_refused_with_its_row(study, tmp_path):
    before = results(tmp_path)
    n_rows = len(before.trials) // 2
    edit(tmp_path, "first", EDITS["the same"])
    edit(tmp_path, "second", EDITS["another"])
    both = f"{2 * n_rows} stored trials", "first, second", "svmbench accept study=x"
    assert_says(study("plan"), *both, "CPU time")
    assert_says(study("status"), *both, "wall time")  # its summaries have no CPU times
    said = study("accept", "--at-least", "9", "--seed", "1", code=3)
    assert_says(said, "iris × first", "wine × first", "9 of 14", "second: not accepted", "score", "→")
    assert "first: not accepted" not in said
    record = results(tmp_path).provenance[-1]
    ((equivalence),) = record[EQUIVALENCES]
    assert equivalence["solver"] == "first"
    assert set(equivalence["datasets"]) == {"iris", "wine"}
    found = equivalence["datasets"]["iris"]
    assert (found["units"], found["bound"]) == (14, pytest.approx(1 - 0.05 ** (1 / found["drawn"])))
    assert results(tmp_path).trials.equals(before.trials)
    plan = study("plan")
    assert_says(plan, f"{n_rows} stored trials of second")
    assert_says(study("status"), f"{n_rows} stored trials of second")
    study("run")
    summary = results(tmp_path).provenance[-1]["summary"]
    assert (summary["trials_stored_before"], summary["trials_run"]) == (n_rows, n_rows)
    after = results(tmp_path).trials
    ours, theirs = (each[each["solver"] == "first"].reset_index(drop=True) for each in (before.trials, after))
    assert ours.equals(theirs)


PIPELINE = """_target_: sklearn.pipeline.Pipeline
steps:
  - [scale, {{_target_: sklearn.preprocessing.StandardScaler}}]
  - [last, {{_target_: {module}.First}}]
space: {{last__n_neighbors: [1, 5]}}
"""
PREPARATION = """
from sklearn.preprocessing import StandardScaler
SHIFT = 0.0
class Shifted(StandardScaler):
    def transform(self, X):
        return super().transform(X) + SHIFT
"""


def test_status_names_stale_arms_of_several_classes_and_with_preparations(study, tmp_path):
    (first,) = tmp_path.glob("accepted_first_*.py")
    (tmp_path / "solver/several.yaml").write_text(PIPELINE.format(module=first.stem))
    modules = {name: f"accepted_{name}_{next(NUMBERS)}" for name in ("preparation", "of_space")}
    for module in modules.values():
        (tmp_path / f"{module}.py").write_text(PREPARATION)
    prepared = f"prepare: {{_target_: {modules['preparation']}.Shifted}}"
    plain = "_target_: sklearn.neighbors.KNeighborsClassifier\nspace: {n_neighbors: [1, 5]}\n"
    (tmp_path / "solver/prepared.yaml").write_text(f"{plain}{prepared}\n")
    steps = "steps: [[scale, passthrough], [last, {_target_: sklearn.svm.SVC}]]"
    chosen = f"space: {{scale: [passthrough, {{_target_: {modules['of_space']}.Shifted}}]}}"
    (tmp_path / "solver/chosen.yaml").write_text(f"_target_: sklearn.pipeline.Pipeline\n{steps}\n{chosen}\n")
    # Classes of lightgbm derive from those of sklearn, whose version is a part of their identity.
    boosted = "_target_: lightgbm.LGBMClassifier\nn_estimators: 2\nspace: {}\n"
    (tmp_path / "solver/boosted.yaml").write_text(boosted)
    name = ("study=several",)
    fixed = "datasets=[iris]", "protocol.outer=2", "protocol.inner=2", "cluster=serial", "report.sections=[]"
    study("run", "solvers=[several,prepared,chosen,boosted]", *fixed, name=name)
    assert "other code" not in study("status", name=name)
    stale = []
    for edited, arm in {"first": "several", "preparation": "prepared", "of_space": "chosen"}.items():
        edit(tmp_path, edited, EDITS["the same"])
        stale = [each for each in ("several", "prepared", "chosen") if each in [*stale, arm]]
        sentence = f"stored trials of {', '.join(stale)} were made by other code"
        assert_says(study("status", name=name), sentence)
    study("accept", name=name)
    assert "other code" not in study("status", name=name)


def test_an_arm_whose_trials_all_reached_the_time_limit_is_not_accepted(study, tmp_path):
    module = f"accepted_slow_{next(NUMBERS)}"
    (tmp_path / f"{module}.py").write_text(OUT_OF_TIME)
    target = f"_target_: {module}.Slow\nspace: {{n_neighbors: [1, 5, 9]}}\n"
    (tmp_path / "solver" / "slow.yaml").write_text(target)
    fixed = "protocol.outer=2", "protocol.inner=2", "cluster=serial", "report.sections=[]"
    study("run", "datasets=[iris]", "solvers=[slow]", *fixed, "protocol.max_seconds=60", code=3)
    found = results(tmp_path)
    assert set(found.trials["status"]) == {"timeout"}
    edit(tmp_path, "slow", EDITS["the same"])
    assert_says(study("accept", code=3), "slow: not accepted", "iris", "no stored trial can be repeated")
    assert EQUIVALENCES not in results(tmp_path).provenance[-1]


def test_trials_are_accepted_after_a_run_has_trained_other_datasets_with_the_newer_code(study, tmp_path):
    before = results(tmp_path)
    edit(tmp_path, "first", EDITS["the same"])
    study("run", "datasets=[iris]")
    assert_says(study("status"), "14 trials of wine × first", "its code")
    both = "datasets=[iris,wine]"
    said = study("accept", both)
    assert_says(said, "wine × first: all 14 trials are the same")
    assert "iris" not in said
    assert_says(study("accept", both), "every stored trial is of today's code")
    assert_says(study("plan", both), "0 trainings to run")
    study("run", both)
    assert "missing" not in study("status")
    assert len(results(tmp_path).trials) == len(before.trials)
    edit(tmp_path, "first", EDITS["another"])
    study("run", both)
    assert "missing" not in study("status")


def test_a_command_without_a_dataset_names_all_and_refuses_only_stale_arms(study, tmp_path):
    one = "datasets=[iris]"
    assert_says(study("accept", one), "every stored trial is of today's code")
    edit(tmp_path, "first", EDITS["the same"])
    said = study("accept", one, code=3)
    assert_says(said, "first: not accepted", "wine is not in this command", "datasets=[iris,wine]")
    assert "second" not in said


@pytest.mark.parametrize("search", ["sample", "selected"])
def test_trials_at_candidates_of_another_study_are_accepted_without_it(search, study, tmp_path):
    fixed = "protocol.outer=2", "protocol.inner=2", "cluster=serial", "report.sections=[]"
    taken = f"search={search}", "search.study=x", "protocol.profile=timing"
    study("run", "study=taken", "datasets=[iris]", "solvers=[first]", *fixed, *taken, name=())
    shutil.rmtree(tmp_path / "results" / "x")
    edit(tmp_path, "first", EDITS["the same"])
    assert_says(study("accept", "taken", name=()), "iris × first: all")
    edit(tmp_path, "first", EDITS["another"])
    assert_says(study("accept", "taken", name=(), code=3), "first: not accepted", "score")


def test_an_unknown_study_is_named(tmp_path, capfd):
    assert main(["accept", "other", f"--config-dir={tmp_path}", f"paths.results={tmp_path}"]) == 1
    assert_says(capfd.readouterr().err, "no study 'other'")


@pytest.mark.skipif(not FULL_DISK.exists(), reason="needs a device that is always full")
def test_a_full_disk_ends_an_acceptance_with_the_name_of_the_file(tmp_path):
    journal = _Journal(tmp_path / "journal")
    journal._path = FULL_DISK
    with pytest.raises(StoreError) as error:
        journal.add([("digest", "key")])
    assert_says(str(error.value), str(FULL_DISK), "No space left", "run the same command")


def test_equivalences_chain_and_a_comment_needs_none(study, tmp_path, monkeypatch):
    for change in ("a comment", "the same"):
        edit(tmp_path, "first", EDITS[change])
        said = study("accept")
        assert ("all 14 trials are the same" in said) == (change == "the same")
    edit(tmp_path, "first", "0.0 * 3")
    study("accept")
    assert_says(study("plan"), "0 trainings to run")
    assert_says(study("accept"), "every stored trial is of today's code")
    found = source_hash._installed_version
    newer = {"sklearn": "99.0"}
    monkeypatch.setattr(source_hash, "_installed_version", lambda root: newer.get(root) or found(root))
    assert_says(study("accept"), "wine × first: all 14 trials are the same", "wine × second: all 14")
    codes = [
        code for each in results(tmp_path).provenance[-1][EQUIVALENCES] for code in each["codes"].values()
    ]
    assert len(codes) >= 2
    assert all("sklearn 99.0" in code for code in codes)
    assert_says(study("plan"), "0 trainings to run")


@pytest.mark.full
def test_an_interrupted_acceptance_goes_on_where_it_was(study, tmp_path, monkeypatch):
    from orchestrator.engine import acceptance

    edit(tmp_path, "first", EDITS["the same"])
    whole, trained = acceptance.retrain, []

    def interrupted(units, *arguments):
        trained.append(len(units))
        yield from itertools.islice(whole(units, *arguments), 2)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(acceptance, "retrain", interrupted)
        study("accept", code=130)

    def counting(units, *arguments):
        trained.append(len(units))
        return whole(units, *arguments)

    monkeypatch.setattr(acceptance, "retrain", counting)
    assert_says(study("accept"), "all 14 trials are the same")
    assert trained[0] == 14
    assert 0 < trained[1] < 14


def units(n_candidates, n_splits):
    candidates = [Candidate.of({"C": C}) for C in range(n_candidates)]
    inner = [
        Unit(Path("d", "s", 0, split, (candidate,), (f"{candidate}{split}",), 0, False), ("",))
        for split in range(n_splits)
        for candidate in candidates
    ]
    return [*inner, Unit(Path("d", "s", 0, REFIT, (candidates[0],), ("refit",), 0, False), ("",))]


def test_every_candidate_is_drawn_in_proportion_and_a_refit_besides():
    population = units(20, 25)
    drawn = sample(population, 0.01, 100, seed=3)
    counts = [sum(unit.path.candidates[0].value("C") == C for unit in drawn) for C in range(20)]
    assert 100 <= len(drawn) <= 101
    assert min(counts) >= 4
    assert max(counts) <= 6
    assert any(unit.path.inner == REFIT for unit in drawn)
    assert drawn == sample(population, 0.01, 100, seed=3) != sample(population, 0.01, 100, seed=4)
    assert sample(population, 0.5, 1, 0) != population == sample(population, 0.01, 1000, 0)


def test_the_bound_is_the_share_that_is_missed_with_a_probability_of_five_per_cent():
    for n in (50, 100, 300):
        assert (1 - bound(10**6, n)) ** n == pytest.approx(0.05)
    assert bound(10**6, 100) < 0.03 < bound(10**6, 98)
    assert bound(100, 100) == 0.0
