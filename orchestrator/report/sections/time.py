"""The section on times, or the reason why no times are compared."""

from markupsafe import Markup

from orchestrator.analysis import findings
from orchestrator.analysis.findings import Findings
from orchestrator.report.section import Paragraph, Section
from orchestrator.report.sections import (
    profile,
    sample,
    scaling,
    time_accuracy,
    time_machines,
    time_ratios,
    timing,
)

TITLE = "Time"


def section(study: Findings) -> Section:
    """Return the section.

    Parameters
    ----------
    study : Findings
        The study of the report.

    Returns
    -------
    Section
        Estimates of a sample, ratios, profiles, growth and times; without rows of the profile `timing`, a
        sentence.
    """
    if findings.timing(study).empty:
        text = Markup(
            "No times are compared. Seconds are comparable only if every training runs by itself and starts "
            "cold, and no training of this study ran under the profile “timing”. To measure times, run the "
            "study again with <code>protocol.profile=timing</code>. The iterations and kernel evaluations "
            "below do not depend on the profile."
        )
        return Section(TITLE, "", [Paragraph(text)], needs_scores=True)
    compared = [
        *sample.parts(study),
        *time_machines.parts(study),
        *time_ratios.parts(study),
        *time_accuracy.parts(study),
        *profile.parts(study),
    ]
    return Section(TITLE, "", [*compared, *scaling.parts(study), *timing.parts(study)], needs_scores=True)
