"""Verdicts on the published studies are those of a program that imports nothing of the project."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.claims.decisions import UNDECIDED, decide
from orchestrator.claims.finished import stored_studies
from orchestrator.cli.claims import declared_claims, other_terms, study_loader

PUBLISHED = Path(__file__).parents[3] / "results" / "published"
PROGRAM = Path(__file__).with_name("recomputed.py")


@pytest.fixture(scope="module")
def recomputed():
    run = subprocess.run(
        [sys.executable, "-I", PROGRAM, PUBLISHED], capture_output=True, text=True, check=True
    )
    found = json.loads(run.stdout)
    assert found["ours"] == []
    return found["claims"]


@pytest.fixture(scope="module")
def decided(recomputed):
    claims = [claim for claim in declared_claims([], None) if claim.name in recomputed]
    names = {name for claim in claims for name in claim.studies}
    load = study_loader(PUBLISHED)
    studies, absent = stored_studies(names, load)
    terms = {name: other_terms(study, load, None) for name, study in studies.items()}
    return {claim.name: decide(claim, studies, absent, terms) for claim in claims}


@pytest.mark.parametrize("name", ["A11", "A13", "S11a", "S14", "S15", "S17"])
def test_a_verdict_is_that_of_a_program_without_our_code(name, recomputed, decided):
    expected, found = recomputed[name], [outcome.found for outcome in decided[name].outcomes]
    if isinstance(expected, dict):  # by dataset; one that the study lacks has no figure of its own
        by_dataset = {
            outcome.figure.what.rpartition(", ")[2]: outcome.found
            for outcome in decided[name].outcomes
            if outcome.figure is not None
        }
        expected, found = {data: expected[data] for data in by_dataset}, by_dataset
    assert found == expected
    assert decided[name].verdict != UNDECIDED
