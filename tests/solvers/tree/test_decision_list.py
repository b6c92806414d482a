"""Decision lists: no training error, whatever the labels, and the same labels however they are computed."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from solvers import SMOSVC, SVMTreeClassifier
from solvers.tree.decision_list import COPIES, Options, grow, without_contradictions
from solvers.tree.prune import kept_nodes
from solvers.tree.scoring import walk
from solvers.tree.soft_margin import _by_steps, interior_point
from solvers.tree.tail import n_nodes_before, share_by_accuracy
from tests.solvers.tree_problems import PROBLEMS, cosine, random_problem

LISTS_OF_SAMPLE = 10


@pytest.fixture(scope="module")
def problems(full_size):
    """Problems whose rows are all different, with their labels, and every third with shuffled labels."""
    seeds = range(PROBLEMS) if full_size else range(1, PROBLEMS, PROBLEMS // LISTS_OF_SAMPLE)
    found = []
    for seed in seeds:
        X, is_soft = random_problem(seed)
        limit = 200 if full_size else 100
        X, y = X[:limit], is_soft[:limit].astype(int)
        if seed % 3 == 1:
            y = np.random.default_rng(seed).permutation(y)
        first = np.unique(X, axis=0, return_index=True)[1]
        if 0 < y[first].sum() < first.size:
            found.append((X[first], y[first]))
    return found


def test_xor_takes_two_nodes():
    """XOR: the means of both classes are (½, ½), so that no solver has a direction, and no axis cuts.

    The sample farthest from the mean, the first of four, is cut along the diagonal. H1 then separates (1, 1)
    from the other two: two nodes, no error.
    """
    X, y = np.array([[0.0, 0], [1, 1], [0, 1], [1, 0]]), np.array([0, 0, 1, 1])
    model = SVMTreeClassifier().fit(X, y)
    assert model.predict(X).tolist() == y.tolist()
    assert (model.n_nodes_, model.nodes_[0].solver, model.nodes_[0].n_cut) == (2, "m", 1)
    assert model.nodes_[1].n_cut in (1, 2)
    assert model.converged_


def test_equal_samples_of_both_classes_end_with_their_majority():
    """At x = 0 class 1 has two of three samples, and at x = 1 one of two.

    x = 0 gets its majority 1. The tie at x = 1 goes to class 1, which has more samples (4 of 6). x = −1 is a
    sample of class 0. The list cuts x = −1, and all others have the label 1: one node, two errors.
    """
    X, y = np.array([[0.0], [0], [0], [1], [1], [-1], [2]]), np.array([1, 1, 0, 0, 1, 0, 1])
    codes = without_contradictions(X, y, np.ones(7), 2)
    assert codes.tolist() == [1, 1, 1, 1, 1, 0, 1]
    model = SVMTreeClassifier().fit(X, y)
    assert model.n_nodes_ == 1
    assert (model.predict(X) != y).sum() == 2
    assert COPIES in model.stopping_
    assert model.converged_
    copies = SVMTreeClassifier().fit(np.tile([[0.0], [1.0]], (3, 1)), [0, 0, 1, 1, 0, 0])
    assert copies.n_nodes_ == 0
    assert copies.predict([[0.0], [1.0]]).tolist() == [0, 0]
    assert COPIES in copies.stopping_


@pytest.mark.parametrize(
    "options", [{}, {"greedy": True}, {"candidates": "h1"}, {"candidates": "csvm"}], ids=str
)
def test_there_is_no_training_error(problems, options):
    for X, y in problems[:: 1 if not options else 3]:
        whole = SVMTreeClassifier(prune=False, **options).fit(X, y)
        pruned = SVMTreeClassifier(**options).fit(X, y)
        assert_array_equal(whole.predict(X), y)
        assert_array_equal(pruned.predict(X), y)
        assert 1 <= pruned.n_nodes_ <= whole.n_nodes_ == whole.n_iter_.sum() <= y.size
        assert sum(node.n_cut for node in whole.nodes_) < y.size
        assert all(node.gap > 0.0 and node.hard_class != node.exit_class for node in whole.nodes_)


def test_a_separable_problem_takes_one_node(problems):
    for X, y in problems[::2]:
        shifted = X + 100.0 * y[:, None]
        model = SVMTreeClassifier(C=1e3).fit(shifted, y)
        assert model.n_nodes_ == 1
        assert model.mean_depth_ == 1.0
        assert "one plane separates" in model.stopping_


def test_one_row_a_batch_and_sparse_rows_agree(problems):
    for X, y in problems[::2]:
        model = SVMTreeClassifier().fit(X, y)
        other = np.random.default_rng(0).normal(size=(40, X.shape[1]))
        batch, rows = model.decision_function(other), sparse.csr_matrix(other)
        single = np.concatenate([model.decision_function(other[i : i + 1]) for i in range(40)])
        scale = 1.0 + np.abs(batch).max()
        assert_allclose(single, batch, atol=1e-12 * scale)
        assert_allclose(model.decision_function(rows), batch, atol=1e-12 * scale)
        assert_array_equal(model.predict(other), (batch > 0).astype(int))


def test_labels_swapped_give_the_mirror_image(problems):
    for X, y in problems[::3]:
        one, other = SVMTreeClassifier().fit(X, y), SVMTreeClassifier().fit(X, 1 - y)
        if [n.n_cut for n in one.nodes_] != [n.n_cut for n in other.nodes_]:
            continue  # equal cuts of equal gaps, of which the first counts
        assert_allclose(one.decision_function(X), -other.decision_function(X), rtol=1e-5, atol=1e-7)


def test_several_classes(iris):
    X, y = iris
    for multiclass, n_lists in (("pairwise", 3), ("one_vs_rest", 3), ("list", 1)):
        model = SVMTreeClassifier(multiclass=multiclass).fit(X, y)
        assert_array_equal(model.predict(X), y)
        assert model.n_iter_.size == n_lists
        assert model.n_support_.sum() == model.n_nodes_
        assert model.decision_function(X).shape == (150, 3)
    of_pair = y != 1
    binary = SVMTreeClassifier().fit(X[of_pair], y[of_pair])
    pairwise = SVMTreeClassifier().fit(X, y)
    assert_array_equal(pairwise._lists.directions[pairwise._lists.start[1]], binary._lists.directions[0])


def test_a_tail_after_no_node_is_the_machine_bit_for_bit(two_classes):
    X, y = two_classes
    model = SVMTreeClassifier(tail="rbf", tail_share=1.0, gamma=0.5, tail_C=4.0).fit(X, y)
    machine = SMOSVC(4.0, loss="l1", gamma=0.5).fit(X, y)
    assert_array_equal(model.decision_function(X), machine.decision_function(X))
    assert model.n_nodes_ == 0
    assert model.mean_depth_ == 1.0
    assert model.tail_share_.tolist() == [1.0]
    assert_array_equal(model.n_support_, machine.n_support_)
    auto = SVMTreeClassifier(tail="rbf", gamma=0.5, tail_C=4.0, random_state=0).fit(X, y)
    again = SVMTreeClassifier(tail="rbf", gamma=0.5, tail_C=4.0, random_state=0).fit(X, y)
    assert_array_equal(auto.decision_function(X), again.decision_function(X))
    assert 0.0 <= auto.tail_share_[0] <= 1.0


def test_the_share_of_the_tail_by_hand():
    """Four samples leave at node 0, 0, 1 and nowhere (2).

    The list is right on the first and the third, the tail on all but the third. After 0 nodes 3 are right,
    after one node 2 (the second is lost), after two nodes 3 (the third is won). The best is 3, of which two
    nodes is the most: a quarter reaches the tail.
    """
    exits, weights = np.array([0, 0, 1, 2]), np.ones(4)
    of_list, of_tail = np.array([True, False, True, False]), np.array([True, True, False, True])
    assert share_by_accuracy(exits, of_list, of_tail, weights, 2) == 0.25
    assert [n_nodes_before(exits, weights, 2, share) for share in (1.0, 0.6, 0.5, 0.3, 0.1)] == [
        0,
        1,
        1,
        2,
        2,
    ]


def test_pruning_by_hand():
    """Node 0 cuts sample 0, and node 1 cuts both samples 0 and 1 of the same label: node 0 goes.

    Node 2 cuts sample 2 of the label 1. Without it, sample 2 would get the default 0, an error. If one of the
    four samples may be an error, node 2 goes too.
    """
    leaves = np.array([[True, True, False], [False, True, False], [False, False, True], [False] * 3])
    labels, codes = np.array([1, 1, 1]), np.array([1, 1, 1, 0])
    assert kept_nodes(leaves, labels, 0, codes, np.ones(4), 0.0).tolist() == [False, True, True]
    assert kept_nodes(leaves, labels, 0, codes, np.ones(4), 1.0).tolist() == [False, True, False]


def test_the_walk_ends_at_the_first_plane_with_the_sample_below(two_classes):
    X, y = two_classes
    grown = grow(X, y.astype(np.int64), np.ones(y.size), 2, Options(1.0, "both", False, 1, -1, np.inf))
    model = SVMTreeClassifier(prune=False).fit(X, y)
    walks = walk(X, model._lists)
    for x, label, end in zip(X, walks.labels[:, 0], walks.exits[:, 0], strict=True):
        below = [t for t, node in enumerate(grown.nodes) if x @ node.direction < node.threshold]
        assert end == (below[0] if below else len(grown.nodes))
        assert label == (grown.nodes[end].label if below else grown.default)
    depth = np.minimum(walks.exits[:, 0] + 1, model.n_nodes_).mean()
    assert model.mean_depth_ == pytest.approx(depth)


def test_both_solvers_of_the_soft_margin_agree(two_classes):
    X, y = two_classes
    signs = 2.0 * y - 1.0
    C = np.where(signs > 0, 0.5, 2.0)
    exact = interior_point(X - X.mean(axis=0), signs, C)
    assert cosine(exact.w, _by_steps(X, signs, C, np.inf)) > 1 - 1e-6
    assert_allclose(X.T @ (signs * exact.alpha), exact.w, rtol=1e-6)
    assert exact.gap < 1e-7
    assert (exact.alpha > 0).all()
    assert (exact.alpha < C).all()


@pytest.mark.parametrize("C", [1e3, 1e6, 1e9])
def test_twice_the_same_features_have_the_plane_of_longer_ones(C):
    """Twice each feature is each feature times √2; the weights of two copies are equal.

    At C = 10⁹ Newton's system is singular within rounding errors before the method has converged.
    """
    random = np.random.default_rng(0)
    X, y = random.normal(size=(200, 20)), np.where(random.random(200) < 0.3, 1.0, -1.0)
    X -= X.mean(axis=0)
    penalties = np.where(y > 0, C, 1e4 * C)
    once = interior_point(np.sqrt(2.0) * X, y, penalties)
    twice = interior_point(np.hstack((X, X)), y, penalties)
    assert cosine(np.tile(once.w, 2), twice.w) > 1 - 1e-6
    assert SVMTreeClassifier(C=C).fit(np.hstack((X, X)), y).score(np.hstack((X, X)), y) == 1.0
