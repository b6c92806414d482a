import math

import pytest

from orchestrator.engine.queue import UNLIKELY, DeathRate
from orchestrator.study.settings import MIN_DEATHS, DeathLimits
from orchestrator.study.trials import WorkerDeaths


def worker_deaths(deaths, seconds):
    return WorkerDeaths(0.0, deaths, deaths * seconds)


def quiet(seconds):
    """An hour or so of work, and no worker has died."""
    deaths = DeathRate()
    deaths.update(seconds, WorkerDeaths())
    return deaths


def test_no_training_is_blamed_for_one_death_and_each_for_very_many():
    assert all(quiet(1e9).may_be_chance(worker_deaths(deaths, 1e-9)) for deaths in range(MIN_DEATHS))
    assert not DeathRate().may_be_chance(worker_deaths(DeathLimits().deaths, 1e9))


def test_a_training_is_given_up_within_the_deaths_and_the_minutes_it_is_granted():
    troubled = DeathRate(DeathLimits(deaths=3, seconds=100.0))
    troubled.update(3600.0, WorkerDeaths(shared=0.5, alone=3000, seconds=3600.0))
    assert troubled.may_be_chance(worker_deaths(2, 49.0))
    assert not troubled.may_be_chance(worker_deaths(2, 50.0))
    assert not troubled.may_be_chance(worker_deaths(3, 1.0))
    assert troubled.may_be_chance(worker_deaths(1, 1e9))  # one death may always be chance


def test_sudden_deaths_are_blamed_at_once():
    assert not DeathRate().may_be_chance(worker_deaths(MIN_DEATHS, 0.01))


def test_a_death_in_a_quiet_place_says_more_than_one_where_many_die():
    here = worker_deaths(2, 2.0)
    assert DeathRate().may_be_chance(here)
    assert not quiet(3600.0).may_be_chance(here)
    troubled = quiet(3600.0)
    troubled.update(3600.0, WorkerDeaths(shared=0.5, alone=300, seconds=600.0))
    assert troubled.may_be_chance(here)


@pytest.mark.parametrize("expected", [0.02, 0.0045, 0.0044])
def test_the_chance_of_so_many_deaths_is_that_of_a_poisson_process(expected):
    """Two events or more where `expected` are: 1 - e^-m (1 + m), about m^2 / 2; 1e-5 at m = 0.00448."""
    chance = 1 - math.exp(-expected) * (1 + expected)
    seconds = 60.0 * expected  # at the rate of one a minute
    assert DeathRate().may_be_chance(worker_deaths(2, seconds / 2)) == (chance >= UNLIKELY)
