"""Wrong inputs of the command line: each gets one line, which says where it is wrong and what to do."""

import numpy as np
import pandas as pd
import pytest

from orchestrator.cli.main import main
from tests.messages import assert_each_says, assert_says

pytestmark = pytest.mark.usefixtures("no_pages")

FILES = {
    "bad.csv": "a,b,out\n1,2,x\n3,4,y,5\n",
    "notes.txt": "a b",
    "conf/dataset/lable.yaml": "_target_: orchestrator.datasets.csv_file\npath: churn.csv\nlable: out\n",
    "conf/dataset/nothing.yaml": "path: churn.csv\nlabel: out\n",
    "conf/dataset/weights.yaml": (
        "_target_: orchestrator.datasets.csv_file\npath: churn.csv\nlabel: out\nsample_weight: a\n"
    ),
    "conf/dataset/gone.yaml": "_target_: orchestrator.datasets.csv_file\npath: gone.csv\nlabel: out\n",
    "conf/dataset/no_reader.yaml": "_target_: orchestrator.datasets.csv_fle\npath: churn.csv\nlabel: out\n",
    "conf/solver/knm.yaml": "_target_: sklearn.neighbors.KNeighborsClasifier\n",
    "conf/solver/maker.yaml": "max_depth: 3\n",
    "conf/solver/deep.yaml": "_target_: sklearn.tree.DecisionTreeClassifier\nmax_depht: 3\n",
    "conf/solver/listed.yaml": "_target_: sklearn.tree.DecisionTreeClassifier\nspace: [1, 2]\n",
    "conf/solver/regressor.yaml": "_target_: sklearn.linear_model.Ridge\n",
    "broken/solver/tabs.yaml": "_target_: sklearn.tree.DecisionTreeClassifier\n\tmax_depth: 3\n",
    "broken/solver/colon.yaml": "_target_: sklearn.tree.DecisionTreeClassifier\nmax_depth 3\n",
    "lost/experiment/mine.yaml": "study: mine\ndatasets: [iris]\nsolvers: [lda]\n",
    "odd/experiment/mine.yaml": "# @package _global_\nstudy: mine\ndatasets: [iris]\nsolver: [lda]\n",
}
"""Files of the folder in which the commands run."""

TABLE = "datasets=[churn.csv] label=out solvers=[lda]"
IRIS = "study=s datasets=[iris] solvers=[lda]"

CASES = {
    # Verbs and options.
    "rnu": ("'rnu'", "'run'"),
    "lsit": ("'lsit'", "'list'"),
    "slow": ("'slow'", "--help"),
    "run --watc": ("--watc", "svmbench run --help"),
    # Studies by name.
    "run": ("study", "datasets=[table.csv]", "label=COLUMN", "experiment=quickstart"),
    "plan": ("study", "datasets=[table.csv]", "label=COLUMN", "experiment=quickstart"),
    "run study=tinny": ("study=tinny", "'tiny'", "datasets=[NAME,…]"),
    "run study t": ("one study", "'study'", "'t'", "study=NAME"),
    "status": ("tiny", "study=NAME"),
    "status tinny": ("'tinny'", "'tiny'"),
    "report": ("tiny", "study=NAME"),
    "report tinny": ("'tinny'", "'tiny'"),
    "report study=": ("tiny", "study=NAME"),
    "report tiny,": ("study=A,B",),
    "report tiny,tiny2": ("to=DIR",),
    "report tiny to=": ("to=DIR",),
    "report tiny to=churn.csv/x": ("to=churn.csv/x", "to=DIR"),
    "report tiny report.alpha=2": ("report.alpha", "2", "between 0 and 1"),
    "report tiny report.control=ldda": ("ldda", "lda"),
    "report tiny report.sections=errors": ("report.sections", "dotted paths", "'errors'"),
    "delete tinny --yes": ("'tinny'", "'tiny'"),
    "delete --yes": ("delete NAME", "tiny"),
    "rename tiny": ("rename NAME NEW_NAME",),
    "rename tiny name=small": ("name=small", "rename NAME NEW_NAME"),
    "rename tiny to=small": ("to=small", "rename NAME NEW_NAME"),
    "delete name=tiny --yes": ("name=tiny", "delete NAME"),
    "status name=tiny": ("'name'", "'study'"),
    "report name=tiny": ("'name'", "'study'"),
    "studies name=tiny": ("name=tiny", "paths.results=DIR"),
    "list kind=solvers": ("kind=solvers", "solvers"),
    "claims name=S1": ("name=S1", "svmbench claims"),
    "data fetch name=iris": ("name=iris", "svmbench data fetch NAME"),
    "rename tinny small": ("'tinny'", "'tiny'"),
    "claims foo": ("'foo'",),
    "run study=a/b datasets=[iris] solvers=[lda]": ("study", "'a/b'"),
    "run study=Zürich/ datasets=[iris] solvers=[lda]": ("study", "'Zürich/'"),
    # Keys and values of the command line.
    f"run {TABLE} seed=1": ("'seed'", "'protocol.seed'"),
    f"run {TABLE} protocol.outr=2": ("'protocol.outr'", "'protocol.outer'"),
    f"run {TABLE} protocol.outer=1": ("protocol.outer", "at least 2", "1"),
    f"run {TABLE} protocol.outer=2.5": ("protocol.outer", "whole number", "2.5"),
    f"run {TABLE} protocol.inner=five": ("protocol.inner", "whole number", "'five'"),
    f"run {TABLE} protocol.repeats=0": ("protocol.repeats", "at least 1", "0"),
    f"run {TABLE} protocol.repeats=2 protocol.seed=3": ("protocol.seed=3", "protocol.repeats=2"),
    f"run {TABLE} protocol.seed=-1": ("protocol.seed", "at least 0", "-1"),
    f"run {TABLE} protocol.seed=[1,1]": ("protocol.seed=[1, 1]", "distinct"),
    f"run {TABLE} protocol.profile=fast": ("protocol.profile", "'fast'", "throughput", "timing"),
    f"run {TABLE} protocol.prepare=standart": ("protocol.prepare", "'standart'", "'standard'"),
    f"run {TABLE} protocol.scaling=trian": ("protocol.scaling", "'trian'", "train"),
    f"run {TABLE} protocol.max_seconds=-1": ("protocol.max_seconds", "-1"),
    f"run {TABLE} on_error=continu": ("on_error", "'continu'", "continue"),
    f"run {TABLE} retry=all": ("retry", "'all'", "failed"),
    f"run {TABLE} minutes=0": ("minutes", "0"),
    f"run {TABLE} study=[a,b": ("study=[a,b", "cannot read"),
    f"run {TABLE} sweep.eta=[]": ("sweep.eta", "at least one value"),
    f"run {TABLE} sweep.etta=[1,2]": ("sweep.etta", "'etta'"),
    f"run {TABLE} paths.results=": ("paths.results", "folder"),
    f"run {TABLE} protocol.seed=0,1": ("protocol.seed", "protocol.seed=[0,1]"),
    f"run {TABLE} hydra.verbose=true": ("hydra.verbose", "hydra.searchpath"),
    # Datasets.
    "run dataset=[iris] solvers=[lda] study=s": ("'dataset'", "'datasets=[iris]'"),
    "run datasets=[irsi] solvers=[lda] study=s": ("'irsi'", "'iris'", "svmbench list datasets"),
    "run datasets=[1.5] solvers=[lda] study=s": ("1.5", "datasets=[NAME]"),
    "run datasets=[] solvers=[lda] study=s": ("no datasets", "datasets=[NAME,…]"),
    "run datasets=[.] solvers=[lda]": (".:", ".csv", "folder"),
    "run datasets=[notes.txt] label=out solvers=[lda]": ("notes.txt", ".csv", ".txt"),
    "run datasets=[./notes.txt] solvers=[lda]": ("./notes.txt", ".csv", ".txt"),
    "run datasets=[chrun.csv] label=out solvers=[lda]": ("chrun.csv", "churn.csv"),
    "run datasets=[bad.csv] label=out solvers=[lda]": ("bad.csv", "line 3", "4", "3"),
    "run datasets=[churn.csv] solvers=[lda]": ("label=COLUMN", "label=out", "a, b, out"),
    "run datasets=[churn.csv] lable=out solvers=[lda]": ("'lable'", "'label'"),
    "run datasets=[churn.csv] label=outt solvers=[lda] cluster=serial": ("'outt'", "'out'"),
    "run datasets=[churn.csv] label=[out] solvers=[lda]": ("'[out]'", "'out'"),
    f"run {TABLE} drop=[aa] cluster=serial": ("'aa'", "'a'"),
    f"run {TABLE} groups=bb cluster=serial": ("groups='bb'", "a, b"),
    "run train=churn.csv label=out solvers=[lda]": ("train=churn.csv", "test=FILE"),
    f"run {IRIS} label=out": ("label='out'", "dataset.NAME.label"),
    f"run {IRIS} dataset.wine.label=x": ("dataset.wine", "datasets=[…]"),
    "run datasets=[fractions.csv] label=out solvers=[lda] cluster=serial": ("1.5", "whole numbers", "texts"),
    "run datasets=[numbers.csv] label=out solvers=[lda] cluster=serial": ("regression", "classes"),
    "run datasets=[one.csv] label=out solvers=[lda] cluster=serial": ("two classes", "'no'"),
    "run datasets=[few.csv] label=out solvers=[lda] cluster=serial": ("'yes'", "3", "5", "protocol.outer"),
    "data check irsi": ("'irsi'", "'iris'"),
    "data check": ("found none", "svmbench data check NAME", "svmbench data list"),
    "data chekc iris": ("'chekc'", "check"),
    "data check churn.csv label=outt": ("'outt'", "'out'"),
    "data fetch irsi": ("'irsi'", "'iris'"),
    "data path chrun.csv": ("chrun.csv",),
    # Solvers, spaces and searches.
    "run solver=[lda] datasets=[iris] study=s": ("'solver'", "'solvers=[lda]'"),
    "run datasets=[iris] solvers=[] study=s": ("no solvers", "solvers=[NAME,…]"),
    "run datasets=[iris] solvers=[forrest] study=s": ("'forrest'", "'forest'", "svmbench list solvers"),
    "run datasets=[iris] solvers=[SVC] study=s": ("'SVC'", "'svm'", "sklearn.svm.SVC"),
    "run datasets=[iris] solvers=[sklearn.svm.SVCC] study=s": ("sklearn.svm.SVCC", "'SVC'"),
    "run datasets=[iris] solvers=[mine.Model] study=s": ("'mine.Model'", "'mine'", "no module"),
    "run datasets=[iris] solvers=[lda,lda2] study=s": ("'lda2'", "'lda'"),
    f"run {IRIS} solver.lda.shrinkag=1": ("'shrinkag'", "'shrinkage'"),
    f"run {IRIS} solver.ldda.tol=1": ("solver.ldda", "solvers=[…]"),
    f"run {IRIS} search=gird": ("'gird'", "'grid'"),
    f"run {IRIS} search.buget=3 search=random": ("search.buget", "'budget'"),
    f"run {IRIS} search=random search.budget=0": ("search.budget", "at least 1", "0"),
    f"run {IRIS} search.space.D=[1]": ("search.space.D", "'D'", "tol"),
    "run study=s datasets=[iris] solvers=[sklearn.svm.SVC] search.space.D=[1]": ("'D'", "degree"),
    f"run {IRIS} search.space.tol=[1]": ("search.space.tol", "lda", "solver.lda.space.tol"),
    f"run {IRIS} search=selected": ("search.study=NAME",),
    # Metrics and splitters.
    f"run {TABLE} metric=acuracy": ("'acuracy'", "'accuracy'"),
    f"run {TABLE} metric=brier_score_loss": ("'brier_score_loss'", "'neg_brier_score'"),
    f"run {TABLE} metric=r2": ("r2", "quantities", "accuracy"),
    f"run {TABLE} metric=no_such_module.f2": ("'no_such_module'", "no module"),
    f"run {IRIS} metric=f1 cluster=serial": ("f1", "f1_macro"),
    f"run {TABLE} protocol.outer._target_=sklearn.model_selection.KFlod": ("KFlod", "'KFold'"),
    f"run {TABLE} protocol.outer._target_=sklearn.svm.SVC": ("protocol.outer", "sklearn.svm.SVC", "split"),
    f"run {TABLE} protocol.outer._target_=sklearn.model_selection.GroupKFold cluster=serial": ("groups",),
    # Clusters.
    f"run {TABLE} cluster=locl": ("'locl'", "'local'"),
    f"run {TABLE} cluster.workers=0": ("cluster.workers", "at least 1", "0"),
    f"run {TABLE} cluster.worker=2": ("'cluster.worker'", "'cluster.workers'"),
    f"run {TABLE} cluster=ssh cluster.hosts=[localhost]": ("cluster.hosts", "two"),
    f"run {TABLE} cluster=address": ("cluster.address", "tls://"),
    f"run {TABLE} cluster=address cluster.address=localhost": ("cluster.address", "localhost", "tls://"),
    f"run {TABLE} cluster=2": ("cluster", "2", "local"),
    # Files of the user.
    f"run {IRIS} --config-dir nowhere": ("nowhere", "--config-dir"),
    "run --config-dir conf study=s datasets=[lable] solvers=[lda] cluster=serial": ("lable", "label"),
    "run --config-dir conf study=s datasets=[nothing] solvers=[lda]": ("nothing", "_target_"),
    "run --config-dir conf study=s datasets=[weights] solvers=[lda] cluster=serial": ("sample_weight",),
    "run --config-dir conf study=s datasets=[gone] solvers=[lda] cluster=serial": ("gone.csv", "path"),
    "run --config-dir conf study=s datasets=[no_reader] solvers=[lda]": ("csv_fle", "'csv_file'"),
    "run --config-dir conf study=s datasets=[iris] solvers=[knm]": (
        "KNeighborsClasifier",
        "'KNeighborsClassifier'",
    ),
    "run --config-dir conf study=s datasets=[iris] solvers=[maker]": ("maker", "_target_"),
    "run --config-dir conf study=s datasets=[iris] solvers=[deep]": ("'max_depht'", "'max_depth'"),
    "run --config-dir conf study=s datasets=[iris] solvers=[listed]": ("listed", "space", "[1, 2]"),
    "run --config-dir conf study=s datasets=[iris] solvers=[regressor]": ("Ridge", "classifier"),
    "run --config-dir broken study=s datasets=[iris] solvers=[tabs]": ("tabs.yaml", "line 2"),
    "run --config-dir broken study=s datasets=[iris] solvers=[colon]": ("colon.yaml", "line"),
    "run --config-dir lost experiment=mine": ("# @package _global_",),
    "run --config-dir odd experiment=mine": ("solver", "solvers=[NAME]"),
    "run experiment=quikstart": ("'quikstart'", "'quickstart'"),
    "list solver": ("'solver'", "solvers"),
    "completion fsh": ("fsh", "fish"),
}
"""Commands, and the facts of the only line that each of them prints."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with tables, configurations and the stored study tiny."""
    folder = tmp_path_factory.mktemp("wrong")
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(60, 2)), columns=["a", "b"])
    labels = {
        "churn": np.where(frame["a"] > 0, "yes", "no"),
        "fractions": np.where(frame["a"] > 0, 1.5, 0),
        "numbers": rng.normal(size=60),
        "one": "no",
        "few": ["yes"] * 3 + ["no"] * 57,
    }
    for name, column in labels.items():
        frame.assign(out=column).to_csv(folder / f"{name}.csv", index=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert main(["run", "study=tiny", "datasets=[iris]", "solvers=[lda]", "cluster=serial"]) == 0
    return folder


@pytest.fixture(autouse=True)
def _in_folder(folder, monkeypatch):
    monkeypatch.chdir(folder)


@pytest.mark.sample(3)
@pytest.mark.parametrize("command", CASES)
def test_a_wrong_input_gets_one_line_with_the_place_and_the_remedy(command, capfd):
    try:
        code = main(command.split())
    except SystemExit as ended:
        code = ended.code
    out, err = capfd.readouterr()
    lines = err.splitlines()
    assert code in (1, 2)
    assert len(lines) == 1, err
    assert not any(word in out for word in ("trials run", "Traceback")), out
    assert_says(lines[0], *CASES[command])


def test_a_wrong_label_and_missing_solvers_are_listed_together(capfd):
    assert main(["run", "datasets=[churn.csv]", "label=outt"]) == 1
    assert_each_says(capfd.readouterr().err.splitlines(), ("'outt'", "'out'"), ("no solvers", "solvers=["))
