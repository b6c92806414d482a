import os
from pathlib import Path

import numpy as np
import pytest
from omegaconf import OmegaConf

from orchestrator.config.schema import dataset_spec
from orchestrator.datasets import load
from orchestrator.datasets.about import read_about
from orchestrator.datasets.description import shape_problems
from orchestrator.datasets.libsvm_files import libsvm_path
from orchestrator.search import make_search

CONF = Path(__file__).parents[3] / "conf"
FILES = [
    path
    for path in sorted((CONF / "dataset").glob("*.yaml"))
    if OmegaConf.load(path)["_target_"].endswith(".libsvm_file")
]

# Of a file that another dataset is made of, too.
SHARED = {
    "web": ["w8a"],
    "covtype-binary": ["covtype"],
    "kdd99-distinct": ["kdd99-10pct"],
    "thyroid-binary": ["thyroid"],
    "banana-400": ["banana"],
}


def spec_of(path, data):
    config = OmegaConf.create({"paths": {"data": str(data)}, "dataset": OmegaConf.load(path)})
    node = OmegaConf.to_container(config.dataset, resolve=True)
    return dataset_spec(path.stem, node, [])


@pytest.mark.parametrize(
    ("name", "shape", "n_classes"),
    [
        ("iris", (150, 4), 3),
        ("wine", (178, 13), 3),
        ("breast_cancer", (569, 30), 2),
        ("digits", (1797, 64), 10),
        ("checkers", (1000, 2), 2),
        ("two_spirals", (1000, 2), 2),
        ("blobs", (1000, 2), 2),
        ("waveform", (5000, 21), 3),
        ("waveform-binary", (5000, 21), 2),
        ("waveform-400", (400, 21), 2),
    ],
)
def test_datasets_that_need_no_file_load(name, shape, n_classes, tmp_path):
    dataset = load(spec_of(CONF / "dataset" / f"{name}.yaml", tmp_path))
    assert dataset.X.shape == shape
    assert len(dataset.classes) == n_classes


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_dataset_that_needs_a_file_finds_it_under_its_own_name(path, tmp_path):
    spec = spec_of(path, tmp_path)
    n_features = spec.params["n_features"]
    file = spec.params["name"]
    assert file in (path.stem, *SHARED.get(path.stem, ()))
    n_rows = spec.params.get("n_rows")
    (tmp_path / f"{file}.libsvm").write_text(f"1 1:1\n2 {n_features}:1\n" * (n_rows or 1))
    assert load(spec).X.shape == (n_rows or 2, n_features)


DENSITIES = {
    "glass": 0.7965,
    "thyroid": 0.9963,
    "heart": 0.7510,
    "bupa": 0.9957,
    "ionosphere": 0.8809,
    "breast-cancer": 1,
    "diabetes": 0.8758,
    "fourclass": 1,
    "banana": 1,
    "optdigits": 0.5116,
    "satimage": 1,
    "usps": 0.9998,
    "reuters": 0.0052,
    "news20-bydate": 0.0012,
    "letter": 0.9738,
    "a9a": 0.1127,
    "w3a": 0.0388,
    "shuttle": 0.7832,
    "mnist": 0.1914,
    "ijcnn1": 0.5909,
    "covtype": 0.22,
    "covtype-binary": 0.22,
    "kdd99-10pct": 0.1051,
    "kdd99-distinct": None,
}


@pytest.mark.full
@pytest.mark.parametrize("name", DENSITIES)
def test_files_at_hand_are_what_their_configurations_say(name):
    folder = os.environ.get("SVMBENCH_DATA", "")
    spec = spec_of(CONF / "dataset" / f"{name}.yaml", folder)
    if not folder or libsvm_path(spec.params["name"], Path(folder)) is None:
        pytest.skip(f"set SVMBENCH_DATA to a folder that holds {spec.params['name']}.libsvm.xz")
    dataset = load(spec)
    assert shape_problems(dataset, read_about(OmegaConf.load(CONF / "dataset" / f"{name}.yaml"))) == []
    stored = dataset.X.nnz if hasattr(dataset.X, "nnz") else np.count_nonzero(dataset.X)
    share = stored / (dataset.X.shape[0] * dataset.X.shape[1])
    if name == "kdd99-distinct":
        assert dataset.X.shape == (215_590, 119)
    else:
        assert round(share, 4) == DENSITIES[name]


@pytest.mark.parametrize("kind", ["grid", "pattern"])
def test_searches_span_the_papers_grid(kind):
    config = OmegaConf.to_container(OmegaConf.load(CONF / "search" / f"{kind}.yaml"))
    assert config["kind"] == kind
    assert config["space"] == {"C": [4.0**k for k in range(-2, 6)], "gamma": [4.0**k for k in range(-5, 3)]}
    assert make_search(config["kind"], config["space"]).space.shape == (8, 8)
