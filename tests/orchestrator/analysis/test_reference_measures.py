"""Measures against a reference arm: identities, hand-made numbers, and points that an arm lacks."""

import numpy as np
import pandas as pd
import pytest

from orchestrator.analysis.findings import against_references, analyse, grid_points, representative_sets
from orchestrator.analysis.reference_measures import point_means
from orchestrator.study.errors import ConfigError
from orchestrator.study.report_choices import ReportChoices
from tests.messages import raises
from tests.orchestrator.points import FOLDS, GAMMA, SPACE, C, study, trials_of

MEASURES = ["rmse", "ets", "ots", "ecs", "ocs"]


@pytest.fixture
def random_trials():
    generator = np.random.default_rng(0)

    def of(arm, reduction=np.nan):
        numbers = [lambda *_, low=low: low + generator.random() for low in (0.0, 1.0, 5.0)]
        return trials_of(arm, *numbers, reduction=reduction)

    return pd.concat([of("exact"), of("fast", reduction=0.25), of("other")], ignore_index=True)


def measured(results, *references):
    frame = against_references(analyse(results, ReportChoices(reference=references)))
    return frame.set_index(["reference", "solver"])


def test_an_arm_against_itself(random_trials):
    arms = dict.fromkeys(("exact", "fast", "other"), SPACE)
    found = measured(study(random_trials, arms), *arms)
    for arm in arms:
        assert found.loc[(arm, arm), MEASURES].tolist() == pytest.approx([0, 1, 1, 1, 1], abs=1e-15)
    assert (found["n_points"] == found["n_planned"]).all()
    assert (found["n_points"] == len(C) * len(GAMMA) * FOLDS).all()


def test_identities_of_two_arms(random_trials):
    arms = dict.fromkeys(("exact", "fast", "other"), SPACE)
    found = measured(study(random_trials, arms), *arms)
    for first in arms:
        for second in arms:
            there, back = found.loc[(first, second)], found.loc[(second, first)]
            assert there["rmse"] == pytest.approx(back["rmse"])
            assert there["ots"] * back["ots"] == pytest.approx(1)
            assert there["ocs"] * back["ocs"] == pytest.approx(1)
            # The mean of ratios is at least the inverse of the mean of inverse ratios.
            assert there["ets"] >= 1 / back["ets"] - 1e-12
            # Equal points: RMSE² is the square of the difference of means plus the variance of differences.
            least = (there["mean"] - back["mean"]) ** 2 + (there["sd"] - back["sd"]) ** 2
            assert there["rmse"] ** 2 >= least - 1e-12
            # Means over folds vary less than single scores.
            assert there["sd_of_means"] <= there["sd"]
            assert there["maximum"] >= there["mean"]


def test_hand_computed_measures():
    exact = trials_of("exact", lambda *_: 0.9, lambda c, g, f: 8.0 * c, lambda c, g, f: 100 * (1 + f))
    # One training of 1 s and a reduction of 1 s, repeated in each training, which counts once for both C.
    fast = trials_of(
        "fast",
        lambda c, g, f: 0.9 + 0.03 * (1 if f else -1) + 0.01 * (c == 4),
        lambda c, g, f: 1.0 + 1.0,
        lambda c, g, f: 50,
        reduction=1.0,
    )
    results = study(pd.concat([exact, fast], ignore_index=True), {"exact": SPACE, "fast": SPACE})
    row = measured(results).loc["exact", "fast"]
    differences = [0.03**2, 0.03**2, 0.02**2, 0.04**2]  # C = 1 and 4, folds 0 and 1
    assert row["rmse"] == pytest.approx(np.sqrt(np.mean(differences)))
    # 6 trainings of 8 s and 6 of 32 s, against 12 of 1 s and reductions at 3 gamma × 2 folds.
    assert row["reduction_seconds"] == pytest.approx(6)
    assert row["ots"] == pytest.approx(240 / (12 + 6))
    assert row["ets"] == pytest.approx(20)
    assert row["ecs"] == pytest.approx(3)
    assert row["ocs"] == pytest.approx(3)
    assert row["maximum"] == pytest.approx(0.91)
    assert row["mean"] == pytest.approx(0.905)
    assert row["sd"] == pytest.approx(np.std([0.87, 0.93, 0.88, 0.94]))
    assert row["sd_of_means"] == pytest.approx(0.005)


def test_a_model_without_vectors_counts_in_the_sums(random_trials):
    arms = {"exact": SPACE, "fast": SPACE}
    trials = random_trials[random_trials["solver"].isin(arms)].reset_index(drop=True)
    trials.loc[trials.index[trials["solver"] == "fast"][0], "n_sv"] = 0.0
    found = measured(study(trials, arms), *arms)
    exact, fast = (trials.loc[trials["solver"] == arm, "n_sv"].to_numpy() for arm in arms)
    of_fast, of_exact = found.loc[("exact", "fast")], found.loc[("fast", "exact")]
    assert of_fast["ocs"] == pytest.approx(exact.sum() / fast.sum())
    assert np.isnan(of_fast["ecs"])
    assert of_exact["ecs"] == pytest.approx(np.mean(fast / exact))


def test_points_that_an_arm_lacks_are_left_out_and_counted(random_trials):
    arms = {"exact": SPACE, "fast": SPACE, "other": SPACE}
    failed = random_trials.copy()
    of_exact = failed["solver"] == "exact"
    failed.loc[of_exact & (failed["param_C"] == 1) & (failed["outer"] == 0), ["status", "score"]] = [
        "error",
        np.nan,
    ]
    stopped = (failed["solver"] == "fast") & (failed["param_gamma"] == 1)
    failed.loc[stopped, "status"] = "timeout"  # with a score of an unfinished model
    found = measured(study(failed, arms), "exact", "other")
    assert found["n_points"].unstack().loc["exact"].to_dict() == {"exact": 9, "fast": 6, "other": 9}
    assert found["n_points"].unstack().loc["other"].to_dict() == {"exact": 9, "fast": 8, "other": 12}
    assert (found["n_planned"] == 12).all()
    # The measures are those of a study that has only the common points.
    both = (failed["param_gamma"] != 1) & ~((failed["param_C"] == 1) & (failed["outer"] == 0))
    only = measured(study(failed[both], arms), "exact").loc["exact", "fast"]
    assert only["n_points"] == 6
    pd.testing.assert_series_equal(only, found.loc["exact", "fast"])
    assert only[MEASURES].notna().all()


def test_an_arm_without_common_points_has_no_measures(random_trials):
    linear = random_trials[random_trials["solver"] == "other"].assign(param_gamma=np.nan)
    linear = linear.drop_duplicates(["param_C", "outer"])
    trials = pd.concat([random_trials[random_trials["solver"] == "exact"], linear], ignore_index=True)
    found = measured(study(trials, {"exact": SPACE, "other": {"C": list(C)}})).loc["exact", "other"]
    assert found["n_points"] == 0
    assert found[[*MEASURES, "maximum", "mean", "sd"]].isna().all()


def test_parameters_of_the_last_step_of_a_pipeline_have_the_names_of_the_step(random_trials):
    piped = random_trials["solver"] == "other"
    trials = random_trials.assign(
        param_svc__C=random_trials["param_C"].where(piped),
        param_features__gamma=random_trials["param_gamma"].where(piped),
        param_C=random_trials["param_C"].where(~piped),
        param_gamma=random_trials["param_gamma"].where(~piped),
    )
    arms = {"exact": SPACE, "fast": SPACE}
    plain = measured(study(random_trials, {**arms, "other": SPACE}))
    named = {"svc__C": list(C), "features__gamma": list(GAMMA)}
    pd.testing.assert_frame_equal(measured(study(trials, {**arms, "other": named})), plain)


def test_equal_numbers_are_one_point_though_an_arm_has_texts_beside_them(random_trials):
    mixed = random_trials["solver"] == "other"  # a space with "scale" stores its numbers as texts
    texts = random_trials["param_gamma"].map({0.25: "0.25", 0.5: "scale", 1.0: "1.0"})
    trials = random_trials.assign(param_gamma=random_trials["param_gamma"].astype(object).mask(mixed, texts))
    arms = {"exact": SPACE, "fast": SPACE, "other": SPACE | {"gamma": [0.25, "scale", 1.0]}}
    assert measured(study(trials, arms))["n_points"].to_dict()["exact", "other"] == 8
    for text in ("nan", "NaN", "1_0", '"1"', "null", "[1]", "true"):  # texts that are no numbers of JSON
        points = grid_points(analyse(study(trials.replace({"param_gamma": {"scale": text}}), arms)))
        assert f"C=1, gamma={text}" in set(points.loc[points["solver"] == "other", "point"])
    both = trials.replace({"param_gamma": {"scale": "1"}})  # max_features: [1, 1.0] are two settings
    points = grid_points(analyse(study(both, arms)))
    assert points.loc[points["solver"] == "other", "point"].nunique() == len(C) * len(GAMMA)


def test_times_of_another_profile_and_sizes_that_are_not_published_give_no_ratios(random_trials):
    arms = dict.fromkeys(("exact", "fast", "other"), SPACE)
    results = study(random_trials, arms)
    results.trials.loc[results.trials["solver"] == "other", "profile"] = "throughput"
    results.trials.loc[results.trials["solver"] == "fast", "n_sv"] = np.nan
    found = measured(results).loc["exact"]
    assert found.loc["other", ["ets", "ots", "reduction_seconds"]].isna().all()
    assert found.loc["other", ["rmse", "ecs", "ocs"]].notna().all()
    assert found.loc["fast", ["ecs", "ocs"]].isna().all()
    assert found.loc["fast", ["rmse", "ets", "ots"]].notna().all()


def test_means_of_points(random_trials):
    results = study(random_trials, dict.fromkeys(("exact", "fast", "other"), SPACE))
    points = grid_points(results)
    means = point_means(points).set_index(["solver", "point"])
    assert len(means) == 3 * len(C) * len(GAMMA)
    rows = random_trials[
        (random_trials["solver"] == "exact")
        & (random_trials["param_C"] == 4)
        & (random_trials["param_gamma"] == 0.5)
    ]
    found = means.loc["exact", "C=4, gamma=0.5"]
    assert found["score"] == pytest.approx(rows["score"].mean())
    assert found["seconds"] == pytest.approx(rows["fit_seconds"].mean())


def test_sets_are_counted_once_for_each_split_and_each_setting_but_c(random_trials):
    of_fast = random_trials["solver"] == "fast"
    sizes = 10.0 * random_trials["param_gamma"] + random_trials["outer"]
    trials = random_trials.assign(n_representatives=sizes.where(of_fast), n_train=50)
    arms = dict.fromkeys(("exact", "fast", "other"), SPACE)
    found = representative_sets(analyse(study(trials, arms)))
    assert found["solver"].unique().tolist() == ["fast"]
    assert found["parameters"].tolist() == [f"gamma={gamma:g}" for gamma in GAMMA]
    # Folds 0 and 1 have 10 γ and 10 γ + 1 representatives of 50 rows.
    assert found["share"].tolist() == pytest.approx([(10 * gamma + 0.5) / 50 for gamma in GAMMA])
    assert found["n_sets"].tolist() == [2] * len(GAMMA)
    rows = trials[of_fast & (trials["param_gamma"] == 1)]
    assert found["reduction_seconds"].iloc[-1] == pytest.approx(rows["reduction_seconds"].mean())
    untimed = study(trials, arms)
    untimed.trials["profile"] = "throughput"
    assert representative_sets(analyse(untimed))["reduction_seconds"].isna().all()
    assert representative_sets(analyse(study(random_trials, arms))).empty


def test_two_datasets_stay_apart(random_trials):
    second = random_trials.assign(dataset="e", score=random_trials["score"] / 2)
    results = study(
        pd.concat([random_trials, second], ignore_index=True),
        dict.fromkeys(("exact", "fast", "other"), SPACE),
    )
    found = against_references(analyse(results)).set_index(["dataset", "solver"])
    assert found.loc[("e", "fast"), "rmse"] == pytest.approx(found.loc[("d", "fast"), "rmse"] / 2)
    assert found["reference"].unique().tolist() == ["exact"]


def test_a_reference_that_does_not_exist_or_has_no_use_is_refused(random_trials):
    arms = dict.fromkeys(("exact", "fast", "other"), SPACE)
    with raises(ConfigError, "report.reference", "'exat'", "'exact'"):
        analyse(study(random_trials, arms), ReportChoices(reference=("exat",)))
    with raises(ConfigError, "report.reference", "search=every", "search=grid"):
        analyse(study(random_trials, arms, search="grid"), ReportChoices(reference=("exact",)))
    assert against_references(analyse(study(random_trials, arms, search="grid"))).empty


def narrower(run, arms, **report):
    """Return the record of a later run of some arms of a study."""
    declared = run["study"]
    kept = [arm for arm in declared["arms"] if arm["name"] in arms]
    identities = {name: {arm: found[arm] for arm in arms} for name, found in run["identities"].items()}
    record = {"run_id": "later", "study": {**declared, "arms": kept}, "identities": identities}
    return {**record, "report": report, "found_scores": 1}


def test_a_run_of_fewer_arms_keeps_the_references_and_the_control_of_the_others(random_trials):
    results = study(random_trials, dict.fromkeys(("exact", "fast", "other"), SPACE))
    (first,) = results.provenance
    first |= {
        "report": {"reference": ["exact", "other"], "control": "other"},
        "summary": {"scores_stored": 1},
    }

    def after(*later):
        results.provenance[1:] = later
        design = analyse(results).design
        return list(design.choices.reference), next(iter(design.arms))

    assert after(narrower(first, ["fast"])) == (["exact", "other"], "other")
    assert after(narrower(first, ["other"], reference=["other"])) == (["exact", "other"], "exact")
    assert after(narrower(first, ["exact", "fast"], reference=["fast"])) == (["fast", "other"], "other")
    wider = narrower(first, ["other", "exact"], reference=["other", "exact"])
    assert after(wider, narrower(first, ["exact"], reference=["exact"]))[0] == ["other", "exact"]
    assert after(narrower(first, ["exact", "fast", "other"], reference=["fast"])) == (["fast"], "exact")
    other_seed = narrower(first, ["fast"])  # replaces the first run, so that its references are no arms
    other_seed["study"] = other_seed["study"] | {"protocol": {**first["study"]["protocol"], "seed": 1}}
    assert after(other_seed) == ([], "fast")
