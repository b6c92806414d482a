"""The declaration in force of a study, which combines the declarations of all its runs.

The newest run that used the name of a dataset or an arm defines its meaning. Protocol and search are those of
the newest run. If the search takes candidates from another study, which may grow, only those for a dataset ×
arm belong to its meaning. A dataset × arm belongs to the study if some run declared it with exactly these
meanings. Other rows stay in the store and are reported separately. So rows from before and after an edit of a
solver are never averaged, and a run of fewer datasets or arms removes nothing.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from orchestrator.study.changed_meanings import SPACE, changed_keys
from orchestrator.study.equivalences import SameCode
from orchestrator.study.older_keys import OlderIdentity
from orchestrator.study.preparation import Preparation
from orchestrator.study.study import CANDIDATES, REFITS, STRATA, Arm, Protocol, SearchSpec, arm_on
from orchestrator.study.trials import Identity, Pair
from orchestrator.study.values import canonical_json, is_number, with_merged_numbers

OF_SOURCE = "the candidates from search.study"
"""How a declaration describes the change of what its search takes from another study."""

_FROM_SOURCE = (CANDIDATES, STRATA, REFITS)
"""Options of a search that hold what it takes from another study."""

_Part = tuple[str, str]
"""Part of a declaration: its kind (dataset, split, solver, preparation, protocol, search), and its name."""


@dataclass(frozen=True)
class DeclaredPair:
    """A dataset × arm that belongs to the study.

    Attributes
    ----------
    digest : str
        Value of the column `identity` of its trials.
    identity : Identity or None
        Source of the trial keys, with the older identities whose trials count, too. None if an older svmbench
        declared the pair without recording enough.
    planned : int or None
        Largest number of trainings, as recorded by the run; None if it is not recorded.
    n_inner : tuple of int
        Number of inner splits of each outer split.
    """

    digest: str
    identity: Identity | None
    planned: int | None
    n_inner: tuple[int, ...]

    @property
    def digests(self) -> tuple[str, ...]:
        """All values of the column `identity` of trials that may count, the newest first."""
        return (self.digest,) if self.identity is None else self.identity.digests


@dataclass(frozen=True)
class Declaration:
    """Meanings of the names of a study.

    Attributes
    ----------
    datasets, arms : dict of str to dict
        Recorded descriptions of the datasets and arms that have a pair, by name. The order is that of the
        newest run that named all of them, or else that of their first declarations. So a run of fewer arms
        does not change which arm is the control.
    protocol : dict
        Protocol of the newest run, as recorded.
    search : SearchSpec
        Search of the newest run.
    pairs : dict of (dataset, arm) to DeclaredPair
        Pairs that belong to the study.
    superseded : dict of (dataset, arm, digest) to str
        Identities that runs declared with other meanings, with the names of the parts that have changed.
    """

    datasets: dict[str, dict[str, Any]]
    arms: dict[str, dict[str, Any]]
    protocol: dict[str, Any]
    search: SearchSpec
    pairs: dict[Pair, DeclaredPair]
    superseded: dict[tuple[str, str, str], str]

    def reasons(self, trials: Mapping[tuple[str, str, str], int]) -> list[tuple[str, str, int, str]]:
        """Explain why stored trials are not counted.

        Parameters
        ----------
        trials : mapping of (dataset, solver, identity) to int
            Numbers of uncounted trials.

        Returns
        -------
        list of (dataset, solver, number, reason)
            Numbers of trials by dataset, solver and reason.
        """
        table: dict[tuple[str, str, str], int] = {}
        for (dataset, solver, identity), number in trials.items():
            declared = self.pairs.get((dataset, solver))
            if declared is not None and identity in declared.digests:
                why = "not, or not yet, asked for by the search that was declared last"
            elif changed := self.superseded.get((dataset, solver, identity)):
                why = f"another {changed}"
            else:
                why = "no recorded declaration"
            table[dataset, solver, why] = table.get((dataset, solver, why), 0) + number
        return [(dataset, solver, number, why) for (dataset, solver, why), number in table.items()]


def current_declaration(provenance: Sequence[Mapping[str, Any]]) -> Declaration | None:
    """Return the declaration in force, or None if no run recorded a declaration.

    Parameters
    ----------
    provenance : sequence of mapping
        One record per run, oldest first.
    """
    runs = [run for run in reversed(provenance) if run.get("study")]
    if not runs:
        return None
    study = runs[0]["study"]
    same_code = SameCode(provenance)
    meanings = [_meanings(run, same_code) for run in runs]
    newest: dict[_Part, str] = {}
    for meaning in reversed(meanings):
        newest |= meaning
    pairs: dict[Pair, DeclaredPair] = {}
    superseded: dict[tuple[str, str, str], str] = {}
    named: dict[str, Pair] = {}
    declared_before: list[tuple[Any, ...]] = []
    alike: dict[str, list[Identity]] = {}
    for run, meaning in zip(runs, meanings, strict=True):
        search = run["study"].get("search")
        whole = (meaning, search, *map(run.get, ("identities", "planned", "shared_gram")))
        if whole in declared_before:
            continue  # a repetition of the same command
        declared_before.append(whole)
        rebuild = _Identities(run)
        for pair in pairs_of(run["study"]):
            texts = [rebuild.recorded(pair)]
            if (identity := rebuild.identity(pair)) is not None:
                texts.append(identity.meaning(same_code.of(pair[1])))
                alike.setdefault(texts[-1], []).append(identity)
            changed = [
                _described(part[0], meaning[part], newest[part])
                for part in _parts(pair)
                if meaning[part] != newest[part]
            ]
            is_same_search = meaning["search", ""] == newest["search", ""]
            if is_same_search and taken_from_source(run["study"], pair) != taken_from_source(study, pair):
                changed.append(f"search ({OF_SOURCE})")
            if not changed and [text for text in texts if text and named.setdefault(text, pair) != pair]:
                changed = ["name"]  # the same trials under two names would count twice as evidence
            if changed:
                superseded.setdefault((*pair, texts[0]), " and ".join(changed))
            elif pair not in pairs:
                pairs[pair] = rebuild.declared_pair(pair)
    for pair, declared in pairs.items():
        if declared.identity is not None:
            older = alike[declared.identity.meaning(same_code.of(pair[1]))]
            pairs[pair] = replace(declared, identity=declared.identity.counting(older))
    return Declaration(
        datasets=_descriptions(runs, "datasets", {dataset for dataset, _ in pairs}),
        arms=_descriptions(runs, "arms", {arm for _, arm in pairs}),
        protocol=dict(study.get("protocol", {})),
        search=SearchSpec.from_record(study.get("search", "")),
        pairs=pairs,
        superseded=superseded,
    )


def _described(kind: str, before: str, now: str) -> str:
    keys = changed_keys(kind, before, now)
    return f"{kind} ({keys})" if keys else kind


def not_started(runs: Sequence[Mapping[str, Any]], started: Collection[str]) -> tuple[str, ...]:
    """Return the datasets that the study does not need, because the newest run ended early as declared.

    Parameters
    ----------
    runs : sequence of mapping
        Provenance of every run, oldest first.
    started : collection of str
        Names of the datasets that have stored trials. They are not returned.
    """
    names = runs[-1].get("not_begun") or () if runs else ()
    return tuple(name for name in names if name not in started)


def _meanings(run: Mapping[str, Any], same_code: SameCode) -> dict[_Part, str]:
    """Return the meaning of each part of a run's declaration, as a text; equal meanings have equal texts.

    Parameters
    ----------
    run : mapping
        Provenance of the run.
    same_code : SameCode
        Versions of code that give the same numbers, which have the same meaning.
    """
    study = run["study"]
    protocol = study.get("protocol", {})
    # The code of a splitter may change, so its splits are compared. Numbers of folds define their splits.
    splitter = any(isinstance(protocol.get(level), Mapping) for level in ("outer", "inner"))
    datasets, arms = study.get("datasets", []), study.get("arms", [])
    without_space = takes_candidates(study)
    return {
        ("protocol", ""): canonical_json(with_merged_numbers(study.get("protocol"))),
        ("search", ""): search_meaning(study),
        **{("dataset", description["name"]): str(description.get("fingerprint")) for description in datasets},
        **{
            ("split", description["name"]): str(description.get("split_hash")) if splitter else ""
            for description in datasets
        },
        **{
            ("solver", description["name"]): arm_meaning(same_code.applied(description), without_space)
            for description in arms
        },
        **{_preparation_of(pair): _preparation_meaning(run, pair, same_code) for pair in pairs_of(study)},
    }


def _preparation_of(pair: Pair) -> _Part:
    return "preparation", " × ".join(pair)


def _preparation_meaning(run: Mapping[str, Any], pair: Pair, same_code: SameCode) -> str:
    """Return the recorded preparation of a dataset × arm as a text.

    Parameters
    ----------
    run : mapping
        Provenance of the run.
    pair : tuple of str
        Names of the dataset and the arm.
    same_code : SameCode
        Versions of code that give the same numbers.
    """
    description = _recorded_preparation(run, pair)
    code = {"identity": same_code.of(pair[1])(description["identity"])} if description.get("identity") else {}
    return canonical_json({**description, **code})


def _recorded_preparation(run: Mapping[str, Any], pair: Pair) -> dict[str, str]:
    """Return the recorded preparation of a dataset × arm; empty if it is the scaling of the protocol.

    Parameters
    ----------
    run : mapping
        Provenance of the run.
    pair : tuple of str
        Names of the dataset and the arm.
    """
    found: dict[str, str] = (run.get("preparations") or {}).get(pair[0], {}).get(pair[1], {})
    return found


def takes_candidates(study: Mapping[str, Any]) -> bool:
    """Return whether the search of a study takes its candidates from another study, and has recorded them.

    Parameters
    ----------
    study : mapping
        Declaration of a run, as recorded.
    """
    return bool(_options(study).keys() & {CANDIDATES, STRATA})


def search_meaning(study: Mapping[str, Any]) -> str:
    """Return the meaning of a search as a text, without what it takes from another study.

    Parameters
    ----------
    study : mapping
        Declaration of a run, as recorded.
    """
    search = study.get("search")
    if takes_candidates(study):
        kept = {name: each for name, each in _options(study).items() if name not in _FROM_SOURCE}
        search = {**search, "options": kept}  # type: ignore[dict-item]
    return canonical_json(search)


def taken_from_source(study: Mapping[str, Any], pair: Pair) -> str:
    """Return as a text what a search takes from another study for a dataset × arm.

    The source study may grow between two runs. So what it gives for other pairs does not count.

    Parameters
    ----------
    study : mapping
        Declaration of a run, as recorded.
    pair : tuple of str
        Names of the dataset and the arm, which the run need not name.
    """
    options, (dataset, arm) = _options(study), pair
    selected, strata, refits = (options.get(name, {}).get(dataset) or {} for name in _FROM_SOURCE)
    names = [options["arm"]] if options.get("arm") else [arm, arm.partition("[")[0]]
    candidate = next((selected[name] for name in names if name in selected), None)
    drawn = [group["candidates"] for group in strata if arm in group["arms"]]
    return canonical_json([candidate, drawn, refits.get(arm)])


def _options(study: Mapping[str, Any]) -> Mapping[str, Any]:
    search = study.get("search")
    return (search.get("options") or {}) if isinstance(search, Mapping) else {}


def arm_meaning(description: Mapping[str, Any], without_space: bool = False) -> str:
    """Return the meaning of an arm as a text; arms with equal meanings have equal texts.

    Parameters
    ----------
    description : mapping
        Attributes of the arm, as recorded.
    without_space : bool
        Whether to leave the space out, which follows from the candidates of another study. Default False.
    """
    return canonical_json(
        {
            "class": description.get("target"),
            "parameters": description.get("params"),
            "code": description.get("identity"),
            "warm_starts": description.get("warm_starts"),
            # A list, because the order of hyper-parameters decides ties.
            SPACE: [
                [name, _in_order(values)]
                for name, values in ({} if without_space else description.get("space", {})).items()
            ],
            "code of the space": description.get("space_identities") or {},
            "prepare": description.get("prepare") or None,
        }
    )


def _in_order(values: Sequence[Any] | Mapping[str, Any]) -> Any:
    """Return the values of a hyper-parameter in the order that a search uses.

    Numbers are sorted. The order of other values is kept, because it has a meaning.

    Parameters
    ----------
    values : sequence or mapping
        Values, or a range, which is returned unchanged.
    """
    if isinstance(values, Mapping):
        return values
    if not all(map(is_number, values)):
        return list(values)
    return sorted(values, key=lambda value: (value, canonical_json(value)))


def pairs_of(study: Mapping[str, Any]) -> Iterator[Pair]:
    """Yield the names of each dataset × arm of a declaration.

    Parameters
    ----------
    study : mapping
        Declaration of a run, as recorded.

    Yields
    ------
    Pair
        Names of the dataset and the arm.
    """
    for dataset in study.get("datasets", []):
        for arm in study.get("arms", []):
            yield dataset["name"], arm["name"]


def _parts(pair: Pair) -> tuple[_Part, ...]:
    named = ("dataset", pair[0]), ("split", pair[0]), ("solver", pair[1]), _preparation_of(pair)
    return *named, ("protocol", ""), ("search", "")


class _Identities:
    """Identities of the trials of a run, rebuilt from its record where the record is complete.

    Parameters
    ----------
    run : mapping
        Provenance of the run.
    """

    def __init__(self, run: Mapping[str, Any]):
        self._run = run
        study = run["study"]
        self._datasets = {description["name"]: description for description in study.get("datasets", [])}
        self._arms: dict[str, Arm | None] = {}
        self._arm_descriptions = {description["name"]: description for description in study.get("arms", [])}
        try:
            self._protocol: Protocol | None = Protocol.from_dict(study["protocol"])
        except (KeyError, TypeError):
            self._protocol = None

    def recorded(self, pair: Pair) -> str:
        """Return the recorded digest of a pair; empty if none is recorded.

        Parameters
        ----------
        pair : tuple of str
            Names of the dataset and the arm.
        """
        return str(self._run.get("identities", {}).get(pair[0], {}).get(pair[1], ""))

    def declared_pair(self, pair: Pair) -> DeclaredPair:
        """Return a pair as the run declared it.

        Parameters
        ----------
        pair : tuple of str
            Names of the dataset and the arm.
        """
        dataset, arm = pair
        return DeclaredPair(
            digest=self.recorded(pair),
            identity=self.identity(pair),
            planned=self._run.get("planned", {}).get(dataset, {}).get(arm),
            n_inner=n_inner_splits(self._datasets[dataset], self._run["study"].get("protocol", {})),
        )

    def identity(self, pair: Pair) -> Identity | None:
        """Return the identity of a pair; None if the run did not record enough.

        Parameters
        ----------
        pair : tuple of str
            Names of the dataset and the arm.
        """
        dataset, arm = self._datasets[pair[0]], self._arm(pair[1])
        if arm is None or self._protocol is None:
            return None
        search = self._run["study"].get("search")
        if isinstance(search, Mapping):
            arm = arm_on(arm, search.get("options") or {}, pair[0])
        try:
            shared_gram = self._run["shared_gram"][pair[0]][pair[1]]
            folds = dataset["fingerprint"], dataset["split_hash"]
            n_inner = dataset.get("n_inner", ())
            protocol = self._protocol
            if preparation := _recorded_preparation(self._run, pair):
                protocol = protocol.for_preparation(Preparation(**preparation))
            inputs = pair[0], *folds, arm, protocol, shared_gram, n_inner
            found = (kind(*inputs) for kind in (Identity, OlderIdentity))
            return next((each for each in found if each.digest == self.recorded(pair)), None)
        except (KeyError, TypeError):
            return None

    def _arm(self, name: str) -> Arm | None:
        if name not in self._arms:
            try:
                self._arms[name] = Arm.from_dict(self._arm_descriptions[name])
            except TypeError:
                self._arms[name] = None
        return self._arms[name]


def n_inner_splits(description: Mapping[str, Any], protocol: Mapping[str, Any]) -> tuple[int, ...]:
    """Return the recorded number of inner splits of each outer split of a dataset; 0 means unknown.

    Parameters
    ----------
    description : mapping
        Description of the dataset, as recorded.
    protocol : mapping
        Protocol of the same run, as recorded.
    """
    if "n_inner" in description:
        return tuple(description["n_inner"])
    # Older versions of svmbench supported only numbers of folds, which were the same for all datasets.
    outer, inner = protocol.get("outer"), protocol.get("inner")
    return (inner if isinstance(inner, int) else 0,) * outer if isinstance(outer, int) else ()


def _descriptions(runs: Sequence[Mapping[str, Any]], group: str, kept: set[str]) -> dict[str, dict[str, Any]]:
    """Return the newest recorded description of each name, in the order that `Declaration` documents.

    Parameters
    ----------
    runs : sequence of mapping
        Provenance of every run that recorded a declaration, newest first.
    group : {"datasets", "arms"}
        Key of the descriptions in a declaration.
    kept : set of str
        Names to return.
    """
    declared = [
        {description["name"]: description for description in run["study"].get(group, [])} for run in runs
    ]
    found: dict[str, dict[str, Any]] = {}
    for names in declared:
        found = names | found
    whole = next((names for names in declared if kept <= names.keys()), None)
    order = whole or dict.fromkeys(name for names in reversed(declared) for name in names)
    return {name: found[name] for name in order if name in kept}
