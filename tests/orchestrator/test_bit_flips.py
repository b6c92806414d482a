"""A bit flips in a file that a run keeps, before the run or during it: nothing changes silently."""

import io
import os
import random
import re
import shutil
import warnings
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from orchestrator import load_study
from orchestrator.cli.display import display
from orchestrator.config.compose import load_settings
from orchestrator.engine import runner
from orchestrator.engine.prepare import prepare_study
from orchestrator.engine.run import run_session
from orchestrator.report import write_report
from orchestrator.store.columns import RUN_COLUMNS
from orchestrator.store.files import StoreError
from orchestrator.store.store import Store
from orchestrator.study.errors import ConfigError, StudyStopped
from orchestrator.training.open_data import open_data
from orchestrator.training.split_data import forget_splits
from tests.messages import assert_says

STUDY = (
    "study=small",
    "datasets=[one,two,sparse]",
    "solvers=[knn,libsvm_l1]",
    "cluster=serial",
    "protocol.outer=2",
    "protocol.inner=2",
    "search.space.C=[1,4]",
    "search.space.gamma=[0.5]",
)
CONFIGS = {
    "solver/knn.yaml": "_target_: sklearn.neighbors.KNeighborsClassifier\nspace: {n_neighbors: [1, 3]}\n",
    "dataset/one.yaml": "_target_: orchestrator.datasets.csv_file\npath: HERE/one.csv\nlabel: y\n",
    "dataset/two.yaml": "_target_: orchestrator.datasets.csv_file\npath: HERE/two.csv\nlabel: y\n",
    "dataset/sparse.yaml": (
        "_target_: orchestrator.datasets.libsvm_file\nname: sparse\nfolder: HERE\nn_features: 40\n"
    ),
}
APPENDS = 8
"""Fewer than a run makes."""


class Case:
    """A study in a folder of its own: its data, its configuration, its store and its cache.

    Two of the datasets share rows, so that hashes of rows are kept beside their copies.
    """

    def __init__(self, folder):
        self.folder, self.study, self.cache = folder, folder / "results/small", folder / "cache"
        self.said = ""
        for name, text in CONFIGS.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text.replace("HERE", str(folder)))
        rng = np.random.default_rng(0)
        X, y = rng.random((40, 3)).round(2), np.arange(40) % 2
        pd.DataFrame(X).assign(y=y).to_csv(folder / "one.csv", index=False)
        pd.DataFrame(np.vstack([X[:20], X[:10], X[20:30] + 3])).assign(y=y).to_csv(
            folder / "two.csv", index=False
        )
        lines = (f"{row % 2} {1 + row % 5}:{row / 7} 7:{rng.random()}" for row in range(40))
        (folder / "sparse.libsvm").write_text("\n".join(lines))

    def run(self):
        """Run the study from its start or from where it is; return what it found, and write its report."""
        open_data.cache_clear()
        forget_splits()
        places = [f"paths.results={self.study.parent}", f"paths.cache={self.cache}"]
        output = io.StringIO()
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            try:
                settings = load_settings([*STUDY, *places], self.folder)
                prepared = prepare_study(settings)
                run_session(settings, prepared, display(Console(file=output, width=500)), ["svmbench"])
                return self.found() | {"warnings": prepared.data_warnings}
            finally:
                texts = [output.getvalue(), *(str(warning.message) for warning in said)]
                self.said = "\n".join(texts)

    def found(self):
        """Return rows, selections, and what was recorded of the data."""
        results = load_study(self.study)
        write_report(results, self.folder / "report")
        frames = {name: getattr(results, name) for name in ("trials", "outer", "selections")}
        found = {
            name: frame[[column for column in frame if column not in RUN_COLUMNS]].to_csv()
            for name, frame in frames.items()
        }
        declared = repr(results.declaration.datasets)
        return found | {"datasets": declared, "excluded": results.excluded.to_csv(), "lost": results.lost}

    def files(self):
        """Return all files that are kept: in the store, in the cache, and the data themselves."""
        folders = [*self.folder.glob("results/**/*"), *self.folder.glob("cache/**/*")]
        kept = [*folders, *self.folder.glob("*.csv"), *self.folder.glob("*.libsvm")]
        return sorted(path for path in kept if path.is_file() and path.stat().st_size)


def flip(path, rng):
    """Flip one bit in place: neither size nor times of a file change, but maps of it do."""
    status = path.stat()
    with open(path, "r+b") as file:
        place = rng.randrange(status.st_size)
        file.seek(place)
        value = file.read(1)[0] ^ 1 << rng.randrange(8)
        file.seek(place)
        file.write(bytes([value]))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """An undisturbed study, and what it found."""
    case = Case(tmp_path_factory.mktemp("whole"))
    found = case.run()
    assert any("share" in sentence for sentence in found["warnings"]), "no hashes of rows are kept"
    kinds = {re.sub(r"-?[0-9a-f]{6,}.*?(?=\.|$)", "", path.name) for path in case.files()}
    assert {"X.npy", "data.npy", "indptr.npy", "codes.npy", "meta.json", "splits.npy"} <= kinds
    assert {".audit.json", ".rows.npz", "outer.parquet", "selections.parquet"} <= kinds
    return case, found


def outcome_of(case):
    """Run a study; return what it found, or the error that ended it."""
    try:
        return case.run(), ""
    except (StoreError, StudyStopped, ConfigError) as error:
        return None, str(error)


def assert_not_silent(case, path, whole):
    """Run a study: it finds what an undisturbed one finds, or the damaged file is named."""
    is_source = path.parent == case.folder
    found, error = outcome_of(case)
    if error:
        assert path.name in error or (is_source and path.stem in error)
        return "named"
    if is_source and found != whole:  # what is in it counts
        assert_says(case.said, f"{path.name}", "changed")
        return "named"
    for name, value in whole.items():
        assert found[name] == value, name
    return "harmless"


@pytest.mark.sample(2)
@pytest.mark.parametrize("block", range(4))
def test_a_bit_that_flips_before_a_run_changes_nothing_silently(block, whole, tmp_path, full_size):
    outcomes = Counter()
    for seed in range(block, 200 if full_size else 4, 4):
        rng = random.Random(seed)
        case = Case(tmp_path / str(seed))
        for name in ("results", "cache"):
            shutil.copytree(whole[0].folder / name, case.folder / name)
        path = rng.choice(case.files())
        if case.cache in path.parents and rng.random() < 0.7:
            shutil.rmtree(case.study)  # everything is trained again, from the copies that are there
        flip(path, rng)
        try:
            outcomes[assert_not_silent(case, path, whole[1])] += 1
        except BaseException as error:
            error.add_note(f"seed {seed}: {path}, after: {case.said}")
            raise
        shutil.rmtree(case.folder)
    if full_size:  # a few flips may all meet bytes that nobody reads
        assert {*outcomes} == {"harmless", "named"}


@pytest.mark.sample(2)
@pytest.mark.parametrize("block", range(4))
def test_a_bit_that_flips_during_a_run_changes_nothing_silently(
    block, whole, tmp_path, monkeypatch, full_size
):
    monkeypatch.setattr(runner, "FLUSH_SECONDS", 0)
    plain = Store.append
    for seed in range(block, 100 if full_size else 4, 4):
        rng = random.Random(seed)
        case = Case(tmp_path / str(seed))
        when, appends, paths = rng.randrange(APPENDS), [], []

        def append(store, batches, case=case, rng=rng, when=when, appends=appends, paths=paths):
            plain(store, batches)
            appends.append(len(appends))
            if appends[-1] == when:
                paths.append(rng.choice([path for path in case.files() if path.parent != case.folder]))
                flip(paths[0], rng)

        monkeypatch.setattr(Store, "append", append)
        try:
            found, error = outcome_of(case)
            assert not error or paths[0].name in error
            for name, value in whole[1].items():
                assert error or found[name] == value, name
            monkeypatch.setattr(Store, "append", plain)
            assert_not_silent(case, paths[0], whole[1])
        except BaseException as error:
            error.add_note(f"seed {seed}: {paths}, after: {case.said}")
            raise
        shutil.rmtree(case.folder)
