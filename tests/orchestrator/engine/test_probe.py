"""A plan measures the trainings of solvers whose cost nobody knows."""

import time

import pytest
from sklearn.naive_bayes import GaussianNB

from orchestrator.config.compose import load_settings
from orchestrator.engine.prepare import prepare_study
from orchestrator.engine.probe import probed_seconds


class Busy(GaussianNB):
    """Naive Bayes that works for 50 ms, or 250 ms with the larger value of its parameter."""

    def __init__(self, rounds=1, priors=None, var_smoothing=1e-9):
        super().__init__(priors=priors, var_smoothing=var_smoothing)
        self.rounds = rounds

    def fit(self, X, y):
        end = time.process_time() + 0.05 * self.rounds
        while time.process_time() < end:
            pass
        return super().fit(X, y)


class Failing(GaussianNB):
    def fit(self, X, y):
        raise ValueError("no")


@pytest.fixture(scope="module", params=["grid", "every"])
def prepared(tmp_path_factory, request):
    folder = tmp_path_factory.mktemp("probe")
    (folder / "solver").mkdir()
    for name, space in (("Busy", "{rounds: [1, 5]}"), ("Failing", "{}")):
        (folder / "solver" / f"{name}.yaml").write_text(f"_target_: {__name__}.{name}\nspace: {space}\n")
    overrides = ["study=s", "datasets=[iris]", "solvers=[Busy,Failing,libsvm_l1]", f"search={request.param}"]
    paths = [f"paths.results={folder / 'results'}", f"paths.cache={folder / 'cache'}"]
    return prepare_study(load_settings([*overrides, *paths], folder))


@pytest.mark.filterwarnings("ignore")
def test_the_cost_is_the_mean_of_the_first_and_the_last_candidate(prepared):
    found = probed_seconds(prepared, known=())
    assert found.keys() == {("iris", "Busy")}  # one fails, and the costs of LIBSVM are known
    assert found["iris", "Busy"] == pytest.approx(0.15, rel=0.3)


def test_what_is_stored_is_not_measured(prepared):
    assert probed_seconds(prepared, known=[("iris", "Busy"), ("iris", "Failing")]) == {}
