"""Check messages by their facts (keys, values, expectations, commands), and never by their wording."""

import re
from contextlib import contextmanager

import pytest


def lacks(text, *facts):
    """Return the facts that a text does not have, each as whole words and numbers.

    Parameters
    ----------
    text : str
        A message, or whatever a command printed. The width of lines does not matter.
    *facts : str
        Names, values, terms and commands, in any order.
    """
    words = " ".join(text.split())
    return [fact for fact in facts if not re.search(_pattern(fact), words)]


def says(text, *facts):
    """Whether a text has every fact."""
    assert facts
    return not lacks(text, *facts)


def assert_says(text, *facts):
    """Fail unless a text has every fact."""
    assert facts
    assert not (missing := lacks(text, *facts)), f"{missing} not in: {text}"


def sentences(text):
    """Return the sentences of a text; a text without a full stop is one."""
    return re.split(r"(?<=[.?!])(?=\s|[A-Z])", text)


def has_sentence(text, *facts):
    """Whether a single sentence of a text has every fact."""
    return any(says(sentence, *facts) for sentence in sentences(text))


def assert_sentence(text, *facts):
    """Fail unless a single sentence of a text, such as a page, has every fact."""
    assert has_sentence(text, *facts), f"no sentence has {facts} in: {text}"


def assert_each_says(texts, *rows):
    """Fail unless there are as many texts as rows of facts, and each has those of its row."""
    assert len(texts) == len(rows), texts
    for text, facts in zip(texts, rows, strict=True):
        assert_says(text, *facts)


@contextmanager
def raises(error, *facts):
    """`pytest.raises`, for an error whose message has every fact."""
    with pytest.raises(error) as raised:
        yield raised
    assert_says(str(raised.value), *facts)


@contextmanager
def warns(category, *facts):
    """`pytest.warns`, where a warning of the category has every fact."""
    with pytest.warns(category) as warned:
        yield warned
    texts = [str(each.message) for each in warned if issubclass(each.category, category)]
    assert any(says(text, *facts) for text in texts), f"{facts} not in: {texts}"


def _pattern(fact):
    """Of a fact that neither begins nor ends within a word or a number."""
    assert fact.split(), "a fact is empty"
    start = r"(?<![\w])(?<!\d[.,])" if fact[0].isalnum() else ""
    end = r"(?!\w)(?![.,]\d)" if fact[-1].isalnum() else ""
    return start + r"\s".join(map(re.escape, fact.split())) + end
