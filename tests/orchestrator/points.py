"""Hand-made studies by search=every: trials of every point of a grid on every outer split."""

from pathlib import Path

import numpy as np
import pandas as pd

from orchestrator.store.columns import TRIAL_SCHEMA
from orchestrator.store.results import StudyResults

C, GAMMA, FOLDS = (1.0, 4.0), (0.25, 0.5, 1.0), 2
SPACE = {"C": list(C), "gamma": list(GAMMA)}


def study(trials, arms, search="every"):
    """Return a study of trials, with a column for each parameter of the arms' spaces."""
    declared = [
        {"name": name, "target": f"package.{name}", "params": {}, "space": space}
        for name, space in arms.items()
    ]
    datasets = [{"name": name, "n": 10, "n_inner": [0] * FOLDS} for name in trials["dataset"].unique()]
    protocol = {"outer": FOLDS, "inner": None, "seed": 0, "metric": "accuracy", "profile": "timing"}
    declaration = {"name": "s", "datasets": datasets, "arms": declared, "search": search}
    run = {"run_id": "r", "study": {**declaration, "protocol": protocol}, "identities": {}}
    run["identities"] = {each["name"]: {arm: f"{each['name']}-{arm}" for arm in arms} for each in datasets}
    trials = trials.assign(inner=-1, profile="timing", n_test=100, run_id="r", identity="", message="")
    columns = dict.fromkeys([*trials, *TRIAL_SCHEMA.names])
    trials = trials.reindex(columns=[*columns])
    empty = trials.assign(selection_key="").iloc[:0]
    return StudyResults("s", Path("s"), trials, empty, empty, [run])


def trials_of(arm, score, seconds, n_sv, dataset="d", reduction=np.nan):
    """Return trials of every point and fold; scores, seconds and sizes are functions of C, gamma and fold."""
    rows = [
        {
            "dataset": dataset,
            "solver": arm,
            "outer": fold,
            "param_C": c,
            "param_gamma": gamma,
            "status": "ok",
            "score": score(c, gamma, fold),
            "fit_seconds": seconds(c, gamma, fold),
            "n_sv": n_sv(c, gamma, fold),
            "reduction_seconds": reduction,
        }
        for c in C
        for gamma in GAMMA
        for fold in range(FOLDS)
    ]
    return pd.DataFrame(rows)
