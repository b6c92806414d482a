"""Plan a run: count its trainings and estimate their cost, without training anything."""

from __future__ import annotations  # so that `status` does not import pandas

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np

from orchestrator.engine.cost_model import Shape, base_seconds
from orchestrator.engine.overview import Overview
from orchestrator.engine.replay import replay_pair
from orchestrator.engine.typical_costs import (
    Errors,
    TypicalCost,
    c_and_gamma,
    typical_costs,
    typical_errors,
)
from orchestrator.search.expected import ExpectedTrainings, expected_number, expected_trainings
from orchestrator.store.part_summaries import PairSummary
from orchestrator.store.results import PairState
from orchestrator.study.declaration import Declaration
from orchestrator.study.records import StoredTrial
from orchestrator.study.sample import n_measurements, requested_repeats
from orchestrator.study.study import Arm, DatasetSpec, Study, arm_on
from orchestrator.study.trials import Identity, Pair

if TYPE_CHECKING:
    import pandas as pd

    from orchestrator.engine.prepare import PreparedStudy

LEAST_NOISE = 0.02
"""Share of the variance between candidates that remains if all candidates of a dataset × arm are observed,
because splits differ."""

QUANTILE = 1.2816
"""Standard deviations from the middle to each end of an interval of 80 %."""


@dataclass(frozen=True, slots=True)
class PlanLine:
    """Counts and remaining cost of one dataset × arm.

    Attributes
    ----------
    dataset : str
        Name of the dataset.
    solver : str
        Name of the arm.
    planned : int
        Number of trainings. It is exact for a grid and an upper bound for other searches.
    stored : int
        Number of stored trainings that count.
    failed : int
        Number of stored trainings without a score.
    seconds_left : float
        Expected seconds of the remaining trainings, on one core; NaN if no training shows them.
    expected_left : float
        Expected number of the remaining trainings, at most `left`. Default NaN, for not known.
    error : float
        Standard deviation of the error of the logarithm of `seconds_left`; see `Correction`. Default 0.
    """

    dataset: str
    solver: str
    planned: int
    stored: int
    failed: int
    seconds_left: float
    expected_left: float = math.nan
    error: float = 0.0

    @property
    def left(self) -> int:
        """Number of trainings still to run."""
        return max(0, self.planned - self.stored)


class Observed(NamedTuple):
    """Stored trainings of a dataset × arm.

    Attributes
    ----------
    seconds : float
        Sum of their seconds.
    base : float
        Sum of their expected seconds before any correction.
    number : int
        Number of trainings.
    points : frozenset of (float, float)
        Values of C and gamma among them; 0 stands for a value that is not known.
    """

    seconds: float
    base: float
    number: int
    points: frozenset[tuple[float, float]]


def plan(
    prepared: PreparedStudy,
    stored: Mapping[str, StoredTrial],
    probed: Mapping[Pair, float],
    trials: pd.DataFrame | None = None,
) -> list[PlanLine]:
    """Return the trainings of a run, by dataset × arm.

    The cost of a dataset × arm is the sum of the typical costs of the trainings that its search is expected
    to need, times a factor that follows from the stored trainings; see `correction`.

    Parameters
    ----------
    prepared : PreparedStudy
        The study with its datasets and identities.
    stored : mapping of str to StoredTrial
        The stored trials, by key.
    probed : mapping of Pair to float
        Measured seconds of a training of arms without typical costs, by dataset × arm.
    trials : DataFrame, optional
        All stored trials, as `Store.trials` returns them. By default, no training has been measured.

    Returns
    -------
    list of PlanLine
        One line for each dataset × arm.
    """
    typical = typical_costs(prepared.study.arms, prepared.study.protocol)
    observed = {} if trials is None else observed_pairs(trials, prepared.shapes, typical)
    lines = []
    for pair, identity in prepared.identities.items():
        dataset, arm = pair
        state = replay_pair(identity, prepared.study.search, stored)
        expected = expected_trainings(identity, prepared.study.search)
        known = observed.get(pair)
        probe = probed.get(pair) if known is None else None
        shape, cost = prepared.shapes[dataset], typical.get(arm)
        line = planned_line(pair, cost, shape, expected, state, known, probe)
        lines.append(with_repeats(line, requested_repeats(prepared.study.search)))
    return lines


def with_repeats(line: PlanLine, repeats: int) -> PlanLine:
    """Return a line with the cost of all measurements of the remaining trainings.

    Parameters
    ----------
    line : PlanLine
        A line with the cost of one measurement of each training, which is the time that a row holds.
    repeats : int
        Requested number of measurements of each training; 0 for a study that is not a sample.

    Returns
    -------
    PlanLine
        The line, unchanged if each training is run once.
    """
    if not line.left:
        return line
    number = n_measurements(repeats, line.seconds_left / line.left)
    return replace(line, seconds_left=number * line.seconds_left)


def declared_trainings(
    study: Study, n_inner: Sequence[int], sampled: Study | None = None
) -> Iterator[tuple[DatasetSpec, Arm, ExpectedTrainings]]:
    """Yield the expected trainings of each dataset × arm of a study whose data are not loaded.

    Parameters
    ----------
    study : Study
        The study.
    n_inner : sequence of int
        Number of inner splits of each outer split; for a sample, that of the sampled study.
    sampled : Study, optional
        Study whose trainings are sampled, at most `search.folds` of each candidate. By default, the search of
        `study` is no sample.

    Yields
    ------
    (DatasetSpec, Arm, ExpectedTrainings)
        A dataset and an arm with their expected trainings.
    """
    source = sampled or study
    arms = {arm.name: arm for arm in source.arms}
    for dataset, arm in itertools.product(study.datasets, study.arms):
        candidates = arm_on(arms.get(arm.name, arm), source.search.options, dataset.name)
        identity = Identity(dataset.name, "", "", candidates, source.protocol, n_inner=n_inner)
        expected = expected_trainings(identity, source.search)
        if sampled is not None:
            most = study.search.options.get("folds", 1)
            expected = expected._replace(inner=np.minimum(expected.inner, most))
        yield dataset, arm, expected


def planned_line(
    pair: Pair,
    cost: TypicalCost | None,
    shape: Shape,
    expected: ExpectedTrainings,
    state: PairState,
    observed: Observed | None = None,
    probed: float | None = None,
) -> PlanLine:
    """Return the line of a dataset × arm.

    Parameters
    ----------
    pair : Pair
        Names of the dataset and the arm.
    cost : TypicalCost or None
        Typical cost of the arm; None if it is not known.
    shape : Shape
        Sizes of the dataset.
    expected : ExpectedTrainings
        Expected trainings by candidate.
    state : PairState
        Stored trials that count.
    observed : Observed, optional
        Stored trainings with their seconds. By default, nothing is stored.
    probed : float, optional
        Measured seconds of a training, if they replace the typical cost. By default, nothing is measured.

    Returns
    -------
    PlanLine
        Planned and stored trials, with the expected cost of the remaining ones.
    """
    seconds = expected_seconds(cost, pair[0], shape, expected)
    factor, error = correction(observed, coverage(observed, cost, expected, seconds), typical_errors())
    whole = factor * float(seconds.sum()) if probed is None else probed * expected.total
    done = 0.0 if observed is None else len(state.keys) * observed.seconds / observed.number
    return _planned(pair, state, expected.total, whole, done, error)


def _planned(
    pair: Pair, state: PairState, expected: float, whole: float, done: float, error: float
) -> PlanLine:
    """Return the line of a dataset × arm.

    Parameters
    ----------
    pair : Pair
        Names of the dataset and the arm.
    state : PairState
        Stored trials that count.
    expected : float
        Expected number of all trainings.
    whole : float
        Expected seconds of all trainings.
    done : float
        Seconds of the stored trainings that count.
    error : float
        Standard deviation of the error of the logarithm of `whole`.

    Returns
    -------
    PlanLine
        Planned and stored trials, with the expected cost of the remaining ones.
    """
    stored = len(state.keys)
    if state.complete:
        return PlanLine(*pair, state.planned, stored, state.failed, 0.0, 0.0, error)
    left = expected_left(max(state.planned - stored, 1), stored, expected)
    seconds = max(whole - done, whole / expected * left / 2) if expected else 0.0
    return PlanLine(*pair, state.planned, stored, state.failed, seconds, left, error)


def expected_seconds(
    cost: TypicalCost | None, dataset: str, shape: Shape, expected: ExpectedTrainings
) -> np.ndarray:
    """Return the expected seconds of all trainings of a dataset × arm, by candidate, before any correction.

    Parameters
    ----------
    cost : TypicalCost or None
        Typical cost of the arm; None if it is not known.
    dataset : str
        Name of the dataset.
    shape : Shape
        Sizes of the dataset.
    expected : ExpectedTrainings
        Expected trainings by candidate.

    Returns
    -------
    float array, shape (n_candidates,)
        Seconds.
    """
    seconds = np.zeros(len(expected.candidates))
    for refit, numbers in ((False, expected.inner), (True, expected.refits)):
        sizes = shape.sizes(refit)
        if cost is None:
            seconds += numbers * base_seconds(sizes.n, sizes.classes)
        else:
            C, gamma = c_and_gamma(expected.candidates, cost.fixed)
            seconds += numbers * cost.seconds(dataset, sizes, C, gamma)
    return seconds


def coverage(
    observed: Observed | None, cost: TypicalCost | None, expected: ExpectedTrainings, seconds: np.ndarray
) -> float:
    """Return the share of the expected seconds that belongs to observed candidates.

    Parameters
    ----------
    observed : Observed or None
        Stored trainings of the dataset × arm; None if nothing is stored.
    cost : TypicalCost or None
        Typical cost of the arm; None if it is not known.
    expected : ExpectedTrainings
        Expected trainings by candidate.
    seconds : float array, shape (n_candidates,)
        Expected seconds by candidate.

    Returns
    -------
    float
        Share, from 0 to 1. For an unknown arm, it is that of the trainings.
    """
    if observed is None or not expected.total:
        return 0.0
    if cost is None:
        return min(1.0, observed.number / expected.total)
    points = _points(*c_and_gamma(expected.candidates, cost.fixed))
    known = np.array([point in observed.points for point in points])
    return float(seconds[known].sum() / seconds.sum())


def _points(C: np.ndarray, gamma: np.ndarray) -> list[tuple[float, float]]:
    """Return pairs of C and gamma, with 0 for NaN.

    Parameters
    ----------
    C, gamma : float array, shape (n,)
        Hyper-parameters.

    Returns
    -------
    list of (float, float)
        Pairs with six significant digits, because spaces and stored values may be rounded differently.
    """
    pairs = zip(np.nan_to_num(C).tolist(), np.nan_to_num(gamma).tolist(), strict=True)
    return [(float(f"{first:.6g}"), float(f"{second:.6g}")) for first, second in pairs]


def observed_pairs(
    trials: pd.DataFrame, shapes: Mapping[str, Shape], typical: Mapping[str, TypicalCost]
) -> dict[Pair, Observed]:
    """Return observed and expected seconds of the stored trainings, by dataset × arm.

    Parameters
    ----------
    trials : DataFrame
        Trials with the columns `dataset`, `solver`, `inner`, `fit_seconds`, `predict_seconds`, and those of
        C and gamma if a solver has them.
    shapes : mapping of str to Shape
        Sizes of the datasets, by name.
    typical : mapping of str to TypicalCost
        Typical costs by arm.

    Returns
    -------
    dict of Pair to Observed
        Pairs of which a training took measurable time.
    """
    found: dict[Pair, Observed] = {}
    if trials.empty:
        return found
    columns = ("fit_seconds", "predict_seconds", "prepare_seconds")  # older trials have no preparation
    seconds = trials[[name for name in columns if name in trials]].sum(axis=1).to_numpy(float)
    inner = trials["inner"].to_numpy(int)
    values = {name: _numbers(trials, f"param_{name}") for name in ("C", "gamma")}
    groups = trials.groupby(["dataset", "solver"], observed=True).indices
    for names, rows in groups.items():
        dataset, arm = cast(Pair, names)
        shape, cost = shapes.get(dataset), typical.get(arm)
        total = float(seconds[rows].sum())
        if shape is None or total <= 0:
            continue
        base = 0.0
        for refit in (False, True):
            of = rows[(inner[rows] < 0) == refit]
            sizes = shape.sizes(refit)
            if cost is None:
                base += len(of) * base_seconds(sizes.n, sizes.classes)
            else:
                C, gamma = (
                    np.where(np.isnan(known[of]), cost.fixed_value(name), known[of])
                    for name, known in values.items()
                )
                base += float(cost.seconds(dataset, sizes, C, gamma).sum())
        points = frozenset(_points(values["C"][rows], values["gamma"][rows]))
        found[dataset, arm] = Observed(total, base, len(rows), points)
    return found


def measured_pairs(trials: pd.DataFrame) -> set[Pair]:
    """Return each dataset × arm of which a training is stored.

    Parameters
    ----------
    trials : DataFrame
        Stored trials.

    Returns
    -------
    set of Pair
        Names of datasets and arms.
    """
    if trials.empty:
        return set()
    return set(zip(trials["dataset"].astype(str), trials["solver"].astype(str), strict=True))


def _numbers(trials: pd.DataFrame, column: str) -> np.ndarray:
    """Return the positive numbers of a column.

    Parameters
    ----------
    trials : DataFrame
        Stored trials.
    column : str
        Name of a column, which may be missing.

    Returns
    -------
    float array, shape (n_trials,)
        Numbers; NaN for anything else.
    """
    if column not in trials:
        return np.full(len(trials), math.nan)
    values = trials[column].to_numpy()
    if values.dtype.kind not in "if":
        values = np.array([value if isinstance(value, (int, float)) else math.nan for value in values])
    numbers = values.astype(float)
    return np.where(numbers > 0, numbers, math.nan)


class Correction(NamedTuple):
    """Factor of the expected seconds of a dataset × arm, with its error.

    Attributes
    ----------
    factor : float
        Observed ÷ expected seconds, as far as the stored trainings suggest.
    error : float
        Standard deviation of the error of its logarithm. For a pair without stored trainings, it does not
        contain the part that all pairs of a study have in common.
    """

    factor: float
    error: float


def correction(observed: Observed | None, share: float, errors: Errors) -> Correction:
    """Return the factor of expected seconds that the stored trainings of a dataset × arm suggest.

    The logarithm of observed ÷ expected seconds is the sum of a part of the study and the pair, and of a part
    of the observed candidates, which vanishes if all candidates are observed. The former is estimated by its
    best linear predictor. Other pairs do not count: in the published studies, the first trainings of one
    arm say nothing about other arms.

    Parameters
    ----------
    observed : Observed or None
        Observed and expected seconds; None if nothing is stored.
    share : float
        Share of the expected seconds that belongs to observed candidates, from 0 to 1.
    errors : Errors
        Standard deviations of the parts.

    Returns
    -------
    Correction
        Factor and error.
    """
    if observed is None:
        return Correction(1.0, errors.pair)
    prior = errors.study**2 + errors.pair**2
    noise = errors.candidate**2 * max(1 - share, LEAST_NOISE)
    weight = prior / (prior + noise)
    factor = math.exp(weight * math.log(observed.seconds / observed.base))
    return Correction(factor, math.sqrt(weight * noise))


def interval(lines: Sequence[PlanLine]) -> tuple[float, float]:
    """Return an interval of 80 % for the sum of the remaining seconds.

    The pairs without stored trainings have a part of their errors in common. The other parts are independent.
    The sum is taken to be log-normal.

    Parameters
    ----------
    lines : sequence of PlanLine
        Remaining trainings and their cost, by dataset × arm.

    Returns
    -------
    low, high : float
        Seconds.
    """
    total = sum(line.seconds_left for line in lines)
    if not total:
        return 0.0, 0.0
    unknown = sum(line.seconds_left for line in lines if not line.stored) / total
    variance = (unknown * typical_errors().study) ** 2
    variance += sum((line.seconds_left / total * line.error) ** 2 for line in lines)
    factor = math.exp(QUANTILE * math.sqrt(variance))
    return total / factor, total * factor


def expected_numbers(overview: Overview, declaration: Declaration) -> dict[Pair, float]:
    """Return the expected number of trainings of each incomplete dataset × arm.

    Parameters
    ----------
    overview : Overview
        State of each dataset × arm.
    declaration : Declaration
        The current declaration.

    Returns
    -------
    dict of Pair to float
        Numbers. A dataset × arm whose identity is not recorded is missing.
    """
    identities = {pair: declared.identity for pair, declared in declaration.pairs.items()}
    return {
        pair: expected_number(identity, declaration.search)
        for pair, state in overview.pairs.items()
        if not state.complete and (identity := identities.get(pair)) is not None
    }


def expected_left(left: int, done: int, expected: float, least: int = 1) -> float:
    """Return the expected number of remaining trainings of a dataset × arm.

    A search may need more trainings than expected. While it is not complete, at least `least` are expected.

    Parameters
    ----------
    left : int
        Largest number of remaining trainings.
    done : int
        Number of finished trainings.
    expected : float
        Expected number of all trainings.
    least : int, default 1
        Smallest number of remaining trainings, if there are so many.

    Returns
    -------
    float
        Number of trainings, at most `left`.
    """
    return min(max(expected - done, least), left)


def remaining(
    overview: Overview, repeats: int = 0, expected: Mapping[Pair, float] | None = None
) -> list[PlanLine]:
    """Return the remaining trainings of a stored study, at the mean cost of the stored ones.

    A dataset × arm without stored trainings is taken to cost what the arm costs on other datasets. Other arms
    do not count, because the dearest pairs run first.

    Parameters
    ----------
    overview : Overview
        State of each dataset × arm.
    repeats : int, default 0
        Requested number of measurements of each training; 0 for a study that is not a sample.
    expected : mapping of Pair to float, optional
        Expected number of all trainings, by dataset × arm. By default, every search needs all that it may.

    Returns
    -------
    list of PlanLine
        One line for each dataset × arm.
    """
    expected = expected or {}
    means = {pair: state.seconds / state.stored for pair, state in overview.pairs.items() if state.stored}
    of_arm: dict[str, list[float]] = {}
    for (_, arm), mean in means.items():
        of_arm.setdefault(arm, []).append(mean)
    lines = (
        _line(
            pair,
            state,
            means[pair] if state.stored else fmean(of_arm.get(pair[1], [math.nan])),
            expected.get(pair, state.planned),
        )
        for pair, state in overview.pairs.items()
    )
    return [with_repeats(line, repeats) for line in lines]


def _line(pair: Pair, state: PairSummary, mean: float, expected: float) -> PlanLine:
    """Return the line of a dataset × arm.

    Parameters
    ----------
    pair : Pair
        Names of the dataset and the arm.
    state : PairSummary
        Its planned and stored trainings.
    mean : float
        Mean seconds of a training; NaN if it is not known.
    expected : float
        Expected number of all trainings.

    Returns
    -------
    PlanLine
        Planned and stored trials, with their expected cost.
    """
    left = expected_left(state.planned - state.stored, state.stored, expected)
    seconds = mean * left if left else 0.0
    return PlanLine(*pair, state.planned, state.stored, state.failed, seconds, left)
