"""The command line: arguments, exit codes, and the modules of the verbs."""

import argparse
import atexit
import gc
import importlib
import logging
import os
import re
import shlex
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from orchestrator import __version__
from orchestrator.cli.request import Request, with_study
from orchestrator.cli.streams import drop_output, flush
from orchestrator.isolation.exits import interrupt, recorded_interrupts
from orchestrator.study.text import printable, printable_lines

if TYPE_CHECKING:
    from rich.console import Console

_END_SECONDS = 5.0
"""Longest time that a process takes to end after its last line, in seconds."""

EXIT_OK = 0
EXIT_BAD = 1
EXIT_NO_SUCCESS = 3
EXIT_STOPPED = 4
EXIT_INTERRUPTED = 130

_EPILOG = """\
exit codes:
  0    done; for run: every trial is final, and every arm has a trial with status ok
  1    bad configuration, store or cluster: all problems are listed, and nothing was run
  2    the command line cannot be parsed
  3    run: an arm has no trial with status ok; accept: a trial of an arm differs
  4    run: stopped (fail_fast, minutes=N, cluster lost, disk full, SIGTERM); the same command resumes it
  130  interrupted; the same command resumes it

overrides use Hydra's grammar; the most common ones:
  experiment=quickstart  study=NAME (or NAME alone)  datasets=[iris,wine]  solvers=[mnsvm,libsvm_l1]
  datasets=[table.csv]  label=COLUMN  drop=[COLUMN]  groups=COLUMN  metric=f1_macro  train=FILE test=FILE
  search=grid|race|pattern|random|selected|median_of|sample|every
  search.budget=20  search.space.C=[1,4]  sweep.eta=[1,1.6]
  protocol.outer=5  protocol.inner=5  protocol.seed=0  protocol.profile=throughput|timing
  protocol.metric=accuracy  protocol.also=[f1_macro]
  protocol.prepare=auto|none|standard|minmax|table
  protocol.max_seconds=600  report.sections=[mysections.errors]
  cluster=serial|local|address|slurm|ssh|kubernetes  cluster.workers=2
  cluster.address=tls://HOST:PORT  cluster.tls.folder=DIR
  paths.results=DIR  paths.data=DIR  on_error=continue|fail_fast  retry=none|failed
"""


class _Parser(argparse.ArgumentParser):
    """Parser that suggests a verb in place of one that does not exist."""

    def error(self, message: str) -> NoReturn:
        """End the process with exit code 2 after a message.

        Parameters
        ----------
        message : str
            Reason for which the command line is rejected.
        """
        if found := re.match(r"argument VERB: invalid choice: '(.*?)' \(", message):
            from orchestrator.study.targets import did_you_mean

            near = did_you_mean(found[1], [*_VERBS, "cluster"])
            message = f"there is no verb {found[1]!r}{near} (see: svmbench --help)"
        self.exit(2, f"{self.prog}: {printable_lines(message)}\n")


class _Verb(NamedTuple):
    """A verb of the command line.

    Attributes
    ----------
    help : str
        Description for the help.
    module : str
        Module in `orchestrator.cli` with the function of the verb.
    arguments : str
        Arguments for the help.
    """

    help: str
    module: str
    arguments: str = "KEY=VALUE"


_STUDY = "NAME | KEY=VALUE"

_NOT_CHOSEN = {
    "yes": False,
    "watch": False,
    "multirun": False,
    "cfg": None,
    "json": False,
    "open": False,
    "share": 0.01,
    "at_least": 100,
    "seed": 0,
}
"""Values of the options that only some verbs have, for all others."""

_FIRST_COMMANDS = """\
svmbench compares classifiers honestly, by nested cross-validation.

  svmbench run datasets=[table.csv] label=COLUMN solvers=[boosting,forest,logistic,svm]
      which classifier suits your table; resumes when it is run again
  svmbench run experiment=quickstart
      a comparison of a minute or two on datasets that come with scikit-learn
  svmbench list
      solvers, datasets, experiments and searches

svmbench --help lists all verbs.
"""

_VERBS = {
    "run": _Verb("run a study, or resume it", "run"),
    "plan": _Verb("show what a run would do, and run nothing", "plan"),
    "warm": _Verb("compile what a run on this host would use, and train nothing", "warm"),
    "status": _Verb("show the progress of a study, from its stored trials", "status", _STUDY),
    "report": _Verb(
        "write the report of a study, or of several (A,B to=DIR)", "report", "NAME[,NAME] | KEY=VALUE"
    ),
    "repair": _Verb(
        "move damaged files of a study to its folder damaged/, so that it can resume", "studies", _STUDY
    ),
    "accept": _Verb(
        "keep stored trials of older code if a sample of them, trained again, has the same scores and counts",
        "accept",
        _STUDY,
    ),
    "list": _Verb(
        "list datasets, solvers, experiments and searches",
        "list",
        "[datasets|solvers|experiments|searches]",
    ),
    "data": _Verb(
        "list datasets, or fetch, check, find or describe some by name",
        "data",
        "list | fetch NAME… | check NAME… | path NAME… | describe NAME…",
    ),
    "studies": _Verb("list the stored studies with their progress, size and age", "studies"),
    "rename": _Verb("rename a study", "studies", "NAME NEW_NAME"),
    "delete": _Verb("delete studies with everything stored in their folders", "studies", "NAME"),
    "claims": _Verb(
        "show which claims of the literature the finished studies reproduce, as Markdown", "claims"
    ),
    "completion": _Verb(
        "print the script that lets a shell complete commands", "completion", "bash|zsh|fish"
    ),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments : sequence of str, optional
        Arguments after the name of the command. By default those of the process.

    Returns
    -------
    int
        Exit code. `svmbench --help` lists the codes.
    """
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    # Garbage collection would take a fifth of the import time and free nothing. `Request` enables it again.
    gc.disable()
    try:
        return _main(arguments)
    finally:
        gc.enable()
        drop_output()


def console_main() -> NoReturn:
    """Run the command line as a process that ends within 5 s after its last line.

    At exit the interpreter waits for threads that trainings have started, and calls functions that they have
    registered with `atexit`. A timer bounds this time. No Python timer runs later, while objects are torn
    down. Garbage is therefore collected earlier. Otherwise the destructor of a Dask client whose scheduler
    has died can wait for its thread for 20 s.
    """
    atexit.register(gc.collect)  # registered first, so that it runs after all functions registered later
    code = main()

    def end() -> None:
        time.sleep(_END_SECONDS)
        os._exit(code)

    threading.Thread(target=end, daemon=True).start()
    sys.exit(code)


def _main(arguments: list[str]) -> int:
    if not arguments and "_ARGCOMPLETE" not in os.environ:
        sys.stdout.write(_FIRST_COMMANDS)
        flush()
        return EXIT_OK
    options = _parse(arguments)
    _configure_messages(options.verbose)
    # Imported here, so that --help and --version start quickly.
    from orchestrator.cli.terminal import terminal
    from orchestrator.store.files import StoreError
    from orchestrator.study.errors import BudgetSpent, ConfigError, ExecutionError, StudyStopped

    command = ["svmbench", *arguments]
    sigterm_received = threading.Event()
    try:
        if options.verb == "cluster":
            from orchestrator.cli import cluster as cluster_verbs

            cluster_verbs.run_action(options, terminal())
            return EXIT_OK
        typed = Request(
            _overrides(options),
            options.config_dir,
            command,
            options.yes,
            options.watch,
            options.json,
            options.open,
            share=options.share,
            at_least=options.at_least,
            seed=options.seed,
        )
        request = _remembered(options.verb, typed)
        if options.cfg:
            _print_composed(request)
            return EXIT_OK
        module = importlib.import_module(f"orchestrator.cli.{_VERBS[options.verb].module}")
        verb: Callable[[Request, Console], Sequence[str] | None] = getattr(module, options.verb)
        with (
            recorded_interrupts(),
            _ending_on_sigterm(sigterm_received) if options.verb == "run" else nullcontext(),
        ):
            failed = verb(request, terminal())
        flush()
        return EXIT_NO_SUCCESS if failed else EXIT_OK
    except ConfigError as error:
        for problem in error.problems:
            _print_problem(problem)
    except (ExecutionError, StoreError, OSError) as error:
        _print_problem(str(error))
    except StudyStopped as error:
        if not isinstance(error, BudgetSpent):  # the answer says that the budget ended the run
            _print_problem(str(error))
        _say_how_to_resume(command)
        return EXIT_STOPPED
    except KeyboardInterrupt:
        ended = sigterm_received.is_set()
        how = "stopped by SIGTERM" if ended else "interrupted"
        trains = options.verb in ("run", "accept")
        _print_problem(f"{how}; finished trials are stored." if trains else f"{how}.", "\n")
        if options.verb == "run":
            _say_how_to_resume(command)
        return EXIT_STOPPED if ended else EXIT_INTERRUPTED
    return EXIT_BAD


_DECLARING = ("run", "plan", "warm", "accept")
"""Verbs that need the declaration of a study."""

_OF_A_STUDY = ("run", "plan", "warm", "status", "report", "repair", "accept")
"""Verbs that take a study. Its name is written alone or as `study=NAME`."""


def _overrides(options: argparse.Namespace) -> Sequence[str]:
    overrides = options.overrides
    if options.verb in _OF_A_STUDY:
        overrides = with_study(options.verb, overrides)
    if not options.multirun:
        return overrides
    from orchestrator.config.multirun import as_axes

    return as_axes(overrides)


def _remembered(verb: str, request: Request) -> Request:
    """Return a request with the overrides of the last run of its study, if it only names the study.

    Parameters
    ----------
    verb : str
        Name of the verb.
    request : Request
        Arguments of the command.
    """
    if verb not in _DECLARING:
        return request
    from orchestrator.cli.remembered import is_incomplete, meaning

    found = meaning(request.overrides, request.config_dir) if is_incomplete(request.overrides) else None
    if found is None:
        return request
    folder = [] if found.config_dir is None else ["--config-dir", str(found.config_dir)]
    command = ["svmbench", verb, *folder, *found.overrides]
    return replace(
        request, overrides=found.overrides, config_dir=found.config_dir, command=command, meant=True
    )


def _print_composed(request: Request) -> None:
    from orchestrator.config.compose import composed_yaml

    sys.stdout.write(printable_lines(composed_yaml(request.overrides, request.config_dir)))
    flush()


@contextmanager
def _ending_on_sigterm(received: threading.Event) -> Iterator[None]:
    """Make SIGTERM interrupt a run as Ctrl-C does.

    Parameters
    ----------
    received : threading.Event
        Set when the signal arrives.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread can set a handler of signals
        return

    def end(number: int, frame: FrameType | None) -> None:
        received.set()
        interrupt()

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _say_how_to_resume(command: Sequence[str]) -> None:
    _print_error(f"Resume with: {printable(shlex.join(command))}")


def _configure_messages(verbose: bool) -> None:
    """Show warnings as one line, and the logs of this program and of Dask on request.

    Parameters
    ----------
    verbose : bool
        Whether logs are shown.
    """
    level = logging.INFO if verbose else logging.CRITICAL
    handler = logging.StreamHandler()
    handler.setLevel(level)  # libraries set the levels of their loggers
    handler.setFormatter(_PrintableFormatter("%(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=level, handlers=[handler])
    warnings.showwarning = lambda message, *_, **__: _print_problem(str(message))


def _print_problem(text: str, before: str = "") -> None:
    _print_error(f"{before}svmbench: {printable_lines(text)}")


def _print_error(text: str) -> None:
    with suppress(OSError, ValueError):  # the reading process has ended, or the stream is closed
        print(text, file=sys.stderr)


class _PrintableFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return printable_lines(super().format(record))


def _parse(arguments: list[str]) -> argparse.Namespace:
    """Parse the arguments. Overrides may precede and follow options.

    Parameters
    ----------
    arguments : list of str
        Arguments after the name of the command.
    """
    parser = _parser()
    if "_ARGCOMPLETE" in os.environ:  # a shell asks for completions
        importlib.import_module("orchestrator.cli.completion").answer_shell(parser)
    options, rest = parser.parse_known_args(arguments)
    if unknown := [argument for argument in rest if argument.startswith("-")]:
        parser.error(f"unknown option {printable(unknown[0])} (see: svmbench {options.verb} --help)")
    options.overrides += rest
    return options


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
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
    parser.set_defaults(**_NOT_CHOSEN)
    parser.add_argument("overrides", nargs="*", metavar=verb.arguments)
    parser.add_argument(
        "--config-dir",
        type=Path,
        metavar="DIR",
        help="a folder with further configurations, laid out like conf/",
    )
    parser.add_argument("--verbose", action="store_true", help="show the log, including that of Dask")
    if name in ("run", "plan", "warm"):
        parser.add_argument(
            "--multirun",
            "-m",
            action="store_true",
            help="read key=a,b of datasets, solvers, protocol.seed and sweep.PARAMETER as axes of the study",
        )
        parser.add_argument(
            "--cfg", choices=["job"], help="print the composed configuration as YAML, and run nothing"
        )
    if name == "report":
        parser.add_argument("--open", action="store_true", help="open the page in the browser")
        parser.add_argument(
            "--watch",
            action="store_true",
            help="write the report again whenever a running study has stored trials",
        )
    if name in ("list", "status", "studies"):
        parser.add_argument("--json", action="store_true", help="print JSON for programs")
    if name == "accept":
        parser.add_argument(
            "--share",
            type=_share,
            help="share of the trials of each dataset and arm to train again (default: %(default)s)",
        )
        parser.add_argument(
            "--at-least",
            type=_count,
            metavar="N",
            help="smallest number of them; if 100 are the same, fewer than 3 %% of all can differ, at a "
            "confidence of 95 %% (default: %(default)s)",
        )
        parser.add_argument("--seed", type=_seed, help="seed of the sample (default: %(default)s)")
    if name == "delete":
        parser.add_argument("--yes", action="store_true", help="delete without asking")


def _share(text: str) -> float:
    with suppress(ValueError):  # not a number
        if 0 < (share := float(text)) <= 1:
            return share
    raise argparse.ArgumentTypeError(f"found {text}; expected a number above 0 and up to 1")


def _count(text: str) -> int:
    return _integer(text, 1)


def _seed(text: str) -> int:
    return _integer(text, 0)


def _integer(text: str, least: int) -> int:
    with suppress(ValueError):  # not an integer
        if (number := int(text)) >= least:
            return number
    raise argparse.ArgumentTypeError(f"found {text}; expected an integer of at least {least}")


def _add_cluster_actions(verbs: Any) -> None:
    text = "make certificates, start a scheduler, start workers"
    cluster = verbs.add_parser("cluster", help=text, description=text)
    cluster.set_defaults(overrides=[], config_dir=None, verbose=False, **_NOT_CHOSEN)
    actions = cluster.add_subparsers(dest="action", required=True, metavar="ACTION")
    certs = actions.add_parser(
        "certs", help="make an authority, and certificates and keys of scheduler, worker and client"
    )
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
        help="show Dask's dashboard there, e.g. 127.0.0.1:8787; it has no password, so that all users of "
        "this host, or all who reach HOST, see the names and times of trainings (default: no dashboard)",
    )
    worker = actions.add_parser(
        "worker", help="start cluster.workers=1 workers, and start them again when they end"
    )
    worker.add_argument(
        "address", metavar="ADDRESS", help="address of the scheduler, e.g. tls://10.0.0.1:8786"
    )
    worker.add_argument("--host", help="address to listen at, for a scheduler on another host")
    for action in (scheduler, worker):
        action.add_argument(
            "--insecure",
            action="store_true",
            help="encrypt nothing: everybody who reaches the address can run code as you; without this "
            "option your certificates are used (a scheduler makes them) unless cluster.tls names others",
        )
        action.add_argument("overrides", nargs="*", metavar="KEY=VALUE", help="e.g. cluster.tls.folder=DIR")
