"""Compare a custom solver with MNSVC on a custom dataset, by a folder of configurations and a module."""

from pathlib import Path

from svmbench import run_study

FILES = {
    "centres.py": '''
import numpy as np
from sklearn.neighbors import NearestCentroid


class Shrunken(NearestCentroid):
    """Predict the nearest centroid, after moving the centroids towards the mean of all samples."""


def rings(n=120, seed=0):
    """Return points on two rings."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    angle, radius = rng.uniform(0, 2 * np.pi, n), 1 + y + rng.normal(0, 0.2, n)
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]), y
''',
    "solver/shrunken.yaml": "_target_: centres.Shrunken\nspace: {shrink_threshold: [0.1, 0.5, 1.0]}\n",
    "dataset/rings.yaml": "_target_: centres.rings\nn: 120\n",
}

if __name__ == "__main__":
    for name, text in FILES.items():
        path = Path("mine") / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    study = run_study(
        "study=own",
        "datasets=[rings]",
        "solvers=[shrunken,newton]",
        "protocol.outer=3",
        "protocol.inner=3",
        "search.space.C=[1,16]",
        "search.space.gamma=[0.25,1]",
        "cluster=serial",
        config_dir="mine",
    )
    print(study.selections[["solver", "outer", "inner_score"]])
    print(study.mean_scores())
