"""Configurations that cannot be run are refused in sentences, in seconds; what they suggest can be run."""

import os
import random
import re
import sys
import time
import warnings

import pytest
import yaml

from orchestrator.cli.main import main
from orchestrator.config.compose import compose_settings, known_names, load_settings
from orchestrator.engine.prepare import prepare_study
from orchestrator.study.errors import ConfigError
from orchestrator.study.tls import is_host
from tests.messages import assert_says, says

BASE = ("study=x", "datasets=[iris]", "solvers=[libsvm_l1]")


def problems_of(overrides, config_dir=None, plan=False):
    """The problems of a configuration, each checked to be one readable sentence; none if it can be run."""
    start = time.process_time()
    try:
        with warnings.catch_warnings(action="ignore"):
            settings = load_settings(overrides, config_dir)
            if plan:
                prepare_study(settings)
        problems = []
    except ConfigError as error:
        problems = error.problems
        assert problems
    assert time.process_time() - start < 10
    for problem in problems:
        assert len(problem) < 600
        assert problem.isprintable()
        assert "Traceback" not in problem
        assert " at 0x" not in problem
        assert len(problem.split()) >= 3
    return problems


# -- overrides -----------------------------------------------------------------------------------

ODD_TEXTS = [
    "",
    " ",
    "''",
    "a b",
    "a.b",
    "a=b",
    "-rf",
    "../x",
    "/",
    "~",
    "é",
    "\x1b[31m",
    "\0",
    "\ud800",
    "\\",
]
ODD_TEXTS += [
    "nan",
    "1e3",
    "null",
    "true",
    "[]",
    "{}",
    "[[x]]",
    "{x:1}",
    "*",
    "${x}",
    "${oc.env:NO}",
    "1,2",
    "?",
]
ODD_TEXTS += [
    "9" * 400,
    "9" * 5000,
    "x" * 1000,
    "x" * 60_000,
    "[" * 40 + "]" * 40,
    "[" * 800,
    "-1",
    "1.5",
    "inf",
]
ODD_TEXTS += ["range(3)", "choice(a,b)", "glob(*)", "sort(3,1)", "int(x)", "'", '"', "a/b", "a@b", "a:b", "#"]
KEYS = ["study", "datasets", "solvers", "protocol.outer", "protocol.seed", "protocol.also", "protocol.metric"]
KEYS += [
    "protocol.max_seconds",
    "search",
    "search.kind",
    "search.space",
    "search.space.C",
    "sweep",
    "sweep.tol",
]
KEYS += ["cluster", "cluster.hosts", "cluster.options", "cluster.adapt", "cluster.tls", "cluster.tls.folder"]
KEYS += [
    "paths",
    "paths.data",
    "paths.cache",
    "paths.results",
    "on_error",
    "experiment",
    "protocol",
    "dataset",
]
KEYS += ["solver", "solver.libsvm_l1", "solver.libsvm_l1.tol", "dataset.iris", "dataset.iris.return_X_y"]
KEYS += ["hydra.searchpath", "hydra", "hydra.mode", "data_memory", "cluster.memory", "cluster.workers", "x"]
OVERRIDES = [f"{key}={text}" for key in KEYS for text in ODD_TEXTS]
OVERRIDES += [f"{mark}{key}" for mark in ("~", "+", "++", "") for key in [*KEYS, "search.space.gamma"]]
OVERRIDES += [f"search@{key}=grid" for key in ("protocol", "x", "_global_", "search.space")]
OVERRIDES += [f"hydra/{key}=x" for key in ("launcher", "help", "hydra_logging")]


@pytest.mark.parametrize("part", range(4))
def test_odd_overrides_get_sentences(part, full_size):
    for override in random.Random(part).sample(OVERRIDES, 60 if full_size else 4):
        problems_of([*BASE, override])


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("override", "sentence"),
    [
        (
            "protocol.outer=1000000000",
            ("protocol.outer", "whole number", "1000", "1000000000"),
        ),
        (
            "protocol.seed=1e400",
            ("protocol.seed", "whole number", "0", "inf"),
        ),
        (f"protocol.seed={2**64}", ("protocol.seed", "whole number")),
        ("protocol.max_seconds=inf", ("protocol.max_seconds", "number", "0", "inf")),
        ("datasets=[nan]", ("nan", "names", "datasets=[NAME]")),
        ("datasets=[1e3]", ("1000.0", "names")),
        ("datasets=[null]", ("null", "names")),
        ("datasets=[['iris']]", ("['iris']", "names")),
        ("solvers=[true]", ("true", "names")),
        (
            "search.space=hello",
            ("search.space.C", "'hello'"),
        ),
        ("cluster.hosts=3", ("cluster.hosts", "list", "cluster.hosts=[a,b]", "3")),
        ("cluster.hosts=[{a:1},b]", ("cluster.hosts", "list", "[{'a': 1}, 'b']")),
        ("cluster.hosts=[a,'b c']", ("cluster.hosts", "list", "['a', 'b c']")),
        (
            "cluster.performance_report=hello",
            ("cluster.performance_report", "true or false"),
        ),
        ("cluster.dashboard=1", ("cluster.dashboard", "true or false", "1")),
        ("hydra.run.dir=5", ("hydra.run.dir", "hydra.searchpath")),
        ("+hydra.foo=1", ("hydra.foo",)),
        ("cluster.options=3", ("cluster.options", "3")),
        ("solver.libsvm_l1=3", ("solver.libsvm_l1", "3")),
        ("paths.cache=[1]", ("paths.cache", "[1]")),
        ("paths.data='~nobody_of_this_name/x'", ("paths.data", "'~nobody_of_this_name/x'")),
        ("data_memory=0", ("data_memory", "number", "0")),
        ("search@protocol=grid", ("'search@protocol=grid'", "key=value")),
        ("hydra.searchpath=3", ("hydra.searchpath=", "'hydra.searchpath=3'")),
    ],
)
def test_odd_values_are_named(override, sentence):
    (problem,) = problems_of([*BASE, override])
    assert_says(problem, *sentence)


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    "address", ["tls://", "tls://HOST", "tls://:1", "tls://HOST:99999", "HOST:1", "tls://[:1"]
)
def test_an_address_needs_host_and_port(address):
    problems = problems_of([*BASE, "cluster=address", f"cluster.address='{address}'"])
    assert any("expected cluster.address=tls://HOST:PORT" in problem for problem in problems), problems


@pytest.mark.parametrize("host", ["", "a b", "é", "-a", "a..b", "10.0.0.1:80", "x" * 300])
def test_a_certificate_is_for_a_host_that_can_exist(host, tmp_path, capsys):
    assert main(["cluster", "certs", str(tmp_path / "certs"), f"--host={host}"]) == 1
    assert_says(capsys.readouterr().err, "NAME", "address")
    assert not (tmp_path / "certs").exists()


@pytest.mark.parametrize("host", ["a", "node-1.cluster.example", "10.0.0.1", "::1", "node_1"])
def test_names_and_addresses_of_hosts_are_taken(host):
    assert is_host(host)


@pytest.mark.parametrize(
    ("overrides", "sentence"),
    [
        (
            ["protocol.outer=1000", "protocol.inner=1000"],
            ("6.4e+07 trainings", "at most"),
        ),
        (
            [f"search.space.C={list(range(1, 1001))}", f"search.space.gamma={list(range(1, 1001))}"],
            ("1e+06 points",),
        ),
        (
            [
                "solvers=[mnsvm]",
                *(f"sweep.{key}={list(range(30))}" for key in ("tol", "eta", "draws", "max_iter")),
            ],
            ("8.1e+05 arms",),
        ),
    ],
)
def test_a_study_that_nobody_could_finish_is_refused_at_once(overrides, sentence):
    problems = problems_of([*BASE, *overrides])
    assert any(says(problem, *sentence) for problem in problems), problems


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    "name",
    [
        "-rf",
        "--help",
        ".",
        "..",
        ".x",
        "_x",
        "x.",
        "a/b",
        "a\\b",
        "a b",
        "con",
        "NUL.txt",
        "com1",
        "x\n",
        "a\0b",
    ],
)
def test_a_study_whose_name_is_no_safe_folder_is_refused(name):
    quoted = name.replace("'", r"\'")
    problems = problems_of(["datasets=[iris]", "solvers=[libsvm_l1]", f"study='{quoted}'"])
    assert len(problems) == 1 or says(problems[0], "override")


def test_names_of_studies_that_a_terminal_or_a_folder_could_not_hold_are_refused():
    for name in ("x" * 101, "é" * 101, "\x1b[31m", "\ud800", "a:b", "*", "$HOME"):
        assert len(problems_of(["datasets=[iris]", "solvers=[libsvm_l1]", f"study='{name}'"])) == 1


@pytest.mark.sample(3)
@pytest.mark.parametrize("value", ["true", "[a]", "nan", "null."])
def test_a_study_s_name_is_text_or_a_whole_number(value):
    (problem,) = problems_of(["datasets=[iris]", "solvers=[libsvm_l1]", f"study={value}"])
    assert "in quotes" in problem


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", ["x", "2026", "1.5", "2e3", "run-1_b.2", "'é'", "console"])
def test_other_names_of_studies_are_taken_as_they_are(name):
    settings = load_settings(["datasets=[iris]", "solvers=[libsvm_l1]", f"study={name}"])
    assert settings.study.name == name.strip("'")


# -- what sentences suggest ----------------------------------------------------------------------

SUGGESTING = [
    ("dataset=iris", "datasets=[iris]"),
    ("dataset=[iris]", "datasets=[iris]"),
    ("dataset=['iris','wine']", "datasets=[iris,wine]"),
    ("solver=libsvm_l1", "solvers=[libsvm_l1]"),
    ("solver=[libsvm_l1]", "solvers=[libsvm_l1]"),
    ("datasets=[iriss]", "datasets=[iris]"),
    ("search=grdi", "search=grid"),
    ("protocl.outer=3", "protocol.outer=3"),
    ("on_error=contnue", "on_error=continue"),
    ("protocol.metric=acuracy", "protocol.metric=accuracy"),
    ("datasets=wine,iris", "datasets=[wine,iris]"),
    ("protocol.also=f1_macro,accuracy", "protocol.also=[f1_macro,accuracy]"),
    ("search.space.C=1,2", "search.space.C=[1,2]"),
    ("search.space.C=4", "search.space.C=[4]"),
    ("sweep.tol=0.1,0.2", "sweep.tol=[0.1,0.2]"),
]


@pytest.mark.sample(4)
@pytest.mark.parametrize(("override", "suggested"), SUGGESTING)
def test_what_a_sentence_suggests_can_be_used(override, suggested):
    (problem,) = problems_of([*BASE, override])
    key, _, value = suggested.partition("=")
    generic = re.sub(r"\[[\w.,]+\]", "[a,b]", suggested)
    parts = (suggested, generic, f"'{key}'", f"'{value}'", f"such as {value}", f"'{value[1:-1]}'")
    assert any(part in problem for part in parts), problem
    assert not problems_of([*BASE, suggested])


@pytest.mark.sample(3)
@pytest.mark.parametrize("key", ["protocol.outer", "on_error", "study", "cluster.workers"])
def test_no_list_is_suggested_where_none_is_taken(key):
    (problem,) = problems_of([*BASE, f"{key}=2,3"])
    assert "[" not in problem


# -- files ---------------------------------------------------------------------------------------

BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 12)
)
SVC = "_target_: sklearn.svm.SVC\n"
FILES = {
    "list": ("- a\n- b\n", "found a list"),
    "text": ("hello\n", "found a single value"),
    "number": ("3\n", "found a single value"),
    "quoted": ("'a: b'\n", "found a single value"),
    "null": ("null\n", "a single value|no _target_"),
    "tilde": ("~\n", "a single value|no _target_"),
    "empty": ("", "no _target_"),
    "comment": ("# nothing\n", "no _target_"),
    "empty_mapping": ("{}\n", "no _target_"),
    "document_marks": ("---\n...\n", "no _target_"),
    "two_documents": (f"{SVC}---\n{SVC}", "document"),
    "null_target": ("_target_: null\n", "no _target_"),
    "number_as_target": ("_target_: 3\n", "no _target_"),
    "list_as_target": ("_target_: [sklearn.svm.SVC]\n", "no _target_"),
    "target_without_dot": ("_target_: SVC\n", "expected a dotted path"),
    "target_with_dots": ("_target_: sklearn..svm\n", "expected a dotted path"),
    "target_of_lines": ('_target_: "a.b\\nc.d"\n', "expected a dotted path"),
    "target_of_nothing": ("_target_: no_such_module.x\n", "there is no module"),
    "target_that_exits": (
        "_target_: tests.orchestrator.exits_at_import.x\n",
        "importing .* failed with|failed",
    ),
    "target_of_this_program": ("_target_: orchestrator.cli.main.main\n", "not a scikit-learn classifier"),
    "space_of_text": (f"{SVC}space: hello\n", "`space` must map parameters to lists"),
    "space_of_list": (f"{SVC}space: [C]\n", "`space` must map parameters to lists"),
    "space_of_number": (f"{SVC}space: 3\n", "`space` must map parameters to lists"),
    "space_of_scalars": (f"{SVC}space: {{C: 4}}\n", r"must be a list of values, such as \[4\]"),
    "space_of_null": (f"{SVC}space: {{C: null}}\n", "must be a list of values"),
    "space_of_mapping": (f"{SVC}space: {{C: {{a: 1}}}}\n", "expected a range such as"),
    "space_of_empty_list": (f"{SVC}space: {{C: []}}\n", "is empty"),
    "space_of_nan": (f"{SVC}space: {{C: [.nan]}}\n", "holds a nan"),
    "space_of_numeric_keys": (f"{SVC}space: {{1: [2]}}\n", "expected names of parameters, found 1"),
    "numeric_keys": (f"{SVC}1: 2\n", "expected names of parameters, found 1"),
    "boolean_key": (f"{SVC}true: 2\n", "expected names of parameters, found true"),
    "float_key": (f"{SVC}1.5: 2\n", "expected names of parameters, found 1.5"),
    "null_key": (f"{SVC}null: 2\n", "cannot compose this configuration: .*key"),
    "list_as_key": (f"{SVC}? [a]\n: 2\n", "not YAML|key|cannot compose"),
    "duplicate_keys": (f"{SVC}C: 1\nC: 2\n", "duplicate key"),
    "tab": (f"{SVC}C:\n\t- 1\n", "not YAML: line 3"),
    "not_utf8": (b"_target_: \xff\xfe\n", "is not UTF-8"),
    "utf16": (SVC.encode("utf-16"), "is not UTF-8"),
    "nul": (f"{SVC}C: '\0'\n", "not YAML"),
    "escape": (f"{SVC}C: '\x1b[31m'\n", "not YAML"),
    "open_bracket": (f"{SVC}C: [1\n", "not YAML: line"),
    "open_quote": (f"{SVC}C: 'x\n", "not YAML: line"),
    "unknown_tag": (f"{SVC}C: !python/object:os.system x\n", "tag|cannot compose"),
    "python_tag": (f"{SVC}C: !!python/object/apply:os.abort []\n", "tag|cannot compose"),
    "date": (f"{SVC}C: !!timestamp 2026-01-01\n", "C"),
    "binary": (f"{SVC}C: !!binary aGVsbG8=\n", "C"),
    "bomb": (f"{SVC}{BOMB}", "more than 20,000"),
    "bomb_of_mappings": (
        SVC + BOMB.replace("[", "{k: [").replace("]", "]}"),
        "more than|not YAML|nested|dup",
    ),
    "bomb_by_merge": (
        SVC
        + "a0: &a0 {k: 1}\n"
        + "".join(f"a{i}: &a{i} {{x: [*a{i - 1}, *a{i - 1}, *a{i - 1}]}}\n" for i in range(1, 14)),
        "more than 20,000",
    ),
    "alias_of_itself": (f"{SVC}C: &a [*a]\n", r"alias \*a .*remove it"),
    "alias_of_nothing": (f"{SVC}C: *a\n", r"alias \*a .*remove it"),
    "deep": (f"{SVC}C: {'[' * 5000}{']' * 5000}\n", "nested more than 30"),
    "deep_mappings": (SVC + "C: " + "{a: " * 500 + "1" + "}" * 500, "nested more than 30"),
    "large": (SVC + "# " + "x" * 2_000_000, "larger than 1,000,000 bytes"),
    "many_values": (f"{SVC}C: [{'1, ' * 30_000}1]\n", "more than 20,000"),
    "many_digits": (f"{SVC}C: {'9' * 6000}\n", "digits|C"),
    "refers_to_itself": (f"{SVC}C: ${{solver.x}}\n", "solver.x|recurs|C"),
    "refers_to_its_value": (f"{SVC}C: ${{.C}}\n", "Recursive|recurs|C"),
    "refers_in_a_circle": (f"{SVC}C: ${{.tol}}\ntol: ${{.C}}\n", "Recursive|recurs|C"),
    "refers_to_nothing": (f"{SVC}C: ${{nothing.here}}\n", "Interpolation key"),
    "unknown_resolver": (f"{SVC}C: ${{no:x}}\n", "Unsupported interpolation type"),
    "broken_interpolation": (f"{SVC}C: ${{a\n", "not YAML|C"),
    "missing": (f"{SVC}C: ???\n", "mandatory|Missing|missing|C"),
    "defaults_on_itself": (f"defaults: [x]\n{SVC}", "x"),
    "defaults_in_a_circle": (f"defaults: [/solver/x]\n{SVC}", "x"),
    "defaults_of_nothing": (f"defaults: [nowhere]\n{SVC}", "nowhere"),
    "defaults_of_text": (f"defaults: hello\n{SVC}", "defaults"),
    "defaults_of_mapping": (f"defaults: {{a: b}}\n{SVC}", "defaults"),
    "defaults_of_numbers": (f"defaults: [3]\n{SVC}", "."),
    "package_of_nothing": ("# @package a.b.c\nC: 1\n", "unknown key 'a'|no _target_"),
    "global_package": (f"# @package _global_\nprotocol: 3\n{SVC}", "."),
    "space_with_bomb": (
        f"{SVC}space: {{C: {list(range(1, 500))}, gamma: {list(range(1, 500))}}}\n",
        "points",
    ),
    "unknown_parameter": (f"{SVC}kernl: rbf\n", "did you mean 'kernel'"),
    "steps_of_nothing": ("_target_: sklearn.pipeline.Pipeline\nsteps: 3\nspace: {}\n", "."),
    "recursive_target": (f"{SVC}class_weight: {{_target_: nowhere.x}}\n", "no module|class_weight"),
    "weights": (f"{SVC}class_weight: {{0: 1, 1: 2}}\n", ""),
    "one_value": (f"{SVC}space: {{C: [4]}}\n", ""),
    "explicitly_untuned": (f"{SVC}space: {{}}\n", ""),
}


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", FILES)
def test_odd_files_get_one_sentence(name, tmp_path):
    content, sentence = FILES[name]
    (tmp_path / "solver").mkdir()
    (tmp_path / "solver" / "x.yaml").write_bytes(content if isinstance(content, bytes) else content.encode())
    problems = problems_of(["study=x", "datasets=[iris]", "solvers=[x]"], tmp_path)
    if not sentence:
        assert not problems
        return
    assert any(re.search(sentence, problem) for problem in problems), problems


EXPERIMENTS = {
    "text": "study",
    "study_of_list": "study: [a]",
    "study_of_mapping": "study: {a: 1}",
    "null_everywhere": "\n".join(
        f"{key}: null" for key in ("study", "datasets", "solvers", "sweep", "search")
    ),
    "null_protocol": "protocol: null",
    "null_values": "protocol: {outer: null, inner: null, seed: null, metric: null, also: null}",
    "null_paths": "paths: {results: null, data: null, cache: null}",
    "null_cluster": "cluster: {kind: null, hosts: null, tls: null, adapt: null, options: null}",
    "cluster_of_list": "cluster: [local]",
    "adapt_of_number": "cluster: {adapt: 3}",
    "tls_of_text": "cluster: {tls: yes}",
    "sweep_of_list": "sweep: [a]",
    "sweep_of_numbers": "sweep: {1: [2]}",
    "sweep_of_mapping": "sweep: {tol: {a: 1}}",
    "space_of_numbers": "search: {space: {1: [2]}}",
    "space_of_text": "search: {space: hello}",
    "search_of_numbers": "search: {1: 2}",
    "kind_of_list": "search: {kind: [grid]}",
    "solver_of_list": "solver: [a]",
    "solver_of_text": "solver: {libsvm_l1: hello}",
    "solver_of_numbers": "solver: {1: {C: 1}}",
    "dataset_of_text": "dataset: hello",
    "dataset_of_list": "dataset: {iris: [1]}",
    "datasets_of_mappings": "datasets: [{iris: 1}]",
    "datasets_of_mapping": "datasets: {iris: wine}",
    "solvers_of_lists": "solvers: [[libsvm_l1]]",
    "numeric_keys": "1: 2",
    "also_of_mapping": "protocol: {also: {f1: 1}}",
    "also_of_lists": "protocol: {also: [[f1]]}",
    "metric_of_list": "protocol: {metric: [f1]}",
    "itself": "defaults: [/experiment/x]",
    "other_kind": "defaults: [/solver/mnsvm]",
    "override_of_nothing": "defaults: [{override /nothing: x}]",
    "bomb": BOMB,
}


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_odd_experiments_get_sentences(name, tmp_path):
    (tmp_path / "experiment").mkdir()
    (tmp_path / "experiment" / "x.yaml").write_text(f"# @package _global_\n{EXPERIMENTS[name]}\n")
    said = [] if EXPERIMENTS[name].startswith(("study", "datasets", "solvers")) else BASE
    assert problems_of([*said, "experiment=x"], tmp_path)


def test_names_that_are_read_as_something_else_can_be_quoted(tmp_path):
    (tmp_path / "solver").mkdir()
    for name in ("nan", "null", "true", "inf", "a-b", "_x"):
        (tmp_path / "solver" / f"{name}.yaml").write_text(f"{SVC}space: {{C: [1]}}\n")
        settings = load_settings([*BASE[:2], f"solvers=['{name}']"], tmp_path)
        assert [arm.name for arm in settings.study.arms] == [name]


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    "name", ["a b", "a.b", "a=b", "1e3", "é", "a,b", "a'b", "-x", "a@b", "*", "${x}", "a:b"]
)
def test_a_file_whose_name_is_no_key_is_refused_by_its_name(name, tmp_path):
    (tmp_path / "solver").mkdir()
    (tmp_path / "solver" / f"{name}.yaml").write_text(f"{SVC}space: {{C: [1]}}\n")
    escaped = name.replace("'", r"\'").replace("${", r"\${")
    (problem,) = problems_of([*BASE[:2], f"solvers=['{escaped}']"], tmp_path)
    assert "rename it" in problem


def test_what_is_no_file_is_not_offered(tmp_path):
    folder = tmp_path / "solver"
    folder.mkdir()
    (folder / "folder.yaml").mkdir()
    os.mkfifo(folder / "pipe.yaml")
    (folder / "loop.yaml").symlink_to("loop.yaml")
    (folder / "nowhere.yaml").symlink_to("nothing")
    (folder / "round").symlink_to(folder)
    (folder / "real.yaml").write_text(f"{SVC}space: {{C: [1]}}\n")
    (folder / "link.yaml").symlink_to("real.yaml")
    for name in ("folder", "pipe", "loop", "nowhere"):
        (problem,) = problems_of([*BASE[:2], f"solvers=[{name}]"], tmp_path)
        assert problem.startswith(f"unknown solver '{name}'")
    assert {"real", "link"} <= set(known_names("solver", config_dir=tmp_path))
    assert not problems_of([*BASE[:2], "solvers=[link]"], tmp_path)


# -- mutations of files that are valid -----------------------------------------------------------

VALID = {
    "solver/mine": {
        "_target_": "sklearn.svm.SVC",
        "kernel": "rbf",
        "space": {"C": [1, 10], "gamma": [0.1, 1]},
    },
    "dataset/toy": {"_target_": "orchestrator.datasets.checkers", "n": 60, "seed": 1, "board": 2},
    "search/small": {"kind": "grid", "space": {"C": [1, 4], "gamma": [1]}},
    "protocol/quick": {"outer": 2, "inner": 2, "seed": 3, "metric": "accuracy", "also": ["f1"]},
    "cluster/here": {"kind": "serial", "workers": 1, "options": {"a": 1}},
    "experiment/whole": {
        "study": "whole",
        "datasets": ["toy"],
        "solvers": ["mine"],
        "sweep": {"tol": [0.1, 0.01]},
    },
}
WHOLE = ["experiment=whole", "search=small", "protocol=quick", "cluster=here"]
VALUES = [
    None,
    True,
    -1,
    0,
    2.5,
    10**30,
    float("nan"),
    float("inf"),
    "",
    "hello",
    "${.x}",
    "???",
    "\ud7ff",
    [],
    {},
]
VALUES += [
    [[]],
    {"a": {"b": 1}},
    {1: 2},
    ["a", "a"],
    list(range(50)),
    "x" * 5000,
    "a.b",
    "/",
    "=",
    "- a",
    "#",
    "&a *a",
]


def nodes_of(node, path=()):
    """The paths of all values in a nested container."""
    for key in list(node) if isinstance(node, dict) else range(len(node)):
        yield (*path, key)
        if isinstance(node[key], (dict, list)):
            yield from nodes_of(node[key], (*path, key))


def mutate(tree, rng):
    """Change one value or key of a nested container in place."""
    *path, last = rng.choice(list(nodes_of(tree)))
    for key in path:
        tree = tree[key]
    kind = rng.choice(["replace", "delete", "rename", "wrap", "repeat", "unwrap"])
    value = tree[last]
    if kind == "replace":
        tree[last] = rng.choice(VALUES)
    elif kind == "delete":
        del tree[last]
    elif kind == "rename" and isinstance(tree, dict):
        tree[
            rng.choice([1, None, True, "", "a b", "é", str(last).upper(), "_target_", "space", "defaults"])
        ] = tree.pop(last)
    elif kind == "wrap":
        tree[last] = rng.choice([[value], {"a": value}, {last if isinstance(last, str) else "b": value}])
    elif kind == "unwrap" and isinstance(value, (list, dict)) and value:
        tree[last] = next(iter(value))
    elif isinstance(tree, list):
        tree.append(value)


def mutated_text(text, rng):
    """Change characters of a text."""
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(text))
        change = rng.choice(
            ["", "\t", "\n", ":", "-", "[", "{", "'", "&a ", "*a ", "!!", "%", "\x07", "${", "é", "?"]
        )
        text = text[:at] + change + text[at + rng.randint(0, 2) :]
    return text


def write_mutated(folder, seed):
    rng = random.Random(seed)
    victim = rng.choice(list(VALID))
    for name, node in VALID.items():
        text = yaml.safe_dump(node, sort_keys=False)
        if name == victim:
            node = yaml.safe_load(text)
            if rng.random() < 0.7:
                for _ in range(rng.randint(1, 3)):
                    if node:
                        mutate(node, rng)
                text = yaml.safe_dump(node, sort_keys=False, allow_unicode=True)
            else:
                text = mutated_text(text, rng)
        path = folder / f"{name}.yaml"
        path.parent.mkdir(exist_ok=True)
        head = "# @package _global_\n" if name.startswith("experiment") else ""
        path.write_text(head + text, encoding="utf-8")
    return victim


@pytest.mark.sample(2)
@pytest.mark.parametrize("part", range(4))
def test_mutated_files_are_run_or_refused_in_sentences(part, full_size, tmp_path):
    outcomes = []
    for seed in range(part, 160 if full_size else 32, 4):
        folder = tmp_path / str(seed)
        folder.mkdir()
        write_mutated(folder, seed)
        paths = [f"paths.results={tmp_path}/results", f"paths.cache={tmp_path}/cache"]
        outcomes.append(bool(problems_of([*WHOLE, *paths], folder, plan=True)))
    assert len(set(outcomes)) == 2  # some are refused, and some can be run


# -- the command line ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("verb", "arguments", "sentence"),
    [
        ("run", ["study=-rf"], ("study='-rf'", "name")),
        ("plan", ["study=x", "solvers=[bomb]"], ("bomb.yaml", "20,000")),
        ("status", ["study=../x"], ("study='../x'", "name")),
    ],
)
def test_the_command_line_answers_odd_configurations_with_exit_status_1(
    verb, arguments, sentence, tmp_path, capsys
):
    (tmp_path / "solver").mkdir()
    (tmp_path / "solver" / "bomb.yaml").write_text(SVC + BOMB)
    defaults = [] if verb == "status" else ["datasets=[iris]", "solvers=[libsvm_l1]"]
    assert main([verb, *defaults, *arguments, f"--config-dir={tmp_path}"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert_says(line, *sentence)


# -- what composing runs -------------------------------------------------------------------------


def test_composing_runs_no_code_of_a_dataset(tmp_path, monkeypatch):
    (tmp_path / "conf" / "dataset").mkdir(parents=True)
    (tmp_path / "conf" / "dataset" / "mine.yaml").write_text("_target_: a_module_with_traces.make\n")
    trace = tmp_path / "trace"
    (tmp_path / "a_module_with_traces.py").write_text(
        f"open({str(trace)!r}, 'a').write('imported ')\n"
        "def make():\n"
        f"    open({str(trace)!r}, 'a').write('called ')\n"
        "    return [[float(i)] for i in range(60)], [0, 1] * 30\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    overrides = ["study=x", "datasets=[mine]", "solvers=[libsvm_l1]", f"paths.cache={tmp_path}/cache"]
    compose_settings(overrides, tmp_path / "conf")
    settings = load_settings(overrides, tmp_path / "conf")
    assert "mine" in known_names("dataset", overrides, tmp_path / "conf")
    assert not trace.exists()
    prepare_study(settings)
    assert trace.read_text() == "imported called "
    assert "a_module_with_traces" not in sys.modules  # its own process imported it
