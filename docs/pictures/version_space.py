"""Draw the picture of the manual's page on version spaces.

    python docs/pictures/version_space.py

Three samples without a bias, in three dimensions, bound a triangle on the unit sphere. The picture shows it
from the centre of the sphere on a plane, where great circles are straight lines.
"""

from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot as plt

from solvers.version_space.billiard import Player, Rules, table_of

FILE = Path(__file__).with_name("version_space.svg")
SAMPLES = np.array([[0.05, -1.0, 0.35], [0.95, 0.42, 0.05], [-0.97, 0.3, 0.45]])
"""Samples, each with the label 1."""
N_BOUNCES, N_ARCS = 14, 20_000


def unit(v):
    """Return vectors of length 1.

    Parameters
    ----------
    v : ndarray of shape (..., 3)
        Vectors.

    Returns
    -------
    ndarray of shape (..., 3)
        Vectors over their lengths.
    """
    return v / np.linalg.norm(v, axis=-1, keepdims=True)


def path_of_ball(H):
    """Return the positions of a ball at its first bounces.

    Parameters
    ----------
    H : ndarray of shape (3, 3)
        Inner products of the samples.

    Returns
    -------
    ndarray of shape (N_BOUNCES + 1, 3)
        Coefficients of the samples.
    """
    player = Player(table_of(H), Rules(2.0 * np.pi, False, 1e-3, 0, np.inf), [4])
    positions = [player.ball.gamma.copy()]
    for n in range(1, N_BOUNCES + 1):
        player.rules = player.rules._replace(max_bounces=n)
        player.fly(N_ARCS)
        positions.append(player.ball.gamma.copy())
    return np.array(positions)


def draw(file):
    """Draw the triangle, the sphere, the ellipsoid, the Bayes point and the path of the ball.

    Parameters
    ----------
    file : Path
        SVG to write.
    """
    normals = unit(SAMPLES)
    H = normals @ normals.T
    player = Player(table_of(H), Rules(2.0 * np.pi, False, 1e-3, 10**9, np.inf), [0])
    player.fly(N_ARCS)
    bayes = unit(player.ball.W @ normals)
    svm = unit(table_of(H).start @ normals)
    corners = unit(np.linalg.inv(normals).T)
    first = unit(np.cross(bayes, [0.0, 1.0, 0.0]))
    axes = np.stack([first, np.cross(bayes, first)])

    def seen(points):
        """Return the points as they appear on the plane that touches the sphere at the Bayes point.

        Parameters
        ----------
        points : ndarray of shape (..., 3)
            Points of the sphere.

        Returns
        -------
        ndarray of shape (..., 2)
            Points of the plane.
        """
        return points @ axes.T / (points @ bayes)[..., None]

    angle = np.linspace(0.0, 2.0 * np.pi, 200)
    radius = np.arcsin((normals @ svm).min())
    around = unit(np.cross(svm, [0.0, 1.0, 0.0]))
    circle = np.outer(np.cos(angle), around) + np.outer(np.sin(angle), np.cross(svm, around))
    sphere = np.cos(radius) * svm + np.sin(radius) * circle
    A, B, C = seen(corners)
    centre = (A + B + C) / 3.0
    ellipse = centre + 0.5 * np.outer(np.cos(angle), C - centre)
    ellipse += 0.5 / np.sqrt(3.0) * np.outer(np.sin(angle), A - B)

    mpl.rcParams["svg.hashsalt"] = "version_space"
    figure, plot = plt.subplots(figsize=(6.4, 4.2))
    plot.fill(*np.array([A, B, C]).T, color="0.93", zorder=0)
    plot.plot(*np.array([A, B, C, A]).T, color="0.3", label="version space of three samples")
    plot.plot(*seen(path_of_ball(H) @ normals).T, color="0.6", linewidth=0.8, label="path of the ball")
    plot.plot(*seen(sphere).T, color="C0", label="largest sphere")
    plot.plot(*seen(svm), "s", color="C0", label="its centre, the SVM")
    plot.plot(*ellipse.T, color="C1", label="largest ellipsoid")
    plot.plot(*centre, "^", color="C1", markersize=11, label="its centre")
    plot.plot(*seen(bayes), "o", color="C3", label="Bayes point, by the billiard")
    plot.set_aspect("equal")
    plot.set_axis_off()
    plot.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize=8)
    figure.savefig(file, bbox_inches="tight", metadata={"Date": None})


if __name__ == "__main__":
    draw(FILE)
