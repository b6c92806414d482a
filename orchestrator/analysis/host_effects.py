"""Ratios of training times over several kinds of machines, with the machine as a random effect.

One kind of processor is a single sample: two processors gave ratios of 22 and 14 for the same trainings. The
interval of a study on one machine describes other datasets, and not other machines. Studies of the same arms
and datasets on several kinds of machines are therefore compared by machine.
"""

from collections.abc import Mapping, Sequence
from math import nan, sqrt

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from orchestrator.analysis.design import Design
from orchestrator.analysis.merged_studies import differing_parts, machines, seconds_by_dataset
from orchestrator.store.results import StudyResults


def ratios_over_machines(studies: Mapping[str, StudyResults], design: Design) -> pd.DataFrame:
    """Compare the training times of arms with those of the first one over several kinds of machines.

    A machine counts once: studies on machines of the same kind are averaged. The logarithm of the ratio is
    averaged over the datasets that all machines have measured, which are the same on every machine. The
    interval is mean ± t·s/√H over the H machines, with H − 1 degrees of freedom.

    Parameters
    ----------
    studies : mapping of str to StudyResults
        The merged studies by label.
    design : Design
        The design of the merged study, with its level and the datasets that are left out.

    Returns
    -------
    DataFrame
        One row for each arm that all studies have, unless it differs in more than the machine. Columns: arm,
        reference, n_machines, n (datasets), ratio, low, high, smallest, largest (ratio of one machine). Empty
        with fewer than two kinds of machines, or without an arm and a reference that all studies have.
    """
    kinds: dict[str, list[StudyResults]] = {}
    for study in studies.values():
        kinds.setdefault("; ".join(machines(study)), []).append(study)
    names = _common_arms(list(studies.values()), design)
    if len(kinds) < 2 or len(names) < 2:
        return pd.DataFrame()
    reference, *others = names
    table = []
    for arm in others:
        by_machine = pd.DataFrame(
            {kind: _log_ratios(group, arm, reference, design) for kind, group in kinds.items()}
        ).dropna()
        if by_machine.empty:
            continue
        logs = by_machine.mean().to_numpy()
        half = _half_width(logs, design.alpha)
        mean = float(logs.mean())
        table.append(
            {
                "arm": arm,
                "reference": reference,
                "n_machines": len(logs),
                "n": len(by_machine),
                "ratio": float(np.exp(mean)),
                "low": float(np.exp(mean - half)),
                "high": float(np.exp(mean + half)),
                "smallest": float(np.exp(logs.min())),
                "largest": float(np.exp(logs.max())),
            }
        )
    return pd.DataFrame(table)


def _common_arms(studies: Sequence[StudyResults], design: Design) -> list[str]:
    """Return the arms that all studies have and that differ between them at most in the machine.

    Parameters
    ----------
    studies : sequence of StudyResults
        The merged studies.
    design : Design
        The design of the merged study.
    """
    first, *others = studies
    declared = [study.declaration.arms if study.declaration else {} for study in studies]
    return [
        arm
        for arm in declared[0]
        if all(arm in each for each in declared)
        and arm not in design.choices.leave_out
        and all(set(differing_parts(arm, first, other)) <= {"machine"} for other in others)
    ]


def _log_ratios(studies: Sequence[StudyResults], arm: str, reference: str, design: Design) -> pd.Series:
    """Return the logarithms of an arm's ratio on each dataset, averaged over studies on one kind of machine.

    Parameters
    ----------
    studies : sequence of StudyResults
        Studies on machines of one kind.
    arm : str
        Name of the arm.
    reference : str
        Name of the arm that it is compared with.
    design : Design
        The design of the merged study.
    """
    each = {
        number: np.log(seconds_by_dataset(study, arm, design) / seconds_by_dataset(study, reference, design))
        for number, study in enumerate(studies)
    }
    return pd.DataFrame(each).mean(axis=1).dropna()


def _half_width(logs: np.ndarray, alpha: float) -> float:
    n = len(logs)
    return float(stdtrit(n - 1, 1 - alpha / 2) * np.std(logs, ddof=1) / sqrt(n)) if n > 1 else nan
