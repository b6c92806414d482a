"""Searches that propose candidates as mappings: a user's own, and `random`.

Such a search is called with `space`, `seed` and its options. It is a generator, which yields rounds of
candidates and is sent their scores, or an object with `ask()` and `tell(candidates, scores)`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from orchestrator.isolation.exits import exits_raised
from orchestrator.search.search import Plan
from orchestrator.search.space import Point, Space
from orchestrator.study.errors import StudyStopped
from orchestrator.study.names import resolve
from orchestrator.study.study import SearchSpec
from orchestrator.study.targets import keyword_names
from orchestrator.study.text import error_line, one_line

MOST_IDLE_ROUNDS = 1000
"""How many rounds in a row may propose nothing that has no score yet."""

Round = Sequence[Mapping[str, Any]]


def own_plan(search: SearchSpec, seed: int, most: int) -> Plan:
    """Return the plan of a user's search; whatever goes wrong in it stops the study, which can be resumed."""

    def plan(space: Space, scores: Mapping[Point, float]) -> Iterator[list[Point]]:
        try:
            with exits_raised():
                made_by = resolve(search.target)
                takes = keyword_names(made_by)
                # The budget binds a search that does not ask for it, too.
                kept = {"seed"} if takes is None or "budget" in takes else {"seed", "budget"}
                options = {name: value for name, value in search.options.items() if name not in kept}
                made = made_by(space=dict(space.axes), seed=seed, **options)
            yield from candidate_plan(made, space, scores, most)
        except (Exception, SystemExit) as error:
            text = one_line(error) if type(error) is ValueError else error_line(error)
            raise StudyStopped(
                f"search {search.target}: {text}; correct it and run the command again"
            ) from error

    return plan


def candidate_plan(
    made: Any, space: Space, scores: Mapping[Point, float], most: int
) -> Iterator[list[Point]]:
    """Yield the rounds of a search as points, and tell it their scores.

    Raises
    ------
    ValueError
        For a candidate outside the space, or more of them than there may be.
    """
    next_round, told, idle = _rounds(made), None, 0
    while True:
        with exits_raised():
            if not (proposed := next_round(told)):
                return
            points = list(map(space.point, [proposed] if isinstance(proposed, Mapping) else proposed))
        idle = 0 if set(points) - scores.keys() else idle + 1
        if idle > MOST_IDLE_ROUNDS:
            raise ValueError(f"expected new candidates, or an end, found {idle:,} rounds of known ones")
        if len(scores.keys() | set(points)) > most:
            raise ValueError(f"expected at most {most:,} candidates, as search.budget says; found more")
        yield points
        told = [scores[point] for point in points]


def _rounds(made: Any) -> Callable[[Sequence[float] | None], Round | None]:
    """Return a function that takes the scores of the last round, None at first, and returns the next."""
    if hasattr(made, "send"):
        return lambda told: _sent(made, told)
    if not (hasattr(made, "ask") and hasattr(made, "tell")):
        raise ValueError(
            f"expected a generator, or an object with ask and tell; found a {type(made).__name__}"
        )
    last: list[Round] = []

    def next_round(told: Sequence[float] | None) -> Round:
        if told is not None:
            made.tell(last.pop(), told)
        last.append(list(made.ask()))
        return last[0]

    return next_round


def _sent(generator: Any, told: Sequence[float] | None) -> Round | None:
    try:
        found: Round = generator.send(told)
    except StopIteration:
        return None
    return found


def recorded_plan(rounds: Sequence[Round], ended: bool) -> Plan:
    """Return the plan that a run recorded of a user's search, whose code is not needed to follow it."""

    def plan(space: Space, scores: Mapping[Point, float]) -> Iterator[list[Point] | None]:
        yield from (list(map(space.point, proposed)) for proposed in rounds)
        if not ended:
            yield None

    return plan
