"""What an estimator publishes is checked: in one serial study each odd class leaves rows that name it."""

import numpy as np
import pytest

from orchestrator import load_study
from orchestrator.cli.main import EXIT_NO_SUCCESS, EXIT_OK, main
from orchestrator.training.fitted_attributes import fitted_columns
from tests.orchestrator import odd_attributes as odd

pytestmark = pytest.mark.usefixtures("no_pages")

STUDY = (
    "study=odd",
    "datasets=[iris]",
    "cluster=serial",
    "protocol.outer=2",
    "protocol.inner=2",
    "protocol.scaling=none",
    "search.space.C=[1]",
    "search.space.gamma=[1]",
)
SOLVERS = (*odd.ODD, *odd.ODD_PATHS)
INNER = 2 * 2 * 2
"""Trainings of an arm on inner splits, two values of C each; there are two refits besides."""


def run(folder, solvers):
    """Run a study of classes of `odd_attributes` and LIBSVM; return its exit code and its trials by arm."""
    configs = folder / "conf"
    (configs / "solver").mkdir(parents=True)
    for name in solvers:
        text = f"_target_: {odd.__name__}.{name}\nspace: {{C: [1, 2]}}\n"
        text += "warm_start: true\n" if name in (*odd.ODD_PATHS, "CentroidsPath") else ""
        (configs / "solver" / f"{name}.yaml").write_text(text)
    paths = (f"paths.results={folder / 'results'}", f"paths.cache={folder / 'cache'}")
    names = f"solvers=[{','.join(solvers)},libsvm_l1]"
    code = main(["run", *STUDY, names, *paths, "--config-dir", str(configs)])
    trials = load_study("odd", folder / "results").trials
    return code, {name: rows.reset_index(drop=True) for name, rows in trials.groupby("solver")}


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Exit code and trials of the study of all of them."""
    return run(tmp_path_factory.mktemp("odd"), SOLVERS)


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """The trials of a class that publishes nothing odd."""
    code, trials = run(tmp_path_factory.mktemp("plain"), ["CentroidsPath"])
    assert code == EXIT_OK
    return trials["CentroidsPath"]


def test_the_study_goes_on_to_its_end_and_says_that_some_arms_have_no_success(study):
    code, trials = study
    assert len(SOLVERS) >= 77
    assert code == EXIT_NO_SUCCESS
    assert trials.keys() == {*SOLVERS, "libsvm_l1"}
    assert set(trials["libsvm_l1"]["status"]) == {"ok"}
    assert all(len(trials[name]) in (INNER, INNER + 2) for name in SOLVERS)


def test_a_value_that_no_column_can_hold_is_left_out_and_named(study, plain):
    for name, (attribute, _) in (odd.LEFT_OUT | odd.PATHS).items():
        rows = study[1][name]
        assert set(rows["status"]) == {"ok"}, name
        assert rows["n_correct"].tolist() == plain["n_correct"].tolist(), name
        assert rows["message"].str.startswith(f"{attribute}: expected ").all(), name
        assert not rows["message"].str.contains(" at 0x").any(), name
        assert (rows["message"].str.len() < 300).all(), name
        columns = ["n_iter", "objective", "gap", "converged", "n_sv", "n_kernel_evals"]
        assert rows[columns].isna().all(axis=None), name


def test_a_value_that_a_column_can_hold_is_stored_without_a_word(study):
    for name in odd.STORED:
        rows = study[1][name]
        assert set(rows["status"]) == {"ok"}, name
        assert set(rows["message"]) == {""}, name
    assert set(study[1]["NIterSubclass"]["n_iter"]) == {3}


@pytest.mark.parametrize("name", odd.DIVERGED)
def test_an_objective_that_is_not_finite_is_a_divergence(study, name):
    rows = study[1][name]
    assert set(rows["status"]) == {"diverged"}
    assert rows["message"].str.contains("nan|inf").all()
    assert rows["score"].isna().all()


@pytest.mark.parametrize("name", odd.RAISED)
def test_an_attribute_that_raises_fails_the_training_with_what_it_raised(study, name):
    rows = study[1][name]
    assert set(rows["status"]) == {"error"}
    assert rows["message"].str.contains("RuntimeError: not now").all()


@pytest.mark.parametrize("name", odd.FAILED_PATHS)
def test_a_path_whose_seconds_cannot_be_shared_out_fails(study, name):
    rows = study[1][name]
    assert set(rows["status"]) == {"error"}
    assert rows["message"].str.contains("fit_seconds_|not readable").all()


@pytest.mark.parametrize("name", odd.PATHS_LABELS)
def test_a_path_without_labels_for_each_training_fails(study, name):
    rows = study[1][name]
    assert set(rows["status"]) == {"error"}
    assert rows["message"].str.contains("expected .* found").all()


def test_nothing_that_could_be_endless_is_iterated_over():
    taken = []

    class Counting:
        def __getitem__(self, index):
            taken.append(index)
            return 1.0

        def __len__(self):
            return 2

    def numbers():
        taken.append(1)
        yield 1.0

    class Fitted:
        n_iter_ = Counting()
        objective_ = numbers()
        duality_gap_ = iter([0.5])
        n_support_ = Counting()
        converged_ = numbers()

    assert fitted_columns(Fitted(), np.array([0, 1])).keys() == {"message"}
    assert taken == []
