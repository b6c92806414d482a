"""Draw the picture of the manual's page on cheap predictions: the regions of three machines.

    python docs/pictures/decision_regions.py

The data of Figure 2.7 of Zapién et al. (2007), the Mexican hat, are not published. Generated samples stand
for them: a disc of one class, and a ring of the other around it.
"""

from pathlib import Path

import matplotlib as mpl
import numpy as np

from orchestrator.report.figures import STYLE_SHEET
from orchestrator.report.sections.decision_regions import Panel, figure
from solvers import SMOSVC, ReducedSetSVC, SVMTreeClassifier

FILE = Path(__file__).with_name("decision_regions.svg")
N_SAMPLES, RADII = 400, (0.8, 1.0, 2.0)
"""Number of samples; radius of the disc, and the inner and the outer radius of the ring."""


def mexican_hat():
    """Return a disc of the class "disc" and a ring of the class "ring", with as many samples each.

    Returns
    -------
    X : ndarray of shape (N_SAMPLES, 2)
        Samples.
    y : ndarray of shape (N_SAMPLES,)
        Labels.
    """
    random = np.random.default_rng(0)
    y = np.where(np.arange(N_SAMPLES) % 2, "ring", "disc")
    disc, inner, outer = RADII
    low, high = np.where(y == "ring", inner, 0.0), np.where(y == "ring", outer, disc)
    radius = np.sqrt(random.uniform(low**2, high**2))
    angle = random.uniform(0.0, 2.0 * np.pi, N_SAMPLES)
    return radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1), y


def draw(file):
    """Draw the SVM tree, the whole Gaussian machine and its reduced set.

    Parameters
    ----------
    file : Path
        SVG to write.
    """
    X, y = mexican_hat()
    tree = SVMTreeClassifier().fit(X, y)
    whole = SMOSVC(C=4.0, gamma=1.0).fit(X, y)
    reduced = ReducedSetSVC(C=4.0, gamma=1.0, n_vectors=5).fit(X, y)
    panels = [
        Panel(f"SVM tree, {tree.n_nodes_} planes", tree, X, y),
        Panel(f"SMOSVC, {whole.support_.size} vectors", whole, X, y),
        Panel(f"ReducedSetSVC, {reduced.n_vectors_} vectors", reduced, X, y),
    ]
    with mpl.rc_context({"svg.hashsalt": "decision_regions"}, STYLE_SHEET):
        figure(panels).savefig(file, metadata={"Date": None})


if __name__ == "__main__":
    draw(FILE)
