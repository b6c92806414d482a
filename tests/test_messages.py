"""The helper that checks messages finds what is there as a word of its own, and says what is not."""

import warnings

import pytest

from tests.messages import assert_each_says, assert_says, assert_sentence, has_sentence, raises, says, warns


@pytest.mark.parametrize(
    ("text", "fact", "there"),
    [
        ("protocol.outer=1: expected 2", "2", True),
        ("protocol.outer=12", "1", False),
        ("found 0.5", "0", False),
        ("found 0.5", "5", False),
        ("found -1.", "-1", True),
        ("found -15", "-1", False),
        ("the key protocol.outre", "protocol.out", False),
        ("run\n  again", "run again", True),
        ("found [1, 'a b'].", "[1, 'a b']", True),
    ],
)
def test_a_fact_is_a_whole_word_or_number(text, fact, there):
    assert says(text, fact) == there


def test_a_reworded_message_passes_and_one_that_lost_a_fact_fails():
    facts = "protocol.outer", "1", "2"
    assert_says("protocol.outer=1: expected a whole number of at least 2", *facts)
    assert_says("Set 2 or more as protocol.outer. It is 1.", *facts)
    with pytest.raises(AssertionError, match=r"\['1'\]"):
        assert_says("protocol.outer: expected at least 2", *facts)


def test_each_message_has_its_own_facts():
    with pytest.raises(AssertionError):
        assert_each_says(["a 1", "b 2"], ("a", "2"), ("b", "1"))
    with pytest.raises(AssertionError):
        assert_each_says(["a 1", "b 2"], ("a", "1"))


def test_facts_of_one_sentence_stand_in_one_sentence():
    page = "Only 4 of 8 datasets differ, p = 0.125. Is that few?Another 5 are equal."
    assert_sentence(page, "8", "4", "0.125")
    assert_sentence(page, "5", "equal")
    assert not has_sentence(page, "4", "5")
    with pytest.raises(AssertionError):
        assert_sentence(page, "0.125", "few")


def test_errors_and_warnings_need_all_facts():
    with pytest.raises(AssertionError), raises(ValueError, "a", "b"):
        raise ValueError("a")
    with pytest.raises(AssertionError), warns(UserWarning, "a", "b"):
        warnings.warn("a", stacklevel=1)


@pytest.mark.parametrize("facts", [(), ("",), (" ",)])
def test_nothing_is_no_fact(facts):
    with pytest.raises(AssertionError):
        assert_says("text", *facts)
