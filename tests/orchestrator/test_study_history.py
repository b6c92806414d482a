"""Everything that can be done to one study, in random order, against a slow and obvious model of what counts.

The model knows what each run declared and which trials are stored; from that it works out anew, after each
command, what `status`, `plan`, `report.json` and `load_study` have to show.
"""

import io
import itertools
import json
import math
import re
import shutil
import tempfile
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test
from rich.console import Console
from sklearn.datasets import make_moons
from sklearn.metrics import accuracy_score
from sklearn.neighbors import KNeighborsClassifier

from orchestrator import load_study
from orchestrator.analysis.findings import analyse
from orchestrator.cli.display import display
from orchestrator.cli.request import Request
from orchestrator.cli.status import status
from orchestrator.config.compose import load_settings
from orchestrator.engine import planning as planning
from orchestrator.engine import run as engine_run
from orchestrator.engine.prepare import prepare_study
from orchestrator.execution.serial import SerialExecutor
from orchestrator.report.contents import all_tables
from orchestrator.report.report_json import report_json
from orchestrator.resampling.nested import nested_folds
from orchestrator.search import make_search
from orchestrator.store.store import Store
from orchestrator.study.errors import ConfigError
from orchestrator.training import run_batch as worker
from orchestrator.training import train as training
from tests.messages import raises

OUTER, INNER = 2, 2
DATASETS, SOLVERS = ("d1", "d2", "d3"), ("a", "b", "c")
FIXED = ({"weights": "uniform"}, {"weights": "distance"}, {"weights": "uniform", "p": 1})
SPACES = ([1, 3, 5], [1, 3], [3, 5, 7, 9, 11], [2, 40])  # a fold has too few rows for 40 neighbours: it fails


@cache
def data(content):
    return make_moons(n_samples=40 + content, noise=0.4, random_state=content)


class World:
    """The files that a user edits, and what they say."""

    def __init__(self, folder):
        self.folder = folder
        self.datasets = {name: 10 * place for place, name in enumerate(DATASETS)}
        self.fixed = {name: place for place, name in enumerate(SOLVERS)}
        self.space = dict.fromkeys(SOLVERS, 0)
        self.search, self.seed = "grid", 0
        self.save()

    def save(self):
        for group in ("dataset", "solver"):
            (self.folder / "conf" / group).mkdir(parents=True, exist_ok=True)
        for name, content in self.datasets.items():
            lines = ["_target_: sklearn.datasets.make_moons", f"n_samples: {40 + content}"]
            lines += ["noise: 0.4", f"random_state: {content}"]
            (self.folder / "conf" / "dataset" / f"{name}.yaml").write_text("\n".join(lines))
        for name in SOLVERS:
            lines = ["_target_: sklearn.neighbors.KNeighborsClassifier"]
            lines += [f"{key}: {value}" for key, value in FIXED[self.fixed[name]].items()]
            lines += [f"space: {{n_neighbors: {SPACES[self.space[name]]}}}"]
            (self.folder / "conf" / "solver" / f"{name}.yaml").write_text("\n".join(lines))

    def overrides(self, datasets, solvers):
        return [
            "study=history",
            f"datasets=[{','.join(datasets)}]",
            f"solvers=[{','.join(solvers)}]",
            f"search={self.search}",
            f"protocol.seed={self.seed}",
            f"protocol.outer={OUTER}",
            f"protocol.inner={INNER}",
            "cluster=serial",
            f"paths.results={self.folder / 'results'}",
            f"paths.cache={self.folder / 'cache'}",
        ]

    def declare(self, datasets, solvers):
        """What a run of these names declares."""
        return {
            "datasets": {name: self.datasets[name] for name in datasets},
            "solvers": {name: (self.fixed[name], self.space[name]) for name in solvers},
            "search": self.search,
            "seed": self.seed,
        }


# -- the model -----------------------------------------------------------------------------------


def belongs(history):
    """The dataset × solver that belong to the study: content, fixed parameters, space of each.

    A name means what the newest run says that names it; a pair belongs if a run declared just that.
    """
    newest_first = history[::-1]

    def newest(group, name):
        return next(run[group][name] for run in newest_first if name in run[group])

    found, trained_as = {}, {}
    for run in newest_first:
        if (run["search"], run["seed"]) != (history[-1]["search"], history[-1]["seed"]):
            continue
        for dataset, solver in itertools.product(run["datasets"], run["solvers"]):
            if (dataset, solver) in found:
                continue
            content, (fixed, space) = run["datasets"][dataset], run["solvers"][solver]
            if content != newest("datasets", dataset) or (fixed, space) != newest("solvers", solver):
                continue
            if trained_as.setdefault((content, fixed), (dataset, solver)) == (dataset, solver):
                found[dataset, solver] = content, fixed, space
    return found


@cache
def folds(content, seed):
    return nested_folds(data(content)[1], OUTER, INNER, seed)


@cache
def true_score(content, fixed, seed, outer, inner, k):
    """The accuracy by a plain loop; nan where scikit-learn refuses."""
    X, y = data(content)
    train, test = folds(content, seed).train_test(outer, inner)
    low, high = X[train].min(axis=0), X[train].max(axis=0)
    scaled = (X - low) / (high - low)
    try:
        classifier = KNeighborsClassifier(n_neighbors=k, **FIXED[fixed]).fit(scaled[train], y[train])
        return accuracy_score(y[test], classifier.predict(scaled[test]))
    except ValueError:
        return math.nan


def shown(content, fixed, space, search, seed, stored):
    """What one pair has to show: trials that count, those missing, its selections and refits."""
    counted, missing, selections, refits, complete = [], 0, {}, {}, True
    for outer in range(OUTER):
        machine = make_search(search, {"n_neighbors": tuple(SPACES[space])})
        waiting = False
        while not waiting and (candidates := machine.ask()):
            for candidate in candidates:
                k = candidate.as_dict()["n_neighbors"]
                trials = [(content, fixed, seed, outer, inner, k) for inner in range(INNER)]
                counted += [trial for trial in trials if trial in stored]
                if all(trial in stored for trial in trials):
                    machine.tell(candidate, float(np.mean([stored[trial] for trial in trials])))
                else:
                    waiting = True
                    missing += sum(trial not in stored for trial in trials)
        if waiting or not machine.done:
            complete = False
            continue
        best = machine.selection.best
        selections[outer] = best and best.as_dict()["n_neighbors"], machine.selection.n_candidates
        if best is not None:
            refit = (content, fixed, seed, outer, -1, selections[outer][0])
            if refit in stored:
                counted.append(refit)
                refits[outer] = stored[refit]
            else:
                complete = False
                missing += 1
    return {
        "counted": counted,
        "missing": missing,
        "selections": selections,
        "refits": refits,
        "complete": complete,
        "planned": len(counted) if complete else OUTER * (INNER * len(SPACES[space]) + 1),
        "failed": sum(math.isnan(stored[trial]) for trial in counted),
    }


# -- the study -----------------------------------------------------------------------------------


class Clock(datetime):
    """A clock that a user can set back."""

    back = timedelta()

    @classmethod
    def now(cls, tz=None):
        return datetime.now(tz) - cls.back


def some(names):
    return st.lists(st.sampled_from(names), min_size=1, unique=True)


class History(RuleBasedStateMachine):
    @initialize()
    def start(self):
        self.patch = pytest.MonkeyPatch()
        Clock.back = timedelta()
        for module in (engine_run, training, worker):
            self.patch.setattr(module, "datetime", Clock)
        self.folder = Path(tempfile.mkdtemp())
        self.world = World(self.folder)
        self.history, self.run_ids = [], {}

    def teardown(self):
        if hasattr(self, "patch"):
            self.patch.undo()
            shutil.rmtree(self.folder, ignore_errors=True)

    # -- commands --------------------------------------------------------------------------------

    @rule(retry=st.sampled_from(["none", "failed"]))
    def run_everything(self, retry):
        self.run(DATASETS, SOLVERS, None, retry)

    @rule(datasets=some(DATASETS), solvers=some(SOLVERS))
    def run_a_part(self, datasets, solvers):
        self.run(datasets, solvers, None, "none")

    @rule(datasets=some(DATASETS), solvers=some(SOLVERS), batches=st.integers(0, 3))
    def interrupt_a_run(self, datasets, solvers, batches):
        self.run(datasets, solvers, batches, "none")

    def run(self, datasets, solvers, stop_after, retry):
        world = self.world
        overrides = [*world.overrides(datasets, solvers), f"retry={retry}"]
        if len({world.fixed[name] for name in solvers}) < len(solvers):
            with raises(ConfigError, "same", "them"):
                load_settings(overrides, world.folder / "conf")
            return
        if len({world.datasets[name] for name in datasets}) < len(datasets):
            with pytest.raises(ConfigError, match=r"same content.*Remove one"):
                prepare_study(load_settings(overrides, world.folder / "conf"))
            return
        settings_ = load_settings(overrides, world.folder / "conf")
        prepared = prepare_study(settings_)
        declared = world.declare(datasets, solvers)
        before = self.stored()
        expected = self.expected([*self.history, declared], before)
        self.check_plan(prepared, declared, expected)
        self.drive(settings_, prepared, stop_after)
        (new,) = {run["run_id"] for run in self.store.provenance()} - set(self.run_ids)
        self.history.append(declared)
        self.run_ids[new] = declared
        after = self.stored()
        for trial, score in after.items():
            np.testing.assert_equal(score, true_score(*trial))
        if stop_after is None:
            for pair in itertools.product(datasets, solvers):
                assert self.expected(self.history, after)[pair]["complete"]
        self.check()

    def drive(self, settings_, prepared, stop_after):
        left = iter(range(stop_after)) if stop_after is not None else itertools.count()
        wait = SerialExecutor.wait

        def interrupted(executor, seconds):
            if next(left, None) is None:
                raise KeyboardInterrupt
            return wait(executor, seconds)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(SerialExecutor, "wait", interrupted)
            try:
                console = Console(file=io.StringIO())
                engine_run.run_session(settings_, prepared, display(console), ["svmbench", "run"])
            except KeyboardInterrupt:
                assert stop_after is not None

    @rule(name=st.sampled_from(SOLVERS), fixed=st.integers(0, len(FIXED) - 1))
    def edit_a_solver(self, name, fixed):
        self.world.fixed[name] = fixed
        self.world.save()

    @rule(name=st.sampled_from(SOLVERS), space=st.integers(0, len(SPACES) - 1))
    def edit_a_space(self, name, space):
        self.world.space[name] = space
        self.world.save()

    @rule(name=st.sampled_from(DATASETS), content=st.sampled_from([0, 10, 20, 30]))
    def edit_a_dataset(self, name, content):
        self.world.datasets[name] = content
        self.world.save()

    @rule(search=st.sampled_from(["grid", "pattern"]))
    def change_the_search(self, search):
        self.world.search = search

    @rule(seed=st.integers(0, 1))
    def change_the_seed(self, seed):
        self.world.seed = seed

    @rule(days=st.integers(0, 4))
    def set_the_clock(self, days):
        Clock.back = timedelta(days=days)

    # -- what is there, and what has to be shown --------------------------------------------------

    @property
    def store(self):
        return Store(self.folder / "results" / "history")

    def stored(self):
        """Score of every stored trial, by what was trained."""
        if not self.store.trials_folder.is_dir():
            return {}
        rows = self.store.trials().itertuples()
        found = {}
        for row in rows:
            run = self.run_ids[row.run_id]
            content, (fixed, _) = run["datasets"][row.dataset], run["solvers"][row.solver]
            found[content, fixed, run["seed"], row.outer, row.inner, int(row.param_n_neighbors)] = row.score
        return found

    def expected(self, history, stored):
        run = history[-1]
        return {
            pair: shown(*meaning, run["search"], run["seed"], stored)
            for pair, meaning in belongs(history).items()
        }

    def check_plan(self, prepared, declared, expected):
        stored = self.store.stored() if self.history else {}
        lines = {(line.dataset, line.solver): line for line in planning.plan(prepared, stored, {})}
        assert lines.keys() == set(itertools.product(declared["datasets"], declared["solvers"]))
        for pair, line in lines.items():
            state = expected[pair]
            assert (line.planned, line.stored, line.failed) == (
                state["planned"],
                len(state["counted"]),
                state["failed"],
            )

    def check(self):
        expected = self.expected(self.history, self.stored())
        self.check_frames(expected)
        self.check_status(expected)
        self.check_report(expected)

    def check_frames(self, expected):
        results = load_study("history", self.folder / "results")
        counts = results.trials.groupby(["dataset", "solver"]).size().to_dict()
        assert counts == {pair: len(state["counted"]) for pair, state in expected.items() if state["counted"]}
        outer = {
            (row.dataset, row.solver, row.outer): (row.param_n_neighbors, row.score)
            for row in results.outer.itertuples()
        }
        assert outer == {
            (*pair, fold): (state["selections"][fold][0], score)
            for pair, state in expected.items()
            for fold, score in state["refits"].items()
        }
        selections = (
            {
                (row.dataset, row.solver, row.outer): (row.param_n_neighbors, row.n_candidates)
                for row in results.selections.itertuples()
            }
            if len(results.selections)
            else {}
        )
        assert selections == {
            (*pair, fold): chosen
            for pair, state in expected.items()
            for fold, chosen in state["selections"].items()
        }
        n_counted = sum(len(state["counted"]) for state in expected.values())
        assert results.excluded["trials"].sum() == len(self.store.trials()) - n_counted
        # The file beside the trials holds the same refits.
        written = {
            (row["dataset"], row["solver"], row["outer"]): row["score"] for row in self.store.outer_rows()
        }
        assert written == {axes: score for axes, (_, score) in outer.items()}

    def check_status(self, expected):
        console = Console(record=True, file=io.StringIO(), width=200)
        overrides = self.world.overrides(DATASETS[:1], SOLVERS[:1])
        status(Request(overrides, self.folder / "conf", ["svmbench", "status"]), console)
        text = console.export_text()
        counts = re.search(r"([\d,]+) of ([\d,]+) trials, ([\d,]+) failed, (.*)", text)
        states = expected.values()
        assert [int(number.replace(",", "")) for number in counts.groups()[:3]] == [
            sum(len(state["counted"]) for state in states),
            sum(state["planned"] for state in states),
            sum(state["failed"] for state in states),
        ]
        assert (counts.group(4) == "complete") == all(state["complete"] for state in states)

    def check_report(self, expected):
        findings = analyse(load_study("history", self.folder / "results"))
        content = json.loads(report_json(findings, all_tables(findings)))
        coverage = {
            (row["dataset"], row["solver"]): (row["stored"], row["refits"])
            for row in content["tables"]["coverage"]["rows"]
        }
        assert coverage == {
            pair: (len(state["counted"]), sum(not math.isnan(score) for score in state["refits"].values()))
            for pair, state in expected.items()
        }
        means = {
            (row["dataset"], row["solver"]): row["mean"]
            for row in content["tables"].get("scores", {"rows": []})["rows"]
            if row["n_folds"]
        }
        assert means == {
            pair: pytest.approx(np.mean(list(state["refits"].values())))
            for pair, state in expected.items()
            if state["refits"]
        }
        if content["complete"]:
            assert all(state["complete"] for state in expected.values())


def test_status_plan_report_and_frames_agree_with_a_model_after_every_command(full_size):
    steps, examples = (200, 6) if full_size else (12, 2)
    run_state_machine_as_test(
        History, settings=settings(stateful_step_count=steps, max_examples=examples, print_blob=False)
    )
