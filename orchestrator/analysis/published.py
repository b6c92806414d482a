"""Published scores, which are shown beside those of a study and used for nothing else."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from orchestrator.analysis.design import PERCENT_METRICS, Design
from orchestrator.study.errors import ConfigError
from orchestrator.study.text import error_line, shown

COLUMNS = ("dataset", "arm", "score")
OPTIONAL = ("standard_error", "seconds", "source")
"""Optional columns. Seconds are ignored, because times of other machines cannot be compared."""


def read_published(files: Sequence[str | Path]) -> pd.DataFrame:
    """Return published scores: columns dataset, arm, score, those of `OPTIONAL` that are given, source, file.

    Parameters
    ----------
    files : sequence of path
        CSV files with the columns dataset, arm and score, and perhaps those of `OPTIONAL`. Scores are in the
        unit in which a study stores them: an accuracy is a share, from 0 to 1.

    Raises
    ------
    ConfigError
        With the problems of all files.
    """
    problems: list[str] = []
    frames = [frame for file in files if (frame := _read(Path(file), problems)) is not None]
    if problems:
        raise ConfigError(problems)
    if not frames:
        return pd.DataFrame(columns=[*COLUMNS, *OPTIONAL, "file"])
    found = pd.concat(frames, ignore_index=True)
    twice = found[found.duplicated(["dataset", "arm"])]
    if len(twice):
        row = twice.iloc[0]
        raise ConfigError(
            [
                f"report.published: {row['file']} repeats the score of {row['arm']} on {row['dataset']}; "
                "keep one of them"
            ]
        )
    return found


def _read(path: Path, problems: list[str]) -> pd.DataFrame | None:
    expected = f"expected the columns {', '.join(COLUMNS)}, and perhaps {' and '.join(OPTIONAL)}"
    try:
        frame = pd.read_csv(path.expanduser(), dtype=str, keep_default_na=False, skipinitialspace=True)
    except (OSError, ValueError) as error:
        problems.append(f"report.published: cannot read {path} ({error_line(error)}); {expected}")
        return None
    missing = [name for name in COLUMNS if name not in frame]
    unknown = [name for name in frame if name not in (*COLUMNS, *OPTIONAL)]
    if missing or unknown:
        found = ", ".join(map(str, frame.columns))
        problems.append(f"report.published: {path} has the columns {shown(found)}; {expected}")
        return None
    for name in ("score", "standard_error"):
        texts = frame[name] if name in frame else pd.Series("", index=frame.index)
        numbers = pd.to_numeric(texts, errors="coerce").astype(float)
        wrong = ~np.isfinite(numbers) & ((texts != "") | (name == "score"))
        if wrong.any():
            line = int(np.flatnonzero(wrong)[0]) + 2
            problems.append(
                f"report.published: {path}, line {line}: expected a number as {name}, found "
                f"{shown(texts.iloc[line - 2])}"
            )
            return None
        frame[name] = numbers
    if len(empty := np.flatnonzero((frame["dataset"] == "") | (frame["arm"] == ""))):
        problems.append(
            f"report.published: {path}, line {empty[0] + 2}: expected a dataset and an arm, found an empty "
            "cell"
        )
        return None
    source = frame["source"].replace("", path.name) if "source" in frame else path.name
    return frame.assign(source=source, file=str(path))


def published_for(published: pd.DataFrame, design: Design) -> pd.DataFrame:
    """Return the published scores of a study's datasets.

    Parameters
    ----------
    published : DataFrame
        Scores, as `read_published` returns them.
    design : Design
        The design of the study.

    Raises
    ------
    ConfigError
        If no score belongs to a dataset of the study, or a score is not a possible value of its metric.
    """
    if published.empty:
        return published
    outside = published[(published["score"] > 1) | (published["score"] < 0)]
    if design.metric in PERCENT_METRICS and len(outside):
        row = outside.iloc[0]
        raise ConfigError(
            [
                f"report.published: {row['file']} gives {row['arm']} on {row['dataset']} the score "
                f"{row['score']:g}; expected shares from 0 to 1, so divide per cent by 100"
            ]
        )
    kept = published[published["dataset"].isin(list(design.datasets))]
    if kept.empty:
        names = ", ".join(dict.fromkeys(published["dataset"]))
        raise ConfigError(
            [f"report.published: the study has none of the datasets {shown(names)}; give them its names"]
        )
    return kept.reset_index(drop=True)
