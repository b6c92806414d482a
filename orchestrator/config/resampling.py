"""What a user says of how rows are split, checked before any data is loaded."""

from collections.abc import Iterator, Mapping
from typing import Any

from orchestrator.config.scalars import wrong_values
from orchestrator.isolation.child_process import ProcessEnded
from orchestrator.isolation.class_checks import ask_classes, most_doubtful
from orchestrator.resampling.splitters import unusable_splitter
from orchestrator.study.targets import TARGET, targets_in
from orchestrator.study.text import shown
from orchestrator.study.values import canonical_json


def resampling_problems(protocol: Mapping[str, Any]) -> Iterator[str]:
    """Yield a sentence for each of `outer`, `inner` and `seed` that cannot be used."""
    for level in ("outer", "inner"):
        if isinstance(protocol[level], Mapping):
            if problem := _splitter_problem(protocol[level]):
                yield f"protocol.{level}: {problem}"
        else:
            yield from wrong_values(protocol, [level], "protocol.")
    seeds = protocol["seed"]
    for seed in seeds if isinstance(seeds, list) and seeds else [seeds]:
        yield from wrong_values({"seed": seed}, ["seed"], "protocol.")
    if isinstance(seeds, list) and len(set(map(shown, seeds))) < len(seeds):
        yield f"protocol.seed={shown(seeds)} names a seed twice; expected different ones"


def _splitter_problem(scheme: Mapping[str, Any]) -> str:
    if not isinstance(scheme.get(TARGET), str):
        return f"expected a whole number, or a mapping with the {TARGET} of a splitter, found {shown(scheme)}"
    try:
        canonical_json(scheme)
    except TypeError as error:
        return str(error)
    paths = list(targets_in(scheme))
    path = most_doubtful(paths)
    (found,) = ask_classes(unusable_splitter, [(path, scheme)])
    if isinstance(found, ProcessEnded):
        return f"{path} {found.reason} when it was imported and called; correct it"
    return found
