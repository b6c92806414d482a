"""Custom sections of a report: a table, a figure and a text."""

from matplotlib.figure import Figure

from orchestrator.report import Section


def worst_folds(results):
    """Return a table of the outer folds with the lowest scores."""
    columns = ["dataset", "solver", "outer", "score"]
    frame = results.outer[columns].sort_values("score", kind="stable").head(5).reset_index(drop=True)
    return Section("Hardest outer folds", "The five refits with the lowest scores.", frame)


def score_against_size(results):
    """Return a figure of the scores of the refits against their numbers of support vectors."""
    figure = Figure(figsize=(6, 3))
    ax = figure.subplots()
    for solver, rows in results.outer.groupby("solver", sort=False):
        ax.plot(rows["n_sv"], rows["score"], "o", label=solver)
    ax.set(xlabel="Support vectors", ylabel="Score")
    ax.legend()
    return Section("Score and size", "One point for each refit.", figure)


def remarks(results):
    """Return a text with remarks."""
    return Section("Remarks", "", f"{len(results.trials)} trainings.\n\nNone was looked at by eye.")
