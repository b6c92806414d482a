"""The docstrings of the estimators are complete: parameters, errors, references, an example."""

import doctest
import inspect
import re

import pytest
from sklearn.base import clone

from solvers import (
    AESVC,
    LASVC,
    MNSVC,
    SMOSVC,
    BallSVC,
    BayesPointClassifier,
    CoreSVC,
    EllipsoidalKernelSVC,
    EllipsoidSVC,
    NewtonSVC,
    ReducedSetSVC,
    RelativeMarginSVC,
    SoftBallSVC,
    SphereSVC,
)
from solvers.estimators.base import KernelSVC
from solvers.estimators.parameters import with_parameters
from tests.messages import raises

SOLVERS = [AESVC, LASVC, MNSVC, SMOSVC, BallSVC, CoreSVC, EllipsoidSVC, NewtonSVC, ReducedSetSVC, SphereSVC]
SOLVERS += [BayesPointClassifier, EllipsoidalKernelSVC, RelativeMarginSVC, SoftBallSVC]


def section(doc, title):
    match = re.search(rf"^{title}\n-+\n(.*?)(?=^\w+\n-+\n|\Z)", doc, re.MULTILINE | re.DOTALL)
    assert match, f"no section {title}"
    return match.group(1)


@pytest.mark.parametrize("solver", SOLVERS)
def test_every_parameter_is_described_with_its_default(solver):
    text = section(solver.__doc__, "Parameters")
    described = re.findall(r"^(\w+) : .*, default=(.*)\n    \S", text, re.MULTILINE)
    signature = inspect.signature(solver).parameters
    assert [name for name, _ in described] == list(signature)
    for name, default in described:
        assert default.replace('"', "'") == repr(signature[name].default), name


@pytest.mark.parametrize("solver", SOLVERS)
def test_there_are_attributes_errors_and_references(solver):
    attributes = section(solver.__doc__, "Attributes")
    for name in ("dual_coef_", "gap_", "converged_", "fit_status_", "objective_"):
        assert re.search(rf"^(\w+, )?{name}\b", attributes, re.MULTILINE), name
    assert "ValueError" in section(solver.__doc__, "Raises")
    assert re.search(r"\b(19|20)\d\d\b", section(solver.__doc__, "References"))


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_example_runs(solver):
    (test,) = doctest.DocTestFinder(recurse=False).find(solver, solver.__name__, globs={})
    assert test.examples
    assert doctest.DocTestRunner().run(test).failed == 0


def test_an_estimator_has_the_parameters_it_declares_and_those_of_its_bases():
    @with_parameters
    class Other(KernelSVC):
        """Estimator without a use.

        Parameters
        ----------
        C : float
            Another penalty.
        depth : int
            How deep.
        """

        C: float = 2.0
        depth: int = 3

    model = clone(Other(5.0, depth=4))
    assert (model.C, model.depth, model.kernel, Other().C) == (5.0, 4, "rbf", 2.0)
    assert "Another penalty." in Other.__doc__
    assert "C : float, default=2.0\n" in Other.__doc__
    assert set(model.get_params()) == {*Other._parameter_constraints, "depth"}
    with raises(TypeError, "'width'"):
        Other(width=1)
    with pytest.raises(TypeError, match="positional"):
        Other(1.0, "rbf")
