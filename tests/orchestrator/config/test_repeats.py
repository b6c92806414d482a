"""`protocol.repeats=R` is short for `protocol.seed=[0, …, R-1]`."""

import pytest

from orchestrator.config.compose import load_settings
from orchestrator.study.errors import ConfigError
from tests.messages import raises

STUDY = ("study=s", "datasets=[iris]", "solvers=[libsvm_l1]")


@pytest.mark.parametrize(("repeats", "seeds"), [("3", "[0,1,2]"), ("1", "0")])
def test_repeats_are_seeds(repeats, seeds):
    short, long = (
        load_settings([*STUDY, f"protocol.{key}"]).study for key in (f"repeats={repeats}", f"seed={seeds}")
    )
    assert short == long


def test_both_are_refused_unless_they_say_the_same():
    load_settings([*STUDY, "protocol.repeats=2", "protocol.seed=[0,1]"])
    with raises(ConfigError, "protocol.seed=7", "protocol.repeats=2", "protocol.seed=[0, 1]"):
        load_settings([*STUDY, "protocol.repeats=2", "protocol.seed=7"])


def test_no_repeat_is_refused():
    with raises(ConfigError, "protocol.repeats", "whole number", "at least 1", "0"):
        load_settings([*STUDY, "protocol.repeats=0"])
