"""The sentence of a caption on how many kinds of processors measured its times."""

from orchestrator.analysis.findings import Findings
from orchestrator.analysis.merged_studies import machines
from orchestrator.report import format as fmt


def processor_note(study: Findings) -> str:
    """Return a sentence for captions of times: one kind of processor is a single sample.

    Parameters
    ----------
    study : Findings
        The study of the report.

    Returns
    -------
    str
        Begins with a space. Empty if no run recorded its hosts.
    """
    kinds = machines(study)
    if not kinds:
        return ""
    if len(kinds) > 1:
        return (
            f" Trainings ran on {fmt.plural(len(kinds), 'kind')} of machines, and each of them is one sample."
        )
    return (
        f" All trainings ran on one kind of machine ({kinds[0]}), which is one sample: intervals do not "
        "allow for other processors, on which ratios may differ by half. Ratios therefore have two digits."
    )
