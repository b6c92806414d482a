"""Prepare the features of a split: fit a preparation on its training rows, and apply it to all its rows.

`table` follows the rule of skrub's `tabular_pipeline`, with classifiers grouped by the names of their classes
and base classes. Trees get ordinal codes, with gaps kept if the classifier supports NaN and filled if it
does not. All others get scaled one-hot columns without gaps. The result is always a float64 array, so arms of
one kind can share it.
"""

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse
from numpy.typing import NDArray
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    OrdinalEncoder,
    StandardScaler,
)
from sklearn.utils import get_tags

from orchestrator.datasets.frames import number_columns
from orchestrator.isolation.exits import raise_if_interrupted
from orchestrator.isolation.process_state import ProcessState
from orchestrator.study.preparation import (
    CODES,
    FILLED_CODES,
    NONE,
    ONE_HOT,
    STANDARD,
    TABLE,
    Preparation,
)
from orchestrator.study.study import Arm, Candidate, Protocol, axis_values
from orchestrator.study.targets import instantiate, resolve, target_problems
from orchestrator.study.text import error_line, one_line
from orchestrator.training.estimators import make_estimator, seeded
from orchestrator.training.scalers import LargestScaler, RangeScaler
from orchestrator.training.source_hash import class_identity

_TREES = ("DecisionTree", "ExtraTree", "Forest", "GradientBoosting", "XGB", "LGBM", "CatBoost")
"""Parts of the names of classes whose estimators are trees, or combine trees."""

_TARGETS = {TABLE: "skrub.TableVectorizer", STANDARD: "sklearn.preprocessing.StandardScaler"}
"""Class whose package decides the result of a named preparation."""

MAX_SQUASHED = 5
"""Largest absolute value of a scaled feature, as in skrub's `tabular_pipeline`."""


class PreparationError(ValueError):
    """Error of a preparation that cannot be fitted or applied; its trials fail with this message."""


def with_kind(preparation: Preparation, arm: Arm) -> Preparation:
    """Return a preparation with its kind for an arm, and with the identity of its classes.

    Parameters
    ----------
    preparation : Preparation
        Any preparation but `AUTO`.
    arm : Arm
        Solver, whose class decides the kind of `table`.
    """
    targets = preparation.targets or (_TARGETS.get(preparation.name, ""),)
    identity = " + ".join(dict.fromkeys(class_identity(target) for target in targets if target))
    kind = _kind_of_table(arm) if preparation.name == TABLE else ""
    return Preparation(preparation.name, kind, identity)


def _kind_of_table(arm: Arm) -> str:
    """Return the kind of `table` that suits the classifier of an arm.

    Parameters
    ----------
    arm : Arm
        Solver. The last step of a pipeline decides. So does the classifier in a meta-estimator that has one.
    """
    first = Candidate.of({name: axis_values(values)[0] for name, values in arm.space.items()})
    estimator = make_estimator(arm, Protocol(), first, seed=0)
    if isinstance(estimator, Pipeline):
        estimator = estimator.steps[-1][1]
    names = [base.__name__ for base in type(estimator).__mro__]
    if not any(part in name for name in names for part in _TREES):
        return ONE_HOT
    try:
        return CODES if get_tags(estimator).input_tags.allow_nan else FILLED_CODES
    except AttributeError:  # not a scikit-learn class, or one of an older version
        return FILLED_CODES


def unusable_transformer(preparation: Preparation) -> str:
    """Return why a custom transformer cannot be used; empty if it can.

    Parameters
    ----------
    preparation : Preparation
        Preparation with a custom transformer.
    """
    if problem := next(target_problems(preparation.transformer), ""):
        return one_line(problem)
    try:
        made = instantiate(preparation.transformer)
    except (Exception, SystemExit) as error:  # a class of the user may raise any exception
        return error_line(error)
    lacking = [name for name in ("fit", "transform") if not hasattr(made, name)]
    if lacking:
        return f"it has no method {' and '.join(lacking)}; expected a transformer"
    return ""


def prepared_rows(
    preparation: Preparation, X_train: Any, y_train: NDArray[Any], X_test: Any, seed: int
) -> tuple[Any, Any]:
    """Fit a preparation on training rows, and return the prepared training and test rows.

    Parameters
    ----------
    preparation : Preparation
        Preparation that is not a scaling of ours.
    X_train : array, CSR matrix or DataFrame, shape (n_train, d)
        Rows of the fit.
    y_train : ndarray, shape (n_train,)
        Labels of these rows, for transformers that use them.
    X_test : array, CSR matrix or DataFrame, shape (n_test, d)
        Rows that are transformed, and on which nothing is fitted.
    seed : int
        Random state of the split.

    Returns
    -------
    X_train, X_test : float64 array, CSR matrix or DataFrame
        Prepared rows.

    Raises
    ------
    PreparationError
        If the preparation fails, or returns something else than rows.
    """

    def prepare() -> tuple[Any, Any]:
        with warnings.catch_warnings(action="ignore"):  # for example, of categories that training rows lack
            made = fitted_preparation(preparation, X_train, y_train.copy(), seed)
            return made[1], made[0].transform(X_test)

    kinds = [resolve(target) for target in preparation.targets or (_TARGETS[preparation.name],)]
    try:
        train, test = ProcessState(*kinds).run(seed, prepare)
        return _checked(train, X_train.shape[0]), _checked(test, X_test.shape[0])
    except PreparationError as error:
        raise PreparationError(f"preparation {preparation.words}: {error}") from error
    except BaseException as error:
        raise_if_interrupted()
        raise PreparationError(f"preparation {preparation.words} failed: {error_line(error)}") from error


def fitted_preparation(preparation: Preparation, X: Any, y: NDArray[Any], seed: int) -> tuple[Pipeline, Any]:
    """Fit a preparation on rows, and return it with the prepared rows.

    Parameters
    ----------
    preparation : Preparation
        Preparation with at least one step.
    X : array, CSR matrix or DataFrame, shape (n, d)
        Rows of the fit.
    y : ndarray, shape (n,)
        Their labels.
    seed : int
        Random state of every step that has none.

    Returns
    -------
    fitted : Pipeline
        The fitted preparation.
    prepared : array-like, shape (n, …)
        The prepared rows.
    """
    made = make_pipeline(*preparation_steps(preparation, X, seed))
    return made, made.fit_transform(X, y)


def preparation_steps(preparation: Preparation, X: Any, seed: int) -> list[Any]:
    """Return the unfitted transformers of a preparation, in order.

    Parameters
    ----------
    preparation : Preparation
        Any preparation but `AUTO`, with its kind.
    X : array, CSR matrix or DataFrame, shape (n, d)
        Features of the dataset, whose form decides the steps.
    seed : int
        Random state of every step that has none.
    """
    if preparation.name == NONE:
        return []
    if preparation.name == TABLE:
        steps = _table_steps(preparation.kind, X)
    elif preparation.transformer is not None:
        steps = [instantiate(preparation.transformer)]
    elif preparation.name == STANDARD:
        steps = _scaling_steps(StandardScaler(with_mean=not scipy.sparse.issparse(X)), X)
    else:
        steps = _scaling_steps(LargestScaler() if scipy.sparse.issparse(X) else RangeScaler(), X)
    return [seeded(step, seed, {}) if hasattr(step, "get_params") else step for step in steps]


def _table_steps(kind: str, X: Any) -> list[Any]:
    """Return the transformers of `table`.

    Parameters
    ----------
    kind : {CODES, FILLED_CODES, ONE_HOT}
        Kind that suits the classifier.
    X : array or DataFrame, shape (n, d)
        Features of the dataset.
    """
    import skrub  # takes a second

    if kind == ONE_HOT:
        vectorizer = skrub.TableVectorizer(datetime=skrub.DatetimeEncoder(periodic_encoding="spline"))
    else:
        codes = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
        vectorizer = skrub.TableVectorizer(low_cardinality=codes)
    steps = [] if isinstance(X, pd.DataFrame) else [FunctionTransformer(_named)]
    steps.append(vectorizer)
    if kind != CODES:
        steps.append(SimpleImputer(add_indicator=True))
    if kind == ONE_HOT:
        steps.append(skrub.SquashingScaler(max_absolute_value=MAX_SQUASHED))
    return [*steps, FunctionTransformer(np.ascontiguousarray, kw_args={"dtype": np.float64})]


def _named(X: Any) -> pd.DataFrame:
    """Return features as a frame with columns `x0`, `x1` and so on, whatever names they have.

    Parameters
    ----------
    X : array or DataFrame, shape (n, d)
        Features. A final estimator is fitted on a frame, although the dataset is an array.
    """
    names = [f"x{k}" for k in range(X.shape[1])]
    return X.set_axis(names, axis=1) if isinstance(X, pd.DataFrame) else pd.DataFrame(X, columns=names)


def _scaling_steps(scaler: Any, X: Any) -> list[Any]:
    """Return the transformers that scale numbers, and leave the other columns of a frame unchanged.

    Parameters
    ----------
    scaler : transformer
        Unfitted scaler.
    X : array, CSR matrix or DataFrame, shape (n, d)
        Features of the dataset. For a frame, a step that scales its numbers moves them to the front, and one
        that restores the order of columns follows.
    """
    if not isinstance(X, pd.DataFrame):
        return [scaler]
    scaled = _columns([("numbers", scaler, number_columns(X))], remainder="passthrough")
    return [scaled, _columns([("in_order", "passthrough", list(X.columns))])]


def _columns(transformers: list[tuple[str, Any, list[str]]], **options: Any) -> Any:
    """Return a column transformer that outputs a data frame and keeps column names.

    Parameters
    ----------
    transformers : list of (str, object, list of str)
        Name, transformer and columns of each step.
    **options : object
        Further arguments of `ColumnTransformer`.
    """
    made = ColumnTransformer(transformers, verbose_feature_names_out=False, **options)
    return made.set_output(transform="pandas")


def _checked(X: Any, n: int) -> Any:
    """Return prepared rows as a float64 array, a CSR matrix or a frame, or raise a PreparationError.

    Parameters
    ----------
    X : object
        Result of a transformer.
    n : int
        Expected number of rows.
    """
    if scipy.sparse.issparse(X):
        X = scipy.sparse.csr_matrix(X, dtype=np.float64)
        X.sort_indices()
    elif isinstance(X, pd.DataFrame):
        X = X.reset_index(drop=True)
    else:
        try:
            X = np.ascontiguousarray(X, dtype=np.float64)
        except (ValueError, TypeError) as error:
            raise PreparationError(
                f"expected numbers or a frame as its result, found {one_line(error)}"
            ) from error
    if X.ndim != 2 or X.shape[0] != n:
        raise PreparationError(f"expected {n} rows of features as its result, found shape {X.shape}")
    return X


def steps_of_columns(kind: str, fitted: Pipeline, columns: list[str]) -> Iterator[tuple[str, str]]:
    """Yield each column, and what a fitted `table` does to it.

    Parameters
    ----------
    kind : {CODES, FILLED_CODES, ONE_HOT}
        Kind of the preparation.
    fitted : Pipeline
        Result of `fitted_preparation`.
    columns : list of str
        Names of the columns, in the order of the dataset.

    Yields
    ------
    column : str
        Name of the column.
    steps : str
        For example "date, as 4 columns".
    """
    (vectorizer,) = (step for _, step in fitted.steps if hasattr(step, "all_processing_steps_"))
    for name, column in zip(vectorizer.feature_names_in_, columns, strict=True):
        n_outputs = len(vectorizer.input_to_outputs_.get(name, ()))
        if not n_outputs:
            yield column, "left out, because it has no values"
            continue
        kind_of_column = vectorizer.column_to_kind_[name]
        words = _in_words(kind_of_column, n_outputs, kind)
        cleaned = {type(step).__name__ for step in vectorizer.all_processing_steps_[name]}
        if kind_of_column == "numeric" and "CleanNullStrings" in cleaned:
            words = f"text read as numbers, {words}"
        yield column, words + {CODES: "", FILLED_CODES: "; gaps filled"}.get(kind, "; gaps filled; scaled")


def _in_words(kind_of_column: str, n: int, kind: str) -> str:
    """Return what `table` does to a column before gaps are filled.

    Parameters
    ----------
    kind_of_column : str
        Kind of the column, in skrub's words.
    n : int
        Number of columns that it becomes.
    kind : {CODES, FILLED_CODES, ONE_HOT}
        Kind of the preparation.
    """
    into = f"{n} column{'' if n == 1 else 's'}"
    return {
        "numeric": "kept as a number",
        "datetime": f"date, as {into}",
        "low_cardinality": f"categories, as {into} of 0 and 1" if kind == ONE_HOT else "categories, as codes",
        "high_cardinality": f"text of many values, as {into} (StringEncoder)",
    }.get(kind_of_column, into)
