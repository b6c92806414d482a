import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.search import Selection, make_search
from orchestrator.study.study import Candidate
from tests.messages import raises


def answer(search, score):
    """Drive a search to its end with a function of the candidate's parameters."""
    while not search.done:
        for candidate in search.ask():
            search.tell(candidate, score(**candidate.as_dict()))
    return search.selection


def test_grid_asks_for_every_point_once():
    search = make_search("grid", {"C": (4, 1), "gamma": (0.5, 0.25, 2)})
    asked = search.ask()
    assert [candidate.as_dict() for candidate in asked] == [
        {"C": C, "gamma": gamma} for C in (1, 4) for gamma in (0.25, 0.5, 2)
    ]
    assert search.ask() == []
    for candidate in asked:
        assert not search.done
        search.tell(candidate, 0.5)
    assert search.done
    assert search.ask() == []


def test_highest_score_wins_whatever_its_place():
    chosen = answer(make_search("grid", {"C": (1, 2, 3), "gamma": (1, 2)}), lambda C, gamma: C - gamma)
    assert chosen == Selection(Candidate.of({"C": 3, "gamma": 1}), 2.0, 1, 6, 0)


def test_ties_go_to_the_smaller_first_parameter_then_to_the_smaller_next():
    def plateau(C, gamma):
        return 0.9 if C + gamma >= 6 else 0.5

    values = (8, 1, 4, 2)
    by_C = answer(make_search("grid", {"C": values, "gamma": values}), plateau)
    assert by_C.best == Candidate.of({"C": 1, "gamma": 8})
    assert by_C.n_tied == 10
    # Precedence is the order of the space, not the alphabet.
    by_gamma = answer(make_search("grid", {"gamma": values, "C": values}), plateau)
    assert by_gamma.best == Candidate.of({"C": 8, "gamma": 1})


def test_round_off_is_a_tie_and_a_visible_difference_is_not():
    scores = {1: 0.3, 2: 0.1 + 0.2, 3: 0.3 - 1e-9}
    chosen = answer(make_search("grid", {"C": (1, 2, 3)}), lambda C: scores[C])
    assert (chosen.best, chosen.score, chosen.n_tied) == (Candidate.of({"C": 1}), 0.3, 2)


def test_failed_candidates_never_win():
    search = make_search("grid", {"C": (1, 2, 3)})
    chosen = answer(search, lambda C: math.nan if C < 3 else -5.0)
    assert chosen == Selection(Candidate.of({"C": 3}), -5.0, 1, 3, 2)


@pytest.mark.parametrize("kind", ["grid", "pattern"])
def test_nothing_is_chosen_when_all_fail(kind):
    values = tuple(range(8))
    chosen = answer(make_search(kind, {"C": values, "gamma": values}), lambda C, gamma: math.nan)
    assert chosen.best is None
    assert math.isnan(chosen.score)
    assert chosen.n_tied == 0
    assert chosen.n_failed == chosen.n_candidates > 0


def test_other_than_numbers_keep_the_order_they_were_given_in():
    space = {"kernel": ("rbf", "linear"), "max_depth": (None, 3), "shrinking": (True, False)}
    chosen = answer(make_search("grid", space), lambda **_: 1.0)
    assert chosen.best == Candidate.of({"kernel": "rbf", "max_depth": None, "shrinking": True})


@given(st.data())
@settings(max_examples=50, deadline=None)
def test_the_choice_does_not_depend_on_the_order_of_arrival(data):
    scores = st.sampled_from([0.0, 0.5, 0.5 + 1e-14, 1.0, math.nan])
    first, second = (make_search("grid", {"C": (1, 2, 3), "gamma": (1, 2)}) for _ in range(2))
    told = [(candidate, data.draw(scores)) for candidate in first.ask()]
    second.ask()
    for candidate, score in told:
        first.tell(candidate, score)
    for candidate, score in data.draw(st.permutations(told)):
        second.tell(candidate, score)
    assert repr(first.selection) == repr(second.selection)


def test_a_score_may_be_repeated_but_not_changed():
    search = make_search("grid", {"C": (1, 2)})
    first, second = search.ask()
    search.tell(first, 0.5)
    search.tell(first, 0.5)
    with pytest.raises(ValueError, match=r"C=1 .* 0\.5 and 0\.6"):
        search.tell(first, 0.6)
    search.tell(second, math.nan)
    search.tell(second, math.nan)
    assert search.selection.n_candidates == 2


def test_only_what_was_asked_for_can_be_told():
    search = make_search("grid", {"C": (1, 2)})
    with raises(ValueError, "C=1"):
        search.tell(Candidate.of({"C": 1}), 0.5)
    search.ask()
    with raises(ValueError, "C=3"):
        search.tell(Candidate.of({"C": 3}), 0.5)


def test_a_choice_before_the_end_is_refused():
    with pytest.raises(RuntimeError, match="not done"):
        _ = make_search("grid", {"C": (1, 2)}).selection


@pytest.mark.parametrize(
    ("kind", "space", "message"),
    [
        (
            "gird",
            {"C": (1,)},
            ("unknown", "'gird'", "grid", "did you mean", "'grid'"),
        ),
        (
            "grid",
            {str(axis): range(10) for axis in range(20)},
            ("1e+20", "100,000"),
        ),
        ("grid", {"C": ()}, ("'C'", "empty")),
        ("grid", {"C": 1}, ("'C'", "list", "[1]", "1")),
        ("grid", {"kernel": "rbf"}, ("'kernel'", "list", "['rbf']")),
        ("grid", {"C": (1, 2, 1.0)}, ("'C'", "1.0", "twice")),
        ("grid", {"C": (1, math.nan)}, ("'C'", "nan")),
        (
            "pattern",
            {"C": (1, 2), "kernel": ("rbf", "linear")},
            ("numbers", "axis", "kernel"),
        ),
    ],
)
def test_unusable_spaces_are_refused(kind, space, message):
    with raises(ValueError, *message):
        make_search(kind, space)
