from pathlib import Path

import pytest
from hydra._internal.core_plugins.file_config_source import FileConfigSource

from orchestrator.config import hydra_compose
from orchestrator.config.compose import compose_settings, known_names, load_settings
from orchestrator.config.override_text import override_of, with_quotes
from orchestrator.execution.certificates import make_certificates
from orchestrator.study.errors import ConfigError
from tests.messages import assert_says, raises

BASE = ("study=x", "datasets=[iris]", "solvers=[libsvm_l1]")


def settings_of(*overrides, config_dir=None):
    return load_settings([*BASE, *overrides], config_dir)


def problems_of(*overrides, config_dir=None):
    with pytest.raises(ConfigError) as refusal:
        settings_of(*overrides, config_dir=config_dir)
    return refusal.value.problems


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("override", "sentence"),
    [
        ("datasets=[iriss]", ("unknown", "dataset 'iriss'", "'iris'", "list", "datasets")),
        ("solvers=[libsvm]", ("unknown", "solver 'libsvm'", "'libsvm_l1'")),
        ("datasets=[]", ("datasets=[NAME,…]",)),
        ("solvers=null", ("solvers=[NAME,…]",)),
        ("datasets={a:1}", ("list", "datasets=[a,b]", "{'a': 1}")),
        ("datasets=3", ("unknown", "dataset '3'")),
        ("dataset=iris", ("unknown", "key 'dataset'", "'datasets=[iris]'")),
        ("solver=mnsvm", ("unknown", "key 'solver'", "'solvers=[mnsvm]'")),
        ("protocl.outer=3", ("unknown", "key 'protocl.outer'", "'protocol.outer'")),
        ("protocol.outr=3", ("unknown", "key 'protocol.outr'", "'protocol.outer'")),
        ("+protocol.outr=3", ("unknown", "key 'protocol.outr'", "'protocol.outer'")),
        ("+foo=1", ("unknown", "key 'foo'")),
        (
            "search=grdi",
            ("unknown", "'grdi'", "pattern", "race", "random", "selected", "'grid'"),
        ),
        ("search=null", ("unknown", "null", "grid", "pattern", "race", "random", "selected")),
        (
            "cluster=slrm",
            ("unknown", "'slrm'", "did you mean", "'slurm'"),
        ),
        ("experiment=quikstart", ("unknown", "'quikstart'", "did you mean", "'quickstart'")),
        ("protocol=5x5", ("unknown", "'5x5'")),
        ("study", ("'study'", "key=value", "key=")),
        ("study=[a", ("'study=[a'", "key=value", "key=")),
        ("datasets=[a[1].csv]", ("datasets=[a[1].csv]", "quotes", "a[1].csv")),
        ("study=a,b", ("study=a",)),
        ("~study", ("'study'", "value")),
        ("study=null", ("study=NAME",)),
        ("study=../elsewhere", ("study='../elsewhere'", "letters", "digits")),
        ("study=.hidden", ("study='.hidden'", "letters")),
        (
            "protocol.outer=1",
            ("protocol.outer", "whole number", "2", "1"),
        ),
        (
            "protocol.inner=2.5",
            ("protocol.inner", "whole number", "2", "2.5"),
        ),
        (
            "protocol.inner=true",
            ("protocol.inner", "whole number", "2", "true"),
        ),
        ("protocol.seed=-1", ("protocol.seed", "whole number", "0", "-1")),
        ("protocol.profile=fast", ("protocol.profile", "throughput", "timing", "'fast'")),
        ("protocol.scaling=non", ("protocol.scaling", "'non'", "'none'")),
        (
            "protocol.metric=acuracy",
            ("protocol.metric", "'acuracy'", "'accuracy'"),
        ),
        (
            "protocol.also=[f1,auc]",
            ("protocol.also", "'auc'", "'roc_auc'"),
        ),
        ("protocol.max_seconds=0", ("protocol.max_seconds", "number above 0", "null")),
        ("cluster.workers=0", ("cluster.workers", "whole number", "1", "0")),
        ("cluster.memory=-1", ("cluster.memory", "number", "above 0", "null", "-1")),
        (
            "cluster.kind=locl",
            ("cluster.kind", "serial", "'locl'", "'local'"),
        ),
        ("cluster=address", ("cluster=address", "scheduler", "cluster.address=tls://HOST:PORT")),
        ("on_error=stop", ("on_error", "continue", "fail_fast", "'stop'")),
        ("retry=all", ("retry", "none", "failed", "'all'")),
        ("paths.results=null", ("paths.results", "null")),
        ("sweep=3", ("sweep.NAME", "3")),
        ("paths=here", ("paths.results", "'here'")),
        (
            "sweep.eta=[1,1.3]",
            ("sweep.eta", "'eta'"),
        ),
        ("sweep.tol=[]", ("sweep.tol", "empty")),
        ("sweep.C=[1,2]", ("sweep.C", "'C'", "search")),
        (
            "sweep.tol=[1e-3,0.001]",
            ("libsvm_l1[tol=0.001]", "same"),
        ),
        (
            "search.space.C=4",
            ("solver libsvm_l1", "'C'", "list", "[4]"),
        ),
        (
            "search.space.C=[]",
            ("solver libsvm_l1", "'C'", "empty"),
        ),
        (
            "search.space.C=[1,1]",
            ("solver libsvm_l1", "1", "'C'", "twice"),
        ),
        (
            "search.space.C=[-1]",
            ("search.space.C", "solver libsvm_l1", "'C'", "SVC", "-1"),
        ),
        (
            "search.space.C=[1,1.0]",
            ("solver libsvm_l1", "'C'", "1.0", "twice"),
        ),
        (
            "search.space.C=[a]",
            ("search.space.C", "solver libsvm_l1", "'C'", "SVC", "'a'"),
        ),
        (
            "search.space.gamma=[{a:1}]",
            ("search.space.gamma", "solver libsvm_l1", "'gamma'", "SVC", "{'a': 1}"),
        ),
        (
            "search.space.nu=[0.1]",
            ("solver libsvm_l1", "sklearn.svm.SVC", "'nu'"),
        ),
        (
            "search.space.kernel=[rbf]",
            ("solver libsvm_l1", "'kernel'", "search"),
        ),
        ("search.kind=foo", ("unknown", "'foo'", "grid", "race", "pattern", "random", "selected")),
        (
            "solver.libsvm_l1.kernl=rbf",
            ("solver libsvm_l1", "sklearn.svm.SVC", "'kernl'", "'kernel'"),
        ),
        ("solver.mnsvm.eta=1.3", ("solver.mnsvm", "solvers=[…]")),
        ("dataset.wine.n=1", ("dataset.wine", "datasets=[…]")),
        ("paths.data=${oc.env:NO_SUCH_VARIABLE}", ("NO_SUCH_VARIABLE",)),
        ("study=${nothing}", ("key 'nothing'",)),
    ],
)
def test_bad_input_gets_one_sentence(override, sentence):
    (problem,) = problems_of(override)
    assert_says(problem, *sentence)


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("overrides", "sentence"),
    [
        (["cluster=ssh"], ("cluster=ssh", "hosts", "cluster.hosts=")),
        (["cluster=ssh", "cluster.hosts=[head,one]"], ("cluster=ssh", "cluster.tls.folder=DIR")),
        (["cluster=ssh", "cluster.hosts=[localhost,one]"], ("cluster=ssh", "cluster.tls.folder=DIR")),
        (
            ["cluster=kubernetes", "cluster.workers=2", "cluster.tls.folder={certificates}"],
            ("cluster=kubernetes", "certificates", "cluster=address"),
        ),
        (
            ["cluster=kubernetes", "cluster.workers=2"],
            ("cluster=kubernetes", "certificates", "cluster.tls.insecure=true"),
        ),
        (
            ["cluster=kubernetes", "cluster.tls.insecure=true"],
            ("cluster=kubernetes", "number of workers", "cluster.workers=N"),
        ),
        (
            ["cluster=address", "cluster.address=tcp://127.0.0.1:8786"],
            ("cluster.address=tls://…", "'tcp://127.0.0.1:8786'", "cluster.tls.insecure=true"),
        ),
        (
            ["cluster=slurm", "cluster.workers=1", "cluster.tls.folder=x", "cluster.tls.insecure=true"],
            ("cluster.tls.insecure=true", "certificates", "cluster.tls"),
        ),
        (["cluster.tls.insecure=perhaps"], ("cluster.tls.insecure", "true or false", "'perhaps'")),
        (["cluster.dashboard=8787"], ("cluster.dashboard", "true or false", "8787")),
        (["cluster=slurm"], ("cluster=slurm", "cluster.workers=N")),
    ],
)
def test_a_cluster_that_would_not_start_or_be_open_to_all_is_refused(overrides, sentence, tmp_path):
    make_certificates(tmp_path)
    (problem,) = problems_of(*(override.format(certificates=tmp_path) for override in overrides))
    assert_says(problem, *sentence)


def test_a_cluster_over_ssh_takes_certificates_or_stays_on_one_host(tmp_path):
    make_certificates(tmp_path)
    encrypted = settings_of("cluster=ssh", "cluster.hosts=[head,one]", f"cluster.tls.folder={tmp_path}")
    assert encrypted.cluster.tls is not None
    assert settings_of("cluster=ssh", "cluster.hosts=[localhost,127.0.0.1]").cluster.tls is None


def test_an_over_relaxation_that_cannot_converge_is_refused_before_anything_runs():
    (problem,) = problems_of("solvers=[mnsvm]", "sweep.eta=[1,1.3,2.5]")
    assert_says(problem, "mnsvm[eta=2.5]", "'eta'", "MNSVC")


@pytest.mark.parametrize(
    ("overrides", "names"),
    [
        (["solvers=[smo_l1]", "sweep.working_set=[2,3]"], ("smo_l1[working_set=3]", "even")),
        (["solvers=[smo_l1]", "solver.smo_l1.kernel=imq", "sweep.coef0=[0,1]"], ("coef0", "imq")),
        (["solvers=[aesvm]", "solver.aesvm.P=500", "sweep.V=[400,600]"], ("aesvm[V=600]", "P=500")),
    ],
)
def test_parameters_that_contradict_each_other_are_refused_before_anything_runs(overrides, names):
    (problem,) = problems_of(*overrides)
    assert_says(problem, *names)


def test_all_problems_are_told_at_once_in_the_order_they_are_found():
    problems = problems_of(
        "protocl.seed=1",
        "datasets=[iris,wien]",
        "solvers=[mnsvm,libsvm,libsvm_l1]",
        "solver.libsvm_l1.tol=-1",
        "sweep.eta=[1,2.5]",
        "protocol.outer=1",
        "protocol.metric=acuracy",
        "on_error=stop",
        "cluster=address",
    )
    expected = ["protocl.seed", "wien", "libsvm'", "protocol.outer", "acuracy", "cluster.address", "on_error"]
    expected += ["mnsvm[eta=2.5]", "solver libsvm_l1: The 'tol' parameter of SVC"]
    assert len(problems) == len(expected)
    assert all(part in problem for part, problem in zip(expected, problems, strict=True)), problems


def test_what_a_misspelt_experiment_would_have_said_is_not_asked_for():
    with pytest.raises(ConfigError) as refusal:
        load_settings(["experiment=quikstart"])
    assert len(refusal.value.problems) == 1


def test_a_misspelt_solver_does_not_make_its_sweep_a_problem():
    assert len(problems_of("solvers=[mnsvmm,libsvm_l1]", "sweep.eta=[1,1.3]")) == 1


# -- what is accepted ----------------------------------------------------------------------------


def test_sweep_values_multiply_the_solvers_that_have_the_parameter():
    arms = settings_of("solvers=[mnsvm,libsvm_l1]", "sweep.eta=[1,1.3]", "sweep.draws=[100,600]").study.arms
    names = [f"mnsvm[eta={eta},draws={draws}]" for eta in ("1", "1.3") for draws in (100, 600)]
    assert [arm.name for arm in arms] == [*names, "libsvm_l1"]
    assert dict(arms[1].params) == {"eta": 1, "draws": 600}
    assert (arms[1].solver, dict(arms[1].sweep)) == ("mnsvm", {"eta": 1, "draws": 600})
    assert arms[-1].sweep == {}


def test_classes_that_are_swept_over_give_readable_names(tmp_path):
    write(tmp_path / "solver" / "bag.yaml", "_target_: sklearn.ensemble.BaggingClassifier\nspace: {}\n")
    tree = "_target_: sklearn.tree.DecisionTreeClassifier"

    def names(*values):
        sweep = f"sweep.estimator=[{','.join(f'{{{value}}}' for value in values)}]"
        return [arm.name for arm in settings_of("solvers=[bag]", sweep, config_dir=tmp_path).study.arms]

    assert names(tree, f"{tree}, criterion: gini, max_depth: 3") == [
        "bag[estimator=DecisionTreeClassifier]",
        "bag[estimator=DecisionTreeClassifier(criterion=gini,max_depth=3)]",
    ]
    same = names(tree, tree.replace("tree.", "tree._classes."), f"{tree}, max_depth: 3")
    assert len(set(same)) == 3
    assert same[1:] == [
        'bag[estimator={"_target_":"sklearn.tree._classes.DecisionTreeClassifier"}]',
        "bag[estimator=DecisionTreeClassifier(max_depth=3)]",
    ]


def test_a_solver_s_own_space_wins(tmp_path):
    write(
        tmp_path / "solver/knn.yaml",
        "_target_: sklearn.neighbors.KNeighborsClassifier\nspace: {n_neighbors: [1, 5]}",
    )
    svc, knn = settings_of("solvers=[libsvm_l1,knn]", config_dir=tmp_path).study.arms
    assert dict(knn.space) == {"n_neighbors": (1, 5)}
    assert set(svc.space) == {"C", "gamma"}


def test_values_that_are_lists_reach_the_estimator_as_they_are(tmp_path):
    write(
        tmp_path / "solver/mlp.yaml",
        "_target_: sklearn.neural_network.MLPClassifier\nspace: {hidden_layer_sizes: [[10], [5, 5]]}",
    )
    (arm,) = settings_of("solvers=[mlp]", config_dir=tmp_path).study.arms
    assert arm.space["hidden_layer_sizes"] == ([10], [5, 5])


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("overrides", "space"),
    [
        (["search.space.gamma=[1]", "search.space.C=[2]"], {"C": (2,), "gamma": (1,)}),
        (["~search.space.gamma", "search.space.C=[2]"], {"C": (2,)}),
        (["search.space={C:[3]}"], {"C": (3,)}),
        (["search=pattern", "search.space.gamma=[1]", "search.space.C=[2]"], {"C": (2,), "gamma": (1,)}),
    ],
)
def test_the_space_is_what_was_said(overrides, space):
    assert dict(settings_of(*overrides).study.arms[0].space) == space


@pytest.mark.parametrize(
    ("override", "space"),
    [
        ("solver.knn.space={}", {}),
        ("~solver.knn.space.weights", {"n_neighbors": (1, 3, 5, 9, 15, 25)}),
        ("solver.knn.space={p: [1, 2]}", {"p": (1, 2)}),
        (
            "solver.knn.space.weights=[uniform]",
            {"n_neighbors": (1, 3, 5, 9, 15, 25), "weights": ("uniform",)},
        ),
        (
            "solver.knn.space={n_neighbors: {low: 1, high: 9, integer: true}}",
            {"n_neighbors": {"low": 1, "high": 9, "integer": True}},
        ),
        (
            "solver.knn.space.n_neighbors={low: 1, high: 9, integer: true}",
            {
                "n_neighbors": {"low": 1, "high": 9, "integer": True},
                "weights": ("uniform", "distance"),
            },
        ),
    ],
)
def test_the_space_of_a_solver_is_what_was_said(override, space):
    (arm,) = settings_of("solvers=[knn]", "search=random", override).study.arms
    assert dict(arm.space) == space


PARENT = "_target_: sklearn.neighbors.KNeighborsClassifier\nspace: {n_neighbors: [1, 5], p: [1, 2]}\n"
RANGE = {"low": 1, "high": 9, "integer": True}


@pytest.mark.parametrize(
    ("files", "typed"),
    [
        (
            {"solver/mine": "defaults: [parent, _self_]\nweights: distance\n"},
            "solver: {mine: {space: {n_neighbors: {low: 1, high: 9, integer: true}}}}",
        ),
        (
            {"solver/mine": f"# @package solver.mine\n{PARENT}"},
            "solver: {mine: {space: {n_neighbors: {low: 1, high: 9, integer: true}}}}",
        ),
        (
            {
                "solver/mine": "defaults: [parent, _self_]\n"
                "space: {n_neighbors: {low: 1, high: 9, integer: true}}\n"
            },
            "",
        ),
    ],
)
def test_a_range_replaces_a_list_of_values_in_any_file(files, typed, tmp_path):
    head = "# @package _global_\ndefaults:\n  - override /search: random\ndatasets: [iris]\nsolvers: [mine]\n"
    for name, text in {"solver/parent": PARENT, "experiment/own": f"{head}{typed}\n", **files}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / f"{name}.yaml").write_text(text)
    composed = compose_settings(["study=x", "experiment=own"], tmp_path)
    space = composed["solver"]["mine"]["space"]
    assert [*space] == ["n_neighbors", "p"]  # their order decides ties
    assert space["n_neighbors"] == RANGE
    assert space["p"] == [1, 2]


def test_an_experiment_may_replace_a_list_of_the_search_by_a_range(tmp_path):
    (tmp_path / "experiment").mkdir()
    text = "# @package _global_\nsearch: {space: {C: {low: 1, high: 9, log: true}}}\n"
    (tmp_path / "experiment/own.yaml").write_text(text)
    space = compose_settings([*BASE, "experiment=own"], tmp_path)["search"]["space"]
    assert [*space] == ["C", "gamma"]
    assert space["C"] == {"low": 1, "high": 9, "log": True}


def test_a_key_that_is_not_in_the_file_of_a_solver_cannot_be_deleted():
    for solver in ("knn", "sklearn.svm.SVC"):
        with raises(ConfigError, "solver.knn.space.p", "does not exist"):
            settings_of(f"solvers=[{solver}]", "~solver.knn.space.p")


def test_parameters_can_be_given_on_the_command_line():
    study = settings_of("datasets=[checkers]", "dataset.checkers.n=50", "solver.libsvm_l1.tol=0.1").study
    assert study.datasets[0].params["n"] == 50
    assert study.arms[0].params["tol"] == 0.1


def test_only_throughput_lets_trainings_start_from_one_another():
    def warm(*overrides):
        return settings_of("solvers=[mnsvm]", *overrides).study.arms[0].warm_starts

    assert warm()
    assert not warm("protocol.profile=timing")
    assert not warm("search.space.C=[1]")
    assert not warm("solver.mnsvm.warm_start=false")
    assert not settings_of().study.arms[0].warm_starts  # LIBSVM knows no warm start


def test_lists_may_be_single_names_and_names_count_once():
    study = settings_of("datasets=wine", "solvers=[mnsvm,mnsvm]").study
    assert [spec.name for spec in study.datasets] == ["wine"]
    assert [arm.name for arm in study.arms] == ["mnsvm"]


def test_a_plus_before_what_hydra_calls_new_is_welcome_and_not_needed():
    assert settings_of("+experiment=quickstart").study.protocol.profile == "timing"
    assert settings_of("solvers=[mnsvm]", "+sweep.eta=[1.5]").study.arms[0].name == "mnsvm[eta=1.5]"


def test_what_is_said_wins_over_the_experiment():
    settings = load_settings(["experiment=quickstart", "protocol.outer=3", "study=mine"])
    assert (settings.study.name, settings.study.protocol.outer) == ("mine", 3)
    assert settings.study.protocol.profile == "timing"


def test_a_narrower_command_leaves_aside_what_the_experiment_says_of_others():
    narrow = ["experiment=aesvm", "solvers=[smo_l1]"]
    settings = load_settings([*narrow, "datasets=[ijcnn1-published]"])
    (arm,) = settings.study.arms
    whole = {each.name: each for each in load_settings(["experiment=aesvm"]).study.arms}
    assert arm == whole["smo_l1"]
    assert settings.report.reference == ("smo_l1",)
    for typed in (
        "sweep.epsilon=[0.1]",
        "solver.cvm.C=1",
        "report.reference=[libsvm_l1]",
        "report.control=cvm",
    ):
        with pytest.raises(ConfigError) as refusal:
            load_settings([*narrow, typed])
        assert len(refusal.value.problems) == 1
        assert_says(refusal.value.problems[0], typed.partition("=")[0].removesuffix(".C"))


# -- a user's own files --------------------------------------------------------------------------


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n")
    return path


@pytest.fixture
def folder(tmp_path):
    write(tmp_path / "solver/linear.yaml", "_target_: sklearn.svm.LinearSVC\nspace: {C: [1, 2]}")
    write(
        tmp_path / "dataset/moons.yaml",
        "_target_: sklearn.datasets.make_moons\nn_samples: 40\nrandom_state: 0",
    )
    write(
        tmp_path / "experiment/mine.yaml",
        "# @package _global_\nstudy: mine\ndatasets: [moons]\nsolvers: [linear]\nprotocol: {outer: 3}",
    )
    return tmp_path


@pytest.mark.parametrize("by", ["--config-dir", "hydra.searchpath"])
def test_a_folder_of_a_user_s_own_configurations(folder, by):
    config_dir = folder if by == "--config-dir" else None
    overrides = [] if config_dir else [f"hydra.searchpath=[file://{folder}]"]
    settings = load_settings([*overrides, "experiment=mine"], config_dir)
    (spec,), (arm,) = settings.study.datasets, settings.study.arms
    assert (spec.target, dict(spec.params)) == (
        "sklearn.datasets.make_moons",
        {"n_samples": 40, "random_state": 0},
    )
    assert (arm.target, dict(arm.space)) == ("sklearn.svm.LinearSVC", {"C": (1, 2)})
    assert settings.study.protocol.outer == 3
    assert {"linear", "mnsvm"} <= set(known_names("solver", overrides, config_dir))


def test_a_folder_that_is_not_there_is_told(tmp_path):
    (problem,) = problems_of(config_dir=tmp_path / "nowhere")
    assert_says(problem, f"{tmp_path / 'nowhere'}", "folder")


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("name", "text", "override", "sentence"),
    [
        (
            "solver/x",
            "kernel: rbf",
            "solvers=[x]",
            ("solver x", "_target_"),
        ),
        (
            "solver/x",
            "_target_: sklearn.svm.SCV",
            "solvers=[x]",
            ("solver x", "did you mean", "'SVC'"),
        ),
        (
            "solver/x",
            "_target_: sklearn.svm",
            "solvers=[x]",
            ("solver x", "'sklearn.svm'"),
        ),
        ("dataset/x", "n: 3", "datasets=[x]", ("dataset x", "_target_")),
        (
            "dataset/x",
            "_target_: math.pi",
            "datasets=[x]",
            ("dataset x", "math.pi", "(X, y)"),
        ),
        (
            "protocol/x",
            "outre: 3",
            "protocol=x",
            ("unknown", "key 'protocol.outre'", "outer"),
        ),
        (
            "experiment/x",
            "# @package _global_\nsearch: pattern",
            "experiment=x",
            ("search", "`defaults`"),
        ),
        (
            "experiment/x",
            "# @package _global_\nprotocoll: {outer: 3}",
            "experiment=x",
            ("unknown", "key 'protocoll'"),
        ),
        ("solver/x", "_target_: [", "solvers=[x]", ("x.yaml",)),
        ("solver/x", "", "solvers=[x]", ("solver x", "_target_")),
    ],
)
def test_bad_files_get_one_sentence(tmp_path, name, text, override, sentence):
    write(tmp_path / f"{name}.yaml", text)
    (problem,) = problems_of(override, config_dir=tmp_path)
    assert_says(problem, *sentence)


def test_a_protocol_file_may_leave_out_what_it_does_not_change(tmp_path):
    write(tmp_path / "protocol/short.yaml", "outer: 3")
    protocol = settings_of("protocol=short", config_dir=tmp_path).study.protocol
    assert (protocol.outer, protocol.inner, protocol.metric) == (3, 5, "accuracy")


def test_bare_files_are_datasets(tmp_path):
    write(tmp_path / "mine.libsvm", "1 1:1\n2 2:1")
    (spec,) = settings_of(
        "datasets=[mine]", "dataset.mine.n_features=7", f"paths.data={tmp_path}"
    ).study.datasets
    assert spec.target == "orchestrator.datasets.libsvm_file"
    assert dict(spec.params) == {"name": "mine", "folder": str(tmp_path), "n_features": 7}


def test_our_own_configurations_are_where_they_are_expected():
    assert {"iris", "wine", "checkers"} <= set(known_names("dataset"))
    searches = ["every", "grid", "median_of", "pattern", "race", "random", "sample", "selected"]
    assert known_names("search") == searches


def test_what_one_composition_is_given_is_not_known_to_the_next():
    first = compose_settings([])
    assert first["dataset"] == {}
    first["protocol"]["outer"] = 99
    assert compose_settings([])["protocol"]["outer"] == 5
    assert "dataset" not in hydra_compose._defaults()


def test_other_values_for_the_same_files_load_none_again_and_leave_nothing_behind(monkeypatch, tmp_path):
    monkeypatch.setenv("SVMBENCH_CACHE", str(tmp_path))
    chosen = ["datasets=[iris]", "solvers=[mnsvm]", "search=race"]
    before = compose_settings([*chosen, "paths.results=one"])
    monkeypatch.setattr(FileConfigSource, "load_config", None)
    values = ["search.space.C=[7]", "solver.mnsvm.draws=3", "dataset.iris.x=1", "cluster.options.x={y: 1}"]
    changed = compose_settings([*chosen, "paths.results=two", *values])
    assert changed["search"]["space"]["C"] == [7]
    assert (changed["solver"]["mnsvm"]["draws"], changed["dataset"]["iris"]["x"]) == (3, 1)
    assert compose_settings([*chosen, "paths.results=one"]) == before


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("study=größe", "study='größe'"),
        ("study='größe'", "study='größe'"),
        ("datasets=[iris, größe,名前]", "datasets=[iris, 'größe','名前']"),
        ("++paths.data=/home/jürgen/my data", "++paths.data='/home/jürgen/my data'"),
        ("datasets=iris,größe", "datasets=iris,'größe'"),
        ("größe=1", "größe=1"),
        ("study=plain", "study=plain"),
    ],
)
def test_letters_outside_ascii_are_quoted_for_hydra(typed, expected):
    assert with_quotes(typed) == expected


def test_a_written_list_with_letters_outside_ascii_is_read_as_written():
    names = ["größe", "a, b", "plain", "größe.csv"]
    assert hydra_compose._parsed(with_quotes(override_of("drop", names))).value() == names


@pytest.mark.parametrize("search", ["selected", "sample"])
@pytest.mark.parametrize("override", ["search.space.C=[1,2]", "search.resolution=3"])
def test_candidates_are_refused_for_a_search_that_takes_them_from_a_study(search, override):
    (problem,) = problems_of(f"search={search}", "search.study=small", override)
    assert_says(problem, override, f"search={search}", "search.study", "search=grid")


@pytest.mark.parametrize("search", ["selected", "sample"])
def test_an_experiment_with_a_space_may_take_another_study_s_candidates(search):
    settings = load_settings(["experiment=margins", f"search={search}", "search.study=small"])
    assert settings.study.search.target == search
