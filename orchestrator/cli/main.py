"""The command line: arguments, exit codes, and which module has the verb."""

import argparse
import atexit
import gc
import importlib
import logging
import os
import shlex
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple, NoReturn

from rich.console import Console

from orchestrator import __version__
from orchestrator.cli.request import Request
from orchestrator.cli.terminal import drop_output, flush, terminal
from orchestrator.isolation.interrupts import interrupt
from orchestrator.study.text import printable, printable_lines

_END_SECONDS = 5.0
"""How long a process may take to end after its last line."""

EXIT_OK = 0
EXIT_BAD = 1
EXIT_NO_SUCCESS = 3
EXIT_STOPPED = 4
EXIT_INTERRUPTED = 130

_EPILOG = """\
exit codes:
  0    done; of run: every trial is final, and every arm has one that is ok
  1    bad configuration, store or cluster: all problems are listed, and nothing was run
  2    a command line that makes no sense
  3    run: an arm has no trial that is ok
  4    run: stopped (fail_fast, cluster lost, disk full, SIGTERM); the same command goes on
  130  interrupted; the same command goes on

overrides are Hydra's; the ones everybody needs:
  experiment=quickstart  study=NAME  datasets=[iris,wine]  solvers=[mnsvm,libsvm_l1]
  search=grid|race|pattern|random|selected  search.budget=20  search.space.C=[1,4,16]  sweep.eta=[1,1.3,1.6]
  protocol.outer=5  protocol.inner=5  protocol.seed=0  protocol.profile=throughput|timing
  protocol.metric=accuracy  protocol.also=[f1_macro]  protocol.scaling=train|dataset|none
  protocol.max_seconds=600  report.sections=[mysections.errors]
  cluster=serial|local|address|slurm|ssh|kubernetes  cluster.workers=2
  cluster.address=tls://HOST:PORT  cluster.tls.folder=DIR
  paths.results=DIR  paths.data=DIR  on_error=continue|fail_fast  retry=none|failed
"""


class _Verb(NamedTuple):
    help: str
    module: str
    arguments: str = "KEY=VALUE"


_VERBS = {
    "run": _Verb("run a study, or go on with it", "run"),
    "plan": _Verb("say what a run would do, and run nothing", "plan"),
    "status": _Verb("say how far a study is, from its store alone", "status"),
    "report": _Verb("write the report of a study, or of several (study=A,B to=DIR)", "report"),
    "repair": _Verb("set aside what is damaged in a study, so that it runs again", "studies"),
    "list": _Verb("list what can be chosen", "list", "[datasets|solvers|experiments|searches]"),
    "data": _Verb(
        "list datasets, or fetch, check, find or describe some by name",
        "data",
        "list | fetch NAME… | check NAME… | path NAME… | describe NAME…",
    ),
    "studies": _Verb("list the studies that are stored: how far, how large, how old", "studies"),
    "rename": _Verb("give a study another name", "studies", "NAME"),
    "delete": _Verb("delete studies with all that is stored of them", "studies", "NAME"),
    "claims": _Verb(
        "say which claims of the literature the finished studies reproduce, as Markdown", "claims"
    ),
    "completion": _Verb("print what lets a shell complete commands", "completion", "bash|zsh|fish"),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments : sequence of str, optional
        Those of the process by default.

    Returns
    -------
    int
        The exit code; `svmbench --help` lists them.
    """
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    gc.disable()  # imports leave no garbage, and looking for some takes a fifth of their time; see `Request`
    try:
        return _main(arguments)
    finally:
        gc.enable()
        drop_output()


def console_main() -> NoReturn:
    """Run the command line as a process, which ends in time whatever trainings have left in it.

    The interpreter waits for their threads, and calls what they have registered with `atexit`; a timer bounds
    that. No timer in Python runs while objects are torn down after it, so garbage is collected before: a
    process whose scheduler had died was seen to sleep for 20 s at its end, as long as a Dask client's
    destructor waits for its thread.
    """
    atexit.register(gc.collect)  # as the first, so it comes after what is registered from now on
    code = main()

    def end() -> None:
        time.sleep(_END_SECONDS)
        os._exit(code)

    threading.Thread(target=end, daemon=True).start()
    sys.exit(code)


def _main(arguments: list[str]) -> int:
    options = _parse(arguments)
    _configure_messages(options.verbose)
    # Imported here, so that --help and --version answer at once.
    from orchestrator.store.files import StoreError
    from orchestrator.study.errors import ConfigError, ExecutionError, StudyStopped

    command = ["svmbench", *arguments]
    told_to_end = threading.Event()
    try:
        if options.verb == "cluster":
            from orchestrator.cli import cluster as cluster_verbs

            cluster_verbs.run_action(options, terminal())
            return EXIT_OK
        request = Request(_overrides(options), options.config_dir, command, options.yes, options.watch)
        if options.cfg:
            _print_composed(request)
            return EXIT_OK
        module = importlib.import_module(f"orchestrator.cli.{_VERBS[options.verb].module}")
        verb: Callable[[Request, Console], Sequence[str] | None] = getattr(module, options.verb)
        with _ending_on_sigterm(told_to_end) if options.verb == "run" else nullcontext():
            failed = verb(request, terminal())
        flush()
        return EXIT_NO_SUCCESS if failed else EXIT_OK
    except ConfigError as error:
        for problem in error.problems:
            _print_problem(problem)
    except (ExecutionError, StoreError, OSError) as error:
        _print_problem(str(error))
    except StudyStopped as error:
        _print_problem(str(error))
        _say_how_to_go_on(command)
        return EXIT_STOPPED
    except KeyboardInterrupt:
        ended = told_to_end.is_set()
        how = "stopped by SIGTERM" if ended else "interrupted"
        _print_problem(f"{how}; what had finished is stored.", "\n")
        if options.verb == "run":
            _say_how_to_go_on(command)
        return EXIT_STOPPED if ended else EXIT_INTERRUPTED
    return EXIT_BAD


def _overrides(options: argparse.Namespace) -> Sequence[str]:
    if not options.multirun:
        return options.overrides
    from orchestrator.config.multirun import as_axes

    return as_axes(options.overrides)


def _print_composed(request: Request) -> None:
    from orchestrator.config.compose import composed_yaml

    sys.stdout.write(printable_lines(composed_yaml(request.overrides, request.config_dir)))
    flush()


@contextmanager
def _ending_on_sigterm(told_to_end: threading.Event) -> Iterator[None]:
    """Let SIGTERM end a run as Ctrl-C does."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may say what a signal does
        return

    def end(number: int, frame: FrameType | None) -> None:
        told_to_end.set()
        interrupt()

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _say_how_to_go_on(command: Sequence[str]) -> None:
    _print_error(f"Go on with: {printable(shlex.join(command))}")


def _configure_messages(verbose: bool) -> None:
    """Show warnings as one line, and the log of this program and of Dask only when asked for."""
    level = logging.INFO if verbose else logging.CRITICAL
    handler = logging.StreamHandler()
    handler.setLevel(level)  # libraries set the levels of their own loggers, and a handler has the last word
    handler.setFormatter(_PrintableFormatter("%(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=level, handlers=[handler])
    warnings.showwarning = lambda message, *_, **__: _print_problem(str(message))


def _print_problem(text: str, before: str = "") -> None:
    _print_error(f"{before}svmbench: {printable_lines(text)}")


def _print_error(text: str) -> None:
    with suppress(OSError, ValueError):  # nobody reads it, or it is closed
        print(text, file=sys.stderr)


class _PrintableFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return printable_lines(super().format(record))


def _parse(arguments: list[str]) -> argparse.Namespace:
    """Parse the arguments; overrides may stand before and after options."""
    parser = _parser()
    if "_ARGCOMPLETE" in os.environ:  # a shell asks how the command may go on
        importlib.import_module("orchestrator.cli.completion").answer_shell(parser)
    options, rest = parser.parse_known_args(arguments)
    if unknown := [argument for argument in rest if argument.startswith("-")]:
        parser.error(f"unknown option {printable(unknown[0])}")
    options.overrides += rest
    return options


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="svmbench",
        description="Compare classifiers honestly, by distributed nested cross-validation.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"svmbench {__version__}")
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    for name, verb in _VERBS.items():
        _add_verb(verbs, name, verb)
    _add_cluster_actions(verbs)
    return parser


def _add_verb(verbs: Any, name: str, verb: _Verb) -> None:
    parser = verbs.add_parser(
        name,
        help=verb.help,
        description=verb.help,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(yes=False, watch=False, multirun=False, cfg=None)
    parser.add_argument("overrides", nargs="*", metavar=verb.arguments)
    parser.add_argument(
        "--config-dir",
        type=Path,
        metavar="DIR",
        help="a folder with further configurations, laid out like conf/",
    )
    parser.add_argument("--verbose", action="store_true", help="show the log, that of Dask too")
    if name in ("run", "plan"):
        parser.add_argument(
            "--multirun",
            "-m",
            action="store_true",
            help="take key=a,b of datasets, solvers and sweep.PARAMETER as axes of the study",
        )
        parser.add_argument(
            "--cfg", choices=["job"], help="print the composed configuration as YAML, and do nothing else"
        )
    if name == "report":
        parser.add_argument(
            "--watch", action="store_true", help="write it again whenever a running study has stored more"
        )
    if name == "delete":
        parser.add_argument("--yes", action="store_true", help="delete without asking")


def _add_cluster_actions(verbs: Any) -> None:
    text = "make certificates, start a scheduler, start workers"
    cluster = verbs.add_parser("cluster", help=text, description=text)
    cluster.set_defaults(
        overrides=[], config_dir=None, verbose=False, yes=False, watch=False, multirun=False, cfg=None
    )
    actions = cluster.add_subparsers(dest="action", required=True, metavar="ACTION")
    certs = actions.add_parser("certs", help="make an authority and the pairs of scheduler, worker, client")
    certs.add_argument("folder", type=Path, metavar="DIR")
    certs.add_argument(
        "--host",
        action="append",
        default=[],
        metavar="NAME",
        help="a host's name or address; may be repeated",
    )
    scheduler = actions.add_parser("scheduler", help="start a scheduler")
    scheduler.add_argument("--host", default="127.0.0.1", help="address to listen at (default: %(default)s)")
    scheduler.add_argument("--port", type=int, default=8786, help="default: %(default)s")
    scheduler.add_argument(
        "--dashboard",
        metavar="HOST:PORT",
        help="show Dask's dashboard there, e.g. 127.0.0.1:8787; it asks for no password, so that all users "
        "of this host, or whoever reaches HOST, see the names and times of what runs (default: no dashboard)",
    )
    worker = actions.add_parser("worker", help="start cluster.workers=1 workers, again whenever they end")
    worker.add_argument("address", metavar="ADDRESS", help="of the scheduler, e.g. tls://10.0.0.1:8786")
    worker.add_argument("--host", help="address to listen at, for a scheduler on another host")
    for action in (scheduler, worker):
        action.add_argument(
            "--insecure",
            action="store_true",
            help="encrypt nothing: whoever reaches the address can run code as you; without it, your own "
            "certificates are taken (a scheduler makes them) unless cluster.tls names others",
        )
        action.add_argument("overrides", nargs="*", metavar="KEY=VALUE", help="e.g. cluster.tls.folder=DIR")
