"""Searches that propose candidates as mappings: custom searches of users, and `random`.

Such a search is called with `space`, `seed` and its options. It is one of two: a generator that yields rounds
of candidates and receives their scores, or an object with `ask()` and `tell(candidates, scores)`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from orchestrator.isolation.exits import exits_raised
from orchestrator.search.search import Plan
from orchestrator.search.space import Point, Space
from orchestrator.study.errors import StudyStopped
from orchestrator.study.study import SearchSpec
from orchestrator.study.targets import keyword_names, resolve
from orchestrator.study.text import error_line, one_line

MAX_IDLE_ROUNDS = 1000
"""Largest number of consecutive rounds without a new candidate."""

Round = Sequence[Mapping[str, Any]]


def custom_plan(search: SearchSpec, seed: int, budget: int) -> Plan:
    """Return the plan of a custom search; any failure of it stops the study, which can be resumed.

    Parameters
    ----------
    search : SearchSpec
        Search with the dotted path of the user's code, and its options.
    seed : int
        Seed of the search's random draws.
    budget : int
        Largest number of candidates.
    """

    def plan(space: Space, scores: Mapping[Point, float]) -> Iterator[list[Point]]:
        try:
            with exits_raised():
                factory = resolve(search.target)
                accepted = keyword_names(factory)
                # The budget also limits a search without such a parameter.
                withheld = {"seed"} if accepted is None or "budget" in accepted else {"seed", "budget"}
                options = {name: value for name, value in search.options.items() if name not in withheld}
                search_object = factory(space=dict(space.axes), seed=seed, **options)
            yield from candidate_plan(search_object, space, scores, budget)
        except (Exception, SystemExit) as error:
            text = one_line(error) if type(error) is ValueError else error_line(error)
            raise StudyStopped(
                f"search {search.target}: {text}; correct it and run the command again"
            ) from error

    return plan


def candidate_plan(
    search_object: Any, space: Space, scores: Mapping[Point, float], budget: int
) -> Iterator[list[Point]]:
    """Yield the rounds of a search as points, and report their scores to it.

    Parameters
    ----------
    search_object : object
        Generator, or object with `ask` and `tell`.
    space : Space
        Space of the candidates.
    scores : mapping of point to float
        Scores reported so far.
    budget : int
        Largest number of candidates.

    Yields
    ------
    list of point
        Points of one round, in the order of the search.

    Raises
    ------
    ValueError
        If a candidate is outside the space, or there are more candidates than the budget.
    """
    next_round, scores_of_round, idle = _rounds(search_object), None, 0
    while True:
        with exits_raised():
            if not (proposed := next_round(scores_of_round)):
                return
            points = list(map(space.point, [proposed] if isinstance(proposed, Mapping) else proposed))
        idle = 0 if set(points) - scores.keys() else idle + 1
        if idle > MAX_IDLE_ROUNDS:
            raise ValueError(f"expected new candidates, or an end, found {idle:,} rounds of known ones")
        if len(scores.keys() | set(points)) > budget:
            raise ValueError(f"expected at most {budget:,} candidates, as search.budget says; found more")
        yield points
        scores_of_round = [scores[point] for point in points]


def _rounds(search_object: Any) -> Callable[[Sequence[float] | None], Round | None]:
    """Return a function that takes the scores of the last round, None at first, and returns the next round.

    Parameters
    ----------
    search_object : object
        Generator, or object with `ask` and `tell`.
    """
    if hasattr(search_object, "send"):
        return lambda scores_of_round: _sent(search_object, scores_of_round)
    if not (hasattr(search_object, "ask") and hasattr(search_object, "tell")):
        raise ValueError(
            f"expected a generator, or an object with ask and tell; found a {type(search_object).__name__}"
        )
    last: list[Round] = []

    def next_round(scores_of_round: Sequence[float] | None) -> Round:
        if scores_of_round is not None:
            search_object.tell(last.pop(), scores_of_round)
        last.append(list(search_object.ask()))
        return last[0]

    return next_round


def _sent(generator: Any, scores_of_round: Sequence[float] | None) -> Round | None:
    """Send the scores to a generator and return its next round; None at its end.

    Parameters
    ----------
    generator : generator
        Custom search.
    scores_of_round : sequence of float or None
        Scores of the last round; None at first.
    """
    try:
        found: Round = generator.send(scores_of_round)
    except StopIteration:
        return None
    return found


def recorded_plan(rounds: Sequence[Round], ended: bool) -> Plan:
    """Return a plan that replays the recorded rounds of a custom search, without its code.

    Parameters
    ----------
    rounds : sequence of sequence of mapping
        Recorded parameters.
    ended : bool
        Whether the search had ended.
    """

    def plan(space: Space, scores: Mapping[Point, float]) -> Iterator[list[Point] | None]:
        yield from (list(map(space.point, proposed)) for proposed in rounds)
        if not ended:
            yield None

    return plan
