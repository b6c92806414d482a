"""Recompute six verdicts from the stored tables, with pandas, numpy and scipy only.

`python recomputed.py FOLDER` prints the verdict of every test as JSON, by claim. Nothing of the project is
imported, so that an error of its reading, its statistics or its regions shows as a difference.
"""

import json
import sys
from math import inf, sqrt
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

MEDIUM = ["optdigits", "satimage", "usps", "pendigits", "reuters", "letter"]
MULTICLASS = ["all_at_once", "pairwise"]


def table(folder, study, name):
    """Return the refits (`outer`) or all trainings (`trials`) of a study."""
    path = folder / study / name
    files = [path.with_suffix(".parquet")] if name == "outer" else sorted(path.glob("*.parquet"))
    return pd.concat([pd.read_parquet(file) for file in files])


def verdict(interval, wide, region):
    """Return the verdict by the interval, and by the wider one for a refutation."""
    (low, high), (least, most) = np.round(interval, 9), region
    if least <= low and high <= most:
        return "reproduced"
    low, high = np.round(wide, 9)
    return "not reproduced" if high < least or low > most else "undecided"


def walsh_interval(values, alpha):
    """Return the exact interval of the signed-rank test for the centre of values."""
    n = len(values)
    averages = np.sort([(values[i] + values[j]) / 2 for i in range(n) for j in range(i, n)])
    ways = np.array([1.0])  # number of sign patterns by the sum of the positive ranks
    for rank in range(1, n + 1):
        ways = np.pad(ways, (0, rank)) + np.pad(ways, (rank, 0))
    tail = 2 * np.cumsum(ways) / 2.0**n
    cut = int(np.sum(tail <= alpha)) - 1
    return (averages[cut], averages[len(averages) - 1 - cut]) if cut >= 0 else (np.nan, np.nan)


def t_interval(values, share, alpha):
    """Return the interval of a mean over folds whose training rows overlap (Nadeau and Bengio)."""
    n = len(values)
    reach = stats.t.ppf(1 - alpha / 2, n - 1) * values.std(ddof=1) * sqrt(1 / n + share)
    return values.mean() - reach, values.mean() + reach


def folds(rows, arm, column):
    """Return a column of an arm by dataset and outer fold."""
    return rows[rows["solver"] == arm].set_index(["dataset", "outer"])[column].astype(float).sort_index()


def claimed(index, names):
    """Return the claimed datasets among those of a study, or all of them if it has none."""
    present = sorted(set(index))
    return [name for name in present if name in names] or present


def over_datasets(rows, arm, reference, region, names, looks):
    """Return the verdict of a difference of scores over datasets."""
    means = [folds(rows, each, "score").groupby(level="dataset").mean() for each in (arm, reference)]
    used = claimed(set(means[0].index) & set(means[1].index), names)
    tested = rows[rows["solver"] == arm].groupby("dataset")["n_test"].sum()
    values = (means[0][used] - means[1][used]).round(12)
    values = values.where(values.abs() >= 0.5 / tested[used] - 1e-12, 0.0).to_numpy()
    return verdict(*(walsh_interval(values, alpha) for alpha in (0.1, 0.1 / looks)), region)


def a11(folder):
    """The MDM and the improved MDM choice give the same accuracy."""
    rows = table(folder, "pair_choice", "outer")
    pair = ("mnsvm_gsvm[pair=imdm]", "mnsvm_gsvm[pair=mdm]")
    return [over_datasets(rows, *pair, (-0.002, 0.002), MEDIUM, looks=1)]


def a13(folder):
    """The first violator of 590 draws is as accurate as the worst of 59, and takes less time."""
    pair = ("spheresvm_590", "spheresvm")
    accurate = over_datasets(table(folder, "medium", "outer"), *pair, (-0.002, inf), MEDIUM, looks=2)
    rows = table(folder, "medium_time", "trials")
    rows = rows[(rows["profile"] == "timing") & rows["solver"].isin(pair)]
    # Each candidate has one of its 5 × 5 trainings in the sample.
    rows["total"] = (rows["fit_seconds"] + rows["predict_seconds"]) * np.where(rows["inner"] >= 0, 25, 1)
    seconds = rows.groupby(["solver", "dataset"])["total"].sum()
    values = np.log(seconds[pair[0]] / seconds[pair[1]]).to_numpy()
    ends = [np.exp(walsh_interval(values, alpha)) for alpha in (0.1, 0.05)]
    return [accurate, verdict(*ends, (0, 1))]


def s17(folder):
    """One subproblem for all classes makes models half as large, and a seventh on shuttle."""
    rows = table(folder, "multiclass", "outer")
    regions = [(["optdigits", "usps", "letter"], (0.35, 0.7)), (["shuttle"], (0.1, 0.2))]
    found = {}
    for names, region in regions:
        logarithms = {}
        for name in names:
            of = rows[rows["dataset"] == name]
            shares = [folds(of, f"mnsvm_gsvm[multiclass={each}]", "sv_share") for each in MULTICLASS]
            values = np.log(shares[0] / shares[1]).dropna().to_numpy()
            if len(values) == 5:
                logarithms[name] = values, of["n_test"].mean() / of["n_train"].mean()
        alphas = (0.1, 0.1 / len(regions) / max(1, len(logarithms)))
        for name in names:
            if name in logarithms:
                ends = [np.exp(t_interval(*logarithms[name], alpha)) for alpha in alphas]
                found[name] = verdict(*ends, region)
            else:
                found[name] = "undecided"
    return found


def s11a(folder):
    """The improved choice is faster on reuters and usps, slower on letter and equally fast elsewhere."""
    rows = table(folder, "pair_choice", "outer")
    regions = [(["reuters"], (0, 0.6)), (["usps"], (0, 1)), (["letter"], (1, 1.15))]
    regions.append((["optdigits", "pendigits", "satimage"], (0.9, 1.1)))
    found = []
    for names, region in regions:
        present = [name for name in names if name in set(rows["dataset"])]
        for name in present:
            of = rows[rows["dataset"] == name]
            seconds = [folds(of, f"mnsvm_gsvm[pair={pair}]", "fit_seconds") for pair in ("imdm", "mdm")]
            values = np.log(seconds[0] / seconds[1]).to_numpy()
            share = of["n_test"].mean() / of["n_train"].mean()
            alphas = (0.1, 0.1 / len(regions) / len(present))
            ends = [np.exp(t_interval(values, share, alpha)) for alpha in alphas]
            found.append((name, verdict(*ends, region)))
        found += [(name, "undecided") for name in names if name not in present]
    return dict(found)


def s14(folder):
    """The squared norm falls tenfold with ten times the samples, falls with C and rises with gamma."""
    rows = table(folder, "minimal_norm", "trials")
    rows = rows[rows["inner"] >= 0]
    means = rows.groupby(["dataset", "param_C", "param_gamma"])["objective"].mean().unstack("param_gamma")
    ratios = (means.loc["checkers[n=1000]"] / means.loc["checkers[n=100]"]).to_numpy().ravel()
    middle = np.quantile(ratios, [0.05, 0.95])
    grids = [means.loc[name].to_numpy() for name in ("checkers[n=100]", "checkers[n=1000]")]
    falls = np.mean(np.concatenate([np.diff(grid, axis=0).ravel() < 0 for grid in grids]))
    rises = np.mean(np.concatenate([np.diff(grid, axis=1).ravel() > 0 for grid in grids]))
    found = [verdict(middle, middle, (0.05, 0.2))]
    return found + [verdict((share, share), (share, share), (0.99, inf)) for share in (falls, rises)]


def s15(folder):
    """The bounds of Table 5.1."""
    regions = {
        100: {0.9: (0.03, 0.032), 0.95: (0.043, 0.045), 0.99: (0.074, 0.076)},
        590: {0.9: (0.0054, 0.0056), 0.95: (0.0077, 0.0079), 0.99: (0.012, 0.014)},
    }
    found = []
    for draws, by_confidence in regions.items():
        for confidence, region in by_confidence.items():
            z = stats.norm.ppf((1 + confidence) / 2)
            middle = z**2 / 2 / (draws + z**2)
            bound = middle + z * sqrt(middle * (1 - middle) / (draws + z**2))
            found.append(verdict((bound, bound), (bound, bound), region))
    return found


CLAIMS = {"A11": a11, "A13": a13, "S11a": s11a, "S14": s14, "S15": s15, "S17": s17}


def main():
    """Print the verdicts of all tests."""
    folder = Path(sys.argv[1])
    found = {name: recompute(folder) for name, recompute in CLAIMS.items()}
    ours = [name for name in sys.modules if name.partition(".")[0] in ("orchestrator", "solvers", "svmbench")]
    sys.stdout.write(json.dumps({"claims": found, "ours": ours}) + "\n")


if __name__ == "__main__":
    main()
