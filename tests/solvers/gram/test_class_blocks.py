"""Blocks of pairs of classes are the Gram matrix of their samples."""

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from solvers.gram.class_blocks import ClassBlocks
from tests.solvers.small_problems import overlapping, problem_of


@pytest.mark.parametrize("few_terms", [0, 64], ids=["products", "tiles"])
def test_blocks_of_classes_are_the_gram_matrix(few_terms, monkeypatch):
    monkeypatch.setattr("solvers.gram.class_blocks.FEW_TERMS", few_terms)
    X, _ = overlapping()
    problem = problem_of(X, gamma=0.5)
    for memory in (1e8, 0.0):
        blocks = ClassBlocks(X, problem.kernel, memory)
        for _ in range(2):
            K, error = blocks.gram(problem)
            np.testing.assert_allclose(K, rbf_kernel(X, gamma=0.5), rtol=0.0, atol=1e-13)
            assert error <= 1e-11
