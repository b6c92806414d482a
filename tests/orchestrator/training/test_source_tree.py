"""The hash of a source is that of its code: any change of the code changes it, and nothing else does."""

import ast
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.training import source_tree
from orchestrator.training.source_tree import Import, read_init, read_module

pytestmark = pytest.mark.sample(2)

ROOT = Path(__file__).parents[3]

CODE = '''
"""A module."""
from __future__ import annotations
import dataclasses
from typing import TYPE_CHECKING, ClassVar
if TYPE_CHECKING:
    from numpy import ndarray

LIMIT: int = 3
"""Largest number."""

@dataclasses.dataclass(frozen=True)
class Point:
    """A point."""
    x: float
    y: float = 0.5
    names: ClassVar[list[str]] = ["a"]

class Solver(Base, metaclass=Meta):
    """A solver."""
    kind = "plain"

    @property
    def size(self) -> int:
        """Return the size."""
        return self.n + 1

def solve(X: ndarray, *rest: int, tol: float = 1e-3, **more: str) -> float:
    """Solve."""
    # A comment.
    total: float = 0.0
    for row in X:
        total += row @ row if tol > 0 else -row.sum()
    text = f"{total:.{LIMIT}f} of {X!r}"
    match total:
        case None: return lambda x: x
        case _: pass
    return total
'''

SAME = {
    "a comment": ("# A comment.", "# Another one, on\n    # two lines."),
    "a module's docstring": ('"""A module."""', '"""Another text."""'),
    "no module's docstring": ('"""A module."""', ""),
    "a constant's docstring": ('"""Largest number."""', ""),
    "a class's docstring": ('"""A point."""', '"""Return a point."""'),
    "a function's docstring": ('"""Solve."""', '"""Solve it.\n\n    X : array\n    """'),
    "the annotation of a parameter": ("X: ndarray", "X: list[ndarray] | None"),
    "no annotation of a parameter": ("X: ndarray, *rest: int", "X, *rest"),
    "the annotation of a result": ("-> float", "-> np.float64"),
    "no annotation of a result": ("-> int:", ":"),
    "the annotation of a constant": ("LIMIT: int = 3", "LIMIT = 3"),
    "the annotation of a variable": ("total: float = 0.0", "total: np.float64 = 0.0"),
    "an annotation without a value": ("    text =", "    text: str\n    text ="),
    "the annotation of a field": ("x: float", "x: np.float64"),
    "an import for an annotation": ("import TYPE_CHECKING, ClassVar", "import TYPE_CHECKING, Any, ClassVar"),
    "a module for annotations": (
        "import dataclasses\n",
        "import dataclasses\nfrom numpy.typing import NDArray\n",
    ),
    "no import of the future": ("from __future__ import annotations\n", ""),
    "no import for type checkers": ("if TYPE_CHECKING:\n    from numpy import ndarray\n", ""),
    "an import for type checkers": ("from numpy import ndarray", "from numpy import ndarray, float64"),
    "a blank line": ("kind =", "\n\n    kind ="),
    "parentheses": ("return self.n + 1", "return (self.n\n            + 1)"),
    "quotes": ('kind = "plain"', "kind = 'plain'"),
    "a text in two parts": ('"plain"', '"pl" "ain"'),
    "an old prefix": ('"plain"', 'u"plain"'),
    "digits": ("1e-3", "0.001"),
    "a trailing comma": ("**more: str)", "**more: str,)"),
}

CHANGED = {
    "a constant": ("LIMIT: int = 3", "LIMIT: int = 4"),
    "a constant's type": ("LIMIT: int = 3", "LIMIT: int = 3.0"),
    "a default": ("1e-3", "1e-4"),
    "a default of a field": ("y: float = 0.5", "y: float = 0.25"),
    "no default": ("tol: float = 1e-3", "tol: float"),
    "an operator": ("total += ", "total -= "),
    "a comparison": ("tol > 0", "tol >= 0"),
    "a sign": ("-row.sum()", "row.sum()"),
    "a decorator": ("@property", "@cached_property"),
    "an argument of a decorator": ("frozen=True", "frozen=False"),
    "no decorator": ("    @property\n", ""),
    "a base class": ("Solver(Base", "Solver(Other"),
    "a metaclass": ("metaclass=Meta", "metaclass=Other"),
    "a field's kind": ("names: ClassVar[list[str]]", "names: list[str]"),
    "a field that becomes an attribute": ("y: float = 0.5", "y = 0.5"),
    "a new field": ("x: float\n", "x: float\n    z: float\n"),
    "an order of fields": ("x: float\n    y: float = 0.5", "y: float = 0.5\n    x: float"),
    "a name": ("for row in X", "for each in X"),
    "a text": ('"plain"', '"plain "'),
    "a text's type": ('"plain"', 'b"plain"'),
    "a format": ("f}", "e}"),
    "a conversion": ("!r", "!s"),
    "an import": ("import dataclasses", "import dataclasses, os"),
    "an import that code uses": ("ClassVar\n", "ClassVar, Final\nLIST = Final\n"),
    "an import that a text names": ("ClassVar\n", "ClassVar, Final\n__all__ = ['Final']\n"),
    "another name of an import": ("import dataclasses", "import dataclasses as d"),
    "a keyword-only parameter": ("*rest: int, tol", "rest, *, tol"),
    "a pattern": ("case None", "case True"),
    "a statement": ("return total\n", "total += 1\n    return total\n"),
    "the end of a loop": ("    text =", "        text ="),
    "a condition for type checkers": ("if TYPE_CHECKING", "if not TYPE_CHECKING"),
    "a lambda": ("lambda x: x", "lambda x: -x"),
}


def code_of(text):
    return read_module(text.encode(), "pkg").code


def changed(before, after):
    assert CODE.count(before) >= 1, before
    text = CODE.replace(before, after, 1)
    ast.parse(text)
    return text


@pytest.mark.parametrize("edit", SAME)
def test_what_is_no_code_leaves_the_hash_alone(edit):
    assert code_of(changed(*SAME[edit])) == code_of(CODE)


@pytest.mark.parametrize("edit", CHANGED)
def test_what_is_code_changes_the_hash(edit):
    assert code_of(changed(*CHANGED[edit])) != code_of(CODE)


def test_all_changes_differ_from_each_other():
    codes = [code_of(changed(*edit)) for edit in CHANGED.values()]
    assert len({*codes, code_of(CODE)}) == len(CHANGED) + 1


@pytest.mark.parametrize(
    "text",
    [
        "@numba.experimental.jitclass\nclass A:\n    x: TYPE\n",
        "@f.register\ndef g(x: TYPE): return x\n",
        "@f.register()\ndef g(x) -> TYPE: return x\n",
    ],
)
def test_annotations_that_code_reads_are_code(text):
    assert code_of(text.replace("TYPE", "int32")) != code_of(text.replace("TYPE", "int64"))
    documented = text.replace(":\n", ':\n    """A docstring."""\n')
    assert code_of(documented) == code_of(text)


@pytest.mark.parametrize(
    "first", ["x = 0x1" + "0" * 5000, "x = -0.0", "x = 1e999", "x = '\\ud800'", "x = 1j"]
)
def test_every_literal_has_a_hash_of_its_own(first):
    others = ["x = 0x2" + "0" * 5000, "x = 0.0", "x = 1e99", "x = '\\ud801'", "x = 2j", "x = True", "x = 1"]
    assert code_of(first) not in {code_of(other) for other in others}


def test_the_former_hash_counts_imports_of_annotations():
    before, after = (text.encode() for text in (CODE, changed(*SAME["an import for an annotation"])))
    assert read_module(before, "p", former=True) != read_module(after, "p", former=True)
    assert read_module(before, "p").code == read_module(after, "p").code


def test_an_expression_of_any_length_has_a_hash():
    long = "x = " + " + ".join(["1"] * 900)
    assert code_of(long) != code_of(f"{long} + 1")


def test_code_that_cannot_be_parsed_is_its_text():
    assert code_of("def f(:") != code_of("def g(:")
    assert read_module(b"def f(:", "pkg").imports == []


def test_a_condition_in_an_init_is_code():
    first, second = (read_init(f"if sys.platform == '{name}':\n    X = 1\n".encode(), "p") for name in "ab")
    assert first.definitions != second.definitions
    plain = read_init(b"X = 1\n", "p")
    for_types = read_init(b"if TYPE_CHECKING:\n    from a import b\nX: int = 1\n", "p")
    assert for_types == plain


def test_imports_below_functions_and_by_name_are_found():
    text = "def f():\n    from .a import b\n    import c.d as e\n    g = import_module('.h', 'pkg')\n"
    found = {Import("pkg.a", ("b",)), Import("c.d", None), Import("pkg.h", None)}
    assert set(read_module(text.encode(), "pkg").imports) == found


HASHES = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location("source_tree", sys.argv[1])
module = sys.modules["source_tree"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
from pathlib import Path
for path in sorted(Path(sys.argv[2]).rglob("*.py")):
    print(path, module.read_module(path.read_bytes(), "p"), module.read_init(path.read_bytes(), "p"))
"""


def interpreter(version):
    """A Python of a version: on the path, or beside the one that runs; None if there is none."""
    beside = Path(sys.base_prefix).parent.glob(f"{version}*/bin/python{version}")
    for found in filter(None, [shutil.which(f"python{version}"), *map(str, beside)]):
        if subprocess.run([found, "-c", ""], capture_output=True).returncode == 0:
            return found
    return None


@pytest.mark.sample(3)
@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13", "3.14"])
@pytest.mark.parametrize("folder", ["solvers", "tests/orchestrator/training"])
def test_every_version_of_python_computes_the_same(version, folder):
    found = interpreter(version)
    if found is None:
        pytest.skip(f"Python {version} is not installed")
    arguments = ["-W", "ignore", "-c", HASHES, source_tree.__file__, ROOT / folder]
    commands = [[python, *arguments] for python in (found, sys.executable)]
    there, here = (subprocess.run(each, capture_output=True, text=True, check=True) for each in commands)
    assert there.stdout == here.stdout
    assert len(here.stdout.splitlines()) > 5
