"""Datasets: loading, checking, scaling, and preparing them for memory-mapped use."""

from orchestrator.datasets.dataset import Dataset, DatasetError
from orchestrator.datasets.libsvm import find_libsvm_file, libsvm_file, libsvm_names, read_libsvm
from orchestrator.datasets.loader_process import load_and_prepare
from orchestrator.datasets.loading import load
from orchestrator.datasets.prepared import open_prepared, prepare
from orchestrator.datasets.synthetic import checkers

__all__ = [
    "Dataset",
    "DatasetError",
    "checkers",
    "find_libsvm_file",
    "libsvm_file",
    "libsvm_names",
    "load",
    "load_and_prepare",
    "open_prepared",
    "prepare",
    "read_libsvm",
]
