"""Former definition of a trial key, by which trials that older versions stored are found.

It contained the further metrics of the protocol in all trials, and its hash had no prefix.
"""

from typing import Any

from orchestrator.study.study import Candidate
from orchestrator.study.trials import Identity
from orchestrator.study.values import with_merged_numbers


class OlderIdentity(Identity):
    """Identity of a dataset × arm whose trials have keys of the former definition."""

    def _inputs(self) -> dict[str, Any]:
        """Return everything that the keys of the former definition have in common."""
        inputs = {
            "dataset": self.fingerprint,
            "splits": self.split_hash,
            "target": self.arm.target,
            "params": self.arm.params,
            "package": self.arm.identity,
            "protocol": with_merged_numbers(self.protocol.to_dict()),
            "shared_gram": self.shared_gram,
        }
        if self.arm.of_search:
            inputs["search"] = self.arm.of_search
        return inputs

    def keys(self, outer: int, inner: int, candidates: tuple[Candidate, ...]) -> tuple[str, ...]:
        """Return the keys of the trials of a path.

        Parameters
        ----------
        outer : int
            Index of the outer split.
        inner : int
            Index of the inner split, or -1 for refits.
        candidates : tuple of Candidate
            Candidates of the whole path, ascending in C.
        """
        return tuple(text[:32] for text in self._hashes(outer, inner, candidates))
