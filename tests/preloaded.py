"""Start Python processes as forks of a process that has imported the large packages already.

Half of the processor time of the tests would be imports of scipy, scikit-learn, numba, pandas, pyarrow and
Dask by some hundred processes. So `subprocess` and `multiprocessing` ask a server, a child of the process
that starts something, to fork. A fork has the arguments, the environment, the folder, the streams and the
file descriptors of a new interpreter. Its parent is the process that asked, and it has a server of its own.
It differs only by the packages in `sys.modules`, and draws no figures if it is told so.

A new interpreter is started wherever more would differ: see `_reason_for_a_new_interpreter`. All processes
are new interpreters with `--full`, in tests with the marker `new_interpreters`, and on systems on which a
process cannot change its command line.
"""

import ctypes
import fcntl
import gc
import importlib
import os
import pickle
import pkgutil
import resource
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import CodeType
from typing import Any, NamedTuple

PACKAGES = (
    *("numpy", "numpy.random", "pandas", "pyarrow", "pyarrow.compute", "pyarrow.csv", "pyarrow.parquet"),
    *("scipy.linalg.blas", "scipy.optimize", "scipy.sparse.linalg", "scipy.spatial", "scipy.special"),
    *("scipy.stats", "sklearn.base", "sklearn.datasets", "sklearn.ensemble", "sklearn.linear_model"),
    *("sklearn.metrics", "sklearn.model_selection", "sklearn.multiclass", "sklearn.neighbors"),
    *("sklearn.pipeline", "sklearn.preprocessing", "sklearn.svm", "sklearn.utils.estimator_checks"),
    *("numba", "numba.core.caching", "numba.core.dispatcher", "numba.core.typed_passes", "llvmlite.binding"),
    *("distributed", "distributed.cli.dask_scheduler", "distributed.cli.dask_worker", "hydra", "omegaconf"),
    *("rich.console", "rich.table", "rich.live", "rich.progress", "joblib", "threadpoolctl", "psutil"),
    *("filelock", "platformdirs", "matplotlib.backends.backend_svg", "matplotlib.figure", "rich.markdown"),
    *("cryptography.x509", "cryptography.hazmat.primitives.asymmetric.ec", "fontTools.subset", "PIL.Image"),
    *("runpy", "multiprocessing.spawn", "multiprocessing.resource_tracker"),
)
"""Packages that forks have imported; none of this project, and none that many processes do not use."""

READ_AT_IMPORT = (
    *("PYTHON", "NUMBA_", "OMP_", "GOMP_", "KMP_", "OPENBLAS_", "MKL_", "GOTO_", "BLIS_", "LD_"),
    *("MALLOC_", "GLIBC_", "ARROW_", "SKLEARN_", "SCIPY_", "PANDAS_", "NPY_", "NUMPY_", "JOBLIB_", "MPL"),
    *("LC_", "LANG", "TZ", "COVERAGE_", "HYDRA_"),
)
"""Beginnings of the names of variables that the interpreter or a package of `PACKAGES` reads at its start."""

DRAWS_NOTHING = "TESTS_DRAW_NOTHING"
"""Variable of the environment of forks whose figures are empty files."""

_HASH_SEED_OF_DASK = "6640"
THREADS = tuple(f"{library}_NUM_THREADS" for library in ("OMP", "MKL", "OPENBLAS", "NUMBA"))
CAN_CHANGE = (
    *(*THREADS, "NUMBA_CACHE_DIR", "PYTHONPATH", "PYTHONWARNINGS"),
    *("KMP_DUPLICATE_LIB_OK", "KMP_INIT_AT_FORK"),
    "MALLOC_TRIM_THRESHOLD_",  # which Dask sets in the process that starts a worker
)
"""Variables among them that can change after the import, or that scikit-learn sets."""

_SERVER_THREADS = dict.fromkeys(THREADS, "1")
"""Threads of a server. Those of a fork are set by its environment, or one for each of its cores."""

_HIGH = 200
"""Lowest number of the file descriptors of servers, above those that processes pass on."""


class Start(NamedTuple):
    """What a process is started with; see `subprocess.Popen`."""

    arguments: list[str]
    environment: dict[str, str]
    folder: str
    targets: list[int]
    """Numbers of its file descriptors, in the order in which they are sent."""
    new_session: bool
    group: int
    umask: int
    ignored: list[int]
    """Signals that it ignores."""
    blocked: list[int]
    oom_score: str
    cores: list[int]


# -- the process that starts others --------------------------------------------------------------


class Client:
    """A server of this process, and what new interpreters would inherit when it was started."""

    def __init__(self, connection: socket.socket, server: int):
        self.connection, self.server, self.owner = connection, server, os.getpid()
        self.inherited, self.cores = _inherited(), os.sched_getaffinity(0)
        self.lock = threading.Lock()

    def start(self, request: Start, descriptors: list[int]) -> int | None:
        """Start a process, whose parent is this process, and return its id; None without a server."""
        content = pickle.dumps(request)
        with self.lock:
            # A process that ends leaves its children to the nearest ancestor that adopts them.
            _prctl(_SET_CHILD_SUBREAPER, 1)
            try:
                socket.send_fds(self.connection, [struct.pack("!Q", len(content))], descriptors)
                self.connection.sendall(content)
                answer = _receive(self.connection, 8)
            except OSError:
                return None
            finally:
                _prctl(_SET_CHILD_SUBREAPER, 0)
        return struct.unpack("!Q", answer)[0] if answer else None


client: Client | None = None
environment_at_start: dict[str, str] = {}
is_off = False
"""Whether all processes are new interpreters at present."""


def start_forks() -> None:
    """Have this process start processes as forks, if these can have command lines of their own."""
    if sys.platform != "linux":
        return
    lines = [Path(f"/proc/self/{name}").read_bytes().split(b"\0")[:-1] for name in ("cmdline", "environ")]
    if _set_command_line(*lines):
        _patch()


@contextmanager
def new_interpreters() -> Iterator[None]:
    """Start new interpreters during the block."""
    global is_off
    before, is_off = is_off, True
    try:
        yield
    finally:
        is_off = before


def start_server() -> None:
    """Start the server now if this process starts processes as forks."""
    if is_patched():
        _started_server()


def is_patched() -> bool:
    """Return whether this process starts processes as forks."""
    return subprocess.Popen._execute_child is not _execute_child


def end_server() -> None:
    """End the server of this process."""
    if client is not None and client.owner == os.getpid():
        client.connection.close()
        for process in _servers:
            process.wait()


def _started_server() -> Client | None:
    """Return the server of this process, which starts with the first process that it can fork."""
    global client, environment_at_start
    if client is None:
        ours, theirs = socket.socketpair()
        code = (
            f"import sys; from importlib.util import *; del sys.path[0]; s = spec_from_file_location("
            f"'tests_preloaded', {__file__!r}); m = module_from_spec(s); sys.modules['tests_preloaded'] = m; "
            f"s.loader.exec_module(m); m.run(m.serve_first({theirs.fileno()}))"
        )
        environment_at_start = dict(os.environ)
        process = _new_interpreter_popen(
            [sys.executable, "-c", code],
            pass_fds=[theirs.fileno()],
            env={**os.environ, **_SERVER_THREADS, "PYTHONPATH": ""},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )
        theirs.close()
        client = Client(_high(ours), process.pid)
        _servers.append(process)
    return client if client.owner == os.getpid() else None


_servers: list[subprocess.Popen] = []


def _new_interpreter_popen(*arguments: Any, **options: Any) -> subprocess.Popen:
    """Start a new interpreter."""
    return _NewInterpreter(*arguments, **options)


def _inherited() -> tuple[Any, ...]:
    """Return what a process inherits other than by the arguments of its start."""
    limits = [getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_")]
    spaces = [os.stat(f"/proc/self/ns/{name}").st_ino for name in ("net", "mnt", "pid", "user", "uts")]
    return (
        *(os.getresuid(), os.getresgid(), os.getgroups()),
        *([resource.getrlimit(limit) for limit in sorted(set(limits))], os.nice(0), spaces),
        *(os.stat("/").st_ino, sys.executable),
    )


def _reason_for_a_new_interpreter(
    arguments: list[str], environment: dict[str, str], folder: str
) -> str | None:
    """Return why a process has to be a new interpreter, or None if it can be a fork."""
    if is_off:
        return "asked for"
    if not arguments or arguments[0] != sys.executable:
        return "another program"
    kind = _without_options(arguments[1:])[0]
    if len(kind) < 2 and not (kind and not kind[0].startswith("-")):
        return "no program"
    if kind[0] not in ("-c", "-m"):
        if kind[0].startswith("-"):
            return "an option of the interpreter"
        if not os.path.isfile(os.path.join(folder, kind[0])):
            return "no script"
    if kind[0] == "-c" and "sys.modules" in kind[1]:
        return "a question of what is imported"
    before = environment_at_start or dict(os.environ)
    can_change = CAN_CHANGE
    if environment.get("PYTHONHASHSEED") == _HASH_SEED_OF_DASK:
        can_change += ("PYTHONHASHSEED",)  # so that all workers have the same, as forks do
    for name in {*environment, *before}:
        differs = environment.get(name) != before.get(name)
        if differs and name.startswith(READ_AT_IMPORT) and name not in can_change:
            return f"${name}"
    if not environment.get("NUMBA_CACHE_DIR"):
        return "a program that chooses numba's folder"
    first = {"-c": folder, "-m": folder}.get(kind[0], os.path.dirname(os.path.join(folder, kind[0])))
    for path in (first, *filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))):
        if _hides_a_package(os.path.join(folder, path)):
            return f"modules of {path} that have the names of packages"
    return None


def _hides_a_package(folder: str) -> bool:
    """Whether a new interpreter would import modules of a folder instead of those that a fork has loaded."""
    try:
        names = {name.partition(".")[0] for name in os.listdir(folder)}
    except OSError:
        return False
    return not names.isdisjoint(_LOADED) and os.path.realpath(folder) != _ROOT


_ROOT = str(Path(__file__).resolve().parents[1])

_LOADED = {*sys.stdlib_module_names, *(name.partition(".")[0] for name in PACKAGES), "sitecustomize"} | {
    *("usercustomize", "dask", "tornado", "yaml", "jinja2", "cloudpickle", "msgpack", "click", "dateutil"),
    *("six", "toolz", "fsspec", "packaging", "zict", "tblib", "sortedcontainers", "locket", "partd", "bokeh"),
    *("orchestrator", "solvers", "svmbench", "tests"),
}


def _without_options(words: list[str]) -> tuple[list[str], list[str], bool]:
    """Return a command without the options `-W` and `-B`, the warning filters, and whether there is `-B`."""
    filters, no_bytecode = [], False
    while words and words[0][:2] in ("-W", "-B"):
        if words[0] == "-B":
            no_bytecode = True
        elif words[0] == "-W":
            words = words[1:]
            filters.append(words[0])
        else:
            filters.append(words[0][2:])
        words = words[1:]
    return words, filters, no_bytecode


def _request(
    arguments: list[str],
    environment: dict[str, str],
    folder: str,
    targets: list[int],
    new_session: bool,
    group: int,
) -> Start:
    """Return a request with what this process hands on."""
    umask = os.umask(0)
    os.umask(umask)
    ignored = [
        number
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGCHLD)
        if signal.getsignal(number) == signal.SIG_IGN
    ]
    blocked = sorted(signal.pthread_sigmask(signal.SIG_BLOCK, []))
    oom_score = Path("/proc/self/oom_score_adj").read_text()
    cores = sorted(os.sched_getaffinity(0))
    return Start(
        *(arguments, environment, folder, targets, new_session, group, umask),
        *(list(map(int, ignored)), list(map(int, blocked)), oom_score, cores),
    )


def _fork(
    arguments: Any,
    environment: Any,
    folder: Any,
    descriptors: dict[int, int],
    new_session: bool = False,
    group: int = -1,
) -> int | None:
    """Start a process as a fork if that is possible, and return its id, or None.

    `descriptors` maps the numbers that it has there to those of this process.
    """
    arguments = [os.fsdecode(word) for word in arguments]
    environment = {os.fsdecode(name): os.fsdecode(value) for name, value in environment.items()}
    folder = os.path.abspath(os.fsdecode(folder or "."))
    if not os.path.isdir(folder) or _reason_for_a_new_interpreter(arguments, environment, folder):
        return None
    if max(descriptors) >= _HIGH:
        return None
    for descriptor in descriptors.values():
        try:
            os.fstat(descriptor)
        except OSError:  # a closed stream
            return None
    if (server := _started_server()) is None or server.inherited != _inherited():
        return None
    if server.cores != os.sched_getaffinity(0) and not environment.keys() >= set(THREADS):
        return None  # packages count the cores when they are imported
    request = _request(arguments, environment, folder, list(descriptors), new_session, group)
    return server.start(request, list(descriptors.values()))


def _patch() -> None:
    """Have `subprocess` and `multiprocessing` ask for forks."""
    from multiprocessing import util

    def execute_child(self, args, executable, preexec_fn, close_fds, pass_fds, cwd, env, *others):
        _, _, shell, *pipes, _, gid, gids, uid, umask, new_session, group = others
        is_usual = preexec_fn is None and close_fds and not shell and umask < 0
        if is_usual and (gid, gids, uid) == (None, None, None) and not isinstance(self, _NewInterpreter):
            words = [] if isinstance(args, str | bytes | os.PathLike) else [os.fspath(word) for word in args]
            child_in, _, _, child_out, _, child_err = pipes
            streams = enumerate((child_in, child_out, child_err))
            descriptors = {number: number if there == -1 else there for number, there in streams}
            descriptors |= {int(each): int(each) for each in pass_fds}
            names = os.environ if env is None else env
            is_usual = bool(words) and executable in (None, words[0])
            if is_usual and (pid := _fork(words, names, cwd, descriptors, new_session, group)):
                self.pid, self._child_created = pid, True
                self._close_pipe_fds(*pipes)
                return
        _execute_child(self, args, executable, preexec_fn, close_fds, pass_fds, cwd, env, *others)

    def spawnv_passfds(path, args, passfds):
        descriptors = {number: number for number in (0, 1, 2, *map(int, passfds))}
        is_usual = os.fsdecode(path) == os.fsdecode(args[0])
        pid = _fork(args, os.environ, None, descriptors) if is_usual else None
        return spawn(path, args, passfds) if pid is None else pid

    spawn = util.spawnv_passfds
    util.spawnv_passfds = spawnv_passfds
    subprocess.Popen._execute_child = execute_child


_execute_child = subprocess.Popen._execute_child


class _NewInterpreter(subprocess.Popen):
    """A process that is no fork."""


# -- the server ----------------------------------------------------------------------------------


def serve_first(descriptor: int) -> CodeType:
    """Import the packages, then fork for each request; return, in a fork, the program that it runs."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    before = dict(os.environ)
    for name in PACKAGES:
        # `import_module` would make all tests a part of the sources of classes that import this file.
        pkgutil.resolve_name(f"{name}:")
    _set_by_packages.update(os.environ.items() - before.items())
    gc.collect()
    gc.freeze()
    _patch()
    return _serve(_high(socket.socket(fileno=descriptor)))


def _serve(connection: socket.socket) -> CodeType:
    """Fork for each request until the other end is closed; return, in a fork, the program that it runs."""
    os.chdir("/")
    _set_command_line([os.fsencode(sys.executable), b"preloaded"], [])
    while True:
        try:
            header, descriptors, _, _ = socket.recv_fds(connection, 8, 250)
            content = _receive(connection, struct.unpack("!Q", header)[0]) if len(header) == 8 else b""
        except OSError:
            content = b""
        if not content:
            os._exit(0)
        request: Start = pickle.loads(content)
        go_reader, go_writer = os.pipe()
        id_reader, id_writer = os.pipe()
        if (between := os.fork()) == 0:
            if child := os.fork():
                os.write(id_writer, struct.pack("!Q", child))
                os._exit(0)
            os.close(go_writer)
            os.read(go_reader, 1)  # until the process that asked is the parent
            for each in (go_reader, id_reader, id_writer):
                os.close(each)
            connection.close()
            if (program := _become(request, descriptors)) is not None:
                return program
            # This is the server of the fork: see `_become`.
            connection = _connection_of_nested
            continue
        identifier = os.read(id_reader, 8)
        os.waitpid(between, 0)
        for each in (go_reader, go_writer, id_reader, id_writer, *descriptors):
            os.close(each)
        try:
            connection.sendall(identifier)
        except OSError:
            os._exit(0)


_connection_of_nested: Any = None
_set_by_packages: dict[str, str] = {}


def _become(request: Start, descriptors: list[int]) -> CodeType | None:
    """Turn a fork into the process of a request, and return its program; None in the fork's own server."""
    global client, environment_at_start, _connection_of_nested
    if request.new_session:
        os.setsid()
    elif request.group >= 0:
        os.setpgid(0, request.group)
    if _starts_processes(request.arguments):
        ours, theirs = map(_high, socket.socketpair())
        if (server := os.fork()) == 0:
            for descriptor in (*descriptors, ours.detach()):
                os.close(descriptor)
            _connection_of_nested = theirs
            _set_command_line([os.fsencode(sys.executable), b"preloaded"], [])
            return None
        theirs.close()
        client = Client(ours, server)
        environment_at_start = request.environment
    _place(descriptors, request.targets)
    os.chdir(request.folder)
    os.umask(request.umask)
    os.sched_setaffinity(0, request.cores)
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(request.oom_score)
    words, filters, no_bytecode = _without_options(request.arguments[1:])
    sys.dont_write_bytecode = no_bytecode
    environ = [os.fsencode(f"{name}={value}") for name, value in request.environment.items()]
    _set_command_line([os.fsencode(word) for word in request.arguments], environ)
    before = dict(os.environ)
    os.environ.clear()
    os.environ.update(_set_by_packages | request.environment)
    _renew_packages(request.environment, before, filters)
    _renew_interpreter(request, words)
    return _program(words)


def _starts_processes(arguments: list[str]) -> bool:
    """Whether a process needs a server of its own."""
    text = " ".join(arguments)
    return "resource_tracker" not in text and "guard_group" not in text


def _place(descriptors: list[int], targets: list[int]) -> None:
    """Give file descriptors their numbers, and close all others but those of servers."""
    high = [fcntl.fcntl(each, fcntl.F_DUPFD_CLOEXEC, _HIGH) for each in descriptors]
    kept = {client.connection.fileno()} if client is not None and client.owner == os.getpid() else set()
    for each in map(int, os.listdir("/proc/self/fd")):
        if each not in high and each not in kept:
            with suppress(OSError):
                os.close(each)
    for each, target in zip(high, targets, strict=True):
        os.dup2(each, target, inheritable=target < 3)
        os.close(each)


def _renew_packages(environment: dict[str, str], before: dict[str, str], filters: list[str]) -> None:
    """Have packages read what they have read at their import."""
    import dask.config
    import numba
    import numpy as np
    from threadpoolctl import ThreadpoolController

    cores = len(os.sched_getaffinity(0))
    for library in ThreadpoolController().lib_controllers:
        name = "OPENBLAS_NUM_THREADS" if library.user_api == "blas" else "OMP_NUM_THREADS"
        given = environment.get(name) or environment.get("OMP_NUM_THREADS") or str(cores)
        if (number := int(given.split(",")[0])) > 1:
            library.set_num_threads(number)
    numba.config.reload_config()
    np.random.seed()  # noqa: NPY002
    if environment.get(DRAWS_NOTHING):
        _draw_nothing()
    read = [name for name in {*before, *environment} if name.startswith("DASK_") or name == "HOME"]
    if any(before.get(name) != environment.get(name) for name in read):
        dask.config.paths[:] = dask.config._get_paths()
        dask.config.refresh()
        sys.modules["distributed.config"].initialize_logging(dask.config.config)
    _add_warning_filters([*filter(None, environment.get("PYTHONWARNINGS", "").split(",")), *filters])


def _draw_nothing() -> None:
    """Have matplotlib write empty figures, without the layout that takes most of the time."""
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    FigureCanvasSVG.print_svg = lambda canvas, file, **options: file.write(_EMPTY)  # type: ignore[method-assign]
    Figure.get_layout_engine = lambda figure: None  # type: ignore[method-assign]


_EMPTY = '<svg xmlns="http://www.w3.org/2000/svg"></svg>'


def _add_warning_filters(options: list[str]) -> None:
    """Add filters in front of Python's default filters, as at its start, behind those of the packages."""
    import warnings

    if not options:
        return
    found = list(warnings.filters)
    n_default = 5
    sys.warnoptions[:] = options
    warnings.filters[:] = []  # type: ignore[index]
    warnings._processoptions(options)  # type: ignore[attr-defined]
    warnings.filters[:] = found[:-n_default] + list(warnings.filters) + found[-n_default:]  # type: ignore[index]
    warnings._filters_mutated()  # type: ignore[attr-defined]


def _renew_interpreter(request: Start, words: list[str]) -> None:
    """Set what a new interpreter sets at its start."""
    import multiprocessing
    import tempfile
    import time
    from multiprocessing import process

    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in request.ignored:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_SETMASK, request.blocked)
    tempfile.tempdir = None
    time.tzset()
    process.ORIGINAL_DIR = os.path.abspath(os.curdir)
    multiprocessing.current_process().authkey = os.urandom(32)
    is_terminal = sys.stdout.isatty()
    sys.stdout.reconfigure(line_buffering=is_terminal)  # type: ignore[union-attr]
    sys.orig_argv[:] = request.arguments
    sys.argv[:] = words if words[0] not in ("-c", "-m") else [words[0], *words[2:]]
    first = {"-c": "", "-m": os.getcwd()}.get(words[0], os.path.dirname(os.path.abspath(words[0])))
    paths = [path for path in request.environment.get("PYTHONPATH", "").split(os.pathsep) if path]
    sys.path[:0] = [first, *map(os.path.abspath, paths)]
    importlib.invalidate_caches()


def _program(words: list[str]) -> CodeType:
    """Return the code of a program, which runs in `__main__`."""
    main = sys.modules["__main__"].__dict__
    for name in [name for name in main if not name.startswith("__")]:
        del main[name]
    if words[0] == "-c":
        return compile(words[1], "<string>", "exec")
    if words[0] == "-m":
        return compile(f"import runpy; runpy._run_module_as_main({words[1]!r})", "<start>", "exec")
    main["__file__"] = os.path.abspath(words[0])
    main["__cached__"] = None
    return compile(Path(words[0]).read_bytes(), os.path.abspath(words[0]), "exec")


def run(program: CodeType) -> None:
    """Run the program of a fork in `__main__`, and end the process, without what frees its memory."""
    import atexit

    try:
        exec(program, sys.modules["__main__"].__dict__)
        code = 0
    except SystemExit as end:
        if not isinstance(end.code, int | None):
            raise
        code = end.code or 0
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.modules["__main__"].__dict__.clear()  # calls the destructors of its objects
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None and not stream.closed:
                stream.flush()
    except OSError:
        sys.exit(code)  # the interpreter says what it could not write
    os._exit(code & 0xFF)


# -- both ----------------------------------------------------------------------------------------

_SET_CHILD_SUBREAPER = 36
_SET_MM, _SET_MM_MAP = 35, 14
_library = ctypes.CDLL(None, use_errno=True)
_command_lines: list[Any] = []


def _prctl(option: int, *values: int) -> int:
    """Call `prctl` of the system."""
    return _library.prctl(option, *(ctypes.c_ulong(each) for each in (*values, 0, 0, 0, 0)[:4]))


def _set_command_line(arguments: list[bytes], environment: list[bytes]) -> bool:
    """Set the command line and environment that other processes see, and return whether that is possible."""
    words, names = (b"".join(each + b"\0" for each in part) for part in (arguments, environment))
    text = ctypes.create_string_buffer(words + names, len(words) + len(names) + 1)
    _command_lines.append(text)
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    value = {
        number: int(fields[number - 3]) for number in (26, 27, 28, 45, 46, 47)
    }  # numbers as in `man proc`
    _library.sbrk.restype = ctypes.c_void_p
    start, middle = ctypes.addressof(text), ctypes.addressof(text) + len(words)
    layout = struct.pack(
        "=12Q2I",
        *(value[26], value[27], value[45], value[46], value[47], _library.sbrk(0), value[28]),
        *(start, middle, middle, middle + len(names)),
        *(0, 0, 0xFFFFFFFF),  # the vector of the system and the program's file stay
    )
    content = ctypes.create_string_buffer(layout, len(layout))
    return _prctl(_SET_MM, _SET_MM_MAP, ctypes.addressof(content), len(layout)) == 0


def _high(connection: socket.socket) -> socket.socket:
    """Return a connection with a high number, which no program that a process starts inherits."""
    number = fcntl.fcntl(connection.fileno(), fcntl.F_DUPFD_CLOEXEC, _HIGH)
    connection.close()
    return socket.socket(fileno=number)


def _receive(connection: socket.socket, size: int) -> bytes:
    """Receive so many bytes; fewer if the other end is closed."""
    parts = []
    while size and (part := connection.recv(min(size, 1 << 20))):
        parts.append(part)
        size -= len(part)
    return b"" if size else b"".join(parts)


def _forget_in_child() -> None:
    """Close a fork's copy of the connection, so that the server ends with the process that has it."""
    if client is not None and client.owner != os.getpid():
        with suppress(OSError):
            client.connection.close()


os.register_at_fork(after_in_child=_forget_in_child)
