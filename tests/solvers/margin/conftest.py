"""Limits of size that make small subproblems large."""

import pytest

from solvers.margin import l1_path, subproblem


@pytest.fixture(autouse=True)
def small_subproblems_are_large(monkeypatch):
    """Lower the sizes from which on samples are chosen."""
    monkeypatch.setattr(l1_path, "MAX_DENSE", 100)
    monkeypatch.setattr("solvers.estimators.smosvc.MAX_DENSE", 100)
    monkeypatch.setattr(subproblem, "MAX_WHOLE_BLOCK", 50)
    monkeypatch.setattr(subproblem, "FEW_NEAR", 40)
    monkeypatch.setattr(subproblem, "MIN_SUBSAMPLE", 60)
