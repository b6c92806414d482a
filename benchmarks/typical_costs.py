"""Fit the typical costs of trainings of our solvers to finished studies, for `svmbench plan`.

    python -m benchmarks.typical_costs results/published/*

The script writes orchestrator/engine/typical_costs.json. For each profile and family of studies it fits
weights of the terms in `orchestrator.engine.typical_costs` by ridge regression to the mean seconds of each
candidate of each dataset × arm, inner trainings and refits apart. Each dataset × arm of a study has weight 1.
Each study has a constant of its own, for the speed of its machine, which is left out of predictions.
The constant of all studies is then changed such that the geometric mean of predicted ÷ observed totals of
the studies is 1, because the mean of a logarithm is below the logarithm of the mean.

The script also leaves out each study in turn and predicts its total time from the other ones: from its
declaration alone, and after the first per cent of its trials.
"""

import argparse
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from orchestrator.engine.cost_model import Shape, base_seconds
from orchestrator.engine.load import read_results
from orchestrator.engine.planning import (
    PlanLine,
    correction,
    coverage,
    expected_seconds,
    interval,
    observed_pairs,
)
from orchestrator.engine.typical_costs import (
    DATASET_TERMS,
    FILE,
    TERMS,
    Errors,
    Sizes,
    TypicalCost,
    dataset_key,
    key_of,
    prior_seconds,
    terms,
    typical_errors,
)
from orchestrator.search.expected import expected_trainings
from orchestrator.search.fold_search import planned_trials
from orchestrator.store.results import StudyResults
from orchestrator.store.store import Store
from orchestrator.study.declaration import Declaration, current_declaration
from orchestrator.study.trials import Pair

PAIR = ["study", "dataset", "arm"]
"""Columns that identify a dataset × arm of a study."""

PENALTIES = {"one": 0.1, "n": 30.0, "subproblems": 3.0, "d": 3.0}
"""Ridge penalties of the weights of a class and of a solver, by term; 1 for others. A large penalty of n
keeps the growth near that of `prior_seconds`, because most solvers were measured on few sizes."""

COMMON_PENALTIES = {"one": 1e-6, "n": 30.0, "subproblems": 1.0, "d": 3.0}
"""Ridge penalties of the weights of all solvers; 0.1 for others."""

DATASET_PENALTIES = {"one": 0.3}
"""Ridge penalties of the weights of a dataset; 3 for others."""

STUDY_PENALTY = 2.0
"""Ridge penalty of the constant of each study, which stands for the speed of its machine."""

FIRST_FAMILY = {f"solvers.{name}" for name in ("BallSVC", "CoreSVC", "MNSVC", "NewtonSVC", "SphereSVC")}
"""Classes of which a study of the first family has at least one. All other studies are the second family:
trees, reduced sets and version spaces, whose costs depend on C and gamma in other ways."""

FIRST = 0.01
"""Share of the trials of a study after which it is predicted again."""


@dataclass
class Study:
    """The complete dataset × arm of a study.

    Attributes
    ----------
    name : str
        Name of its folder.
    trials : DataFrame
        Its trials, in the order in which they finished, with the columns `seconds`, `C` and `gamma`.
    cells : DataFrame
        Mean seconds of the trainings of each candidate of each dataset × arm, refits apart.
    declaration : Declaration
        Its datasets, arms and search.
    """

    name: str
    trials: pd.DataFrame
    cells: pd.DataFrame
    declaration: Declaration

    @property
    def profile(self) -> str:
        """Profile of its protocol."""
        return str(self.declaration.protocol["profile"])

    @property
    def is_of_first_family(self) -> bool:
        """Whether it has a class of `FIRST_FAMILY`."""
        return not FIRST_FAMILY.isdisjoint(self.cells["target"])

    @property
    def family(self) -> tuple[str, int]:
        """Profile, and number of the family."""
        return self.profile, 1 if self.is_of_first_family else 2

    def shapes(self) -> dict[str, Shape]:
        """Return the sizes of the training sets of each dataset."""
        found = {}
        for name, rows in self.trials.groupby("dataset", observed=True):
            n_train, is_refit = rows["n_train"].to_numpy(float), rows["inner"].to_numpy(int) < 0
            refit = float(n_train[is_refit].mean())
            inner = float(n_train[~is_refit].mean()) if not is_refit.all() else refit
            d, classes = int(rows["n_features"].iloc[0]), int(rows["n_classes"].iloc[0])
            found[str(name)] = Shape(refit, d, classes, outer_share=1.0, inner_share=inner / refit)
        return found


def finished_studies(folders: Iterable[Path]) -> list[Study]:
    """Return the complete dataset × arm of the studies in folders."""
    found = [read_results(Store(folder)) for folder in folders if (folder / "trials").is_dir()]
    return [study_of(each) for each in found if any(state.complete for state in each.states.values())]


def read_study(folder: Path) -> Study:
    """Return the finished study in a folder."""
    return study_of(read_results(Store(folder)))


def study_of(results: StudyResults) -> Study:
    """Return the complete dataset × arm of a study."""
    declared = current_declaration(results.provenance)
    assert declared is not None
    pairs = {pair: each for pair, each in declared.pairs.items() if results.states[pair].complete}
    declaration = replace(declared, pairs=pairs)
    of = results.trials[["dataset", "solver"]].astype(str).itertuples(index=False, name=None)
    trials = results.trials[[pair in pairs for pair in of]]
    trials = trials.sort_values("finished_at").reset_index(drop=True)
    trials = trials.assign(seconds=trials[["fit_seconds", "predict_seconds"]].sum(axis=1))
    return Study(results.name, trials, cells_of(results.name, trials, declaration), declaration)


def cells_of(study: str, trials: pd.DataFrame, declaration: Declaration) -> pd.DataFrame:
    """Return the mean seconds of the trainings of each candidate of each dataset × arm."""
    arms = {arm: pair.identity.arm for (_, arm), pair in declaration.pairs.items() if pair.identity}
    keys = ["dataset", "solver", "refit", "C", "gamma", "d", "classes"]
    of = pd.DataFrame(
        {
            "dataset": trials["dataset"].astype(str),
            "solver": trials["solver"].astype(str),
            "refit": trials["inner"] < 0,
            "C": numbers(trials, "param_C"),
            "gamma": numbers(trials, "param_gamma"),
            "d": trials["n_features"].astype(int),
            "classes": trials["n_classes"].astype(int),
            "n": trials["n_train"].astype(float),
            "seconds": trials["seconds"],
        }
    ).groupby(keys, dropna=False)
    cells = of.agg(n=("n", "mean"), seconds=("seconds", "mean"), number=("seconds", "size")).reset_index()
    cells = cells[cells["seconds"] > 0].assign(study=study)
    cells["key"] = [key_of(arms[arm].solver, arms[arm].target) for arm in cells["solver"]]
    cells["target"] = [arms[arm].target for arm in cells["solver"]]
    return cells.rename(columns={"solver": "arm"})


def numbers(trials: pd.DataFrame, column: str) -> pd.Series:
    """Return the values of a hyper-parameter; NaN where a solver has none or it is not a number."""
    return pd.to_numeric(trials.get(column, pd.Series(np.nan, trials.index)), errors="coerce")


def fit(cells: pd.DataFrame) -> dict[str, Any]:
    """Return the weights of solvers, classes, all solvers and datasets, from the cells of one family."""
    X, prior = design(cells)
    groups = {
        "solvers": cells["key"].to_numpy(),
        "classes": cells["target"].to_numpy(),
        "datasets": cells["dataset"].map(dataset_key).to_numpy(),
    }
    columns, penalties, names = [X], [[COMMON_PENALTIES.get(term, 0.1) for term in TERMS]], [("all", "")]
    for kind, labels in groups.items():
        of, penalty = TERMS, [PENALTIES.get(term, 1.0) for term in TERMS]
        if kind == "datasets":
            of, penalty = DATASET_TERMS, [DATASET_PENALTIES.get(term, 3.0) for term in DATASET_TERMS]
        for label in np.unique(labels):
            columns.append(X[:, [TERMS.index(term) for term in of]] * (labels == label)[:, None])
            penalties.append(penalty)
            names.append((kind, str(label)))
    of_study = pd.get_dummies(cells["study"], dtype=float).to_numpy()
    matrix, y = np.hstack([*columns, of_study]), np.log(cells["seconds"].to_numpy()) - prior
    penalty_of_study = np.full(of_study.shape[1], STUDY_PENALTY)
    weight = 1.0 / cells.groupby(PAIR)["seconds"].transform("size").to_numpy()
    normal = (matrix * weight[:, None]).T @ matrix + np.diag(np.concatenate([*penalties, penalty_of_study]))
    solution = np.linalg.solve(normal, (matrix * weight[:, None]).T @ y)[: -len(penalty_of_study)]
    matrix = matrix[:, : len(solution)]
    totals = cells.assign(
        predicted=np.exp(prior + matrix @ solution) * cells["number"],
        total=cells["seconds"] * cells["number"],
    )
    sums = totals.groupby("study")[["predicted", "total"]].sum()
    solution[0] += np.log(sums["total"] / sums["predicted"]).mean()
    ends = np.cumsum([len(penalty) for penalty in penalties])
    parts = dict(zip(names, np.split(solution, ends[:-1]), strict=True))
    return summed(parts, cells)


def design(cells: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Return the terms of some cells, and the logarithm of the seconds that the sizes alone suggest."""
    X, prior = np.empty((len(cells), len(TERMS))), np.empty(len(cells))
    for sizes, rows in cells.groupby(["n", "d", "classes"]).indices.items():
        of = Sizes(*sizes)
        C, gamma = (cells[name].to_numpy(float)[rows] for name in ("C", "gamma"))
        X[rows], prior[rows] = terms(of, C, gamma), np.log(prior_seconds(of))
    return X, prior


def summed(parts: Mapping[tuple[str, str], np.ndarray], cells: pd.DataFrame) -> dict[str, Any]:
    """Return the weights of solvers with those of their class and of all solvers added."""
    common = parts["all", ""]
    of_class = {label: common + parts[kind, label] for kind, label in parts if kind == "classes"}
    target = dict(zip(cells["key"], cells["target"], strict=True))
    of_solver = {label: of_class[target[label]] + parts["solvers", label] for label in sorted(target)}
    sizes = cells.assign(key=cells["dataset"].map(dataset_key)).groupby("key")[["d", "classes"]].first()
    datasets = {
        label: {
            "d": int(sizes.loc[label, "d"]),
            "classes": int(sizes.loc[label, "classes"]),
            "weights": rounded(parts["datasets", label]),
        }
        for label in sizes.index
    }
    solvers = {name: rounded(weights) for name, weights in {**of_class, **of_solver}.items()}
    return {"all": rounded(common), "solvers": solvers, "datasets": datasets}


def rounded(weights: np.ndarray) -> list[float]:
    """Return weights with three decimals."""
    return [round(float(weight), 3) for weight in weights]


def costs_of(study: Study, weights: Mapping[str, Any]) -> dict[str, TypicalCost]:
    """Return the typical cost of each arm of a study; an unknown class costs as much as all solvers."""
    arms = {arm: pair.identity.arm for (_, arm), pair in study.declaration.pairs.items() if pair.identity}
    found = {}
    for name, arm in arms.items():
        known = weights["solvers"]
        of = known.get(key_of(arm.solver, arm.target), known.get(arm.target, weights["all"]))
        found[name] = TypicalCost(np.array(of), weights["datasets"], arm.params)
    return found


def predicted(study: Study, weights: Mapping[str, Any], known: Mapping[Pair, float]) -> pd.DataFrame:
    """Return the expected and the measured total seconds of each dataset × arm of a study.

    `known` has observed ÷ expected seconds. Only trainings that the search needs today are counted: earlier
    versions also trained a single candidate on the inner splits.
    """
    shapes, costs = study.shapes(), costs_of(study, weights)
    totals = study.cells.assign(total=study.cells["seconds"] * study.cells["number"])
    of_refits = totals[totals["refit"]].groupby(["dataset", "arm"])["total"].sum()
    of_all = totals.groupby(["dataset", "arm"])["total"].sum()
    rows = []
    for pair, declared in study.declaration.pairs.items():
        assert declared.identity is not None
        dataset, arm = pair
        expected = expected_trainings(declared.identity, study.declaration.search)
        seconds = expected_seconds(costs[arm], dataset, shapes[dataset], expected).sum()
        total = (of_all if expected.inner.any() else of_refits)[pair]
        rows.append((study.name, dataset, arm, known.get(pair, 1.0) * seconds, total))
    return pd.DataFrame(rows, columns=[*PAIR, "predicted", "total"])


def of_known_classes(studies: list[Study]) -> list[Study]:
    """Return the studies most of whose cells belong to a class that another study of the family has."""
    known = []
    for study in studies:
        others = {target for each in apart(study, studies) for target in each.cells["target"]}
        if study.cells["target"].isin(others).mean() > 0.5:
            known.append(study)
    return known


def apart(study: Study, studies: Iterable[Study]) -> list[Study]:
    """Return the other studies of the same family."""
    return [each for each in studies if each is not study and each.family == study.family]


def fit_to(studies: Iterable[Study]) -> dict[str, Any]:
    """Return the weights that `fit` finds from studies of one family."""
    return fit(pd.concat([each.cells for each in studies], ignore_index=True))


def fits(studies: list[Study]) -> dict[tuple[str, int], dict[str, Any]]:
    """Return the weights of each family, the first family of a profile first."""
    families = sorted({study.family for study in studies})
    return {of: fit_to(study for study in studies if study.family == of) for of in families}


def by_profile(weights: Mapping[tuple[str, int], Any]) -> dict[str, Any]:
    """Return the list of weights of the families of each profile."""
    found: dict[str, Any] = {}
    for (profile, _), each in weights.items():
        found.setdefault(profile, []).append(each)
    return found


def left_out(known: list[Study], studies: list[Study]) -> tuple[list[dict[str, Any]], pd.DataFrame]:
    """Return the weights from the other studies, and what they predict, for each study of known classes."""
    weights = [fit_to(apart(study, studies)) for study in known]
    tables = [predicted(study, of, {}) for study, of in zip(known, weights, strict=True)]
    return weights, pd.concat(tables, ignore_index=True)


def one_factor(study: Study, others: list[Study]) -> pd.DataFrame:
    """Return what a formula of the sizes times one factor per solver predicts, whatever C and gamma are.

    The factor of a solver is the median over its arms of the mean over datasets, and that of a class the
    mean over its solvers. The search is taken to visit every candidate.
    """
    cells = pd.concat([each.cells for each in others], ignore_index=True)
    cells = cells[~cells["refit"] | (cells["study"].map(cells.groupby("study")["refit"].all()))]
    cells["total"] = cells["seconds"] * cells["number"]
    pairs = cells.groupby(["study", "target", "key", "arm", "dataset"])
    table = pairs.agg(
        n=("n", "mean"), classes=("classes", "first"), total=("total", "sum"), number=("number", "sum")
    )
    base = [base_seconds(n, classes) for n, classes in zip(table["n"], table["classes"], strict=True)]
    factors = (table["total"] / table["number"] / base).groupby(["target", "key", "study", "arm"]).mean()
    of_solvers = factors.groupby(["target", "key"]).median()
    known = {**of_solvers.groupby("target").mean(), **of_solvers.droplevel("target")}
    shapes, found = (
        study.shapes(),
        predicted(study, {"solvers": {}, "datasets": {}, "all": [0.0] * len(TERMS)}, {}),
    )
    rows = []
    for pair in zip(found["dataset"], found["arm"], strict=True):
        identity = study.declaration.pairs[pair].identity
        assert identity is not None
        sizes = shapes[pair[0]].sizes(refit=False)
        solver = key_of(identity.arm.solver, identity.arm.target)
        factor = known.get(solver, known.get(identity.arm.target, 1.0))
        number = planned_trials(identity, study.declaration.search)
        rows.append(number * base_seconds(sizes.n, sizes.classes) * factor)
    return found.assign(predicted=rows)


def covered(table: pd.DataFrame) -> pd.Series:
    """Return whether the interval of each study holds its measured seconds."""
    found = {}
    for study, rows in table.groupby("study"):
        lines = [
            PlanLine(
                row.dataset,
                row.arm,
                1,
                0,
                0,
                row.predicted,
                1.0,
                correction(None, 0.0, typical_errors()).error,
            )
            for row in rows.itertuples()
        ]
        low, high = interval(lines)
        found[study] = low <= rows["total"].sum() <= high
    return pd.Series(found)


def after_first(study: Study, weights: Mapping[str, Any], parts: Errors) -> pd.DataFrame:
    """Return the predictions of a study after the first per cent of its trials."""
    begun = study.trials.iloc[: int(np.ceil(FIRST * len(study.trials)))]
    begun = begun.drop(columns="prepare_seconds", errors="ignore")
    shapes, costs = study.shapes(), costs_of(study, weights)
    factors = {}
    for pair, observed in observed_pairs(begun, shapes, costs).items():
        declared, cost = study.declaration.pairs[pair], costs[pair[1]]
        assert declared.identity is not None
        expected = expected_trainings(declared.identity, study.declaration.search)
        seconds = expected_seconds(cost, pair[0], shapes[pair[0]], expected)
        factors[pair] = correction(observed, coverage(observed, cost, expected, seconds), parts).factor
    return predicted(study, weights, factors)


def error_parts(table: pd.DataFrame, studies: list[Study], weights: list[dict[str, Any]]) -> Errors:
    """Return the standard deviations of the errors of predictions of studies, pairs and candidates."""
    sums = table.groupby("study")[["predicted", "total"]].sum()
    of_studies = np.log(sums["predicted"] / sums["total"])
    of_pairs = np.log(table["predicted"] / table["total"]) - table["study"].map(of_studies)
    pair = (of_pairs**2).groupby(table["study"]).mean().mean()
    spread = []
    for each, of_study in zip(studies, weights, strict=True):
        costs, cells = costs_of(each, of_study), each.cells
        for (dataset, name), rows in cells[~cells["refit"]].groupby(["dataset", "arm"]):
            sizes = Sizes(rows["n"].mean(), int(rows["d"].iloc[0]), int(rows["classes"].iloc[0]))
            C, gamma = rows["C"].to_numpy(), rows["gamma"].to_numpy()
            expected = costs[name].seconds(dataset, sizes, C, gamma)
            if len(rows) > 1:
                spread.append((each.name, np.log(rows["seconds"] / expected).var()))
    candidate = pd.DataFrame(spread, columns=["study", "var"]).groupby("study")["var"].mean().mean()
    parts = ((of_studies**2).mean(), pair, candidate)
    return Errors(*(round(float(np.sqrt(part)), 2) for part in parts))


def summary(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return predicted ÷ measured seconds of each study, by source of the prediction."""
    sums = {name: table.groupby("study")[["predicted", "total"]].sum() for name, table in tables.items()}
    ratios = {name: each["predicted"] / each["total"] for name, each in sums.items()}
    return pd.DataFrame({"seconds": next(iter(sums.values()))["total"], **ratios})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("studies", nargs="+", type=Path)
    studies = finished_studies(parser.parse_args().studies)
    known = of_known_classes(studies)
    weights, before = left_out(known, studies)
    parts = error_parts(before, known, weights)
    begun = [after_first(study, of, parts) for study, of in zip(known, weights, strict=True)]
    from_all = fits(studies)
    tables = {
        "one factor": pd.concat([one_factor(study, apart(study, studies)) for study in known]),
        "from others": before,
        "and 1 % of it": pd.concat(begun),
        "from all": pd.concat([predicted(study, from_all[study.family], {}) for study in known]),
    }
    found = by_profile(from_all) | {"errors": parts._asdict()}
    FILE.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(
        "predicted ÷ measured seconds of each study: by one factor per solver, whatever C and gamma are, and"
    )
    print(
        "by the model, both from the other studies; also from the first per cent of its own trials, and from"
    )
    print("all studies together")
    print(summary(tables).round(2).to_string())
    inside = covered(before)
    print(f"{inside.sum()} of {len(inside)} totals lie within the interval of 80 %, from the other studies")
    print("standard deviations of the logarithm of the error:", found["errors"])


if __name__ == "__main__":
    main()
