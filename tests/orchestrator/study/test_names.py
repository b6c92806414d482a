import pytest
import sklearn.svm

from orchestrator.study.names import ResolveError, did_you_mean, resolve


def test_a_path_leads_to_classes_functions_and_their_attributes():
    assert resolve("sklearn.svm.SVC") is sklearn.svm.SVC
    assert resolve("sklearn.svm.SVC.fit") is sklearn.svm.SVC.fit
    assert resolve("xml.etree.ElementTree.parse").__name__ == "parse"


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("sklearn.svm.SVCC", "the module 'sklearn.svm' has no 'SVCC'; did you mean 'SVC'"),
        ("sklearn.svn.SVC", "the module 'sklearn' has no 'svn'; did you mean 'svm'"),
        ("sklaern.svm.SVC", "no module 'sklaern'; did you mean 'sklearn'"),
        ("sklearn.svm.SVC.fitt", "the ABCMeta 'sklearn.svm.SVC' has no 'fitt'; did you mean 'fit'"),
        ("SVC", "expected a dotted path such as 'package.module.name', found 'SVC'"),
        ("sklearn..SVC", "expected a dotted path"),
        ("", "expected a dotted path"),
        (3, "expected a dotted path"),
    ],
)
def test_the_part_that_fails_is_named(path, message):
    with pytest.raises(ResolveError, match=message):
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
    with pytest.raises(ResolveError, match="importing 'lame_module_c' failed: BaseException: no"):
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
