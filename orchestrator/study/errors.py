"""Errors that end a command.

They are in a separate module, so that the command line can catch them without importing heavy packages.
"""

from collections.abc import Sequence

from orchestrator.study.text import one_line

_LONGEST_SENTENCE = 590
"""Longest text of one problem, in characters. The text may quote user input."""


class StudyStopped(RuntimeError):
    """Error of a run that ended before its study was complete.

    Finished trials are stored, and the same command resumes the study.
    """


class BudgetSpent(StudyStopped):
    """Error of a run that stopped because its budget of wall-clock time was spent (`minutes`)."""


class ConfigError(ValueError):
    """Error of a configuration that cannot be run.

    Parameters
    ----------
    problems : sequence of str
        All problems found, one message each. Long messages are shortened.
    """

    def __init__(self, problems: Sequence[str]):
        self.problems = [one_line(problem, _LONGEST_SENTENCE) for problem in problems]
        super().__init__("\n".join(self.problems))


class ExecutionError(RuntimeError):
    """Error of a cluster or host that cannot run any batch. Stored trials are not affected."""
