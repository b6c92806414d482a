"""Every experiment composes and plans; each runs to its report on a reduced grid and tiny data."""

import re
from pathlib import Path

import pytest

from orchestrator.config.compose import check_settings, compose_settings, load_settings
from orchestrator.engine.prepare import prepare_study
from orchestrator.study.study import EVERY, SELECTED
from tests.integration.processes import in_process

pytestmark = pytest.mark.usefixtures("no_pages")

CONF = Path(__file__).parents[2] / "conf"
EXPERIMENTS = sorted(path.stem for path in (CONF / "experiment").glob("*.yaml"))
OF_TRAININGS = [
    name
    for name in EXPERIMENTS
    if not name.endswith("_time")
    and not {f"{name}_selection", f"{re.sub('_(counts|seeds)$', '', name)}_tuning"} & {*EXPERIMENTS}
]
"""Experiments that need no finished study but `medium`."""
BUNDLED = {"iris", "wine", "breast_cancer", "digits", "checkers"}
TINY = ("cluster=serial", "protocol.outer=2")
INNER = "protocol.inner=2"
GRID = ("search.space.C=[1,16]", "search.space.gamma=[0.25,1]")


def header(name):
    lines = (CONF / "experiment" / f"{name}.yaml").read_text(encoding="utf-8").splitlines()
    return " ".join(line.removeprefix("# ") for line in lines if line.startswith("#"))


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_its_header_says_what_it_repeats_and_costs(name):
    text = header(name)
    assert f"svmbench run experiment={name}" in text
    assert "trainings" in text
    assert re.search(r"\bcores?\b", text), "not as in `scores`"


@pytest.mark.sample(8)
@pytest.mark.parametrize("name", sorted({*EXPERIMENTS} - {"hundred"}))  # its files come with a package
def test_its_header_says_whether_it_needs_files(name):
    settings = load_settings([f"experiment={name}"])
    needs_files = not {dataset.name.partition("[")[0] for dataset in settings.study.datasets} <= BUNDLED
    assert needs_files == ("paths.data" in header(name))


def small(name):
    """Overrides that leave an experiment its solvers and axes, and two values of each of these."""
    study = load_settings([f"experiment={name}"]).study
    axes = {}
    for arm in study.arms:
        for param, value in arm.sweep.items():
            axes.setdefault(param, []).append(value)
    shortened = [
        f"sweep.{param}=[{','.join(map(str, list(dict.fromkeys(values))[:2]))}]"
        for param, values in axes.items()
        if param != "resolution"
    ]
    generated = [dataset for dataset in study.datasets if "[n=" in dataset.name]
    if any("[order=" in dataset.name for dataset in study.datasets):  # of rows, which iris has not
        shortened.append("~sweep.order")
    shortened.append("datasets=[checkers]" if generated else "datasets=[iris]")
    shortened += ["sweep.n=[60,90]"] if generated else []
    shortened += ["search.resolution=[2,3]"] if "resolution" in axes else []
    tiny = TINY if study.search.target == EVERY else (*TINY, INNER)
    return [*shortened, *tiny, *(() if study.search.target == SELECTED else GRID)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder in which the study has run whose selections others take."""
    folder = tmp_path_factory.mktemp("experiments")
    solvers = "solvers=[mnsvm_meb,spheresvm_590,spheresvm,bvm,smo_l2,libsvm_l1]"
    run = in_process(folder, "run", "experiment=medium", *small("medium"), solvers)
    assert run.returncode == 0, run.stderr
    return folder


RUN = ("checkers_scaling", "multiclass", "pattern_search")
"""Experiments that cover most axes and searches; with `--full` every one runs."""


@pytest.mark.sample(9)
@pytest.mark.parametrize("name", sorted({*OF_TRAININGS} - {*RUN}))
def test_it_plans(name, folder):
    paths = [f"paths.results={folder / 'results'}", f"paths.cache={folder / 'cache'}"]
    prepared = prepare_study(load_settings([f"experiment={name}", *small(name), *paths]))
    assert sum(prepared.planned_trials().values())


@pytest.mark.parametrize(
    "name", [name if name in RUN else pytest.param(name, marks=pytest.mark.full) for name in OF_TRAININGS]
)
def test_it_runs_to_its_report(name, folder):
    run = in_process(folder, "run", f"experiment={name}", *small(name))
    assert run.returncode == 0, run.stderr
    report = in_process(folder, "report", f"study={name}")
    assert report.returncode == 0, report.stderr
    assert (folder / "results" / name / "report" / "index.html").is_file()


def test_what_an_experiment_says_of_a_solver_reaches_its_arms():
    settings = check_settings(compose_settings(["experiment=pair_exponent", "solver.mnsvm_gsvm.draws=77"]))
    assert len(settings.study.arms) == 11
    for arm in settings.study.arms:
        assert arm.params["pair"] == "gmdm"
        assert arm.params["draws"] == 77
    said = check_settings(compose_settings(["experiment=pair_exponent", "solver.mnsvm_gsvm.pair=mdm"]))
    assert {arm.params["pair"] for arm in said.study.arms} == {"mdm"}
