"""The printed comparison of arms: on each dataset, pairwise tests, their sensitivity, mean ranks."""

from collections.abc import Callable

from orchestrator.analysis.findings import Findings
from orchestrator.analysis.pairwise import HIGHER, LOWER
from orchestrator.analysis.sequential import OPEN
from orchestrator.analysis.signed_rank import smallest_p
from orchestrator.report import format as fmt
from orchestrator.report.limits import shown_arms
from orchestrator.report.marks import marked_arms, marked_name
from orchestrator.report.table import Cell, Row, Table, print_table, records


def differences(findings: Findings) -> Table:
    """Datasets × arms with the mean difference from the first arm and its interval."""
    frame, metric, marked = findings.differences, findings.design.metric, marked_arms(findings)
    found = {(row["dataset"], row["solver"]): row for row in records(frame)}
    reference = frame["reference"].iloc[0]
    others = [arm for arm in shown_arms(findings) if arm != reference]

    def of(arm: str) -> Callable[[Row], Cell]:
        def cell(row: Row) -> Cell:
            if (row["dataset"], arm) not in found:
                return Cell(fmt.MISSING, tone="quiet")
            numbers = found[row["dataset"], arm]
            mean, low, high = (
                fmt.difference(numbers[name], metric) for name in ("difference", "low", "high")
            )
            return Cell(f"{mean} [{low}, {high}]")

        return cell

    return print_table(
        "differences",
        f"Difference from {marked_name(reference, marked)}, on each dataset alone",
        frame,
        {"Dataset": lambda row: row["dataset"]} | {marked_name(arm, marked): of(arm) for arm in others},
        rows=[{"dataset": dataset} for dataset in findings.design.datasets],
    )


def tests(findings: Findings) -> Table:
    """The family of pairwise tests, one row a pair."""
    metric = findings.design.metric

    def significant(row: Row) -> bool:
        return row["verdict"] in (HIGHER, LOWER)

    def verdict(row: Row) -> Cell:
        text = {HIGHER: "A is higher", LOWER: "B is higher"}.get(row["verdict"]) or row["verdict"]
        return Cell(text, strong=significant(row))

    return print_table(
        "tests",
        "Is the difference real? Pairwise tests over datasets",
        findings.tests,
        {
            "Pair, A − B": _pair(findings),
            _units(findings): lambda row: fmt.count(row["n"]),
            "A higher / same / lower": lambda row: f"{row['wins']} / {row['n_zero']} / {row['losses']}",
            "Typical difference": lambda row: _estimate(row, metric),
            "p": lambda row: fmt.p_value(row["p"]),
            "Smallest possible p": lambda row: fmt.p_value(row["smallest_p"]),
            "Adjusted p": lambda row: Cell(fmt.p_value(row["p_holm"]), strong=significant(row)),
            "Verdict": verdict,
        },
        last_is_text=True,
    )


def _units(findings: Findings) -> str:
    return fmt.plural_of(findings.design.unit).capitalize()


def _estimate(row: Row, metric: str) -> str:
    if not row["n"]:
        return fmt.MISSING
    estimate, low, high = (fmt.difference(row[name], metric) for name in ("estimate", "low", "high"))
    return fmt.with_interval(estimate, low, high, row["confidence"])


def _pair(findings: Findings) -> Callable[[Row], str]:
    marked = marked_arms(findings)
    return lambda row: f"{marked_name(row['first'], marked)} − {marked_name(row['second'], marked)}"


def details(findings: Findings) -> Table:
    """Rank sums and effect sizes behind the pairwise tests."""
    metric = findings.design.metric
    names = ["first", "second", "n", "n_zero", "w_plus", "w_minus", "rank_biserial", "median_difference"]
    return print_table(
        "test_details",
        "Behind the tests",
        findings.tests[names],
        {
            "Pair, A − B": _pair(findings),
            f"{_units(findings)} that differ": lambda row: fmt.count(row["n"] - row["n_zero"]),
            "W⁺": lambda row: f"{row['w_plus']:g}",
            "W⁻": lambda row: f"{row['w_minus']:g}",
            "r": lambda row: fmt.correlation(row["rank_biserial"]) if row["n"] else fmt.MISSING,
            "Median difference": lambda row: fmt.difference(row["median_difference"], metric),
        },
    )


def sensitivity(findings: Findings) -> Table:
    """How the p-values move when one dataset is left out, or when those that do not differ are ranked."""
    frame = findings.tests[["first", "second", "n", "n_zero", "p", "loo_p_low", "loo_p_high", "p_pratt"]]
    columns: dict[str, Callable[[Row], str]] = {
        "Pair, A − B": _pair(findings),
        _units(findings): lambda row: fmt.count(row["n"]),
        "p": lambda row: fmt.p_value(row["p"]),
        "Lowest p": lambda row: fmt.p_value(row["loo_p_low"]),
        "Highest p": lambda row: fmt.p_value(row["loo_p_high"]),
        "Smallest possible p": lambda row: (
            fmt.p_value(smallest_p(row["n"] - 1)) if row["n"] > 1 else fmt.MISSING
        ),
    }
    title = f"Sensitivity: leaving one {findings.design.unit} out"
    if frame["n_zero"].any():
        title += ", or ranking those that do not differ"
        columns["No difference"] = lambda row: fmt.count(row["n_zero"])
        columns["p, Pratt"] = lambda row: fmt.p_value(row["p_pratt"])
    return print_table("sensitivity", title, frame, columns)


def sequence(findings: Findings) -> Table:
    """Print what the tests after each dataset say of the declared pairs."""

    def verdict(row: Row) -> Cell:
        text = {HIGHER: "A is higher", LOWER: "B is higher"}.get(row["verdict"], "undecided, may continue")
        return Cell(text, strong=row["verdict"] != OPEN)

    return print_table(
        "sequence",
        "May one stop here? Tests after each dataset",
        findings.sequence,
        {
            "Pair, A − B": _pair(findings),
            _units(findings): lambda row: fmt.count(row["n"]),
            "E": lambda row: fmt.evidence(row["evidence"]),
            "Largest E": lambda row: fmt.evidence(row["largest_evidence"]),
            "p": lambda row: fmt.p_value(row["p"]),
            "Adjusted p": lambda row: fmt.p_value(row["p_holm"]),
            "Decided after": lambda row: fmt.count(row["decided_after"]),
            "Verdict": verdict,
        },
        last_is_text=True,
    )


def same_arms(findings: Findings) -> Table:
    """Print how the arms that several studies have compare: rows in both, scores, times."""
    metric, frame = findings.design.metric, findings.same_arms
    columns: dict[str, Callable[[Row], Cell | str]] = {
        "Arm": lambda row: row["arm"],
        "A, B": lambda row: f"{row['first']}, {row['second']}",
        "Differs in": lambda row: row["differs"] or "nothing",
        "Trials in both": lambda row: fmt.count(row["n_common"]),
        "Other score": _disagreeing,
        _units(findings): lambda row: fmt.count(row["n"]),
        "Typical difference, B − A": lambda row: _estimate(row, metric),
        "p": lambda row: fmt.p_value(row["p"]),
        "Adjusted p": lambda row: fmt.p_value(row["p_holm"]),
    }
    if (frame["n_timed"] > 0).any():
        columns["Training time, B / A"] = lambda row: fmt.ratio(row["time_ratio"])
        columns["Machines"] = lambda row: f"A: {row['first_machine']}\nB: {row['second_machine']}"
    return print_table(
        "same_arms",
        "The same arms in several studies",
        frame,
        columns,
        text_columns=3,
        last_is_text="Machines" in columns,
    )


def _disagreeing(row: Row) -> Cell:
    number = row["n_common"] - row["n_agree"]
    return Cell(fmt.count(number) if row["n_common"] else fmt.MISSING, tone="bad" if number else "quiet")


def practical(findings: Findings) -> Table:
    """Probabilities that arms differ by more than matters."""
    metric = findings.design.metric
    frame = findings.practical
    return print_table(
        "practical",
        f"Is the difference of practical size, over {fmt.margin(frame['rope'].iloc[0], metric)}?",
        frame,
        {
            "Pair, A − B": _pair(findings),
            _units(findings): lambda row: fmt.count(row["n"]),
            "A better": lambda row: fmt.probability(row["better"]),
            "Practically equal": lambda row: Cell(
                fmt.probability(row["equal"]), strong=row["practically_equal"]
            ),
            "B better": lambda row: fmt.probability(row["worse"]),
        },
    )


def ranks(findings: Findings) -> Table:
    """Mean ranks over complete datasets."""
    marked = marked_arms(findings)
    return print_table(
        "ranks",
        "Mean ranks",
        findings.ranks,
        {
            "Arm": lambda row: marked_name(row["solver"], marked),
            "Mean rank": lambda row: f"{row['mean_rank']:.2f}",
        },
    )
