"""`svmbench warm` compiles all that a run uses: the run then finds everything in the cache."""

import os
import subprocess
import sys

import pytest

from tests.messages import assert_says

STUDY = (
    "study=warm",
    "datasets=[iris]",
    "search.space.C=[1,4]",
    "search.space.gamma=[0.25,1]",
    "protocol.outer=2",
    "protocol.inner=2",
)


def svmbench(verb, *arguments, cache):
    environment = os.environ | {"NUMBA_CACHE_DIR": str(cache / "numba")}
    command = [sys.executable, "-m", "orchestrator", verb, *STUDY, *arguments, f"paths.results={cache}"]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    assert result.returncode == 0, result.stderr
    return result.stdout


def compiled(cache):
    return {path.name: path.stat().st_mtime_ns for path in cache.rglob("*.nb[ic]")}


@pytest.mark.parametrize(
    "profile", ["timing", pytest.param("throughput", marks=pytest.mark.full)]
)  # which trains each by itself, or by paths
def test_a_run_after_warm_compiles_nothing(profile, tmp_path, full_size):
    solvers = ("cvm", "mnsvm") if full_size else ("lasvm",)  # which compiles fast
    arguments = (f"solvers=[{','.join(solvers)}]", f"protocol.profile={profile}")
    printed = svmbench("warm", *arguments, cache=tmp_path)
    assert_says(printed, *solvers)
    before = compiled(tmp_path)
    assert before
    assert not [*tmp_path.rglob("*.parquet")]
    svmbench("run", *arguments, "cluster=serial", cache=tmp_path)
    assert compiled(tmp_path) == before


def test_a_study_without_compiled_solvers_has_nothing_to_compile(tmp_path):
    svmbench("warm", "solvers=[libsvm_l1]", cache=tmp_path)
    assert not compiled(tmp_path)
