"""Hand-made studies: the frames and provenance that a store would give, with numbers chosen by the test."""

from pathlib import Path

import numpy as np
import pandas as pd

from orchestrator.store.results import StudyResults

C = (0.25, 1.0, 4.0)
GAMMA = (0.1, 1.0)


def arm(name, solver=None, **sweep):
    return {
        "name": name,
        "solver": solver or name,
        "target": f"package.{(solver or name).title()}",
        "params": {"kernel": "rbf", **sweep},
        "space": {"C": list(C), "gamma": list(GAMMA)},
        "sweep": sweep,
        "identity": "package 1.0",
    }


def make_results(
    folder,
    means,
    *,
    name="example",
    outer=5,
    inner=2,
    profile="throughput",
    arms=None,
    spread=0.01,
    n_test=200,
    seconds=None,
    also=(),
):
    """Return a complete study.

    Parameters
    ----------
    means : dict of str to dict of str to float
        The mean outer accuracy of every dataset and arm; folds spread evenly about it.
    seconds : dict of str to float
        Fit seconds per arm.
    """
    arm_names = list(next(iter(means.values())))
    arms = arms or [arm(each) for each in arm_names]
    offsets = np.linspace(-spread, spread, outer)
    rows = []
    selections = []
    for d, (dataset, row) in enumerate(means.items()):
        for a, solver in enumerate(arm_names):
            for fold in range(outer):
                best = (C[(d + a + fold) % 3], GAMMA[(d + fold) % 2])
                common = {
                    "dataset": dataset,
                    "solver": solver,
                    "outer": fold,
                    "profile": profile,
                    "fit_seconds": (seconds or {}).get(solver, 0.01 * (1 + a)) * (1 + d),
                }
                for i in range(inner):
                    for c in C:
                        for gamma in GAMMA:
                            rows.append(
                                {**common, "inner": i, "param_C": c, "param_gamma": gamma, "score": 0.9}
                            )
                refit = {"inner": -1, "param_C": best[0], "param_gamma": best[1]}
                rows.append({**common, **refit, "score": row[solver] + offsets[fold]})
                selections.append(
                    {
                        "identity": f"{dataset}-{solver}",
                        "study": name,
                        "dataset": dataset,
                        "solver": solver,
                        "outer": fold,
                        "param_C": best[0],
                        "param_gamma": best[1],
                        "inner_score": 0.91,
                        "inner_se": 0.01,
                        "n_tied": 1 + fold % 2,
                        "n_candidates": len(C) * len(GAMMA),
                        "n_failed": 0,
                    }
                )
    trials = _complete(pd.DataFrame(rows), name, n_test, outer, also)
    return StudyResults(
        name=name,
        folder=Path(folder) / name,
        trials=trials,
        selections=pd.DataFrame(selections),
        outer=trials[trials["inner"] == -1].reset_index(drop=True),
        provenance=[_provenance(name, list(means), arms, outer, inner, profile, also, trials)],
    )


def _complete(trials, name, n_test, outer, also):
    count = np.arange(len(trials))
    start = pd.Timestamp("2026-01-05 09:00", tz="UTC")
    arm_number = trials["solver"].map({s: i for i, s in enumerate(trials["solver"].unique())})
    return trials.assign(
        key=[f"{i:032x}" for i in count],
        identity=trials["dataset"] + "-" + trials["solver"],
        study=name,
        status="ok",
        message=None,
        **{f"score_{metric}": trials["score"] - 0.02 for metric in also},
        n_correct=(trials["score"] * n_test).round().astype("Int64"),
        n_test=pd.array([n_test] * len(trials), dtype="Int64"),
        n_train=pd.array([n_test * (outer - 1)] * len(trials), dtype="Int64"),
        n_features=4,
        n_classes=3,
        n_sv=pd.array(40 + 10 * arm_number, dtype="Int64"),
        sv_share=0.1 + 0.05 * (arm_number % 5),
        n_iter=pd.array(500 * (1 + arm_number), dtype="Int64"),
        n_kernel_evals=pd.array(
            [
                pd.NA if solver == "libsvm_l1" else 90_000 + 1_000 * int(i % 7)
                for i, solver in zip(count, trials["solver"], strict=True)
            ],
            dtype="Int64",
        ),
        gap=1e-4,
        objective=1.0,
        converged=pd.array([True] * len(trials), dtype="boolean"),
        fit_status="converged",
        fit_cpu_seconds=trials["fit_seconds"] * 0.98,
        predict_seconds=trials["fit_seconds"] * 0.1,
        predict_cpu_seconds=trials["fit_seconds"] * 0.1,
        gram_seconds=0.0,
        compile_seconds=0.0,
        shared_gram=False,
        warm_started=False,
        seed=0,
        host="bench-1",
        worker="w0",
        attempt=1,
        started_at=start + pd.to_timedelta(count, unit="s"),
        finished_at=start + pd.to_timedelta(count + 1, unit="s"),
        run_id="r1",
        versions="{}",
    )


def _provenance(name, datasets, arms, outer, inner, profile, also, trials):
    return {
        "run_id": "r1",
        "started_at": "2026-01-05T09:00:00+00:00",
        "finished_at": "2026-01-05T09:14:00+00:00",
        "command": ["svmbench", "run", f"experiment={name}"],
        "study": {
            "name": name,
            "datasets": [
                {
                    "name": dataset,
                    "n": 1000 * (i + 1),
                    "d": 4 + i,
                    "classes": 3,
                    "class_counts": {"a": 500 * (i + 1), "b": 300 * (i + 1), "c": 200 * (i + 1)},
                    "density": 1.0,
                    "fingerprint": f"{i:08x}deadbeef",
                    "target": "orchestrator.datasets.load",
                }
                for i, dataset in enumerate(datasets)
            ],
            "arms": arms,
            "search": "grid",
            "protocol": {
                "outer": outer,
                "inner": inner,
                "seed": 0,
                "scaling": "train",
                "metric": "accuracy",
                "also": list(also),
                "profile": profile,
                "max_seconds": None,
            },
        },
        "versions": {"svmbench": "0.1.0", "numpy": "2.4.6", "scikit-learn": "1.9.1"},
        "hosts": [{"host": "bench-1", "cpu": "Example CPU", "cores": 2, "memory_gb": 7.8}],
        "cluster": {"kind": "local", "workers": 2},
        "git": {"commit": "0123456789abcdef", "dirty": False},
        "worker_share": 0.87,
    }


def edit(results, mask, **values):
    """Return the study with some trials changed, in `trials` and `outer` alike; `mask` takes a frame."""
    frames = []
    for frame in (results.trials, results.outer):
        frame = frame.copy()
        for column, value in values.items():
            frame.loc[mask(frame), column] = value
        frames.append(frame)
    return _with_frames(results, *frames, results.selections)


def drop(results, mask):
    """Return the study without some of its rows."""
    frames = [frame[~mask(frame)] for frame in (results.trials, results.outer)]
    return _with_frames(results, *frames, results.selections)


def empty(folder):
    """Return a study that was declared and never stored a row."""
    full = make_results(folder, {"iris": {"a": 0.9, "b": 0.8}})
    return _with_frames(full, full.trials.iloc[:0], full.outer.iloc[:0], full.selections.iloc[:0])


def _with_frames(results, trials, outer, selections):
    return StudyResults(results.name, results.folder, trials, selections, outer, results.provenance)


QUICKSTART = {
    "iris": {"mnsvm": 0.960, "libsvm_l1": 0.967},
    "wine": {"mnsvm": 0.983, "libsvm_l1": 0.978},
    "breast_cancer": {"mnsvm": 0.975, "libsvm_l1": 0.979},
}


def many(n_datasets, n_arms, seed=0):
    """Return plausible means for a large study with long names."""
    generator = np.random.default_rng(seed)
    skill = np.linspace(0, 0.02, n_arms)
    names = [
        f"a_rather_long_solver_name_{i}[eta=1.{i},draws=600]" if i % 3 == 2 else f"solver{i}"
        for i in range(n_arms)
    ]
    return {
        f"dataset_with_a_long_name_{d}" if d % 4 == 3 else f"data{d}": {
            name: float(base + skill[i] + generator.normal(0, 0.004)) for i, name in enumerate(names)
        }
        for d, base in enumerate(generator.uniform(0.6, 0.95, n_datasets))
    }


def thirteen(n_datasets=13):
    """Return means of 13 arms, of which 7 are much like the control, 4 are worse, and one is better."""
    generator = np.random.default_rng(3)
    arms = {"control": (0, 0), "better": (0.008, 0.004)}
    arms |= {f"equal{i}": (0.003, 0.002) for i in range(6)}
    arms |= {"open0": (0.001, 0.006)}
    arms |= {f"worse{i}": (-0.02 - 0.005 * i, 0.01) for i in range(4)}
    return {
        f"data{d}": {
            name: float(base + shift + spread * generator.normal()) for name, (shift, spread) in arms.items()
        }
        for d, base in enumerate(generator.uniform(0.62, 0.97, n_datasets))
    }
