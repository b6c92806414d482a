"""Result of a comparison: the answer, the tables, a figure, and fitted final models."""

import shutil
import sys
import weakref
from collections.abc import Collection
from functools import cached_property
from html import escape
from math import nan
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy.special import stdtrit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from orchestrator.analysis import findings
from orchestrator.analysis.dataset_answer import answer_of_dataset
from orchestrator.analysis.findings import Findings, analyse
from orchestrator.comparison.python_terms import in_python
from orchestrator.config.node_files import CONFIGURATIONS
from orchestrator.datasets.frames import durations_as_seconds
from orchestrator.report import format as fmt
from orchestrator.report import write_report
from orchestrator.report.answer import answer_text
from orchestrator.report.one_dataset import NO_WIDTH
from orchestrator.report.section import Drawing, flat
from orchestrator.report.sections import answer as answer_section
from orchestrator.report.sections import scores as scores_section
from orchestrator.store.results import StudyResults
from orchestrator.study.errors import ConfigError
from orchestrator.study.failures import failure_lines
from orchestrator.study.targets import did_you_mean

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Comparison:
    """Result of `svmbench.compare`.

    The last line of a notebook's cell shows the answer, a table of scores with intervals, and a figure.

    Parameters
    ----------
    study : StudyResults
        Stored study.
    cache : Path
        Folder of prepared datasets.
    delete : Path, optional
        Folder to delete with this object, or when Python ends. By default nothing is deleted.
    durations : collection of str
        Names of the datasets whose frame has a column of durations. Default: none.
    float_labels : collection of str
        Names of the datasets whose labels the caller gave as floats. Their models predict floats. Default:
        none.

    Attributes
    ----------
    study : StudyResults
        The study with all its tables, as `svmbench.load_study` returns it.
    answer : str
        Which solver to take, what cannot be told apart from it, and which trainings failed.
    scores : DataFrame
        Mean score of each dataset and solver on the outer test folds. Columns: dataset, solver, mean,
        standard_error, low and high (ends of the 95 % interval), and n_folds.
    trials : DataFrame
        One row for each training; `inner` is -1 for trainings on whole outer training sets.
    predictions : DataFrame
        Predicted labels of the outer test rows. Columns: dataset, solver, outer, row (index in the dataset,
        from 0, without rows that lack a label), true and predicted (labels as text).
    """

    def __init__(
        self,
        study: StudyResults,
        cache: Path,
        delete: Path | None = None,
        durations: Collection[str] = (),
        float_labels: Collection[str] = (),
    ):
        self.study = study
        self._cache = cache
        self._is_kept = delete is None
        self._durations = frozenset(durations)
        self._float_labels = frozenset(float_labels)
        self._models: dict[tuple[str, str], Any] = {}
        if delete is not None:
            weakref.finalize(self, _deleted, delete, study.folder / CONFIGURATIONS)

    @cached_property
    def _findings(self) -> Findings:
        """The study as reports read it."""
        return analyse(self.study)

    @cached_property
    def answer(self) -> str:
        """Answer in sentences: which solver to take, and which trainings failed."""
        return "\n".join([in_python(answer_text(self._findings)), *failure_lines(self.study.trials)])

    @cached_property
    def scores(self) -> pd.DataFrame:
        """Mean scores on the outer test folds, one row for each dataset and solver.

        Columns: dataset, solver, mean, standard_error (corrected for the training rows that folds share, as
        by Nadeau and Bengio 2003), low and high (ends of the interval, of 95 % unless report.alpha differs),
        and n_folds. The interval does not leave the values of the metric, such as 0 to 1. The ends are NaN
        for a single fold, and if all folds have equal scores.
        """
        frame = findings.scores(self._findings)
        if frame.empty:
            return pd.DataFrame(
                columns=["dataset", "solver", "mean", "standard_error", "low", "high", "n_folds"]
            )
        alpha = self._findings.design.alpha
        t = [stdtrit(n - 1, 1 - alpha / 2) if n > 1 else nan for n in frame["n_folds"]]
        half = (np.array(t) * frame["corrected_se"]).where(frame["corrected_se"] > NO_WIDTH)
        found = frame.rename(columns={"corrected_se": "standard_error"})
        bounds = self._findings.design.score_bounds
        found = found.assign(
            low=(found["mean"] - half).clip(*bounds), high=(found["mean"] + half).clip(*bounds)
        )
        return found[["dataset", "solver", "mean", "standard_error", "low", "high", "n_folds"]]

    @property
    def trials(self) -> pd.DataFrame:
        """One row for each training; `inner` is -1 for trainings on whole outer training sets."""
        return self.study.trials

    @cached_property
    def predictions(self) -> pd.DataFrame:
        """Predicted labels of the outer test rows.

        Columns: dataset, solver, outer, row (index in the dataset, from 0, without rows that lack a label),
        true and predicted (labels as text).
        """
        return self.study.predictions()

    def plot(self) -> "Figure":
        """Return a figure of the mean scores with their errors, which the report shows as well.

        Returns
        -------
        matplotlib.figure.Figure
            The figure.

        Raises
        ------
        ConfigError
            If no training has a score.
        """
        from orchestrator.report.figures import styled  # imports Matplotlib

        return styled(self._drawing())

    def best(self, dataset: str | None = None, solver: str | None = None) -> Any:
        """Return a model that is fitted on all rows of a dataset, with the search of its solver on all rows.

        The scores of the comparison belong to this procedure, which searches and then trains. They do not
        belong to this one model.

        Parameters
        ----------
        dataset : str, optional
            Name of the dataset; by default the only one.
        solver : str, optional
            Name of the solver; by default the one with the highest mean score on the dataset, among those
            with a score on every outer split if there are any.

        Returns
        -------
        estimator
            Fitted estimator. It is a pipeline if the protocol prepares the features, or the caller's frame
            has a column of durations.

        Raises
        ------
        ConfigError
            If the comparison has no such dataset or solver.
        StoreError
            If no candidate could be trained.
        """
        from orchestrator.engine.final_estimator import fitted_estimator

        dataset = self._named("dataset", dataset)
        if solver is None and dataset in self._findings.design.datasets:
            arms = answer_of_dataset(self._findings, self._findings.design, dataset).arms
            scored = arms.loc[arms["mean"].notna(), "solver"]
            solver = next(iter(scored), None)
        solver = self._named("solver", solver)
        if (dataset, solver) not in self._models:
            label_type = np.float64 if dataset in self._float_labels else None
            model = fitted_estimator(self.study, dataset, solver, self._cache, label_type)
            if dataset in self._durations:  # the model was fitted on their seconds
                model = make_pipeline(FunctionTransformer(durations_as_seconds), model)
            self._models[dataset, solver] = model
        return self._models[dataset, solver]

    def report(self, folder: str | Path | None = None) -> Path:
        """Write the report to a folder, and return the path of its page.

        Parameters
        ----------
        folder : path, optional
            Folder of the report, which is created if necessary. By default, the folder `report` of a study
            that is kept.

        Returns
        -------
        Path
            The page `index.html`.

        Raises
        ------
        ConfigError
            If the study is not kept and no folder is given.
        """
        if folder is None and not self._is_kept:
            raise ConfigError(["report(): expected a folder, as nothing is kept; write report('FOLDER')"])
        folder = self.study.folder / "report" if folder is None else Path(folder).expanduser()
        return write_report(self.study, folder, self._findings)

    def __repr__(self) -> str:
        return f"{self.answer}\n\n{self._printed().to_string(index=False)}"

    def _repr_html_(self) -> str:
        """Return the HTML that a notebook shows."""
        table = self._printed().to_html(index=False, border=0)
        return f"<pre>{escape(self.answer)}</pre>{table}{self._drawn()}"

    def _drawing(self) -> Drawing:
        """Return the report's figure of scores."""
        section = answer_section.section(self._findings) or scores_section.section(self._findings)
        if section is None:
            raise ConfigError(["no training has a score yet, so there is no figure"])
        return next(part for part in flat(section.content) if isinstance(part, Drawing))

    def _drawn(self) -> str:
        """Return the figure as SVG; empty if no training has a score."""
        from orchestrator.report.figures import documents

        if findings.is_empty(self._findings):
            return ""
        svg = documents(self._drawing(), pdf=False).svg
        return svg[svg.index("<svg") :]

    def _printed(self) -> pd.DataFrame:
        """Return the scores as texts, the highest mean of each dataset first."""
        design = self._findings.design
        metric = design.metric
        order = {name: at for at, name in enumerate(design.datasets)}
        frame = self.scores.assign(at=self.scores["dataset"].map(order))
        frame = frame.sort_values(["at", "mean"], ascending=[True, False], kind="stable")
        columns = ("mean", "standard_error", "low", "high")
        frame["standard_error"] = frame["standard_error"].where(frame["low"].notna())
        numbers = {name: [fmt.score(value, metric) for value in frame[name]] for name in columns}
        unit = ", %" if fmt.is_percent(metric) else ""
        return pd.DataFrame(
            {
                "dataset": frame["dataset"].to_list(),
                "solver": frame["solver"].to_list(),
                f"mean {fmt.metric_name(metric)}{unit}": numbers["mean"],
                "standard error": numbers["standard_error"],
                f"{fmt.level(design.alpha)} interval": [
                    fmt.MISSING if fmt.MISSING in ends else "{} to {}".format(*ends)
                    for ends in zip(numbers["low"], numbers["high"], strict=True)
                ],
                "folds": frame["n_folds"].to_list(),
            }
        )

    def _named(self, kind: str, name: str | None) -> str:
        """Return the name of a dataset or solver of the comparison.

        Parameters
        ----------
        kind : {"dataset", "solver"}
            What the name is of.
        name : str or None
            Name; None for the only one.

        Raises
        ------
        ConfigError
            If there is no such name, or none was given for several.
        """
        design = self._findings.design
        known = list(design.datasets if kind == "dataset" else design.arms)
        if name is None and len(known) == 1:
            return known[0]
        if name not in known:
            near = did_you_mean(str(name), known) if name is not None else ""
            found = "found none" if name is None else f"found {name!r}"
            raise ConfigError([f"expected a {kind} of {', '.join(known)}, {found}{near}"])
        return name


def _deleted(folder: Path, modules: Path) -> None:
    """Delete the folder of a comparison that is not kept, and forget its modules.

    Parameters
    ----------
    folder : Path
        Folder to delete.
    modules : Path
        Entry of `sys.path` to remove.
    """
    while str(modules) in sys.path:
        sys.path.remove(str(modules))
    shutil.rmtree(folder, ignore_errors=True)
