"""The spread between datasets of an earlier study, which turns a detectable difference into points."""

from collections.abc import Collection

from orchestrator.analysis.findings import Findings, analyse, compared_means, computed
from orchestrator.analysis.power import Spread, spread_between
from orchestrator.store.files import StoreError
from orchestrator.store.results import StudyResults
from orchestrator.study.errors import ConfigError


def spread_of_earlier(earlier: StudyResults, name: str, metric: str, arms: Collection[str]) -> Spread | None:
    """Return the spread of the differences between the datasets of an earlier study; see `spread_between`.

    Parameters
    ----------
    earlier : StudyResults
        The earlier study.
    name : str
        Its name, as `report.earlier` has it.
    metric : str
        Metric of the present study.
    arms : collection of str
        Arms of the present study.

    Returns
    -------
    Spread or None
        None if no pair of arms has completed three units.

    Raises
    ------
    ConfigError
        If the earlier study has another metric.
    """
    found = analyse(earlier)
    if found.design.metric != metric:
        raise ConfigError(
            [
                f"report.earlier={name}: its metric is {found.design.metric}, expected {metric}. Name a "
                "study with this metric"
            ]
        )
    return spread_between(compared_means(found), arms, name)


@computed
def earlier_spread(study: Findings) -> Spread | None:
    """Return the spread between the datasets of the study that `report.earlier` names.

    Parameters
    ----------
    study : Findings
        The study of the report.

    Returns
    -------
    Spread or None
        None if none is named, it has been deleted, the study was not loaded from a store, or no pair of arms
        has completed three units of the earlier study.

    Raises
    ------
    ConfigError
        If the earlier study has another metric.
    """
    name, design = study.design.choices.earlier, study.design
    if name is None or study.read_study is None:
        return None
    try:
        earlier = study.read_study(name)
    except StoreError:
        return None
    return spread_of_earlier(earlier, name, design.metric, [*design.arms])
