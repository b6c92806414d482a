"""Versions of code that give the same numbers, as the records of a study state it.

An equivalence belongs to one arm of one study. It says that two versions of its code make the same rows.
Equivalences form chains: rows of the first version are current under the last.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

EQUIVALENCES = "equivalences"
"""Key of provenance with a list of equivalences. Each names its `solver`, and maps the identities of former
code to those of later code in `codes`."""


class SameCode:
    """Groups of versions of code that give the same numbers, for each arm of a study.

    Parameters
    ----------
    runs : sequence of mapping
        Provenance of every run.
    """

    def __init__(self, runs: Sequence[Mapping[str, Any]]):
        self._later: dict[tuple[str, str], str] = {}
        for run in runs:
            for each in run.get(EQUIVALENCES) or ():
                of_arm = self.of(each["solver"])
                for before, now in each["codes"].items():
                    if (first := of_arm(before)) != (last := of_arm(now)):
                        self._later[each["solver"], first] = last

    def of(self, arm: str) -> Callable[[str], str]:
        """Return a function from the identity of a code to that of one version of its group, for an arm.

        Parameters
        ----------
        arm : str
            Name of the arm.
        """

        def same(code: str) -> str:
            while (later := self._later.get((arm, code))) is not None:
                code = later
            return code

        return same

    def applied(self, recorded: Mapping[str, Any]) -> dict[str, Any]:
        """Return the recorded attributes of an arm, with one version in place of every group of versions.

        Parameters
        ----------
        recorded : mapping
            Attributes of the arm, as recorded.
        """
        same = self.of(str(recorded.get("name")))
        of_space = recorded.get("space_identities") or {}
        return {
            **recorded,
            "identity": same(recorded.get("identity", "")),
            "space_identities": {name: same(code) for name, code in of_space.items()},
        }
