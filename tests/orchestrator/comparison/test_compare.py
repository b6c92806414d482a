"""`svmbench.compare`: rows of the same study by YAML, the result, and studies that are kept or not."""

import gc
import shlex
import subprocess
import sys
import types
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import scipy.stats
import yaml
from hydra.core.override_parser.overrides_parser import OverridesParser
from sklearn.datasets import load_wine
from sklearn.decomposition import PCA
from sklearn.model_selection import RepeatedStratifiedKFold, StratifiedKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import svmbench
from orchestrator.analysis.dataset_answer import answer_of_dataset
from orchestrator.analysis.findings import analyse
from orchestrator.cli.main import main
from orchestrator.comparison.display import NotebookDisplay
from orchestrator.comparison.python_terms import in_python
from orchestrator.config.override_text import with_quotes
from orchestrator.datasets.dates import SPLITTER
from orchestrator.engine.load import load_study
from orchestrator.report.sections.protocol import protocol
from orchestrator.store.columns import RUN_COLUMNS
from orchestrator.study.column_overrides import drop_override, groups_override
from orchestrator.study.errors import ConfigError
from tests.messages import assert_says, raises
from tests.orchestrator.notebooks import CELL, run_cell

pytestmark = pytest.mark.usefixtures("no_pages")

WINE = load_wine(as_frame=True).frame
X, Y = load_wine(return_X_y=True)
SOLVERS = {
    "piped": (make_pipeline(StandardScaler(with_mean=False), SVC(cache_size=100)), {"svc__C": [1, 10]}),
    "bushy": DecisionTreeClassifier(max_depth=3),
}
BY_YAML = {
    "piped": {
        "_target_": "sklearn.pipeline.Pipeline",
        "steps": [
            ["standardscaler", {"_target_": "sklearn.preprocessing.StandardScaler", "with_mean": False}],
            ["svc", {"_target_": "sklearn.svm.SVC", "cache_size": 100}],
        ],
        "space": {"svc__C": [1, 10]},
    },
    "bushy": {"_target_": "sklearn.tree.DecisionTreeClassifier", "max_depth": 3, "space": {}},
}


class Unreadable(SVC):
    def __init__(self, *args):
        super().__init__()


class FailsOnOneFold(GaussianNB):
    """Fails on 30 training rows of the first class, which one of two outer folds has."""

    def fit(self, X, y):
        if (y == 0).sum() == 30:
            raise ValueError("30 rows")
        return super().fit(X, y)


BINS = pd.cut(pd.Series(range(18)), 3)
MIXED = pd.DataFrame({"a": [1, "x"] * 9, "b": ["u", "v"] * 9})
SPARSE = pd.arrays.SparseArray([0.0, 1.0] * 9)
SMALL = {"outer": 2, "inner": 2, "progress": False}


def comparable(results):
    """The columns in which runs must agree."""
    columns = [name for name in results.trials if name not in RUN_COLUMNS]
    return results.trials[columns].sort_values("key", ignore_index=True)


@pytest.fixture(autouse=True)
def _own_modules(monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path])


# -- the same rows as by YAML ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("comparisons")


@pytest.fixture(scope="module")
def data(folder):
    """Datasets of every form; each has other columns, because equal datasets would count twice."""
    WINE.iloc[:, [0, 1, 2, -1]].to_csv(folder / "table.csv", index=False)
    return {
        "frame": (WINE.iloc[:, [3, 4, 5, -1]].assign(target=pd.Categorical(Y)), "target"),
        "array": (X[:, 4:], Y.astype(str)),
        "sparse": (scipy.sparse.csr_matrix(np.where(X[:, 5:] > X[:, 5:].mean(0), X[:, 5:], 0)), Y),
        "path": (str(folder / "table.csv"), "target"),
    }


def _by_loaders(folder, data):
    """Write the datasets as a user would, with loaders of their own, and return the folder."""
    conf = folder / "conf"
    frame, _ = data["frame"]
    frame.to_pickle(folder / "frame.pickle")
    np.save(folder / "array.npy", data["array"][0])
    scipy.sparse.save_npz(folder / "sparse.npz", data["sparse"][0])
    for group, nodes in {
        "solver": BY_YAML,
        "dataset": {
            **{name: {"_target_": f"comparison_data.{name}"} for name in ("frame", "array", "sparse")},
            "path": {
                "_target_": "orchestrator.datasets.csv_file",
                "path": str(folder / "table.csv"),
                "label": "target",
            },
        },
    }.items():
        (conf / group).mkdir(parents=True, exist_ok=True)
        for name, node in nodes.items():
            (conf / group / f"{name}.yaml").write_text(yaml.safe_dump(node, sort_keys=False))
    (conf / "comparison_data.py").write_text(
        f"""import numpy as np, pandas as pd, scipy.sparse
from sklearn.datasets import load_wine
Y = load_wine().target
def frame():
    table = pd.read_pickle({str(folder / "frame.pickle")!r})
    return table.drop(columns="target"), table["target"]
def array(): return np.load({str(folder / "array.npy")!r}), Y.astype(str)
def sparse(): return scipy.sparse.load_npz({str(folder / "sparse.npz")!r}), Y
"""
    )
    return conf


def test_objects_give_the_rows_of_the_same_study_by_yaml_on_either_cluster(folder, data, monkeypatch):
    notebook = run_cell(CELL, monkeypatch)
    solvers = {**SOLVERS, "mine": notebook.Nearest(power=1)}
    arguments = {**SMALL, "study": "s", "prepare": "minmax"}
    serial = svmbench.compare(data, solvers, **arguments, cluster="serial", results=folder / "serial")
    assert len(serial.trials) == len(data) * 2 * (5 + 1 + 1)
    local = svmbench.compare(data, solvers, **arguments, cluster="local", workers=1, results=folder / "local")
    assert comparable(local.study).equals(comparable(serial.study))
    by_yaml = svmbench.run_study(
        *("study=s", "datasets=[frame,array,sparse,path]", "solvers=[piped,bushy]", "cluster=serial"),
        *("protocol.outer=2", "protocol.inner=2", f"paths.results={folder / 'yaml'}"),
        config_dir=_by_loaders(folder, data),
    )
    expected = comparable(by_yaml)
    of_both = comparable(serial.study)[lambda rows: rows["solver"] != "mine"].reset_index(drop=True)
    assert of_both[expected.columns].equals(expected)


# -- the result ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def result(folder):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [*sys.path])
        solvers = {"svc": (SVC(), {"C": [1, 10]}), "bayes": GaussianNB()}
        return svmbench.compare(WINE, "target", solvers, outer=3, inner=2, cluster="serial", progress=False)


def test_the_result_answers_and_shows_scores_with_intervals(result):
    assert_says(result.answer, "svc", "bayes", "178 rows", "largest class 39.9 %")
    scores = result.scores.set_index("solver")
    for solver, rows in result.trials[result.trials["inner"] == -1].groupby("solver"):
        values = rows["score"].to_numpy()
        n_test, n_train = rows["n_test"].mean(), rows["n_train"].mean()
        error = values.std(ddof=1) * np.sqrt(1 / 3 + n_test / n_train)
        half = scipy.stats.t.ppf(0.975, 2) * error
        expected = [values.mean(), error, values.mean() - half, min(1, values.mean() + half)]
        found = scores.loc[solver, ["mean", "standard_error", "low", "high"]]
        assert found.to_numpy(dtype=float) == pytest.approx(expected, rel=1e-3)
    assert (result.trials["solver"] == "bayes").sum() == 3  # an untuned solver is trained once an outer split


def test_a_cell_shows_the_answer_a_table_and_a_figure(result):
    assert repr(result).startswith(result.answer)
    assert_says(repr(result), "95 % interval", "svc", "bayes")
    shown = result._repr_html_()
    assert all(part in shown for part in ("<pre>", "<table", "<svg", "95 % interval"))
    assert result.plot().axes


def test_predictions_give_the_scores(result):
    right = result.predictions.assign(right=lambda rows: rows["true"] == rows["predicted"])
    means = right.groupby(["solver", "outer"])["right"].mean()
    refits = result.trials[result.trials["inner"] == -1].set_index(["solver", "outer"])["score"]
    assert means.to_dict() == refits.to_dict()


def test_the_best_model_is_fitted_on_all_rows(result):
    model = result.best(solver="svc")
    features = WINE.drop(columns="target")
    assert (model.predict(features) == WINE["target"]).mean() > 0.95
    assert model is result.best("data", "svc")
    assert model.feature_names_in_.tolist() == features.columns.tolist()
    assert result.best().predict(features.head()).shape == (5,)
    with raises(ConfigError, "solver", "svc", "'svm'"):
        result.best(solver="svm")
    with raises(ConfigError, "dataset", "data", "'wine'"):
        result.best("wine")


def test_the_best_model_is_the_first_of_the_answer():
    solvers = {"fails": FailsOnOneFold(), "stump": DecisionTreeClassifier(max_depth=1, random_state=0)}
    found = svmbench.compare(WINE, "target", solvers, **SMALL)
    means = found.scores.set_index("solver")
    assert means["n_folds"].to_dict() == {"fails": 1, "stump": 2}
    assert means["mean"]["fails"] > means["mean"]["stump"]
    assert found.best() is found.best(solver="stump")


@pytest.mark.figures("answer")
def test_the_report_is_written_to_any_folder(result, tmp_path):
    page = result.report(tmp_path / "of_result")
    assert page.is_file()
    assert svmbench.write_report(result, tmp_path / "of_function").read_text() == page.read_text()
    with raises(ConfigError, "folder", "kept"):  # it would be deleted with the result
        svmbench.write_report(result)


# -- studies that are kept, and those that are not ------------------------------------------------


def studies_in(folder):
    return sorted(path.name for path in folder.iterdir() if path.name.startswith("svmbench-"))


def test_without_a_name_nothing_remains(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    found = svmbench.compare(X, Y, [GaussianNB], **SMALL, cluster="serial")
    assert len(studies_in(tmp_path)) == 1
    assert found.study.folder.is_dir()
    del found
    gc.collect()
    assert studies_in(tmp_path) == []
    with raises(ConfigError, "metric", "'accuracy'"):
        svmbench.compare(X, Y, [GaussianNB], **SMALL, cluster="serial", metric="acuracy")
    assert studies_in(tmp_path) == []


def test_with_a_name_it_is_resumed_and_continued_by_the_command_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    arguments = {**SMALL, "cluster": "serial", "study": "kept"}
    frame = WINE.iloc[:, -5:]
    first = svmbench.compare(frame, "target", SOLVERS, **arguments)
    again = svmbench.compare(frame, "target", SOLVERS, **arguments)
    assert again.trials.equals(first.trials)
    wider = svmbench.compare(frame, "target", {**SOLVERS, "bayes": GaussianNB()}, **arguments)
    assert set(wider.trials["run_id"]) == {*first.trials["run_id"], wider.study.provenance[-1]["run_id"]}
    assert len(wider.trials) == len(first.trials) + 2
    main(["run", "study=kept"])
    assert "0 trials run and 14 found stored" in " ".join(capsys.readouterr().out.split())
    main(["run", "study=kept", "protocol.outer=3"])
    assert len(load_study("kept").outer) == 3 * 3
    (file,) = (tmp_path / "results" / "kept" / "data_in_memory").iterdir()
    file.unlink()
    assert main(["run", "study=kept"]) == 1
    assert_says(capsys.readouterr().err, "dataset data", file.name, "compare", "again")
    narrower = svmbench.compare(frame, "target", SOLVERS, **arguments)
    assert narrower.trials["key"].tolist() == wider.trials["key"].tolist()  # nothing is removed
    assert file.is_file()
    main(["rename", "kept", "renamed"])
    capsys.readouterr()
    assert main(["run", "study=renamed", "protocol.outer=2"]) == 0
    assert "0 trials run" in " ".join(capsys.readouterr().out.split())


def test_a_notebook_shows_one_line_that_is_updated_and_disappears(monkeypatch):
    shown = []

    class Handle:
        def update(self, content):
            shown.append(content)

    notebook = types.ModuleType("IPython")
    notebook.get_ipython = lambda: types.SimpleNamespace(kernel=object())
    notebook.display = types.ModuleType("IPython.display")
    notebook.display.HTML = str
    notebook.display.display = lambda content, display_id: shown.append(content) or Handle()
    monkeypatch.setitem(sys.modules, "IPython", notebook)
    monkeypatch.setitem(sys.modules, "IPython.display", notebook.display)
    svmbench.compare(X, Y, [GaussianNB], outer=2, cluster="serial")
    assert "<progress value='2' max='2'>" in shown[-2]
    assert_says(shown[-2], "2 of 2 trials")
    assert shown[-1] == ""


def test_the_report_of_untuned_solvers_names_no_inner_folds():
    found = svmbench.compare(X, Y, [GaussianNB, SVC], outer=2, cluster="serial", progress=False)
    terms = protocol(analyse(found.study))
    assert_says(terms["Evaluation"], "fixed hyper-parameters", "2 folds")
    assert_says(terms["Search"], "none", "configured")


def test_one_metric_one_override_and_the_class_of_a_transformer_need_no_list_or_instance():
    found = svmbench.compare(
        *(X, Y, GaussianNB),
        also="f1_macro",
        overrides="protocol.outer=3",
        prepare=StandardScaler,
        cluster="serial",
        progress=False,
    )
    assert found.trials["status"].tolist() == ["ok"] * 3
    assert found.trials["score_f1_macro"].notna().all()


def test_overrides_set_the_parameters_of_a_file_and_of_a_frame(tmp_path):
    copied = pd.concat([WINE, WINE.iloc[:20]])
    file = tmp_path / "wines.csv"
    copied.to_csv(file, index=False)
    n_distinct = len(WINE.drop_duplicates())
    for data, name in ((file, "wines"), (copied, "data")):
        given = {"overrides": [f"dataset.{name}.deduplicate=drop", "protocol.outer=3"]}
        found = svmbench.compare(data, "target", GaussianNB, cluster="serial", progress=False, **given)
        assert found.trials["n_test"].sum() == n_distinct
        assert len(found.trials) == 3
    given = {"overrides": ["metric=f1_macro"], "outer": 2, "cluster": "serial", "progress": False}
    found = svmbench.compare(file, "target", GaussianNB, **given)
    assert found.study.declaration.protocol["metric"] == "f1_macro"
    with raises(ConfigError, "wine", "is given parameters"):
        svmbench.compare(
            file, "target", GaussianNB, overrides="dataset.wine.deduplicate=drop", progress=False
        )
    with raises(ConfigError, "dedup", "wines"):
        svmbench.compare(file, "target", GaussianNB, overrides="dataset.wines.dedup=drop", progress=False)


def test_the_name_that_is_given_is_the_name_that_is_shown(tmp_path):
    arguments = {**SMALL, "cluster": "serial", "study": "named", "results": tmp_path}
    solvers = {"plain": "naive_bayes", "dotted": "sklearn.svm.SVC", "lda": "lda"}
    found = svmbench.compare({"mine": "wine"}, None, solvers, search="random", candidates=2, **arguments)
    assert {*found.trials["dataset"]} == {"mine"}
    assert {*found.trials["solver"]} == {*solvers}
    assert found.trials["status"].eq("ok").all()
    assert main(["plan", "study=named", f"paths.results={tmp_path}"]) == 0


def test_the_best_model_takes_the_frame_with_its_durations():
    frame = WINE.iloc[:, [0, 6, -1]].assign(ash=pd.to_timedelta(WINE["ash"], unit="h"))
    found = svmbench.compare(frame, "target", [GaussianNB], outer=2, cluster="serial", progress=False)
    features = frame.drop(columns="target")
    hours = features.assign(ash=WINE["ash"] * 3600)
    assert (found.best().predict(features) == found.best().predict(hours)).all()


def test_a_preparation_that_fails_is_said_once():
    with warnings.catch_warnings(record=True) as warned:
        svmbench.compare(
            *(X, Y, [GaussianNB(), DecisionTreeClassifier()]),
            **{**SMALL, "cluster": "serial", "prepare": PCA(n_components=99)},
        )
    (said,) = [str(each.message) for each in warned if "PCA" in str(each.message)]
    assert_says(said, "dataset data", "preparation PCA", "GaussianNB", "DecisionTreeClassifier")


@pytest.mark.full
def test_a_script_from_standard_input_runs_on_local_workers():
    script = (
        "import svmbench; from sklearn.datasets import load_wine\n"
        "from sklearn.naive_bayes import GaussianNB\n"
        "X, y = load_wine(return_X_y=True)\n"
        "found = svmbench.compare(X, y, [GaussianNB()], outer=2, workers=1, progress=False)\n"
        "print(found.trials['status'].tolist())\n"
    )
    done = subprocess.run([sys.executable, "-"], input=script, capture_output=True, text=True, check=False)
    assert done.stdout == "['ok', 'ok']\n", done.stderr


def test_a_script_needs_no_guard_and_says_what_one_would_bring(tmp_path):
    script = tmp_path / "three_lines.py"
    script.write_text(
        """import svmbench
from orchestrator.execution.main_guard import is_unguarded
from sklearn.datasets import load_wine
def guarded(): return not is_unguarded()
result = svmbench.compare(*load_wine(return_X_y=True), ["baseline"], outer=2, progress=False)
print(len(result.trials), guarded())
if __name__ == "__main__":
    print(guarded())
"""
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    *_, of_call, of_guard = done.stdout.splitlines()
    assert (of_call, of_guard) == ("2 False", "True")
    assert_says(done.stderr, "three_lines.py:5", '__name__ == "__main__"', 'cluster="serial"')


# -- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("protocol.repeats=5 would do", "repeats=5 would do"),
        ("set protocol.prepare=table, which", 'set prepare="table", which'),
        ("metric=balanced_accuracy counts", 'metric="balanced_accuracy" counts'),
        ("or use search=grid", 'or use search="grid"'),
        ("search.budget must be", "candidates must be"),
        ("set cluster=serial", 'set cluster="serial"'),
        ("did you mean 'protocol.outer'?", "did you mean 'protocol.outer'?"),
        ("protocol.max_seconds=60, search.space.C=[1]", "protocol.max_seconds=60, search.space.C=[1]"),
        ("protocol.metric: scikit-learn", "metric: scikit-learn"),
        ("to leave out: drop=[customer]", "to leave out: frame.drop(columns=['customer'])"),
        ("leave out: 'drop=[my id,when]'", "leave out: frame.drop(columns=['my id', 'when'])"),
        ("or a transformer such as {_target_: sklearn.decomposition.PCA}", "or a transformer such as PCA()"),
        (
            "or {_target_: sklearn.metrics.make_scorer, score_func: m.f2, …}",
            "or make_scorer(score_func=m.f2, …)",
        ),
        ("with groups=who, or", "with groups='who', or"),
        ("drop the copies (dataset.mine.deduplicate=drop)", "drop the copies (frame.drop_duplicates())"),
        ("must be above 0, or null, found [1, null]", "must be above 0, or None, found [1, None]"),
        ("the true label, found 'true'", "the true label, found 'true'"),
        (f"test later rows: {SPLITTER}", "test later rows: outer=TimeSeriesSplit(n_splits=5)"),
    ],
)
def test_advice_is_in_the_terms_of_the_caller(text, expected):
    assert in_python(text) == expected


@pytest.mark.parametrize(
    "names", [["größe"], ["it's", 'say "a"'], ["a,b", "x]y", "{z}"], ["Kunde Nr.", "1", "\\", "a\\'"]]
)
def test_advice_about_columns_names_them_in_python_and_in_a_shell(names):
    assert in_python(f"use {drop_override(names)}, or") == f"use frame.drop(columns={names}), or"
    assert in_python(f"with {groups_override(names[0])}.") == f"with groups={names[0]!r}."
    (typed,) = shlex.split(drop_override(names))
    assert OverridesParser.create().parse_override(with_quotes(typed)).value() == names


@pytest.mark.parametrize(
    ("arguments", "facts"),
    [
        (("frame", "targt", [SVC]), ("dataset data", "'targt'", "'target'")),
        (("frame", "target", {"svc": (SVC(), {"C": None})}), ("found None", "write [None]")),
        (("frame", [SVC]), ("dataset data", "proline", "likely: 'target'")),
        ((MIXED, "b", [SVC]), ("column 'a'", "int and str", "frame['a'].astype(str)")),
        ((MIXED.assign(a=1j), "b", [SVC]), ("column 'a'", "complex")),
        ((MIXED.assign(a=SPARSE), "b", [SVC]), ("column 'a'", "sparse values", ".sparse.to_dense()")),
        (("frame", "target", {"my svc": SVC()}), ("'my svc'", "'my_svc'")),
        (("frame", "target", [SVC(), SVC(C=2)]), ("SVC", "twice")),
        (("frame", "target", ["svmm"]), ("svmm", "'svm'")),
        (("frame", "target", [SVC(kernel=lambda a, b: 1)]), ("solver SVC", "SVC.kernel", "lambda")),
        (("frame", Y[:5], [SVC]), ("dataset data", "178 labels", "(5,)")),
        (("nowhere.csv", "y", [SVC]), ("dataset nowhere", "nowhere.csv")),
        ((MIXED.assign(a=BINS), "b", [SVC]), ("column 'a'", "frame['a'].astype(str)")),
        (("frame", "target", {"übung-größe": SVC()}), ("'übung-größe'", "'ubung-grosse'")),
        (("frame", "target", [Unreadable()]), ("Unreadable", "__init__")),
        (("wine", "y", [SVC]), ("wine", "label='y'")),
        ((X, [SVC]), ("dataset data", "(X, y)")),
        (((X, Y),), ("solvers", "compare(X, y, ", "none")),
        (((X, Y), Y), ("solvers", "compare(X, y, ", "ndarray")),
    ],
)
def test_a_wrong_argument_is_one_sentence_with_the_remedy(arguments, facts, tmp_path):
    data, *others = arguments
    data = WINE if isinstance(data, str) and data == "frame" else data
    with pytest.raises(ConfigError) as raised:
        svmbench.compare(data, *others, cluster="serial", progress=False, study="s", results=tmp_path)
    (problem,) = raised.value.problems
    assert_says(problem, *facts)
    assert [*tmp_path.iterdir()] == []


def test_a_table_in_memory_that_changes_is_called_by_the_name_of_its_dataset(tmp_path, capsys):
    for data in (WINE, WINE.assign(alcohol=1.0)):
        where = {"study": "s", "results": tmp_path, "cluster": "serial"}
        svmbench.compare(data, "target", [GaussianNB()], outer=2, **where)
    said = "".join(capsys.readouterr())
    assert_says(" ".join(said.split()), "dataset data has changed since its 2 trials were stored")
    assert ".parquet has changed" not in said


# -- the module ----------------------------------------------------------------------------------


def test_the_module_has_four_names_and_imports_nothing_heavy():
    assert sorted(name for name in vars(svmbench) if not name.startswith("_")) == [
        *("compare", "load_study", "run_study", "write_report")
    ]
    code = (
        "import sys, svmbench; print(*{n.partition('.')[0] for n in sys.modules} - sys.stdlib_module_names)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    allowed = {"orchestrator", "svmbench", "sitecustomize", "usercustomize"}
    assert not {name for name in done.stdout.split() if not name.startswith("_")} - allowed


@pytest.mark.parametrize(
    ("outer", "facts"),
    [
        (StratifiedKFold, ("outer", "StratifiedKFold()")),
        (RepeatedStratifiedKFold(n_splits=3), ("outer", "StratifiedKFold(…)", "repeats=R")),
        ("five", ("outer", "GroupKFold(n_splits=5)", "'five'")),
    ],
)
def test_a_wrong_splitter_is_refused_with_what_to_write(outer, facts):
    with raises(ConfigError, *facts):
        svmbench.compare(X, Y, [GaussianNB], outer=outer, cluster="serial", progress=False)


def test_a_budget_ends_a_comparison_with_the_answer_of_what_is_complete():
    result = svmbench.compare(
        *(X, Y, {"quick": GaussianNB(), "slow": (SVC(), {"C": list(range(1, 400))})}),
        cluster="serial",
        progress=False,
        overrides=["minutes=0.02"],
    )
    assert_says(result.answer, "minutes=0.02")
    assert len(result.trials) < 5 * 400


def test_a_notebook_keeps_what_is_said_about_the_data(capsys):
    display = NotebookDisplay()
    display.say("data: to leave out such columns: drop=[id]")
    assert_says(capsys.readouterr().out, "frame.drop(columns=['id'])")


def test_equal_scores_in_all_folds_have_no_interval():
    X = np.repeat([[0.0], [1.0]], 15, axis=0)
    result = svmbench.compare(X, np.repeat([0, 1], 15), {"bayes": GaussianNB()}, outer=3, cluster="serial")
    assert result.scores["mean"].tolist() == [1.0]
    assert result.scores[["low", "high"]].isna().all(axis=None)


def test_the_best_model_predicts_labels_of_the_callers_type():
    frame, columns = WINE.assign(target=Y + 1.0), WINE.drop(columns="target")
    bayes, options = {"bayes": GaussianNB()}, {"outer": 2, "cluster": "serial", "progress": False}
    for data, row in (((X, Y + 1.0), X[:1]), ((frame, "target"), columns[:1]), ((X, list(Y + 1.0)), X[:1])):
        found = svmbench.compare(data, bayes, **options).best().predict(row)
        assert (found.dtype, found.tolist()) == (np.float64, [1.0])


def test_the_answer_says_that_test_rows_have_copies():
    options = {"outer": 3, "cluster": "serial", "progress": False}
    found = svmbench.compare(pd.concat([WINE, WINE[:40]]), "target", {"bayes": GaussianNB()}, **options)
    assert_says(" ".join(found.answer.split()), "test rows have an exact copy", "frame.drop_duplicates()")


def test_the_answer_names_columns_that_give_the_label():
    options = {"outer": 3, "cluster": "serial", "progress": False}
    again = WINE.assign(again=WINE["target"].map(dict(enumerate("abc"))))
    found = svmbench.compare(again, "target", {"bayes": GaussianNB()}, **options)
    assert_says(" ".join(found.answer.split()), "'again'", "frame.drop(columns=['again'])")
    found = svmbench.compare(WINE.to_numpy(), WINE["target"], {"bayes": GaussianNB()}, **options)
    assert_says(" ".join(found.answer.split()), f"Column {WINE.shape[1] - 1} (from 0)")


def test_an_interval_stays_within_the_values_of_its_metric():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    y = (X[:, 0] + 0.3 * rng.normal(size=40) > 0).astype(int)
    result = svmbench.compare(
        X, y, {"bayes": GaussianNB()}, outer=3, metric="roc_auc", cluster="serial", progress=False
    )
    assert result.scores["mean"].iloc[0] < result.scores["high"].iloc[0] == 1.0
    answer = answer_of_dataset(result.study, result._findings.design, "data")
    assert answer.arms["mean_high"].tolist() == [1.0]


def test_a_metric_of_none_is_refused_in_the_terms_of_python_and_no_further_metrics_may_be_none():
    options = {"cluster": "serial", "progress": False, "outer": 2, "also": None}
    with pytest.raises(ConfigError) as refused:
        svmbench.compare(WINE, "target", {"bayes": GaussianNB()}, metric=None, **options)
    assert_says(str(refused.value), "metric: expected", "make_scorer(", "found None")
    assert "_target_" not in str(refused.value)
    assert (
        svmbench.compare(WINE, "target", {"bayes": GaussianNB()}, **options).trials["status"].eq("ok").all()
    )


def test_a_mapping_that_was_copied_from_two_lines_is_one_override():
    typed = "protocol.outer={_target_: sklearn.model_selection.TimeSeriesSplit, n_splits: \n5}"
    assert with_quotes(typed) == typed.replace("\n", "")
