"""Load datasets, check them, and prepare copies on disk that processes map into memory."""

import importlib
from typing import Any

_MODULE_OF = {
    "Dataset": "dataset",
    "DatasetError": "dataset",
    "arff_file": "arff",
    "blobs": "synthetic",
    "checkers": "synthetic",
    "csv_file": "csv",
    "excel_file": "excel",
    "feather_file": "feather",
    "find_libsvm_file": "libsvm",
    "frequent_words": "word_counts",
    "kdd99_distinct": "symbol_tables",
    "kdd99_full_distinct": "symbol_tables",
    "libsvm_file": "libsvm",
    "libsvm_names": "libsvm_files",
    "libsvm_split": "published_splits",
    "load": "loading",
    "load_and_prepare": "loader_process",
    "localization": "symbol_tables",
    "npy_file": "arrays",
    "npz_file": "arrays",
    "openml_file": "openml",
    "open_prepared": "prepared",
    "parquet_file": "parquet",
    "prepare": "prepared",
    "read_libsvm": "libsvm",
    "splice_bits": "splice",
    "two_files": "given_split",
    "two_spirals": "synthetic",
    "waveform": "synthetic",
}


def __getattr__(name: str) -> Any:
    """Import a public name at its first use, so that listing file names does not import scikit-learn.

    Parameters
    ----------
    name : str
        Name of a public function or class of this package.
    """
    if name in _MODULE_OF:
        return getattr(importlib.import_module(f"orchestrator.datasets.{_MODULE_OF[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return the public names of the package."""
    return [*_MODULE_OF]
