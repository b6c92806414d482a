"""Studies whose trainings take no time, or a known time."""

import math
from pathlib import Path

from orchestrator.study.settings import Cluster, Paths, Settings
from orchestrator.study.study import Arm, DatasetSpec, Protocol, SearchSpec, Study


def idle_settings(folder: Path, trials: int, workers: int, seconds: float = 0.0) -> Settings:
    """Declare a study of about `trials` trainings of `seconds` each: 5 × 5 folds over a square grid."""
    side = max(2, math.isqrt(trials // 25))
    values = tuple(float(value) for value in range(1, side + 1))
    study = Study(
        name="idle",
        datasets=(DatasetSpec("iris", "sklearn.datasets.load_iris", {"return_X_y": True}),),
        arms=(
            Arm(
                "idle",
                "benchmarks.classifiers.IdleClassifier",
                {"seconds": seconds},
                {"C": values, "a": values},
            ),
        ),
        search=SearchSpec("grid"),
        protocol=Protocol(profile="timing"),
    )
    paths = Paths(results=folder / "results", data=folder, cache=folder / "cache")
    return Settings(study, Cluster("local", workers), paths, on_error="continue", retry="none")
