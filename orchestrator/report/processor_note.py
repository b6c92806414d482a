"""The sentence of a caption on how many kinds of processors measured its times."""

from orchestrator.analysis.findings import Findings
from orchestrator.analysis.merged_studies import machines
from orchestrator.report import format as fmt


def processor_note(study: Findings, has_ratios: bool = True) -> str:
    """Return a sentence for captions of times: one kind of processor is a single sample.

    Parameters
    ----------
    study : Findings
        The study of the report.
    has_ratios : bool, default=True
        Whether the caption belongs to ratios of times.

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
    text = f" All trainings ran on one kind of machine ({kinds[0]}), which is one sample"
    if not has_ratios:
        return f"{text}: another processor may change even ratios of times by half."
    return (
        f"{text}: intervals do not allow for other processors, on which ratios may differ by half. Ratios "
        "therefore have two digits."
    )
