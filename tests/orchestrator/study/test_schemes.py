"""What is said of how rows are split."""

import pytest
from sklearn import model_selection

from orchestrator.study.schemes import in_words, n_repeats


@pytest.mark.parametrize("name", ["RepeatedKFold", "RepeatedStratifiedKFold"])
@pytest.mark.parametrize("arguments", [{}, {"n_repeats": 2}, {"n_splits": 3}])
def test_repeats_are_those_of_the_splitter_be_they_said_or_not(name, arguments):
    scheme = {"_target_": f"sklearn.model_selection.{name}", **arguments}
    splitter = getattr(model_selection, name)(**arguments)
    n_splits = splitter.cvargs["n_splits"]
    assert n_repeats({"outer": scheme, "seed": [0, 1]}) == 2 * splitter.n_repeats
    assert in_words(scheme) == f"{name}, {n_splits} splits × {splitter.n_repeats} repeats"
    assert n_repeats({"outer": {"_target_": "sklearn.model_selection.KFold"}, "seed": 0}) == 1
