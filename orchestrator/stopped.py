"""How a run says that it ended early; apart, so that the command line need not import what runs a study."""


class StudyStopped(RuntimeError):
    """A run ended before its study did, which the same command resumes; what had finished is stored."""
