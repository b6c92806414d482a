"""Custom searches: a generator, and a class with ask and tell."""

import math
import random


def zoom(space, seed, rounds=3, width=4):
    """Draw candidates, then repeatedly draw from a quarter of each range around the best one so far."""
    generator = random.Random(seed)
    shares, best = [(0.0, 1.0)] * len(space), None
    for _ in range(rounds):
        drawn = [[low + (high - low) * generator.random() for low, high in shares] for _ in range(width)]
        scores = yield [
            {name: axis.at(share) for (name, axis), share in zip(space.items(), row, strict=True)}
            for row in drawn
        ]
        found = max(
            zip(scores, drawn, strict=True), key=lambda pair: -math.inf if pair[0] != pair[0] else pair[0]
        )
        best = found if best is None or found[0] > best[0] else best
        half = [(high - low) / 8 for low, high in shares]
        shares = [(max(0.0, c - h), min(1.0, c + h)) for c, h in zip(best[1], half, strict=True)]


class Climb:
    """Increase one parameter after the other along its list of values while the score grows."""

    def __init__(self, space, seed):
        self.space = space
        self.index = dict.fromkeys(space, 0)
        self.remaining = list(space)
        self.best = None

    def ask(self):
        """Return the next round of candidates, or an empty list at the end."""
        if self.best is None:
            return [self._candidate()]
        while self.remaining and self.index[self.remaining[0]] + 1 == len(self.space[self.remaining[0]]):
            self.remaining.pop(0)
        return [self._candidate(self.remaining[0])] if self.remaining else []

    def tell(self, candidates, scores):
        """Receive the scores of the round in its order; nan is a failure."""
        if self.best is None:
            self.best = scores[0]
        elif scores[0] > self.best:
            self.best = scores[0]
            self.index[self.remaining[0]] += 1
        else:
            self.remaining.pop(0)

    def _candidate(self, moved=None):
        return {name: values[self.index[name] + (name == moved)] for name, values in self.space.items()}
