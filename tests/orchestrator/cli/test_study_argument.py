"""The name of a study stands bare or as `study=NAME`, for every verb that takes one."""

import re
import shutil

import pytest

from orchestrator import load_study
from orchestrator.cli.main import _OF_A_STUDY, EXIT_BAD, EXIT_OK, main
from orchestrator.cli.request import names_and_overrides, with_study
from orchestrator.study.errors import ConfigError
from tests.messages import assert_says

pytestmark = pytest.mark.sample(2)

TINY = (
    *("datasets=[iris]", "solvers=[libsvm_l1]", "search.space.C=[1]", "search.space.gamma=[1]"),
    *("protocol.outer=2", "protocol.inner=2", "cluster=serial"),
)


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """A folder with two finished studies."""
    folder = tmp_path_factory.mktemp("stored")
    for name in ("first", "second"):
        assert main(["run", name, *TINY, f"paths.results={folder}"]) == EXIT_OK
    return folder


@pytest.fixture
def svmbench(stored, tmp_path, capsys):
    """Run a command on copies of the studies; return its exit code, output and errors, without times."""
    shutil.copytree(stored, tmp_path, dirs_exist_ok=True)

    def run(*arguments):
        capsys.readouterr()
        code = main([*arguments, f"paths.results={tmp_path}"])
        output, errors = capsys.readouterr()
        return code, re.sub(r"[\d.]+ m?s\b", "", output), errors

    return run


# The output of `warm` does not depend on the study's name.
@pytest.mark.parametrize("verb", [verb for verb in _OF_A_STUDY if verb != "warm"])
def test_a_bare_name_is_the_study_of_that_name(svmbench, verb):
    further = TINY if verb in ("run", "plan") else ()
    bare, named = svmbench(verb, "first", *further), svmbench(verb, "study=first", *further)
    assert bare == named
    assert bare[0] == EXIT_OK
    assert "first" in bare[1]
    assert svmbench(verb, *further, "second")[1] != bare[1]


@pytest.mark.parametrize("names", [("first,second",), ("study=first,second",)])
def test_a_report_takes_several(svmbench, names, tmp_path):
    code, output, _ = svmbench("report", *names, f"to={tmp_path}/both")
    assert code == EXIT_OK
    assert (tmp_path / "both/index.html").is_file()
    assert "first" in output


@pytest.mark.parametrize("verb", _OF_A_STUDY)
@pytest.mark.parametrize("names", [("first", "second"), ("first", "study=second"), ("first", "study=first")])
def test_two_arguments_with_names_are_refused(svmbench, verb, names):
    code, _, errors = svmbench(verb, *names)
    assert code == EXIT_BAD
    assert all(part in errors for part in (verb, "NAME", *names))


@pytest.mark.parametrize("verb", _OF_A_STUDY)
def test_a_name_that_is_none_is_refused(svmbench, verb):
    code, _, errors = svmbench(verb, "a/b")
    assert code == EXIT_BAD
    assert "a/b" in errors


@pytest.mark.parametrize("named", ["first", "study=first", "study='first'"])
def test_rename_and_delete_take_both_too(svmbench, tmp_path, named):
    assert svmbench("rename", named, "third")[0] == EXIT_OK
    assert load_study("third", tmp_path).name == "third"
    assert svmbench("delete", named.replace("first", "third,second"), "--yes")[0] == EXIT_OK
    assert not {"first", "second", "third"} & {path.name for path in tmp_path.iterdir()}


@pytest.mark.parametrize("name", ["", "study="])
def test_delete_needs_a_name(svmbench, name, tmp_path):
    assert svmbench("delete", name, "--yes")[0] == EXIT_BAD
    assert load_study("first", tmp_path).name == "first"


@pytest.mark.parametrize("name", ["1_000", "größe", "a-b", "2024", "null"])
def test_any_name_of_a_study_stands_bare(svmbench, name, tmp_path):
    assert svmbench("rename", "first", name)[0] == EXIT_OK
    assert name in svmbench("status", name)[1]


def test_other_arguments_are_left_alone():
    overrides = ["~sweep.eta", "+a=b", "paths.results=x"]
    assert with_study("plan", overrides) == overrides
    assert with_study("plan", [*overrides, "one"]) == [*overrides, "study=one"]
    assert names_and_overrides([*overrides, "one", "study=two,three"]) == (["one", "two", "three"], overrides)
    with pytest.raises(ConfigError):
        with_study("plan", ["one", "two"])


@pytest.mark.parametrize("verb", ["status", "repair"])
def test_without_a_name_the_stored_studies_are_listed(svmbench, verb):
    code, _, errors = svmbench(verb)
    assert code == EXIT_BAD
    assert_says(errors, "name of a study", "first", "second", "study=NAME")
