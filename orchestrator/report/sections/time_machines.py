"""Ratios of training times over several kinds of machines."""

from orchestrator.analysis import findings
from orchestrator.analysis.findings import Findings
from orchestrator.report import format as fmt
from orchestrator.report.section import Part, titled
from orchestrator.report.table import Table, print_table


def parts(study: Findings) -> list[Part]:
    """Return the table of ratios over machines.

    Parameters
    ----------
    study : Findings
        Merged studies with rows of the profile `timing`.

    Returns
    -------
    list of Part
        Empty unless the studies ran the same arms on several kinds of machines.
    """
    return titled(_table(study)) if len(findings.ratios_over_machines(study)) else []


def _table(study: Findings) -> Table:
    frame = findings.ratios_over_machines(study)
    reference = frame["reference"].iloc[0]
    return print_table(
        "time_machines",
        f"Training time relative to {reference}, over kinds of machines",
        frame,
        {
            "Arm": lambda row: row["arm"],
            "Machines": lambda row: fmt.count(row["n_machines"]),
            "Datasets": lambda row: fmt.count(row["n"]),
            "Ratio": lambda row: "{} [{}, {}]".format(
                *(fmt.time_ratio(row[name]) for name in ("ratio", "low", "high"))
            ),
            "Of one machine": lambda row: (
                f"{fmt.time_ratio(row['smallest'])} to {fmt.time_ratio(row['largest'])}"
            ),
        },
        caption=(
            f"The arm's training time divided by that of {reference}, as the geometric mean over the "
            "datasets that every kind of machine has measured. The kind of machine is a random effect: the "
            f"{fmt.level(study.design.alpha)} interval is that of Student's t over the machines, and speaks "
            "of another machine on these datasets. It takes the logarithms of the ratios of machines as "
            "normally distributed, and is wide for few machines. Of one machine: the smallest and the "
            "largest ratio."
        ),
    )
