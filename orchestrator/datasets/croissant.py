"""Metadata of a dataset in Croissant, the MLCommons format for descriptions of datasets."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from orchestrator.datasets.about import About
from orchestrator.datasets.dataset import Dataset
from orchestrator.datasets.download import sha256_of

_SCHEMA = "https://schema.org/"
_CROISSANT = "http://mlcommons.org/croissant/"
_TERMS = (
    *("citeAs", "column", "equivalentProperty", "extract", "field", "fileObject", "fileProperty", "fileSet"),
    *("format", "includes", "isLiveDataset", "jsonPath", "key", "md5", "parentField", "path", "recordSet"),
    *("references", "regex", "repeated", "replace", "samplingRate", "separator", "source", "subField"),
    "transform",
)
_CONTEXT = {
    "@language": "en",
    "@vocab": _SCHEMA,
    "sc": _SCHEMA,
    "cr": _CROISSANT,
    "rai": f"{_CROISSANT}RAI/",
    "dct": "http://purl.org/dc/terms/",
    "conformsTo": "dct:conformsTo",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
    **{term: f"cr:{term}" for term in _TERMS},
}
_FORMATS = {".csv": "text/csv", ".parquet": "application/x-parquet"}
"""Media types of the file formats whose columns can be described, by suffix."""

_COMPRESSED = {".gz": "application/gzip", ".bz2": "application/x-bzip2", ".xz": "application/x-xz"}
"""Media types of compressed files, by suffix."""


def croissant(dataset: Dataset, about: About, path: Path | None, label: Any = None) -> dict[str, Any]:
    """Return the Croissant metadata of a loaded dataset.

    Parameters
    ----------
    dataset : Dataset
        Loaded dataset.
    about : About
        Declared description of the dataset.
    path : Path or None
        File it was read from, if there is one.
    label : object
        Name of the column of labels; None if the first line of the file does not name the columns, separated
        by commas.
    """
    n, d = dataset.X.shape
    counts = np.bincount(dataset.codes, minlength=len(dataset.classes))
    rows = ", ".join(f"{name}: {count}" for name, count in zip(dataset.classes, counts, strict=True))
    sizes = f"{n:,} rows, {d:,} features, {len(counts)} classes ({rows})."
    texts = {
        "license": about.licence,
        "citeAs": about.citation,
        "alternateName": f"fingerprint {dataset.fingerprint}",
    }
    return {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": f"{_CROISSANT}1.0",
        "name": dataset.name,
        "description": " ".join(
            filter(None, [sizes, about.note, about.source and f"Source: {about.source}."])
        ),
        **{key: value for key, value in texts.items() if value},
        **({} if path is None else _files(dataset, path, label)),
    }


def _files(dataset: Dataset, path: Path, label: Any) -> Mapping[str, Any]:
    """Return the metadata of a file and, if its columns have names, of the columns.

    Parameters
    ----------
    dataset : Dataset
        Loaded dataset.
    path : Path
        File it was read from.
    label : object
        Name of the column of labels; None if the file does not name its columns.
    """
    kind = _FORMATS.get(path.suffix, "")
    file = {
        "@type": "cr:FileObject",
        "@id": path.name,
        "name": path.name,
        "contentUrl": path.name,
        "encodingFormat": kind or _COMPRESSED.get(path.suffix, "text/plain"),
        "sha256": sha256_of(path),
    }
    if not kind or not dataset.columns or label is None:
        return {"distribution": [file]}
    is_text = dataset.classes.dtype.kind == "U"
    types = {name: _type(dataset.X, at) for at, name in enumerate(dataset.columns)}
    fields = [
        {
            "@type": "cr:Field",
            "@id": f"rows/{name}",
            "name": f"rows/{name}",
            "dataType": type_,
            "source": {"fileObject": {"@id": path.name}, "extract": {"column": name}},
        }
        for name, type_ in {**types, str(label): "sc:Text" if is_text else "sc:Float"}.items()
    ]
    rows = {"@type": "cr:RecordSet", "@id": "rows", "name": "rows", "field": fields}
    return {"distribution": [file], "recordSet": [rows]}


def _type(X: Any, column: int) -> str:
    """Return the schema.org type of a column.

    Parameters
    ----------
    X : array, CSR matrix or frame, shape (n, d)
        Features, one row for each sample.
    column : int
        Index of the column.
    """
    is_text = isinstance(X, pd.DataFrame) and X.dtypes.iloc[column] != np.float64
    return "sc:Text" if is_text else "sc:Float"
