"""Whatever happens to one file of a study is harmless, or named and repairable; nothing is silent."""

import json
import os
import random
import shutil
import signal
from contextlib import contextmanager
from dataclasses import replace
from io import StringIO

import pandas as pd
import pytest
from rich.console import Console

from orchestrator import load_study
from orchestrator.cli import status
from orchestrator.cli.display import display
from orchestrator.config.compose import load_settings
from orchestrator.engine.damage_repair import repair
from orchestrator.engine.load import declared_runs
from orchestrator.engine.planning import remaining
from orchestrator.engine.prepare import prepare_study
from orchestrator.engine.run import run_session
from orchestrator.engine.runner import StudyStopped
from orchestrator.report import write_report
from orchestrator.store.columns import RUN_COLUMNS
from orchestrator.store.files import DamageError, StoreError
from orchestrator.store.store import Store
from orchestrator.study.declaration import current_declaration
from orchestrator.study.failures import lines_of

SMALL = (
    "study=small",
    "solvers=[libsvm_l1,knn]",
    "cluster=serial",
    "protocol.outer=2",
    "protocol.inner=2",
    "search.space.C=[1,4]",
    "search.space.gamma=[0.5]",
)
KNN = "_target_: sklearn.neighbors.KNeighborsClassifier\nspace: {n_neighbors: [1, 3]}\n"
BLOCKS = 4
"""Parts of the long check; the sample has the first and the last, of one original each."""

SECONDS = 300
"""Long enough for any command on any machine, and still no hang."""


class Commands:
    """The two commands that made a study, to be given again."""

    def __init__(self, folder):
        (folder / "solver").mkdir()
        (folder / "solver/knn.yaml").write_text(KNN)
        paths = [f"paths.cache={folder / 'cache'}", f"paths.results={folder / 'results'}"]
        self.all = []
        for datasets in ("[iris]", "[iris,wine]"):
            settings = load_settings([*SMALL, *paths, f"datasets={datasets}"], folder)
            self.all.append((settings, prepare_study(settings)))

    def run(self, results, which=None):
        for settings, prepared in which or self.all:
            settings = replace(settings, paths=replace(settings.paths, results=results))
            run_session(settings, prepared, display(Console(file=StringIO())), ["svmbench", "run"])


@pytest.fixture(scope="module")
def commands(tmp_path_factory):
    return Commands(tmp_path_factory.mktemp("commands"))


@pytest.fixture(scope="module")
def originals(commands, tmp_path_factory):
    """Studies of two runs with a report, as killed runs leave them: compacted by none, and by the first."""
    return [make_original(commands, tmp_path_factory.mktemp("original"), number) for number in range(2)]


def make_original(commands, results, compacted):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("orchestrator.engine.runner.FLUSH_SECONDS", 0)
        if compacted:
            commands.run(results, commands.all[:1])
        patch.setattr(Store, "compact", lambda *arguments, **options: None)
        commands.run(results)
    folder = results / "small"
    write_report(load_study(folder), folder / "report")
    assert len(list(folder.glob("trials/*"))) > 4
    assert len(list(folder.glob("provenance/*"))) == 2 + compacted
    return folder


# -- faults --------------------------------------------------------------------------------------


def flip(path, rng, files):
    content = bytearray(path.read_bytes())
    if content:
        content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
        path.write_bytes(content)


def overwrite(path, rng, files):
    content = bytearray(path.read_bytes())
    start = rng.randrange(len(content) + 1)
    content[start : start + 64] = rng.randbytes(64)
    path.write_bytes(content)


def truncate(path, rng, files):
    os.truncate(path, rng.randrange(path.stat().st_size + 1))


def extend(path, rng, files):
    path.write_bytes(path.read_bytes() + rng.choice([b"\n", b"}", rng.randbytes(100)]))


def delete(path, rng, files):
    path.unlink()


def rename(path, rng, files):
    name = rng.choice(["x", f"x{path.suffix}", f"{path.name}.bak", f".{path.name}", f"part-{path.name}"])
    path.rename(path.with_name(name))


def rename_to_another(path, rng, files):
    path.rename(rng.choice(files))


def swap(path, rng, files):
    other = rng.choice(files)
    contents = path.read_bytes(), other.read_bytes()
    path.write_bytes(contents[1])
    other.write_bytes(contents[0])


def copy(path, rng, files):
    shutil.copy(path, path.with_name(f"{path.stem} copy{path.suffix}"))


def copy_over_another(path, rng, files):
    shutil.copyfile(path, other) if (other := rng.choice(files)) != path else None


def link(path, rng, files):
    path.unlink()
    path.symlink_to(rng.choice([rng.choice(files), "nowhere", path, "/dev/zero", "/etc/passwd", ".."]))


def hard_link(path, rng, files):
    if (other := rng.choice(files)) != path:
        path.unlink()
        os.link(other, path)


def pipe(path, rng, files):
    path.unlink()
    os.mkfifo(path)


def folder(path, rng, files):
    path.unlink()
    path.mkdir()
    (path / "inside").touch()


def other_json(path, rng, files):
    deep = "[" * 100_000 + "]" * 100_000
    texts = ["[]", "7", "null", '"a"', "{}", '{"study": 7}', '{"number": "x"}', deep, "\ufeff{}"]
    texts += ['{"run_id": "x", "study": {"datasets": [1], "arms": [2]}}', '{"hosts": [1]}', "9" * 9999]
    path.write_bytes(rng.choice([text.encode() for text in texts] + ["{}".encode("utf-16")]))


def edited_json(path, rng, files):
    """Change one value of a record, as an editor would."""
    try:
        facts = json.loads(path.read_bytes())
        name = rng.choice(sorted(facts))
    except (ValueError, TypeError):
        return other_json(path, rng, files)
    facts[name] = rng.choice([None, 7, "x", [], {}, [1], {"a": 1}, True])
    path.write_text(json.dumps(facts))


FAULTS = [
    flip,
    flip,
    overwrite,
    truncate,
    extend,
    delete,
    rename,
    rename_to_another,
    swap,
    copy,
    copy_over_another,
    link,
    hard_link,
    pipe,
    folder,
    other_json,
    edited_json,
]
GROUPS = ["trials/*", "trials/*", "provenance/*", "provenance/*", "*.parquet", "logs/*", ".*", "report/**/*"]


def damage(folder, rng):
    """Do one thing to one file; return the files that it may have changed."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    before = {path: path.read_bytes() for path in files}
    group = sorted(path for path in folder.glob(rng.choice(GROUPS)) if path.is_file())
    fault = rng.choice(FAULTS)
    path = rng.choice(group)
    fault(path, rng, files)
    paths = {found for found in [*folder.rglob("*"), *files] if found.name != "inside"}
    changed = {
        found
        for found in paths
        if found.is_symlink() or not found.is_file() or content(found) != before.get(found)
    }
    return fault.__name__, {found for found in changed if found in before or not found.is_dir()}


def content(path):
    return path.read_bytes() if path.is_file() else None


# -- what may come of them -----------------------------------------------------------------------


@contextmanager
def no_hang():
    def end(*arguments):
        raise TimeoutError(f"no answer in {SECONDS} s")

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def frames(results):
    kept = [name for name in results.trials if name not in RUN_COLUMNS]
    outer = [name for name in results.outer if name not in RUN_COLUMNS]
    return results.trials[kept], results.outer[outer], results.selections


def assert_same(results, whole):
    for found, expected in zip(frames(results), frames(whole), strict=True):
        pd.testing.assert_frame_equal(found, expected, check_exact=True)
    assert results.states.keys() == whole.states.keys()
    assert results.excluded.equals(whole.excluded)


def assert_incomplete(results, whole):
    """Rows are missing, none is another, and the study does not pass for complete."""
    rows = whole.trials[whole.trials["key"].isin(results.trials["key"])].reset_index(drop=True)
    assert len(whole.trials) - len(rows) > 0
    pd.testing.assert_frame_equal(results.trials, rows, check_exact=True, check_dtype=False)
    assert not all(state.complete for state in results.states.values())
    assert results.lost


def assert_named(error, changed):
    sentence = str(error)
    assert "\n" not in sentence
    assert len(sentence) < 1000
    if isinstance(error, DamageError):
        assert "svmbench repair study=small" in sentence
    assert any(str(path) in sentence for path in changed), sentence


def told(folder, overview_of):
    """What `status` says of a study by one of its two ways, or the error."""
    store = Store(folder)
    try:
        declaration = current_declaration(declared_runs(store))
        overview, excluded, lost = overview_of(store, declaration)
    except StoreError as error:
        return error
    lines = [replace(line, seconds_left=0.0) for line in remaining(overview)]
    return lines, sorted(excluded), lines_of(overview.failures()), lost


def assert_status_agrees(folder, outcome, changed):
    """What status says by summaries and few columns is what all rows say."""
    quick = told(folder, lambda *found: status._overview(*found, found[0].provenance()))
    if outcome == "named":
        assert isinstance(quick, StoreError), "status says nothing of damage"
        assert_named(quick, changed)
    else:
        assert quick == told(folder, lambda store, declaration: status._overview_of_rows(store))


def check(original, results, commands, whole, seed):
    """Damage a copy of a study in one way; return what came of it."""
    rng = random.Random(seed)
    folder = results / "small"
    shutil.copytree(original, folder)
    fault, changed = damage(folder, rng)
    outcome = "harmless"
    with no_hang():
        try:
            found = load_study(folder)
            if len(found.trials) == len(whole.trials):
                assert_same(found, whole)
            else:
                outcome = "incomplete"
                assert_incomplete(found, whole)
        except StoreError as error:
            assert_named(error, changed)
            outcome = "named"
        assert_status_agrees(folder, outcome, changed)
        if outcome != "named" and any("report" in path.parts for path in changed):
            try:
                write_report(load_study(folder), folder / "report")
            except StoreError as error:
                assert_named(error, changed)
                outcome = "named by report"
        try:
            commands.run(results)
            assert outcome != "named", "a run recomputed what is damaged without a word"
        except (StoreError, StudyStopped) as error:
            assert_named(error, changed)
            if not outcome.startswith("named"):
                outcome = "named by run"
        if outcome.startswith("named") or rng.random() < 0.3:
            repair(Store(folder))
            assert repair(Store(folder)) == []
            commands.run(results)
        assert_same(load_study(folder), whole)
        store = Store(folder)
        assert [row["key"] for row in store.outer_rows()] == whole.outer["key"].tolist()
        assert not list(folder.glob("**/.*.tmp"))
        if any("report" in path.parts for path in changed):
            write_report(load_study(folder), folder / "report")
    return f"{outcome:16} {fault}"


@pytest.mark.sample(3)
@pytest.mark.parametrize("block", range(BLOCKS))
def test_a_random_fault_is_harmless_or_named_and_repairable(block, originals, commands, tmp_path, full_size):
    original = originals[block % len(originals)]
    whole = load_study(original)
    outcomes = {}
    for seed in range(block, 2_000 if full_size else 20, BLOCKS):
        results = tmp_path / str(seed)
        try:
            outcome = check(original, results, commands, whole, seed)
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise
        outcomes[outcome] = outcomes.get(outcome, 0) + 1
        shutil.rmtree(results)
    print(*(f"{number:5} {outcome}" for outcome, number in sorted(outcomes.items())), sep="\n")
    assert {outcome.split()[0] for outcome in outcomes} >= {"harmless", "named"}
