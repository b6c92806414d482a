"""Compiled code is never older than the sources: an edit of a file reaches the functions of all others."""

import ast
import gc
import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import cloudpickle
import numpy as np
import pytest
from numba import int64
from numba.core import event
from numba.core.errors import TypingError

import solvers
from solvers.common.certificate import certified_gap
from solvers.common.compile import apart, inner, njit
from solvers.common.source_stamps import _paths, _read_module, _sources_of
from solvers.gram.block import gap_of
from solvers.gram.subproblems import is_sorted

CALL = """
import numpy as np
from solvers.gram.block import gap_of  # which contains `certified_gap` of another file
print(gap_of(np.ones(2), np.ones(2), 1.0, 1.0, 0.0, 0))
"""


@pytest.fixture
def copy(tmp_path):
    """A copy of the package without anything compiled."""
    shutil.copytree(
        Path(solvers.__file__).parent, tmp_path / "solvers", ignore=shutil.ignore_patterns("__pycache__")
    )
    (tmp_path / "solvers" / "__init__.py").write_text("")  # without the estimators it is imported faster
    return tmp_path / "solvers"


def answer(copy, **environment):
    """What a new process computes with the copy."""
    return answers(copy, CALL, **environment)[0]


def answers(copy, code, **environment):
    """The numbers that a new process prints."""
    env = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("NUMBA", "PYTHON", "SOLVERS"))
    }
    env |= {"PYTHONPATH": str(copy.parent), **environment}
    command = [sys.executable, "-P", "-c", code]
    result = subprocess.run(command, env=env, cwd=copy.parent, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stderr
    return [float(number) for number in result.stdout.split()]


def edit(copy, gap):
    file = copy / "common" / "certificate.py"
    text = file.read_text()
    line = "    if not 0.0 < square_norm + error < np.inf:\n"
    assert line in text
    file.write_text(text.replace(line, f"    if square_norm > 0.0:\n        return {gap}\n{line}"))


def compiled(folder):
    return {path.name: path.stat().st_mtime_ns for path in folder.rglob("*.nb[ic]")}


@pytest.mark.full
def test_an_edit_of_another_file_is_compiled_in(copy):
    assert 0.0 <= answer(copy) < 1e-9
    before = compiled(copy / "gram")
    assert before
    assert 0.0 <= answer(copy) < 1e-9
    assert compiled(copy / "gram") == before, "compiled again, and nothing had changed"
    edit(copy, 7.5)
    assert answer(copy) == 7.5
    after = compiled(copy / "gram")
    assert len(after) == len(before)
    assert not set(after) & set(before), "what was compiled from older sources is still there"


OPERATION = """
from solvers.common.compile import njit

SHARED = 100.0

def value_of(rules):
    raise NotImplementedError

@njit(allocates=False)
def double_value(rules):
    return SHARED + 2.0 * value_of(rules)
"""
IMPLEMENTATION = """
from typing import NamedTuple
from solvers.common.compile import implement, inner
from solvers.gram.operation import value_of
from solvers.smo.helper import helped

class {name}(NamedTuple):
    value: float

CONSTANT = {constant}

@implement(value_of, {name}, allocates=False)
def value_of_{name}(rules):
    return helped(rules.value + CONSTANT)
"""
HELPER = """
from solvers.common.compile import inner

@inner
def helped(x):
    return x + {constant}
"""
CALL_BOTH = """
from numba.core import event
from solvers.gram.operation import double_value
from solvers.newton.first import First
from solvers.hull.second import Second

class Count(event.Listener):
    names = []
    def on_start(self, compilation):
        self.names.append(compilation.data["dispatcher"].py_func.__name__)
    def on_end(self, _):
        pass

def called(rules):
    Count.names.clear()
    value = double_value(rules)
    return value, int("double_value" in Count.names)

with event.install_listener("numba:compile", Count()):
    (first, compiled_first), (second, compiled_second) = called(First(1.0)), called(Second(1.0))
print(first, compiled_first, second, compiled_second)
"""


def test_an_edit_recompiles_the_code_that_depends_on_it_and_no_other(copy):
    def call():
        return answers(copy, CALL_BOTH)

    def write_first(constant):
        text = IMPLEMENTATION.format(name="First", constant=constant)
        (copy / "newton" / "first.py").write_text(text)

    (copy / "gram" / "operation.py").write_text(OPERATION)
    (copy / "smo" / "helper.py").write_text(HELPER.format(constant=0.0))
    (copy / "hull" / "second.py").write_text(IMPLEMENTATION.format(name="Second", constant=10.0))
    write_first(1.0)
    assert call() == [104.0, 1.0, 122.0, 1.0]
    assert call() == [104.0, 0.0, 122.0, 0.0]
    write_first(2.0)  # a solver's file, which the compiled function's module does not import
    assert call() == [106.0, 1.0, 122.0, 0.0]
    (copy / "smo" / "helper.py").write_text(HELPER.format(constant=1.0))  # a function that both contain
    assert call() == [108.0, 1.0, 124.0, 1.0]
    (copy / "gram" / "operation.py").write_text(OPERATION.replace("100.0", "200.0"))
    assert call() == [208.0, 1.0, 224.0, 1.0]
    assert call() == [208.0, 0.0, 224.0, 0.0]
    (copy / "newton" / "unrelated.py").write_text("")
    assert call() == [208.0, 0.0, 224.0, 0.0]
    assert len([*(copy / "gram").rglob("*.nbi")]) == 2, "code of older sources is still there"


@pytest.mark.parametrize(
    ("module", "others"),
    [
        ("solvers.smo.block_path", {"newton", "hull", "margin", "estimators", "path"}),
        ("solvers.newton.block_path", {"margin", "estimators", "path"}),
        ("solvers.hull.block_ball", {"newton", "smo", "margin", "estimators", "path"}),
        ("solvers.gram.subproblems", {"newton", "smo", "hull", "margin", "estimators", "path"}),
    ],
)
def test_code_of_a_solver_does_not_depend_on_other_solvers(module, others):
    assert not {name.split(".")[1] for name in _sources_of([module], ())} & others


def test_the_stamps_know_every_import_of_this_package():
    for name in _paths():
        source, imported = _read_module(name)
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Import):
                needed = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0
                needed = [node.module]
            else:
                continue
            for one in needed:
                assert not one.startswith("solvers") or one in imported, (name, one)


APART = """
import numpy as np
from numba import float64, int64
from solvers.common.compile import apart

@apart(float64, int64, allocates=True)
def mean_and_size(values, factor):
    if values.size == 0:
        raise ValueError("no values")
    copy = np.empty(values.size)
    copy[:] = values
    return factor * {constant} * copy.sum() / values.size, values.size
"""
CALLS_APART = """
from solvers.common.compile import njit
from solvers.newton.apart import mean_and_size

@njit
def mean_plus_size(values, factor):
    mean, size = mean_and_size(values, factor)
    return mean + size
"""
CALL_APART = """
import numpy as np, resource
from solvers.gram.calls_apart import mean_and_size, mean_plus_size

print(mean_plus_size(np.array([1.0, 2.0, 6.0]), 1))  # the factor is an integer
for function in (mean_plus_size, mean_and_size):
    print(sum(function.stats.cache_misses.values()))
print(int(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss > 0))  # whether a process helped
try:
    mean_plus_size(np.zeros(0), 1)
except ValueError:
    print(1)
"""


@pytest.mark.parametrize("helpers", [1, pytest.param(0, marks=pytest.mark.full)])
def test_code_apart_is_called_cached_and_recompiled_as_other_code_is(copy, helpers, full_size):
    limit = {"SOLVERS_COMPILES_FOR_ANOTHER_PROCESS": "1"} if helpers == 0 else {}

    def call():
        return answers(copy, CALL_APART, **limit)

    helpers = helpers and int(len(os.sched_getaffinity(0)) > 1)
    (copy / "newton" / "apart.py").write_text(APART.format(constant=1.0))
    (copy / "gram" / "calls_apart.py").write_text(CALLS_APART)
    assert call() == [6.0, 1.0, 1.0 - helpers, helpers, 1.0]
    assert call() == [6.0, 0.0, 0.0, 0.0, 1.0]
    if not full_size:  # the test above edits other code
        return
    (copy / "newton" / "apart.py").write_text(APART.format(constant=2.0))
    assert call() == [9.0, 1.0, 1.0 - helpers, helpers, 1.0]
    for path in (copy / "newton").rglob("*.nb[ic]"):  # only the caller is in the cache
        path.unlink()
    assert call() == [9.0, 0.0, 1.0, 0.0, 1.0]


def test_code_apart_is_compiled_here_if_the_helper_process_dies(copy):
    (copy / "newton" / "apart.py").write_text(APART.format(constant=1.0))
    (copy / "gram" / "calls_apart.py").write_text(CALLS_APART)
    dies = "import sys\nsys.executable = '/bin/false'\n"
    assert answers(copy, dies + CALL_APART)[:3] == [6.0, 1.0, 1.0]


def test_code_apart_that_returns_another_type_than_its_decorator_says_is_refused():
    @njit(allocates=False)
    def caller(x):
        return returns_a_float(x)

    with pytest.raises(TypeError, match="int64"):
        caller(1.0)


@apart(int64)
def returns_a_float(x):
    return 2.0 * x


def test_a_function_of_another_package_depends_on_its_files_and_on_all_of_this_one():
    sources = _sources_of([__name__], ())
    assert sources.keys() >= _paths().keys()
    assert str(Path(__file__)) in sources


def test_a_function_that_makes_an_array_is_not_compiled_as_one_that_makes_none():
    @njit(allocates=False)
    def total_of_ones(n):
        return np.ones(n).sum()

    with pytest.raises(TypingError):
        total_of_ones(3)


def test_an_inner_function_is_compiled_with_its_caller_and_runs_in_python_as_it_stands():
    @inner
    def half(x):
        return x / 2.0

    @njit(allocates=False)
    def quarter(x):
        return half(half(x))

    assert half(3.0) == 1.5
    assert quarter(3.0) == 0.75
    assert not np.isfinite(quarter(np.inf))
    assert not hasattr(half, "py_func")


def test_what_compiled_code_calls_has_no_machine_code_of_its_own():
    @njit(allocates=False)
    def half(x):
        return x / 2.0

    @njit(allocates=False)
    def quarter(x):
        return half(half(x))

    assert quarter(3.0) == 0.75
    assert not half.signatures
    assert half(3.0) == 1.5
    assert len(half.signatures) == 1


def test_a_compiled_function_is_pickled_by_its_name():
    for dumps in (pickle.dumps, cloudpickle.dumps):
        assert pickle.loads(dumps(gap_of)) is gap_of
        again = pickle.loads(cloudpickle.dumps(lambda x: is_sorted(x)))
        assert again(np.arange(3, dtype=np.int32))
    code = "import pickle, sys; print(pickle.load(sys.stdin.buffer)(0.5, 0.4, 0.0, 1.0))"
    known = {"input": pickle.dumps(certified_gap), "capture_output": True, "check": True}
    printed = subprocess.run([sys.executable, "-c", code], **known).stdout
    assert float(printed) == certified_gap(0.5, 0.4, 0.0, 1.0)


def test_an_inner_function_that_makes_an_array_has_to_say_so():
    def total_of_ones(n):
        return np.ones(n).sum()

    refused, allowed = inner(total_of_ones), inner(allocates=True)(lambda n: np.zeros(n).sum())
    with pytest.raises(TypingError):
        njit(lambda n: refused(n))(3)
    assert njit(lambda n: allowed(n))(3) == 0.0


def test_the_garbage_collector_rests_while_numba_compiles_and_only_then():
    seen = []

    class Listener(event.Listener):
        def on_start(self, _):
            seen.append(gc.isenabled())

        def on_end(self, _):
            pass

    assert gc.isenabled()
    with event.install_listener("numba:compile", Listener()):
        assert njit(lambda x: x + 1)(1) == 2
        assert gc.isenabled()
        with pytest.raises(TypingError):
            njit(lambda x: x + "1")(1)
    assert set(seen) == {False}  # a function that is in the cache is not compiled
    assert gc.isenabled()


def test_sources_that_cannot_be_written_next_to_are_compiled_into_the_users_cache(copy, tmp_path):
    for folder in [copy, *(path for path in copy.iterdir() if path.is_dir())]:
        (folder / "__pycache__").write_text("no folder")
    paths = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "HOME": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    assert 0.0 <= answer(copy, **paths) < 1e-9
    assert not compiled(copy)
    assert compiled(tmp_path / "cache")
    edit(copy, 2.5)
    assert answer(copy, **paths) == 2.5
