import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, average_precision_score, f1_score, log_loss, roc_auc_score

from orchestrator.training.responses import (
    ResponseError,
    Responses,
    checked_labels,
    checked_path_labels,
    checked_score,
    checked_values,
    require_classes,
)
from tests.messages import assert_says, raises

CLASSES = np.array([-1, 0, 3])
LABELS = np.array([0, 3, -1, 0])
WORDS = np.array(["no", "perhaps", "yes"])


@pytest.mark.parametrize(
    "form",
    [
        np.asarray,
        list,
        tuple,
        pd.Series,
        lambda labels: pd.Series(labels, index=[9, 1, 1, 0]),
        lambda labels: pd.Series(labels).astype("category"),
        lambda labels: pd.array(labels, dtype="Int64"),
        lambda labels: labels.astype(float),
        lambda labels: labels.astype(np.float16),
        lambda labels: labels.astype(np.int8),
        lambda labels: labels.astype(object),
        lambda labels: np.ma.array(labels),
        lambda labels: np.asfortranarray(labels),
    ],
)
def test_labels_are_taken_in_any_form_that_is_clear(form):
    found = checked_labels(form(LABELS), CLASSES, 4)
    assert type(found) is np.ndarray
    assert found.dtype == CLASSES.dtype
    np.testing.assert_array_equal(found, LABELS)


@pytest.mark.parametrize(
    "form",
    [np.asarray, list, pd.Series, lambda x: x.astype(object), lambda x: x.astype(np.dtypes.StringDType())],
)
def test_words_are_taken_in_any_form_that_is_clear(form):
    words = WORDS[[2, 0, 1]]
    np.testing.assert_array_equal(checked_labels(form(words), WORDS, 3), words)


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (
            LABELS[:, None],
            ("one label", "predict", "4 rows", "(4, 1)"),
        ),
        (LABELS[None], ("one label", "predict", "4 rows", "(1, 4)")),
        (LABELS[:1], ("one label", "predict", "4 rows", "(1,)")),
        (np.int64(0), ("one label", "predict", "4 rows", "()")),
        ([], ("one label", "predict", "4 rows", "(0,)")),
        (0, ("array", "predict", "0")),
        (None, ("array", "predict", "None")),
        ("abcd", ("array", "'abcd'")),
        (iter(LABELS), ("array", "object")),
        ({0: 1}, ("array", "predict", "dict")),
        (
            scipy.sparse.csr_matrix(LABELS),
            ("array", "csr_matrix"),
        ),
        (
            np.ma.array(LABELS, mask=[1, 0, 0, 0]),
            ("answer", "masked"),
        ),
        (LABELS + 0.5, ("labels", "classes (-1, 0, 3)", "0.5")),
        (LABELS + 1, ("labels", "classes (-1, 0, 3)", "1")),
        (np.full(4, np.nan), ("labels", "classes (-1, 0, 3)", "nan")),
        (np.full(4, np.inf), ("labels", "classes (-1, 0, 3)")),
        (LABELS + 0j, ("labels", "classes (-1, 0, 3)", "0j")),
        (LABELS.astype(str), ("labels", "classes (-1, 0, 3)", "'0'")),
        (LABELS.astype("S2"), ("labels", "classes (-1, 0, 3)", "b'0'")),
        ([None] * 4, ("labels", "classes (-1, 0, 3)", "None")),
        (LABELS.astype("M8[s]"), ("labels", "classes (-1, 0, 3)")),
    ],
)
def test_what_cannot_be_labels_is_named(answer, sentence):
    with pytest.raises(ResponseError) as refusal:
        checked_labels(answer, CLASSES, 4)
    assert_says(str(refusal.value), *sentence)


@pytest.mark.parametrize("answer", [[0, 1, 2], ["no", "maybe", "yes"], [b"no"] * 3, [None, "no", "no"]])
def test_what_cannot_be_words_is_named(answer):
    with raises(ResponseError, "('no', 'perhaps', 'yes')"):
        checked_labels(answer, WORDS, 3)


@given(
    st.lists(st.integers(-5, 5) | st.sampled_from([-(2**53), 2**60]), min_size=2, unique=True),
    st.data(),
)
def test_the_share_of_checked_labels_is_the_accuracy_score(classes, data):
    classes = np.array(sorted(classes))
    n = data.draw(st.integers(1, 30))
    y, predicted = (
        classes[data.draw(st.lists(st.integers(0, len(classes) - 1), min_size=n, max_size=n))]
        for _ in range(2)
    )
    labels = checked_labels(predicted, classes, n)
    assert np.count_nonzero(labels == y) / n == accuracy_score(y, predicted)


@pytest.mark.parametrize(
    ("method", "values", "n_classes", "sentence"),
    [
        ("decision_function", np.zeros((4, 1)), 2, ("array", "shape (4,)", "decision_function")),
        ("decision_function", np.zeros(1), 2, ("array", "shape (4,)", "decision_function")),
        (
            "decision_function",
            np.zeros(4),
            3,
            ("array", "shape (4, 3)"),
        ),
        ("decision_function", np.zeros((4, 2)), 3, ("array", "shape (4, 3)")),
        ("decision_function", np.full(4, np.nan), 2, ("numbers", "decision_function", "NaN")),
        ("decision_function", np.zeros(4, complex), 2, ("real numbers", "decision_function")),
        ("decision_function", ["a"] * 4, 2, ("real numbers", "decision_function", "type")),
        ("predict_proba", np.full(4, 0.5), 2, ("array", "shape (4, 2)", "predict_proba")),
        ("predict_proba", np.full((4, 2), 0.6), 2, ("probabilities", "predict_proba")),
        ("predict_proba", np.tile([1.5, -0.5], (4, 1)), 2, ("probabilities", "predict_proba")),
        ("predict_proba", np.full((4, 3), 1 / 3), 2, ("array", "shape (4, 2)", "predict_proba")),
    ],
)
def test_what_cannot_be_decisions_or_probabilities_is_named(method, values, n_classes, sentence):
    with pytest.raises(ResponseError) as refusal:
        checked_values(method, values, 4, n_classes)
    assert_says(str(refusal.value), *sentence)


@pytest.mark.parametrize(
    ("method", "values", "n_classes"),
    [
        ("decision_function", [1, -1, 2, np.inf], 2),
        ("decision_function", np.zeros((4, 6)), 4),
        ("decision_function", np.zeros((4, 4)), 4),
        ("predict_proba", np.full((4, 3), np.float32(1 / 3)), 3),
        ("predict_proba", pd.DataFrame(np.full((4, 2), 0.5)), 2),
    ],
)
def test_decisions_and_probabilities_are_taken_as_scikit_learn_gives_them(method, values, n_classes):
    np.testing.assert_array_equal(checked_values(method, values, 4, n_classes), np.asarray(values))


@pytest.mark.parametrize("score", [np.nan, np.inf, 1j, None, "0.5", True, np.True_, np.zeros(2)])
def test_a_score_that_is_no_finite_number_is_no_score(score):
    with raises(ResponseError, "finite number", "f1"):
        checked_score("f1", score)


@pytest.mark.parametrize("score", [0.5, 1, np.float32(0.5), np.int64(1)])
def test_a_score_is_a_number(score):
    assert checked_score("f1", score) == score


@pytest.mark.parametrize("classes", [[3, 0, -1], [0, 3], [-1, 0, 3, 4], None, ["-1", "0", "3"]])
def test_columns_need_the_classes_in_order(classes):
    class Fitted:
        classes_ = classes

    with pytest.raises(ResponseError):
        require_classes(Fitted, CLASSES)


class Fitted:
    """Knows the answers, and how often it was asked."""

    def predict_proba(self):
        """Return probabilities."""
        return np.array([[0.8, 0.2], [0.4, 0.6], [0.3, 0.7], [0.9, 0.1]])


@pytest.fixture
def responses():
    asked = []

    def ask(method):
        asked.append(method)
        return getattr(Fitted(), method)()

    return Responses(Fitted(), ask, np.array([0, 1, 1, 0]), np.array([0, 1])), asked


def test_scores_are_scikit_learn_s_and_each_answer_is_asked_for_once(responses):
    responses, asked = responses
    y = np.array([0, 1, 0, 0])
    metrics = ["accuracy", "f1", "neg_log_loss", "roc_auc", "average_precision"]
    scores = responses.scores(metrics, y)
    assert asked == ["predict_proba"]

    shares = Fitted().predict_proba()
    expected = {
        "accuracy": 0.75,
        "f1": f1_score(y, [0, 1, 1, 0]),
        "neg_log_loss": -log_loss(y, shares),
        "roc_auc": roc_auc_score(y, shares[:, 1]),
        "average_precision": average_precision_score(y, shares[:, 1]),
    }
    assert scores == pytest.approx(expected)


def test_a_method_that_an_estimator_lacks_is_lacking(responses):
    responses, _ = responses
    assert hasattr(responses, "predict_proba")
    assert not hasattr(responses, "decision_function")


@pytest.mark.parametrize("form", [np.asarray, list, np.ma.array, lambda labels: labels.astype(object)])
@pytest.mark.parametrize("classes", [CLASSES, WORDS])
def test_labels_of_a_path_are_those_of_its_trainings(classes, form):
    predicted = classes[np.array([[0, 1, 2, 1], [2, 2, 0, 1]])]
    labels, errors = checked_path_labels(form(predicted), classes, 4)
    assert errors == {}
    assert labels.dtype == classes.dtype
    assert labels.tolist() == [checked_labels(row, classes, 4).tolist() for row in predicted]


@pytest.mark.parametrize("form", [list, lambda rows: np.array(rows, dtype=object)])
def test_odd_labels_are_an_error_of_their_training_alone(form):
    labels, errors = checked_path_labels(form([WORDS[[2, 1]], ["yes", "never"], WORDS[[0, 1]]]), WORDS, 2)
    assert labels[[0, 2]].tolist() == [["yes", "perhaps"], ["no", "perhaps"]]
    assert {k: str(error) for k, error in errors.items()} == {
        1: "expected labels of the training classes ('no', 'perhaps', 'yes') from predict, found 'never'"
    }
