import numpy as np
import pandas as pd
import pytest

from orchestrator.analysis.one_dataset import paired_differences

GOLDEN = [0.012, 0.004, 0.019, -0.003, 0.008]


def refits(scores, n_train=400, n_test=100):
    return pd.DataFrame(
        [
            {"dataset": "iris", "solver": arm, "outer": fold, "score": score}
            for arm, folds in scores.items()
            for fold, score in enumerate(folds)
        ]
    ).assign(n_train=n_train, n_test=n_test)


def means(**values):
    return pd.DataFrame(values, index=["iris"])


def only(frame):
    (found,) = frame.to_dict("records")
    return found


def test_the_golden_interval_of_five_folds():
    base = np.array([0.9, 0.8, 0.85, 0.95, 0.7])
    # The folds of an arm need not be stored in order.
    outer = refits({"control": base, "arm": base + GOLDEN}).iloc[::-1]
    found = only(paired_differences(outer, means(control=[0.84], arm=[0.848])))
    assert (found["solver"], found["reference"], found["n_folds"]) == ("arm", "control", 5)
    assert found["difference"] == pytest.approx(0.008)
    assert found["corrected_se"] == pytest.approx(0.005552027, abs=5e-10)
    assert [found["low"], found["high"]] == pytest.approx([-0.007415, 0.023415], abs=5e-7)


def test_a_higher_level_makes_a_wider_interval_and_larger_test_sets_too():
    outer = {"control": np.zeros(5), "arm": GOLDEN}
    both = means(control=[0.0], arm=[0.008])

    def width(frame):
        return only(frame)["high"] - only(frame)["low"]

    usual = width(paired_differences(refits(outer), both))
    assert width(paired_differences(refits(outer), both, 0.01)) > usual
    assert width(paired_differences(refits(outer, n_test=200), both)) > usual


def test_what_an_arm_has_not_completed_is_left_out():
    outer = refits({"control": [0.9] * 5, "arm": [0.9] * 4})
    assert paired_differences(outer, means(control=[0.9], arm=[np.nan])).empty
    assert paired_differences(outer, means(control=[np.nan], arm=[0.9])).empty


def test_a_single_fold_has_no_interval():
    found = only(
        paired_differences(refits({"control": [0.8], "arm": [0.9]}), means(control=[0.8], arm=[0.9]))
    )
    assert found["difference"] == pytest.approx(0.1)
    assert np.isnan([found["low"], found["high"]]).all()
