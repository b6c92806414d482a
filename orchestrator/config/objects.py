"""Conversion of Python objects to the configuration nodes that a YAML file would hold for them.

`SVC(C=10)` becomes `{_target_: sklearn.svm.SVC, C: 10}`: the public path of its class, and the parameters
that differ from their defaults. So a study of objects has the same trial keys as one of YAML files.
"""

import functools
import inspect
import math
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from orchestrator.study.targets import ARGS, PARTIAL, TARGET, ResolveError, instantiate, resolve
from orchestrator.study.text import error_line, represented
from orchestrator.study.values import canonical_json

PathOf = Callable[[Any], str]
"""Function that returns the dotted path of a class or function that no module holds, such as one that a
notebook defines."""

Node = dict[str, Any]

_SHARES = (0.125, 0.25, 0.5, 0.75, 0.875)
"""Shares at which the quantiles of a distribution are compared with those of a range."""


class UnwritableError(ValueError):
    """Error of an object that a configuration cannot express; the message says why and what to do."""


class NodeWriter:
    """Writes Python objects as configuration nodes.

    Parameters
    ----------
    path_of_local : callable
        Returns the dotted path of a class or function that is defined in a notebook or script.
    """

    def __init__(self, path_of_local: PathOf):
        self._path_of_local = path_of_local

    def solver(self, given: Any) -> Node:
        """Return the node of a solver.

        Parameters
        ----------
        given : estimator, class or tuple
            Estimator object, estimator class, or a tuple of one of them and its search space.

        Raises
        ------
        UnwritableError
            If an object cannot be written.
        """
        estimator, space = given if isinstance(given, tuple) and len(given) == 2 else (given, {})
        if not isinstance(space, Mapping):
            raise UnwritableError(
                f"expected the search space as a mapping such as {{'C': [1, 10]}}, found {represented(space)}"
            )
        if isinstance(estimator, (str, bytes)) or not (
            isinstance(estimator, type) or callable(getattr(estimator, "get_params", None))
        ):
            raise UnwritableError(
                "expected an estimator, its class, or a tuple of it and a search space, found "
                f"{represented(given)}"
            )
        node = {TARGET: self.path(estimator)} if isinstance(estimator, type) else self.estimator(estimator)
        axes = {str(name): self.axis(str(name), values) for name, values in space.items()}
        return {name: value for name, value in node.items() if name not in axes} | {"space": axes}

    def estimator(self, estimator: Any) -> Node:
        """Return the node of an estimator object; its fitted attributes are left out, as by `clone`.

        Parameters
        ----------
        estimator : estimator
            Object with `get_params`.

        Raises
        ------
        UnwritableError
            If the node would not give an equal estimator.
        """
        try:
            given = estimator.get_params(deep=False)
        except Exception as error:  # a class of the user may raise any exception
            raise UnwritableError(
                f"the parameters of {type(estimator).__name__} cannot be read: {error_line(error)}"
            ) from error
        node = self._object(estimator, given)
        try:
            made = instantiate(node)
        except Exception as error:  # a class of the user may raise any exception
            raise UnwritableError(
                f"{type(estimator).__name__} cannot be made again from its parameters: {error_line(error)}"
            ) from error
        if canonical_json(self._object(made, made.get_params(deep=False))) != canonical_json(node):
            raise UnwritableError(
                f"{type(estimator).__name__} changes its parameters in `__init__`; store them unchanged there"
            )
        return node

    def axis(self, name: str, values: Any) -> Any:
        """Return the node of a hyper-parameter of a search space: a list of values, or a range.

        Parameters
        ----------
        name : str
            Name of the hyper-parameter.
        values : iterable, mapping or distribution
            Values, a range such as `{"low": 1, "high": 100}`, or a frozen distribution of SciPy.

        Raises
        ------
        UnwritableError
            If they cannot be written.
        """
        if callable(getattr(values, "rvs", None)):
            return range_of(name, values)
        if isinstance(values, Mapping):
            return {str(key): self.value(value) for key, value in values.items()}
        if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
            raise UnwritableError(
                f"{name}: expected a list of values or a distribution, found {represented(values)}; "
                f"write [{represented(values)}]"
            )
        return [self.value(value) for value in values]

    def value(self, value: Any) -> Any:
        """Return the node of any value of a parameter.

        Parameters
        ----------
        value : object
            Value of a parameter.

        Raises
        ------
        UnwritableError
            If a file cannot hold it.
        """
        if isinstance(value, np.generic):
            value = value.item()
        if value is None or type(value) in (bool, int, float, str):
            return value
        if isinstance(value, (list, dict)):
            return self._container(value)
        if isinstance(value, tuple):
            return {TARGET: "builtins.tuple", ARGS: [[self.value(item) for item in value]]}
        if isinstance(value, np.ndarray):
            return {TARGET: "numpy.array", ARGS: [value.tolist()], "dtype": str(value.dtype)}
        if isinstance(value, functools.partial):
            arguments = {name: self.value(item) for name, item in value.keywords.items()}
            return {TARGET: self.path(value.func), PARTIAL: True, ARGS: list(map(self.value, value.args))} | (
                arguments
            )
        if isinstance(value, (np.random.RandomState, np.random.Generator)):
            raise UnwritableError(
                "a random generator has a state that no file can hold; give an integer, or None for the seed "
                "of the split"
            )
        if isinstance(value, type) or (callable(value) and isinstance(getattr(value, "__name__", None), str)):
            return {TARGET: self.path(value), PARTIAL: True}
        if callable(getattr(value, "get_params", None)):
            return self._object(value, value.get_params(deep=False))
        if callable(getattr(value, "rvs", None)) and hasattr(value, "dist"):
            return _distribution(value)
        return self._object(value, _attributes(value))

    def path(self, thing: Any) -> str:
        """Return the dotted path by which a class or function is imported.

        Parameters
        ----------
        thing : class or function
            Object with a name.

        Raises
        ------
        UnwritableError
            If it has no name in a module.
        """
        name = getattr(thing, "__qualname__", getattr(thing, "__name__", ""))
        module = getattr(thing, "__module__", None) or ("numpy" if isinstance(thing, np.ufunc) else "")
        if "<lambda>" in name:
            raise UnwritableError(
                "a lambda has no name by which another process can import it; define it with `def`"
            )
        if "<locals>" in name:
            raise UnwritableError(
                f"{name.rpartition('.')[2]} is defined inside a function, where another process cannot "
                "import it; define it at the top level of the notebook, script or module"
            )
        if is_local(thing):
            return self._path_of_local(thing)
        found = public_path(thing, module, name)
        if not found:
            raise UnwritableError(f"{module}.{name} cannot be imported by its name; define it in a module")
        return found

    def _object(self, thing: Any, params: Mapping[str, Any]) -> Node:
        """Return the node of an object that its class makes from parameters.

        Parameters
        ----------
        thing : object
            Instance of the class.
        params : mapping of str to object
            Its parameters.
        """
        _require_no_state(thing)
        kind, node = type(thing), {TARGET: self.path(type(thing))}
        defaults = _defaults(kind, params)
        for name, value in params.items():
            if name in defaults and _is_same(value, defaults[name]):
                continue
            try:
                node[name] = self._parameter(kind, name, value)
            except UnwritableError as error:
                raise UnwritableError(f"{kind.__name__}.{name}: {error}") from None
        return node

    def _parameter(self, kind: type, name: str, value: Any) -> Any:
        """Return the node of a parameter; a tuple becomes a list where the class accepts one.

        Parameters
        ----------
        kind : type
            Class of the parameter.
        name : str
            Name of the parameter.
        value : object
            Value of the parameter.
        """
        accepted = getattr(kind, "_parameter_constraints", {}).get(name, ())
        if (
            isinstance(value, tuple)
            and isinstance(accepted, list)
            and {"array-like", list} & _hashable(accepted)
        ):
            value = list(value)
        return self.value(value)

    def _container(self, value: list[Any] | dict[Any, Any]) -> Any:
        """Return the node of a list or mapping. Steps of a pipeline, `(name, estimator)`, become lists.

        Parameters
        ----------
        value : list or dict
            Container.
        """
        if isinstance(value, dict):
            if TARGET in value:
                raise UnwritableError(f"a mapping has the reserved key {TARGET!r}; rename the key")
            return {self.value(key): self.value(item) for key, item in value.items()}
        steps = value and all(
            isinstance(item, tuple) and len(item) > 1 and isinstance(item[0], str) for item in value
        )
        return [[self.value(part) for part in item] if steps else self.value(item) for item in value]


def is_local(thing: Any) -> bool:
    """Return whether a class or function is defined in a notebook, a script or at a prompt.

    Parameters
    ----------
    thing : class or function
        Object with the attribute `__module__`.
    """
    return getattr(thing, "__module__", None) in ("__main__", "__mp_main__")


def public_path(thing: Any, module: str, name: str) -> str:
    """Return the shortest dotted path that names an object, such as `sklearn.svm.SVC`; empty without one.

    Parameters
    ----------
    thing : object
        Class or function.
    module : str
        Module that defines it.
    name : str
        Its name in the module.
    """
    parts = module.split(".")
    for depth in range(1, len(parts) + 1):
        path = ".".join([*parts[:depth], name])
        if parts[depth - 1].startswith("_") and depth > 1 and depth < len(parts):
            continue
        if ".".join(parts[:depth]) in sys.modules:
            try:
                if resolve(path) is thing:
                    return path
            except ResolveError:
                continue
    return ""


def range_of(name: str, distribution: Any) -> Node:
    """Return the range of a frozen distribution of SciPy that is uniform, also in its logarithm.

    Parameters
    ----------
    name : str
        Name of the hyper-parameter, for the message.
    distribution : scipy.stats.rv_frozen
        Distribution.

    Raises
    ------
    UnwritableError
        If it is neither uniform nor log-uniform between two numbers.
    """
    low, high = map(float, distribution.support())
    if math.isfinite(low) and math.isfinite(high) and low < high:
        if callable(getattr(distribution, "pmf", None)) and hasattr(distribution.dist, "_pmf"):
            ends = distribution.pmf([low, (low + high) // 2, high])
            if np.allclose(ends, 1 / (high - low + 1)):
                return {"low": int(low), "high": int(high), "integer": True}
        else:
            found = np.array([distribution.ppf(share) for share in _SHARES])
            if np.allclose(found, [low + share * (high - low) for share in _SHARES]):
                return {"low": low, "high": high}
            if low > 0 and np.allclose(found, [low * (high / low) ** share for share in _SHARES]):
                return {"low": low, "high": high, "log": True}
    raise UnwritableError(
        f"{name}: expected scipy.stats.uniform, loguniform or randint, found the distribution "
        f"{distribution.dist.name}; list values, such as its quantiles: "
        f"distribution.ppf([0.1, 0.3, 0.5, 0.7, 0.9])"
    )


def _distribution(value: Any) -> Node:
    """Return the node of a frozen distribution as a parameter, for example of a nested search.

    Parameters
    ----------
    value : scipy.stats.rv_frozen
        Distribution.
    """
    arguments = [np.asarray(each).item() for each in value.args]
    named = {name: np.asarray(each).item() for name, each in value.kwds.items()}
    return {TARGET: f"scipy.stats.{value.dist.name}", ARGS: arguments, **named}


def _require_no_state(thing: Any) -> None:
    """Raise if an object holds more than its parameters.

    Parameters
    ----------
    thing : object
        Object to write.

    Raises
    ------
    UnwritableError
        If copies of it keep a fitted state or settings that are no parameters.
    """
    name, state = type(thing).__name__, getattr(thing, "__dict__", {})
    clone = getattr(type(thing), "__sklearn_clone__", None)
    if clone is not None and clone is not BaseEstimator.__sklearn_clone__:
        raise UnwritableError(
            f"{name} keeps a fitted estimator, which no file can hold; give an estimator that is trained "
            "with the rows of each split"
        )
    if state.get("_sklearn_output_config"):
        raise UnwritableError(
            f"{name} has settings of set_output, which are no parameters; set them in a class of your own"
        )
    if state.get("_metadata_request"):
        raise UnwritableError(f"{name} requests metadata, which svmbench does not pass; remove the request")


def _attributes(thing: Any) -> dict[str, Any]:
    """Return the parameters of an object without `get_params`, such as a splitter, from its attributes.

    Parameters
    ----------
    thing : object
        Object to write.

    Raises
    ------
    UnwritableError
        If its attributes do not hold all parameters of its class.
    """
    try:
        names = [name for name in inspect.signature(type(thing)).parameters if name not in ("args", "kwargs")]
        return {name: getattr(thing, name) for name in names}
    except (ValueError, TypeError, AttributeError):
        raise UnwritableError(
            "expected a value that a file can hold, or an object with `get_params`, found "
            f"{represented(thing)} ({type(thing).__name__})"
        ) from None


def _defaults(kind: type, names: Iterable[str]) -> dict[str, Any]:
    """Return the default values of the parameters of a class, as far as they are known.

    Parameters
    ----------
    kind : type
        Class.
    names : iterable of str
        Names of parameters.
    """
    try:
        signature = inspect.signature(kind).parameters
    except (ValueError, TypeError):
        return {}
    known = {
        name: each.default for name, each in signature.items() if each.default is not inspect.Parameter.empty
    }
    if set(names) <= signature.keys():
        return known
    try:  # a class that passes further parameters on to its base class
        return {**kind().get_params(deep=False), **known}
    except Exception:  # a class with required parameters
        return known


def _is_same(value: Any, default: Any) -> bool:
    """Return whether a value is equal to a default of the same type. NaN equals NaN.

    Parameters
    ----------
    value, default : object
        Values to compare.
    """
    if value is default:
        return True
    if type(value) is not type(default) or isinstance(value, np.ndarray):
        return False
    try:
        return bool(value == default) or (
            isinstance(value, float) and math.isnan(value) and math.isnan(default)
        )
    except Exception:  # an object of the user that cannot be compared
        return False


def _hashable(values: Iterable[Any]) -> set[Any]:
    """Return the values that can be in a set.

    Parameters
    ----------
    values : iterable of object
        Constraints of a parameter, as scikit-learn declares them.
    """
    return {value for value in values if isinstance(value, (str, type))}
