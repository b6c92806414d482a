"""The errors that end a command; apart, so that the command line need not import what raises them."""

from collections.abc import Sequence

from orchestrator.study.text import one_line

_LONGEST_SENTENCE = 590
"""In characters, of a problem's sentence, which may quote what a user wrote."""


class StudyStopped(RuntimeError):
    """A run ended before its study did, which the same command resumes; what had finished is stored."""


class ConfigError(ValueError):
    """A configuration that cannot be run, with all its problems, one sentence each."""

    def __init__(self, problems: Sequence[str]):
        self.problems = [one_line(problem, _LONGEST_SENTENCE) for problem in problems]
        super().__init__("\n".join(self.problems))


class ExecutionError(RuntimeError):
    """Batches cannot run at all; the message says why and what to do. Nothing stored is lost."""
