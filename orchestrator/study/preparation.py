"""Preparation of features: what is learnt from training rows before a solver sees them."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from orchestrator.study.targets import TARGET, targets_in
from orchestrator.study.values import cell

AUTO, NONE, STANDARD, MINMAX, TABLE = "auto", "none", "standard", "minmax", "table"

OF_DATASET = "dataset"
"""Name of the scaling to [0, 1] by all rows, which only `protocol.scaling` can ask for."""

NAMES = (NONE, STANDARD, MINMAX, TABLE)
"""Preparations that a study may ask for by name."""

SCALINGS = {"train": MINMAX, "dataset": OF_DATASET, "none": NONE}
"""Preparation by the value of `Protocol.scaling`."""

CODES, FILLED_CODES, ONE_HOT = "codes", "filled codes", "one-hot"
"""Kinds of the preparation `table`: ordinal codes with gaps, ordinal codes with imputed gaps, and one-hot
columns that are imputed and scaled."""


def asked_scaling(node: Mapping[str, Any]) -> str:
    """Return the value of `Protocol.scaling` that a configuration asks for.

    Parameters
    ----------
    node : mapping
        Configuration of a protocol, with `prepare`, `scaling` or both.
    """
    prepare, scaling = node.get("prepare") or AUTO, node.get("scaling")
    if prepare == AUTO:
        return str(scaling or "train")
    return Preparation(prepare).scaling or "none" if isinstance(prepare, str) else "none"


_WORDS = {
    AUTO: "minmax for finite numbers, table for text, dates or gaps",
    NONE: "none",
    STANDARD: "standard (mean 0 and variance 1 by the training rows)",
    MINMAX: "minmax (to [0, 1] by the training rows)",
    OF_DATASET: "to [0, 1] by the whole dataset",
    TABLE: "table",
}
_WORDS_OF_KIND = {
    CODES: "table (ordinal codes, gaps kept)",
    FILLED_CODES: "table (ordinal codes, gaps filled)",
    ONE_HOT: "table (one-hot, gaps filled, scaled)",
}


@dataclass(frozen=True)
class Preparation:
    """Preparation of the features of a dataset for an arm.

    Attributes
    ----------
    name : str
        `AUTO`, one of `NAMES`, `OF_DATASET`, or the configuration of a transformer with `_target_` as JSON.
    kind : str
        Kind of the preparation `table`, which follows from the arm's class. Empty for all others.
    identity : str
        Versions of the packages, or hashes of the sources, of its classes. Empty for scalings of ours.
    """

    name: str
    kind: str = ""
    identity: str = ""

    @property
    def scaling(self) -> str:
        """The value of `Protocol.scaling` that means the same; empty if there is none."""
        return next((scaling for scaling, name in SCALINGS.items() if name == self.name), "")

    @property
    def transformer(self) -> Any:
        """The configuration of a custom transformer; None for a named preparation."""
        return json.loads(self.name) if self.name.startswith("{") else None

    @property
    def targets(self) -> tuple[str, ...]:
        """Dotted paths of the classes of a custom transformer; empty for a named preparation."""
        return tuple(dict.fromkeys(targets_in(self.transformer)))

    def to_dict(self) -> dict[str, str]:
        """Return the attributes that are not empty, as trial keys and provenance record them."""
        return {name: value for name, value in asdict(self).items() if value}

    @property
    def words(self) -> str:
        """Description for a reader, such as "table (ordinal codes, gaps kept)"."""
        if (node := self.transformer) is None:
            return _WORDS_OF_KIND.get(self.kind) or _WORDS[self.name]
        arguments = ", ".join(f"{name}={cell(value)}" for name, value in node.items() if name != TARGET)
        name = str(node[TARGET]).rpartition(".")[2]
        return f"{name}({arguments})" if arguments else name
