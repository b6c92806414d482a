import math

import pytest

from orchestrator.accidents import LEAST, UNLIKELY, Accidents, Bounds, Losses


def losses(deaths, seconds):
    return Losses(0.0, deaths, deaths * seconds)


def quiet(seconds):
    """An hour or so of work, and no worker has died."""
    accidents = Accidents()
    accidents.observe(seconds, Losses())
    return accidents


def test_no_training_is_blamed_for_one_death_and_each_for_very_many():
    assert all(quiet(1e9).explain(losses(deaths, 1e-9)) for deaths in range(LEAST))
    assert not Accidents().explain(losses(Bounds().deaths, 1e9))


def test_a_training_is_given_up_within_the_deaths_and_the_minutes_it_is_granted():
    troubled = Accidents(Bounds(deaths=3, seconds=100.0))
    troubled.observe(3600.0, Losses(shared=0.5, alone=3000, seconds=3600.0))
    assert troubled.explain(losses(2, 49.0))
    assert not troubled.explain(losses(2, 50.0))
    assert not troubled.explain(losses(3, 1.0))
    assert troubled.explain(losses(1, 1e9))  # one death may always be an accident


def test_sudden_deaths_are_blamed_at_once():
    assert not Accidents().explain(losses(LEAST, 0.01))


def test_a_death_in_a_quiet_place_says_more_than_one_where_many_die():
    here = losses(2, 2.0)
    assert Accidents().explain(here)
    assert not quiet(3600.0).explain(here)
    troubled = quiet(3600.0)
    troubled.observe(3600.0, Losses(shared=0.5, alone=300, seconds=600.0))
    assert troubled.explain(here)


@pytest.mark.parametrize("expected", [0.02, 0.0045, 0.0044])
def test_the_chance_of_so_many_accidents_is_that_of_a_poisson_process(expected):
    """Two events or more where `expected` are: 1 - e^-m (1 + m), about m^2 / 2; 1e-5 at m = 0.00448."""
    chance = 1 - math.exp(-expected) * (1 + expected)
    seconds = 60.0 * expected  # at the rate of one a minute
    assert Accidents().explain(losses(2, seconds / 2)) == (chance >= UNLIKELY)
