"""Every training ends for every tolerance, and claims no gap below the true one."""

import json
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from solvers import MNSVC, SMOSVC, BallSVC, CoreSVC, NewtonSVC, SphereSVC
from solvers.common.certificate import certified_gap
from solvers.common.progress import first_look, has_stalled
from solvers.hull.stopping import ADJMN, CORE, MEB, MN, VIOLATION, rule_holds
from tests.solvers.extreme_cases import random_case

ROOT = Path(__file__).parents[2]
CASES, ALL_CASES = 210, 50_000
PRECISION = "cannot be told apart at this precision"
SOLVERS = (MNSVC, SphereSVC, BallSVC, CoreSVC, NewtonSVC, SMOSVC)


def quietly(model, X, y, Cs=None):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, y) if Cs is None else model.fit_path(X, y, Cs)


def test_random_trainings_end_and_claim_no_smaller_gap_than_is_true(full_size, tmp_path):
    """The cases run in another process, which is killed when a case does not end."""
    count, file = ALL_CASES if full_size else CASES, tmp_path / "cases.jsonl"
    command = [sys.executable, "-m", "tests.solvers.extreme_cases", "0", str(count), str(file)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    assert ended.returncode == 0, f"{lines[-1]['number']}: no end\n{random_case(lines[-1]['number']).about}"
    done = [line for line in lines if "faults" in line]
    faults = [f"{random_case(line['number']).about}\n  {line['faults']}" for line in done if line["faults"]]
    assert not faults, "\n".join(faults)
    assert len(done) == count


@pytest.mark.sample(3)
@pytest.mark.parametrize("number", [30669, 33175, 33455, 36297])
def test_searches_that_draw_much_and_gain_little_end(number, tmp_path):
    command = [sys.executable, "-m", "tests.solvers.extreme_cases", str(number), str(number + 1)]
    subprocess.run([*command, str(tmp_path / "cases.jsonl")], cwd=ROOT, check=True)


@pytest.mark.parametrize("as_path", [False, True])
@pytest.mark.parametrize("C", [1.0, 65536.0, 1e9])
def test_steps_do_not_grow_with_C_for_ever(C, as_path):
    """Each row occurs once in either class, so the number of pair steps is proportional to C."""
    for n in (2, 50):
        X, y = np.repeat(np.arange(float(n)), 2)[:, None] / n, np.tile([0, 1], n)
        fitted = quietly(MNSVC(C=C, random_state=0), X, y, [C] if as_path else None)
        assert np.sum(fitted.n_iter_) < 10_000_000
        assert np.max(fitted.duality_gap_) <= 1.0
        assert np.all(fitted.converged_) == (np.max(fitted.fit_status_) == 0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("solver", SOLVERS)
def test_a_tolerance_that_rounding_hides_is_named(solver, dtype):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 3)), np.arange(40) % 2
    K = np.exp(-((X[:, None] - X) ** 2).sum(axis=2)).astype(dtype)
    model = quietly(solver(C=10.0, kernel="precomputed", tol=1e-300), K, y)
    path = quietly(solver(kernel="precomputed", tol=1e-300), K, y, [10.0])
    for converged, status, text in (
        (model.converged_, model.fit_status_, model.stopping_),
        (path.converged_[0], path.fit_status_[0], path.stopping_[0]),
    ):
        if solver in (SphereSVC, BallSVC):  # their rule allows large gaps
            assert converged == (status == 0)
        else:
            assert (converged, status) == (False, 4)
            assert PRECISION in text


def test_a_gap_counts_what_steps_have_done_to_the_sum_of_the_weights():
    exact = certified_gap(1.0, 1.0 - 1e-6, 0.0, 1.0)
    for total in (1.0 - 1e-11, 1.0 + 1e-11):
        assert certified_gap(total**2, total * (1.0 - 1e-6), 0.0, total) >= exact - 1e-15


@pytest.mark.parametrize("index", range(4))
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_certificate_that_is_no_number_certifies_nothing(value, index):
    known = [1.0, 1.0, 1e-16, 1.0]
    known[index] = value
    gap = certified_gap(*known)
    assert gap == 1.0 or index in (1, 3)
    assert not np.isnan(gap)
    for rule in (MN, VIOLATION, ADJMN, MEB, CORE):
        assert not rule_holds(rule, 1e-3, np.nan, 2.0, 1.0, 1e-16, np.nan)
        assert not rule_holds(rule, 1e-3, 1.0, 2.0, np.nan, np.nan, np.nan)


def test_a_training_whose_gains_halve_quickly_has_an_end():
    look = first_look(100)
    steps, distance, decisions = 0, 1.0, []
    for _ in range(8):
        steps = int(look[0])
        distance = 0.5 ** (steps / 10_000)
        decisions.append(has_stalled(look, steps, distance, distance, 1e-12, 100))
        look = (2 * steps, distance, look[1] - distance)
    assert not any(decisions[:5]), "the distance is 10⁻⁸ then"


def test_a_training_that_gains_the_same_with_every_step_has_none_in_sight():
    look, decisions = first_look(100), []
    for _ in range(8):
        steps = int(look[0])
        objective = 1.0 - 1e-9 * steps
        decisions.append(has_stalled(look, steps, objective, 1.0, 1e-3, 100))
        look = (2 * steps, objective, look[1] - objective)
    assert decisions[:2] == [False, False]
    assert all(decisions[2:])
