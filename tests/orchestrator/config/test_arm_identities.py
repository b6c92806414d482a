"""The code and the parameters of every arm of `conf/solver/` are those that `arm_identities.csv` names.

After a change of an arm, `python -m tests.orchestrator.config.test_arm_identities` writes the file again.
"""

import csv
import re
from pathlib import Path

import yaml

from orchestrator.study.targets import targets_in
from orchestrator.study.values import digest
from orchestrator.training.source_hash import arm_code

ROOT = Path(__file__).parents[3]
FILE = Path(__file__).with_name("arm_identities.csv")


def identities():
    """Return the hash of the sources and that of the parameters of each arm, without versions of packages."""
    found = {}
    for path in sorted((ROOT / "conf" / "solver").glob("*.yaml")):
        config = yaml.safe_load(path.read_text())
        params = {name: value for name, value in config.items() if name not in ("_target_", "space")}
        code = ""
        if any(name.startswith("solvers.") for name in targets_in(config)):
            code = " ".join(re.findall(r"\b[0-9a-f]{16}\b", arm_code(config["_target_"], params)))
        found[path.stem] = [code, digest([config["_target_"], params])[:16]]
    return found


def test_a_changed_arm_is_accepted_or_trained_again_on_published_studies():
    with FILE.open(newline="") as file:
        recorded = {name: columns for name, *columns in csv.reader(file)}
    found = identities()
    changed = [name for name in {**recorded, **found} if recorded.get(name) != found.get(name)]
    assert not changed, (
        f"The code or the parameters of {', '.join(changed)} have changed, so their stored trials are stale. "
        "Run `svmbench accept study=NAME` on each published study of these arms, or say in the commit which "
        "rows were made anew. Then run: python -m tests.orchestrator.config.test_arm_identities"
    )


if __name__ == "__main__":
    with FILE.open("w", newline="") as file:
        lines = ([name, *columns] for name, columns in identities().items())
        csv.writer(file, lineterminator="\n").writerows(lines)
