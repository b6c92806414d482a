"""Races that are told scores at once, without a training."""


def follow(race, scores, chance=None):
    """Tell a race what it asks for, in an order of chance; return its rounds of (candidate, split)."""
    rounds = []
    while asked := [(each, split) for splits, some in race.ask() for split in splits for each in some]:
        rounds.append(set(asked))
        if chance is not None:
            chance.shuffle(asked)
        for candidate, split in asked:
            race.tell(candidate, split, float(scores[candidate][split]))
    assert race.done
    return rounds
