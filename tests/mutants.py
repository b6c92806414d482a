"""Mutants of the statistics: one wrong replacement each, and the unit test that must notice it.

    SVMBENCH_MUTANT=3 python -m pytest -p tests.mutants -q -n 0 TEST

As a plugin of pytest, this file replaces the text of a module when it is imported; no file is changed.
`tests/test_mutants.py` runs every mutant under `--full`, and always checks that each can still be made.
"""

import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
VARIABLE = "SVMBENCH_MUTANT"
"""Environment variable with the index of the mutant in `MUTANTS`."""


class Mutant(NamedTuple):
    """A wrong statistic.

    Attributes
    ----------
    module : str
        Name of the module, below `orchestrator`.
    old, new : str
        Text of the module, which occurs once, and the wrong text.
    test : str
        File below tests/orchestrator, and name of the test that notices it.
    """

    module: str
    old: str
    new: str
    test: str

    @property
    def path(self) -> Path:
        """File of the module."""
        return ROOT / "orchestrator" / f"{self.module.replace('.', '/')}.py"


_DECISIONS, _SWEEP = "claims/test_decisions.py", "analysis/test_sweep_tests.py"
_FLIPS, _AGGREGATES = "analysis/test_sign_flips.py", "analysis/test_aggregates.py"
_EFFECTS, _RANKS = "analysis/test_random_effects.py", "analysis/test_signed_rank.py"
_STATISTICS, _RATIOS = "analysis/test_statistics.py", "analysis/test_ratios.py"

MUTANTS = (
    # Survivors of an earlier suite: levels of refutations, and what only frozen pages noticed.
    Mutant(
        "claims.slopes",
        '"settings", swept.looks * len(means), estimated',
        '"settings", swept.looks, estimated',
        f"{_DECISIONS}::test_the_level_of_slopes_over_settings_is_divided_by_the_datasets",
    ),
    Mutant(
        "claims.slopes",
        'points, "datasets", looks, estimated',
        'points, "datasets", 1, estimated',
        f"{_DECISIONS}::test_the_level_of_a_slope_over_datasets_is_divided_by_the_tests",
    ),
    Mutant(
        "claims.comparisons",
        "summarise(ratios, 2 * LEVEL / looks)",
        "summarise(ratios, 2 * LEVEL)",
        f"{_DECISIONS}::test_the_level_of_ratios_and_differences_over_datasets_is_divided_by_the_tests",
    ),
    Mutant(
        "claims.comparisons",
        "wide = _shift(ends, 2 * LEVEL / looks)",
        "wide = _shift(ends, 2 * LEVEL)",
        f"{_DECISIONS}::test_the_level_of_ratios_and_differences_over_datasets_is_divided_by_the_tests",
    ),
    Mutant(
        "claims.comparisons",
        "ratio, looks * len(groups))",
        "ratio, looks)",
        f"{_DECISIONS}::test_the_level_of_datasets_apart_is_divided_by_their_number",
    ),
    Mutant(
        "analysis.summaries",
        'return rows.groupby(level="dataset").max()',
        'return rows.groupby(level="dataset").min()',
        "analysis/test_paired_means.py::test_the_number_of_predictions_is_that_of_the_arm_with_the_most",
    ),
    Mutant(
        "analysis.sweep_tests",
        "1 - design.alpha / len(others)",
        "1 - design.alpha",
        f"{_SWEEP}::test_the_band_of_a_sweep_has_the_level_divided_by_the_settings",
    ),
    Mutant(
        "analysis.sweep_tests",
        'p_holm=holm(frame["p"].to_numpy())',
        'p_holm=frame["p"].to_numpy()',
        f"{_SWEEP}::test_the_selected_arms_of_all_sweeps_are_one_family",
    ),
    Mutant(
        "analysis.statistics",
        "extreme = (states**2).sum(axis=1) >= (ranks",
        "extreme = (states**2).sum(axis=1) > (ranks",
        f"{_STATISTICS}::test_friedman_s_p_is_that_of_permutations",
    ),
    # Max-t over sign flips.
    Mutant(
        "analysis.sign_flips",
        "np.maximum.accumulate(np.where(of_group, each, -1.0), axis=1)",
        "np.where(of_group, each, -1.0)",
        f"{_FLIPS}::test_p_values_are_those_of_all_patterns_one_by_one",
    ),
    Mutant(
        "analysis.sign_flips",
        "groups, least, order = _equivalent_statistics(observed, sizes, alpha)",
        "groups, least, order = _equivalent_statistics(observed, 0 * sizes, alpha)",
        f"{_FLIPS}::test_comparisons_of_unequal_numbers_of_units_are_compared_by_p_of_a_t_test",
    ),
    Mutant(
        "analysis.sign_flips",
        "statistics[np.ix_(2.0 ** (1 - groups) > alpha, ~is_idle)] = np.inf",
        "pass",
        f"{_FLIPS}::test_comparisons_of_unequal_numbers_of_units_are_compared_by_p_of_a_t_test",
    ),
    Mutant(
        "analysis.sign_flips",
        "np.maximum.accumulate(counts[1, ::-1] / total)[::-1]",
        "counts[1] / total",
        f"{_FLIPS}::test_the_step_down_p_does_not_decrease",
    ),
    Mutant(
        "analysis.sign_flips",
        "bits = np.arange(2 ** max(0, n - 1))",
        "bits = np.arange(2 ** max(0, n - 2))",
        f"{_FLIPS}::test_three_differences_by_hand",
    ),
    Mutant(
        "analysis.sign_flips",
        "limit = critical_statistic(centred, alpha, n)",
        "limit = critical_statistic(centred, alpha * kept.shape[1], n)",
        f"{_FLIPS}::test_an_interval_has_the_shifts_that_the_critical_value_allows",
    ),
    Mutant(
        "analysis.sign_flips",
        "usable = (2.0 ** (1 - sizes) <= alpha)",
        "usable = (2.0 ** (-sizes) <= alpha)",
        f"{_FLIPS}::test_an_interval_needs_six_units_and_is_wider_for_more_comparisons",
    ),
    Mutant(
        "analysis.sign_flips",
        "ranks = pd.DataFrame(np.abs(values[:, bounds])).rank().to_numpy() * np.sign(values[:, bounds])",
        "ranks = np.sign(values[:, bounds])",
        f"{_FLIPS}::test_bounds_are_compared_by_their_ranks",
    ),
    Mutant(
        "analysis.sign_flips",
        "floor(alpha * len(ordered) + _ROUND_OFF)",
        "floor(alpha * len(ordered) + _ROUND_OFF) + 1",
        f"{_FLIPS}::test_an_interval_has_the_shifts_that_the_critical_value_allows",
    ),
    Mutant(
        "analysis.sign_flips",
        "yield np.ones((1, n))  # the data themselves",
        "yield np.ones((0, n))",
        f"{_FLIPS}::test_random_patterns_agree_with_all_and_do_not_depend_on_the_order",
    ),
    Mutant(
        "analysis.adjustment",
        "p_adjusted=p[:, :n_pairs].max(axis=0)",
        "p_adjusted=found[0].single_step[:n_pairs]",
        "analysis/test_adjustment.py::test_scores_and_times_are_one_family",
    ),
    Mutant(
        "analysis.adjustment",
        "worst = np.where(agreed, p[:, n_pairs:].max(axis=0), 1.0)",
        "worst = p[:, n_pairs:].min(axis=0)",
        "analysis/test_adjustment.py::test_a_bound_counts_at_its_worse_end",
    ),
    Mutant(
        "analysis.pairwise",
        "multiplied = len(frame) + len(also_tested) if joint is None else 1",
        "multiplied = len(frame) + len(also_tested)",
        "analysis/test_adjustment.py::test_eight_datasets_and_twelve_arms_can_decide",
    ),
    # Errors of aggregates and the set of the best.
    Mutant(
        "analysis.aggregates",
        "betaincinv(wins, n - wins + 1, alpha / 2)",
        "betaincinv(wins, n - wins + 1, alpha)",
        f"{_AGGREGATES}::test_the_share_of_improvements_has_the_exact_binomial_interval",
    ),
    Mutant(
        "analysis.aggregates",
        "[alpha / 2, 1 - alpha / 2]",
        "[alpha, 1 - alpha]",
        f"{_AGGREGATES}::test_equal_folds_give_the_bootstrap_over_units_alone",
    ),
    Mutant(
        "analysis.aggregates",
        "counts = generator.multinomial(n_folds, np.full(n_folds, 1 / n_folds), size)",
        "counts = np.ones((size, n_folds))",
        f"{_AGGREGATES}::test_folds_add_to_the_error_and_families_count_once",
    ),
    Mutant(
        "analysis.aggregates",
        "reached = max(reached, float((largest[:, kept].max(axis=1) >= observed).mean()))",
        "reached = max(reached, float((largest[:, worst] >= observed).mean()))",
        f"{_AGGREGATES}::test_the_first_arm_that_is_removed_has_the_p_of_the_largest_pair",
    ),
    Mutant(
        "analysis.aggregates",
        "pairs[worst, 1 if statistic[worst] > 0 else 0]",
        "pairs[worst, 0 if statistic[worst] > 0 else 1]",
        f"{_AGGREGATES}::test_a_better_arm_is_alone_in_its_set_from_six_units_on",
    ),
    # Models of means.
    Mutant(
        "analysis.random_effects",
        "float((weights * (differences - mean) ** 2).sum()) - (n - 1)",
        "float((weights * (differences - mean) ** 2).sum()) - n",
        f"{_EFFECTS}::test_paule_and_mandel_s_equation_holds",
    ),
    Mutant(
        "analysis.random_effects",
        "reach = self.error * _quantile(self.n - 1, alpha)",
        "reach = self.error * _quantile(10**9, alpha)",
        f"{_EFFECTS}::test_equal_errors_give_the_mean_with_student_s_interval",
    ),
    Mutant(
        "analysis.random_effects",
        "sqrt(max(1.0, excess) / float(weights.sum()))",
        "sqrt(excess / float(weights.sum()))",
        f"{_EFFECTS}::test_precise_datasets_count_more_and_errors_alone_need_no_spread",
    ),
    Mutant(
        "analysis.random_effects",
        "- polygamma(1, half).mean())",
        ")",
        f"{_EFFECTS}::test_variances_shrink_towards_their_common_value",
    ),
    Mutant(
        "analysis.hierarchical",
        "(1 + (splits - 1) * correlations)",
        "1",
        "analysis/test_hierarchical.py::test_correlated_folds_say_less_than_independent_ones",
    ),
    Mutant(
        "analysis.hierarchical",
        "likelihood + np.log(width) + np.log(prior)",
        "-likelihood",
        "analysis/test_hierarchical.py::test_a_clear_difference_an_equality_and_too_little_data",
    ),
    Mutant(
        "claims.comparisons",
        "level = 1 - (1 - LEVEL / looks) ** (1 / max(1, len(known)))",
        "level = LEVEL / looks",
        f"{_DECISIONS}::test_the_largest_standardised_excess_refutes",
    ),
    Mutant(
        "claims.slopes",
        "middle, ends = fitted[0], fitted[0] + fitted[2]",
        "middle, ends = fitted[0], fitted[0] + fitted[1]",
        f"{_DECISIONS}::test_the_curvature_of_a_line_is_one",
    ),
    Mutant(
        "claims.decisions",
        "looks = n_claims * sum(",
        "looks = sum(",
        f"{_DECISIONS}::test_the_level_over_all_claims_of_a_paper_is_stated",
    ),
    # Ranks, Holm's method, Friedman's test and times.
    Mutant(
        "analysis.statistics",
        "factors = np.arange(len(p_values), 0, -1)",
        "factors = np.arange(len(p_values), 0, -1) - 1",
        f"{_STATISTICS}::test_holm_is_monotone_and_clipped",
    ),
    Mutant(
        "analysis.statistics",
        "np.minimum(1.0, np.maximum.accumulate(factors * p_values[order]))",
        "np.minimum(1.0, factors * p_values[order])",
        f"{_STATISTICS}::test_holm_is_monotone_and_clipped",
    ),
    Mutant(
        "analysis.statistics",
        ".sum()) / correction\n",
        ".sum())\n",
        f"{_STATISTICS}::test_friedman_corrects_for_ties",
    ),
    Mutant(
        "analysis.signed_rank",
        "nonzero = values[values != 0]",
        "nonzero = values",
        f"{_STATISTICS}::test_all_pairs_of_demsar_s_table",
    ),
    Mutant(
        "analysis.signed_rank",
        "return plus, minus, min(1.0, 2 * float(",
        "return plus, minus, min(1.0, 1 * float(",
        f"{_STATISTICS}::test_all_pairs_of_demsar_s_table",
    ),
    Mutant(
        "analysis.signed_rank",
        "cut = critical_value(n, 1 - confidence)",
        "cut = critical_value(n, 2 * (1 - confidence))",
        f"{_STATISTICS}::test_all_pairs_of_demsar_s_table",
    ),
    Mutant(
        "analysis.summaries",
        "* sqrt(1 / len(scores) + test_share)",
        "* sqrt(1 / len(scores))",
        f"{_STATISTICS}::test_standard_errors_of_five_folds",
    ),
    Mutant(
        "analysis.pairwise",
        'holm(np.array([*frame["p"], *also_tested]))[: len(frame)]',
        'holm(np.array([*frame["p"]]))',
        f"{_RATIOS}::test_scores_and_times_are_one_family_of_tests",
    ),
)


class _Loader(importlib.machinery.SourceFileLoader):
    """Loader of a module with the wrong text."""

    def __init__(self, name: str, mutant: Mutant):
        super().__init__(name, str(mutant.path))
        self._mutant = mutant

    def get_code(self, fullname: str):
        """Compile the wrong text; a stored compilation would be of the right one."""
        text = mutated(self._mutant)
        return compile(text, str(self._mutant.path), "exec", dont_inherit=True)


class _Finder(importlib.abc.MetaPathFinder):
    """Finder of the module of a mutant."""

    def __init__(self, mutant: Mutant):
        self._mutant, self._name = mutant, f"orchestrator.{mutant.module}"

    def find_spec(self, fullname, path=None, target=None):
        """Return the specification of the mutant's module, and none of others."""
        if fullname != self._name:
            return None
        return importlib.util.spec_from_loader(fullname, _Loader(fullname, self._mutant))


def mutated(mutant: Mutant) -> str:
    """Return the wrong text of a module; raise if the right one does not occur exactly once."""
    text = mutant.path.read_text(encoding="utf-8")
    if (number := text.count(mutant.old)) != 1:
        raise ValueError(f"{mutant.path}: expected {mutant.old!r} once, found it {number} times")
    return text.replace(mutant.old, mutant.new)


if VARIABLE in os.environ:
    sys.meta_path.insert(0, _Finder(MUTANTS[int(os.environ[VARIABLE])]))
