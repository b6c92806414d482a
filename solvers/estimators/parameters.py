"""Parameters of an estimator, declared once as annotated attributes of its class and of its bases."""

import inspect
import re
from dataclasses import field, make_dataclass
from numbers import Integral, Real
from typing import Annotated, TypeVar, dataclass_transform, get_args, get_origin

from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.utils._param_validation import Interval, StrOptions

MERGED = ("Parameters", "Attributes")
"""Sections of docstrings that also list the entries of the bases."""

Value = TypeVar("Value")
Class = TypeVar("Class")
Samples = ArrayLike | sparse.spmatrix | sparse.sparray
"""Samples as scikit-learn accepts them: rows of numbers, dense or sparse."""

# Types of parameters, with the constraints for scikit-learn's validation.
Switch = Annotated[bool, "boolean"]
Count = Annotated[int, Interval(Integral, 1, None, closed="left")]
Positive = Annotated[float, Interval(Real, 0, None, closed="neither")]
Multiclass = Annotated[str, StrOptions({"pairwise", "one_vs_rest", "all_at_once"})]
TuningDraws = Annotated[int | None, Interval(Integral, 1, None, closed="left"), None]
OverRelaxation = Annotated[float, Interval(Real, 1, 2, closed="left")]


def parameter(*, default: Value, kw_only: bool) -> Value:
    """Declare a parameter whose declaration needs more than a default value.

    Parameters
    ----------
    default : object
        Default value of the parameter.
    kw_only : bool
        Whether type checkers accept the parameter by keyword only.

    Returns
    -------
    object
        The default value.
    """
    return default


@dataclass_transform(kw_only_default=True, field_specifiers=(parameter,))
def declares_parameters(cls: type[Class]) -> type[Class]:
    """Tell type checkers that a base class declares parameters of its subclasses.

    Parameters
    ----------
    cls : type
        Base class with annotated attributes.

    Returns
    -------
    type
        The class itself, unchanged.
    """
    return cls


@dataclass_transform(kw_only_default=True, field_specifiers=(parameter,))
def with_parameters(cls):
    """Add to an estimator its `__init__`, and the descriptions of inherited parameters and attributes.

    The parameters are the annotated attributes of the class and its bases that have a value, their default.
    All but `C` are keyword-only. The metadata of an `Annotated` type are the constraints for scikit-learn's
    validation. The class does not become a dataclass. Libraries compare dataclasses by their fields: Dask
    would give two estimators with equal parameters the same name, although only one is fitted.

    Parameters
    ----------
    cls : type
        Subclass of `KernelSVC`.

    Returns
    -------
    type
        The class itself.
    """
    parameters, cls._parameter_constraints = {}, {}
    cls._checked_defaults = {}  # defaults of the parameters that have constraints
    for base in reversed(cls.__mro__):
        for name, kind in inspect.get_annotations(base).items():
            if name in vars(base) and not name.startswith("_"):
                if get_origin(kind) is Annotated:
                    kind, *cls._parameter_constraints[name] = get_args(kind)
                parameters[name] = (kind, vars(base)[name])
                if name in cls._parameter_constraints:
                    cls._checked_defaults[name] = vars(base)[name]
    fields = [
        (name, kind, field(default=default, kw_only=name != "C"))
        for name, (kind, default) in parameters.items()
    ]
    init = vars(make_dataclass(cls.__name__, fields, eq=False, repr=False))["__init__"]
    init.__module__, init.__qualname__ = cls.__module__, f"{cls.__qualname__}.__init__"
    cls.__init__ = init
    if cls.__doc__:
        cls.__doc__ = _whole_docstring(cls, {name: default for name, (_, default) in parameters.items()})
    return cls


def _whole_docstring(cls, defaults):
    """Return the docstring of a class with the entries of its bases and the actual defaults.

    Parameters
    ----------
    cls : type
        Class with a docstring of its own.
    defaults : dict
        Default value of every parameter, by name.

    Returns
    -------
    str
        Complete docstring.
    """
    entries: dict[str, dict[str, str]] = {title: {} for title in MERGED}
    for base in reversed(cls.__mro__):
        for title, body in _sections(vars(base).get("__doc__") or ""):
            if title in MERGED:
                entries[title] |= {block.partition(" : ")[0]: block for block in _blocks(body)}
    described = entries["Parameters"]
    entries["Parameters"] = {name: _with_default(described[name], defaults[name]) for name in defaults}
    (_, first), *others = _sections(cls.__doc__)
    sections = [(title, "".join(entries[title].values()) + "\n") for title in MERGED]
    sections += [(title, body) for title, body in others if title not in MERGED]
    return (
        first + "".join(f"{title}\n{'-' * len(title)}\n{body}" for title, body in sections)
    ).rstrip() + "\n"


def _sections(docstring):
    """Split a docstring at its headings.

    Parameters
    ----------
    docstring : str
        Docstring in numpydoc format.

    Yields
    ------
    title : str
        Title of the section; empty for the text before the first heading.
    body : str
        Text of the section.
    """
    pieces = re.split(r"^(\w+)\n-{3,}\n", inspect.cleandoc(docstring) + "\n", flags=re.MULTILINE)
    yield "", pieces[0]
    yield from zip(pieces[1::2], pieces[2::2], strict=True)


def _blocks(body):
    """Split a section into its entries: a line without indentation, and the indented text below it.

    Parameters
    ----------
    body : str
        Text of the section.

    Returns
    -------
    list of str
        Entries.
    """
    return [
        block.rstrip() + "\n" for block in re.split(r"^(?=\S)", body, flags=re.MULTILINE) if block.strip()
    ]


def _with_default(block, default):
    """Return the entry of a parameter with its default value.

    Parameters
    ----------
    block : str
        Entry of the parameter.
    default : object
        Value of the parameter in the signature.

    Returns
    -------
    str
        Entry whose first line ends with the default.
    """
    head, _, text = block.partition("\n")
    value = f'"{default}"' if isinstance(default, str) else repr(default)
    return f"{head.partition(', default=')[0]}, default={value}\n{text}"
