"""Parameters of an estimator, declared once: as annotated attributes of its class and of its bases."""

import inspect
import re
from dataclasses import field, make_dataclass
from numbers import Integral, Real
from typing import Annotated, dataclass_transform, get_args, get_origin

from sklearn.utils._param_validation import Interval, StrOptions

MERGED = ("Parameters", "Attributes")

# Kinds of parameters, with what scikit-learn's validation is to accept.
Switch = Annotated[bool, "boolean"]
Count = Annotated[int, Interval(Integral, 1, None, closed="left")]
Positive = Annotated[float, Interval(Real, 0, None, closed="neither")]
Multiclass = Annotated[str, StrOptions({"pairwise", "all_at_once"})]
OverRelaxation = Annotated[float, Interval(Real, 1, 2, closed="left")]


@dataclass_transform(kw_only_default=True)
def with_parameters(cls):
    """Give an estimator its `__init__`, and a docstring that describes all parameters and attributes.

    The parameters are the annotated attributes of the class and its bases that have a value, their default;
    all but `C` are keyword-only. What an `Annotated` type says beside the type is what scikit-learn's
    validation accepts. The class is no dataclass itself: libraries know those by their fields alone (Dask
    would give two estimators with the same parameters the same name), and would not see what was fitted.
    """
    parameters, cls._parameter_constraints = {}, {}
    cls._checked_defaults = {}  # of the parameters that have constraints
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
    """Put entries that only a base describes into the docstring of a class, and the defaults as they are."""
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
    """Split a docstring at its headings; yield pairs of title and text, the first without a title."""
    pieces = re.split(r"^(\w+)\n-{3,}\n", inspect.cleandoc(docstring) + "\n", flags=re.MULTILINE)
    yield "", pieces[0]
    yield from zip(pieces[1::2], pieces[2::2], strict=True)


def _blocks(body):
    """Split a section into its entries: a line that is not indented, and the text below it."""
    return [
        block.rstrip() + "\n" for block in re.split(r"^(?=\S)", body, flags=re.MULTILINE) if block.strip()
    ]


def _with_default(block, default):
    head, _, text = block.partition("\n")
    value = f'"{default}"' if isinstance(default, str) else repr(default)
    return f"{head.partition(', default=')[0]}, default={value}\n{text}"
