import pytest
import sklearn.svm

from orchestrator.study.names import ResolveError, did_you_mean, resolve
from tests.messages import raises


def test_a_path_leads_to_classes_functions_and_their_attributes():
    assert resolve("sklearn.svm.SVC") is sklearn.svm.SVC
    assert resolve("sklearn.svm.SVC.fit") is sklearn.svm.SVC.fit
    assert resolve("xml.etree.ElementTree.parse").__name__ == "parse"


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("sklearn.svm.SVCC", ("module 'sklearn.svm'", "'SVCC'", "'SVC'")),
        ("sklearn.svn.SVC", ("module 'sklearn'", "'svn'", "'svm'")),
        ("sklaern.svm.SVC", ("module 'sklaern'", "'sklearn'")),
        ("sklearn.svm.SVC.fitt", ("ABCMeta 'sklearn.svm.SVC'", "'fitt'", "'fit'")),
        ("SVC", ("dotted path", "'package.module.name'", "'SVC'")),
        ("sklearn..SVC", ("dotted path",)),
        ("", ("dotted path",)),
        (3, ("dotted path",)),
    ],
)
def test_the_part_that_fails_is_named(path, message):
    with raises(ResolveError, *message):
        resolve(path)


def test_a_module_that_fails_to_import_says_why(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "lame_module_a.py").write_text("1 / 0\n")
    (tmp_path / "lame_module_b.py").write_text("import module_that_is_not_there\n")
    with pytest.raises(ResolveError, match="importing 'lame_module_a' failed: ZeroDivisionError"):
        resolve("lame_module_a.load")
    with pytest.raises(ResolveError, match=r"importing 'lame_module_b' failed: .*'module_that_is_not_there'"):
        resolve("lame_module_b.load")
    (tmp_path / "lame_module_c.py").write_text("raise BaseException('no')\n")
    with raises(ResolveError, "'lame_module_c'", "BaseException"):
        resolve("lame_module_c.load")


def test_nearest_names_ignore_case_and_stay_silent_when_nothing_is_near():
    assert did_you_mean("IRSI", ["iris", "wine"]) == "; did you mean 'iris'?"
    assert did_you_mean("covtype", ["iris", "wine"]) == ""


def test_a_folder_that_a_package_hides_is_named(tmp_path, monkeypatch):
    (tmp_path / "solvers/deep").mkdir(parents=True)
    (tmp_path / "solvers/mine.py").write_text("class Mine:\n    pass\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    import solvers

    for path in ("solvers.mine.Mine", "solvers.deep.Mine"):
        with pytest.raises(ResolveError) as caught:
            resolve(path)
        assert all(part in str(caught.value) for part in (path, str(tmp_path / "solvers"), solvers.__file__))
    with pytest.raises(ResolveError) as caught:
        resolve("solvers.other.Mine")
    assert str(tmp_path) not in str(caught.value)
