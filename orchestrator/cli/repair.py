"""The verb `repair`."""

from rich.console import Console

from orchestrator.cli.request import Request
from orchestrator.cli.terminal import say
from orchestrator.engine.damage_repair import repair as repair_study
from orchestrator.engine.load import find_study
from orchestrator.engine.lost_trials import lost_trials
from orchestrator.study.declaration import current_declaration
from orchestrator.study.errors import ConfigError


def repair(request: Request, console: Console) -> None:
    """Set aside what is damaged in a study."""
    names = [text for text in request.overrides if "=" not in text]
    if len(names) > 1:
        raise ConfigError([f"repair takes one study at a time, found {', '.join(map(repr, names))}"])
    overrides = [text if "=" in text else f"study={text}" for text in request.overrides]
    store = find_study(*request.study(overrides))
    done = repair_study(store) or ["nothing is damaged"]
    runs = store.provenance()
    lost = lost_trials(store, runs, current_declaration(runs), store.trial_counts())
    for sentence in [*done, *lost]:
        say(console, f"{store.folder.name}: {sentence}", wrap=False)
