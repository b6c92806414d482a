"""scikit-learn's own tests of `SVC`, read from the installed package and run with `SMOSVC` in its place."""

import ast
import importlib.util
from inspect import isclass
from pathlib import Path

import pytest
from sklearn.svm._base import BaseLibSVM

from solvers import SMOSVC

SOURCE = Path(importlib.util.find_spec("sklearn.svm").submodule_search_locations[0], "tests", "test_svm.py")
PRIVATE = "it changes a private attribute of LIBSVM's wrapper"
OWN_WORDS = "it asks for LIBSVM's words; ours say what happened and what to do"
EXCEPTIONS = {
    "test_tweak_params": PRIVATE,
    "test_svc_raises_error_internal_representation": PRIVATE,
    "test_svc_nonfinite_params": OWN_WORDS,
    "test_libsvm_convergence_warnings": OWN_WORDS,
    "test_unfitted": "it looks for the name SVC in a message, which names SMOSVC",
    "test_bad_input": "it wants sparse samples refused by a model of dense ones; ours predicts them",
    "test_probability_raises_futurewarning": "probability is deprecated in scikit-learn, and not in ours",
    "test_svc_nusvc_probA_probB_deprecated": "probA_ and probB_ are LIBSVM's, of a calibration of its own",
}


class Replace(ast.NodeTransformer):
    """Turns `svm.SVC` into `SMOSVC`, and drops a mark of scikit-learn's own."""

    def visit_FunctionDef(self, node):
        node.decorator_list = [d for d in node.decorator_list if not ast.unparse(d).endswith("thread_unsafe")]
        return self.generic_visit(node)

    def visit_Attribute(self, node):
        self.generic_visit(node)
        is_svc = isinstance(node.value, ast.Name) and (node.value.id, node.attr) == ("svm", "SVC")
        return ast.copy_location(ast.Name("SMOSVC", node.ctx), node) if is_svc else node


def is_of_libsvm(value):
    """Whether a test's parameter is one of LIBSVM's estimators: those stay scikit-learn's own."""
    values = value if isinstance(value, tuple | list) else (value,)
    return any(issubclass(v if isclass(v) else type(v), BaseLibSVM) for v in values)


def without_others(mark):
    """Leave out the parameters of a test that are about other estimators of LIBSVM's."""
    if mark.name != "parametrize":
        return mark
    names, values = mark.args
    return pytest.mark.parametrize(names, [v for v in values if not is_of_libsvm(v)]).mark


def collect_tests():
    """Return the test functions whose source names `svm.SVC`, with `SMOSVC` in its place."""
    tree = Replace().visit(ast.parse(SOURCE.read_text()))
    of_svc = [
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef)
        and node.name.startswith("test_")
        and any(isinstance(inner, ast.Name) and inner.id == "SMOSVC" for inner in ast.walk(node))
    ]
    names = {"__name__": "sklearn.svm.tests.test_svm", "SMOSVC": SMOSVC}
    exec(compile(tree, str(SOURCE), "exec"), names)
    found = {name: names[name] for name in of_svc}
    for test in found.values():
        if hasattr(test, "pytestmark"):
            test.pytestmark = [without_others(mark) for mark in test.pytestmark]
    return found


@pytest.fixture(params=[42, *(pytest.param(seed, marks=pytest.mark.full) for seed in range(5))])
def global_random_seed(request):
    return request.param


TESTS = collect_tests()
for name, reason in EXCEPTIONS.items():
    TESTS[name] = pytest.mark.xfail(reason=reason, strict=True)(TESTS[name])
globals().update(TESTS)


def test_nearly_all_of_them_are_run():
    assert len(TESTS) >= 35
    assert len(EXCEPTIONS) <= 8
