"""Keys of trials are frozen: another key for the same trial would make every stored study train again."""

from dataclasses import replace

import pytest

from orchestrator.study.older_keys import OlderIdentity
from orchestrator.study.preparation import Preparation
from orchestrator.study.study import Arm, Candidate, Metric, Protocol
from orchestrator.study.trials import REFIT, Identity

ARM = Arm(
    name="mnsvm",
    target="solvers.MNSVC",
    params={"kernel": "rbf", "tol": 1e-3, "eta": 1.5, "class_weight": {"a": 2}, "step": None},
    space={"C": (1, 4, 16), "gamma": (0.5, 1.0)},
    identity="solvers.estimators.mnsvc 0123456789abcdef numba 0.68.1 numpy 2.4.6",
)
GRID = tuple(Candidate.of({"C": C, "gamma": 0.5}) for C in (1, 4, 16))
PLAIN = Protocol()
SCORE = Metric("mine", "package.score", "package 1.0")
CLASS = Candidate.of({"base": {"_target_": "package.Tree", "depth": 3}})

TRIALS = {
    "inner": (Identity, ARM, PLAIN, 0, 0, False),
    "refit": (Identity, ARM, PLAIN, 0, REFIT, False),
    "other split": (Identity, ARM, PLAIN, 4, 3, False),
    "many splits": (Identity, ARM, PLAIN, 300, 299, False),
    "rounded kernels": (Identity, ARM, PLAIN, 0, 0, True),
    "path": (Identity, replace(ARM, warm_starts=True), PLAIN, 0, 0, False),
    "resolution": (Identity, replace(ARM, sweep={"resolution": 8}), PLAIN, 0, 0, False),
    "no parameters": (Identity, replace(ARM, params={}, identity=""), PLAIN, 0, 0, False),
    "seed": (Identity, ARM, Protocol(seed=1), 0, 0, False),
    "seeds": (Identity, ARM, Protocol(seed=(1, 2)), 0, 0, False),
    "timing": (Identity, ARM, Protocol(profile="timing"), 0, 0, False),
    "limit": (Identity, ARM, Protocol(max_seconds=60.0), 0, 0, False),
    "scaling": (Identity, ARM, Protocol(scaling="dataset"), 0, 0, False),
    "preparation": (Identity, ARM, PLAIN.for_preparation(Preparation("standard")), 0, 0, False),
    "metric": (Identity, ARM, Protocol(metric="f1_macro"), 0, 0, False),
    "custom metric": (Identity, ARM, Protocol(metric="mine", custom_metrics=(SCORE,)), 0, 0, False),
    "further metrics": (Identity, ARM, Protocol(also=("f1_macro",)), 0, REFIT, False),
    "former inner": (OlderIdentity, ARM, PLAIN, 0, 0, False),
    "former refit": (OlderIdentity, ARM, Protocol(also=("f1_macro",)), 0, REFIT, True),
    "former path": (OlderIdentity, replace(ARM, warm_starts=True), PLAIN, 1, 2, False),
}

GOLDEN = {
    "inner": "b5352f276db40001c4ebf6e4dd2c9e82",
    "refit": "b5352f276db40000541412e3ae95773e",
    "other split": "b5352f276db40404b80740c6a604417a",
    "many splits": "b5352f276db4ffff890d63bc162ad81d",
    "rounded kernels": "2b6b02b818710001aadcf53e63683392",
    "path": "b5352f276db40001c2d7b58ba8eaee5d",
    "resolution": "2425a758725700015a81eedf8c534cbd",
    "no parameters": "556adc1df20800010c1358dfeb765120",
    "seed": "559acab190e70001757b315d52fac283",
    "seeds": "28751b41fe7e0001f2c6f5380501232e",
    "timing": "76ef2729339000015eb87c1d62e60e96",
    "limit": "54f5d203d8c4000159a1235df87458ec",
    "scaling": "9933ff24a85e000188d8eca61f5a5025",
    "preparation": "865b459918a50001cda8cf83555c4bbe",
    "metric": "d035d7c2ee7c0001fe110e01ef1fa45e",
    "custom metric": "9480d98bee2e00017f5ad776f127d9e8",
    "further metrics": "b5352f276db4000066da2d5b6cd59a5f",
    "former inner": "c43b20595b14c96b32fef99da228d756",
    "former refit": "daf21260264c91b232d2a70cfbbf77b8",
    "former path": "73a5b61e520e835b7fce3703fbc0a34a",
}


@pytest.mark.parametrize("name", TRIALS)
def test_no_key_ever_changes(name):
    kind, arm, protocol, outer, inner, shared_gram = TRIALS[name]
    identity = kind("iris", "fingerprint", "splits", arm, protocol, shared_gram, (300,) * 301)
    (path,) = identity.paths(outer, inner, GRID)
    assert path.keys[1] == GOLDEN[name]


def test_all_golden_keys_differ():
    assert len(set(GOLDEN.values())) == len(TRIALS) == 20


def test_the_code_of_a_class_in_the_space_is_in_the_key():
    arm = replace(ARM, space={"base": ()}, space_identities={"package.Tree": "package 1"})
    other = replace(arm, space_identities={"package.Tree": "package 2"})
    keys = {Identity("d", "f", "s", each, PLAIN).paths(0, 0, [CLASS])[0].keys for each in (arm, other)}
    assert len(keys) == 2
