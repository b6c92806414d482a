"""A fork of the preloaded server is, to itself and to others, the process that a new interpreter would be."""

import json
import os
import signal
import subprocess
import sys

import psutil
import pytest

from tests import preloaded

DESCRIBE = """
import json, os, signal, sys, warnings
import multiprocessing.process, numba, psutil, scipy.linalg, sklearn.svm, threadpoolctl
print(json.dumps({
    "argv": sys.argv, "orig_argv": sys.orig_argv, "path": sys.path, "cwd": os.getcwd(),
    "parent": os.getppid(),
    "environ": {k: v for k, v in os.environ.items() if k != "LC_CTYPE"},
    "session": os.getsid(0) == os.getpid(),
    "main": sorted(k for k in globals() if k[0] == "_"),
    "signals": [str(signal.getsignal(n)) for n in (2, 13, 15)], "mask": sorted(signal.pthread_sigmask(0, [])),
    "umask": os.umask(0), "stdin": sys.stdin.read(), "buffered": sys.stdout.line_buffering,
    "files": sorted(f for f in map(int, os.listdir("/proc/self/fd")) if f < 100),
    "threads": [numba.config.NUMBA_NUM_THREADS, *sorted(
        [each["user_api"], each["num_threads"]] for each in threadpoolctl.threadpool_info()
        if each["user_api"] == "blas")],
    "cache": numba.config.CACHE_DIR, "cores": sorted(os.sched_getaffinity(0)),
    "dir": multiprocessing.process.ORIGINAL_DIR,
    "bytecode": sys.dont_write_bytecode, "options": sys.warnoptions,
    "command": psutil.Process().cmdline(), "known": psutil.Process().environ().get("NAMED"),
}))
"""

pytestmark = pytest.mark.skipif(
    not preloaded.is_patched(), reason="processes are new interpreters with --full, and without prctl"
)


@pytest.fixture
def forks(monkeypatch):
    """The processes that were forks."""
    found = []

    def fork(*arguments, **options):
        if identifier := start(*arguments, **options):
            found.append(identifier)
        return identifier

    start = preloaded._fork
    monkeypatch.setattr(preloaded, "_fork", fork)
    return found


def both(forks, monkeypatch, *words, **options):
    """Return what a fork and a new interpreter answer."""
    answers = []
    for is_new in (False, True):
        with monkeypatch.context() as patch:
            patch.setattr(preloaded, "is_off", is_new)
            process = subprocess.run([sys.executable, *words], capture_output=True, text=True, **options)
        answers.append((process.returncode, process.stdout, process.stderr))
    assert len(forks) == 1
    return answers


@pytest.mark.parametrize("kind", ["code", "script", "limited"])
def test_a_fork_finds_what_a_new_interpreter_finds(kind, forks, monkeypatch, tmp_path):
    (tmp_path / "describe.py").write_text(DESCRIBE)
    words = ["-W", "error::FutureWarning", "-c", DESCRIBE] if kind == "code" else ["describe.py"]
    names = {**os.environ, "NAMED": "here", "PYTHONPATH": str(tmp_path)}
    if kind == "limited":
        names |= dict.fromkeys(preloaded.THREADS, "1") | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    options = {"env": names, "cwd": tmp_path, "input": "given", "start_new_session": kind == "script"}
    fork, new = both(forks, monkeypatch, *words, "one", "two", **options)
    assert (fork[0], fork[2]) == (new[0], new[2]) == (0, "")
    found, expected = json.loads(fork[1]), json.loads(new[1])
    assert found.pop("environ").items() ^ expected.pop("environ").items() == set()
    assert found == expected


@pytest.mark.parametrize(
    "code",
    [
        "raise SystemExit(7)",
        "import sys; sys.exit('a reason')",
        "import os, signal; os.kill(os.getpid(), signal.SIGINT)",
        "import os; os.kill(os.getpid(), 9)",
        "import atexit, threading, time; atexit.register(print, 'last')\n"
        "threading.Thread(target=lambda: (time.sleep(0.1), print('first'))).start()",
    ],
)
def test_a_fork_ends_as_a_new_interpreter_does(code, forks, monkeypatch):
    fork, new = both(forks, monkeypatch, "-c", code)
    assert fork[:2] == new[:2]
    assert fork[2].splitlines()[-1:] == new[2].splitlines()[-1:]


def test_what_a_fork_starts_is_a_fork_and_its_child(forks):
    inner = "import gc, os; print(os.getppid(), gc.get_freeze_count() > 0)"
    code = "import os, subprocess, sys; print(os.getpid()); sys.stdout.flush()\n"
    code += f"subprocess.run([sys.executable, '-c', {inner!r}])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    first, second, is_frozen = done.stdout.split()
    assert (first, is_frozen) == (second, "True")
    assert [str(each) for each in forks] == [first]


def test_a_fork_that_is_killed_leaves_no_process(forks):
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    family = psutil.Process(process.pid).children()
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert forks == [process.pid]
    assert psutil.wait_procs(family, timeout=30)[1] == []


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (["-c", "1"], {"NUMBA_DISABLE_JIT": "1"}),
        (["-c", "1"], {"PYTHONUTF8": "0"}),
        (["-X", "dev", "-c", "1"], {}),
        (["-P", "-c", "1"], {}),
        (["-c", "import sys; print(sys.modules)"], {}),
    ],
)
def test_what_is_read_at_the_start_needs_a_new_interpreter(words, names, tmp_path):
    arguments, environment = [sys.executable, *words], {**os.environ, **names}
    assert preloaded._reason_for_a_new_interpreter(arguments, environment, str(tmp_path))


def test_modules_that_hide_packages_need_a_new_interpreter(tmp_path):
    command = [sys.executable, "-c", "1"]
    assert preloaded._reason_for_a_new_interpreter(command, dict(os.environ), str(tmp_path)) is None
    (tmp_path / "random.py").touch()
    assert preloaded._reason_for_a_new_interpreter(command, dict(os.environ), str(tmp_path))
