"""The anytime-valid tests after each dataset."""

from orchestrator.analysis import findings
from orchestrator.analysis.findings import Findings
from orchestrator.analysis.pairwise import HIGHER, LOWER
from orchestrator.analysis.sequential import OPEN
from orchestrator.report import format as fmt
from orchestrator.report.pair_cells import pair, units
from orchestrator.report.table import Cell, Row, Table, print_table


def table(study: Findings) -> Table | None:
    """Print the evidence of each declared pair.

    Parameters
    ----------
    study : Findings
        The study of the report.

    Returns
    -------
    Table or None
        None unless the report asks for these tests.
    """
    frame, design = findings.sequence(study), study.design
    if frame.empty:
        return None

    def verdict(row: Row) -> Cell:
        text = {HIGHER: "A is higher", LOWER: "B is higher"}.get(row["verdict"], "undecided")
        return Cell(text, strong=row["verdict"] != OPEN)

    plural = fmt.plural_of(design.unit)
    return print_table(
        "sequence",
        "Anytime-valid tests after each dataset",
        frame,
        {
            "Pair, A − B": pair(study),
            units(study): lambda row: fmt.count(row["n"]),
            "E": lambda row: fmt.evidence(row["evidence"]),
            "Largest E": lambda row: fmt.evidence(row["largest_evidence"]),
            "p": lambda row: fmt.p_value(row["p"]),
            "Adjusted p": lambda row: fmt.p_value(row["p_holm"]),
            "Decided after": lambda row: fmt.count(row["decided_after"]),
            "Verdict": verdict,
        },
        caption=f"E is computed after each {design.unit}, in declared order. It is the evidence against the "
        "hypothesis that the differences are symmetric about zero. It is the gain of a bet on their signs, "
        "weighted by the ranks of their sizes so far. Under the hypothesis the expected gain is zero, and "
        f"the probability that E ever reaches 1/{design.alpha:g} is at most {design.alpha:g} (Ville, 1939). "
        "p is 1 divided by the largest E so far. Adjusted p: by Holm's method for a family of "
        f"{fmt.plural(frame['family'].iloc[0], 'test')}. Both are valid whenever the study stops. "
        f"report.adjust does not change that, because max-t requires a fixed number of {plural}. "
        f"{plural.capitalize()} count up to the first one that one of the two arms has not completed. The "
        f"other tests and probabilities of this report assume a number of {plural} that was fixed in "
        "advance; they are not adjusted for early stopping.",
        last_is_text=True,
    )
