"""What users name and write is data: it comes out of every writer whole, and none of them obeys it."""

import csv
import io
import json
import logging
import re
import warnings
from dataclasses import replace
from html.parser import HTMLParser
from xml.etree import ElementTree

import matplotlib.text
import pandas as pd
import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from rich.console import Console
from rich.text import Text

from orchestrator.analysis import findings as frames
from orchestrator.analysis.findings import analyse
from orchestrator.cli import status
from orchestrator.cli.display import display
from orchestrator.cli.markdown_text import MarkdownText
from orchestrator.cli.terminal import as_text, say
from orchestrator.engine.planning import PlanLine
from orchestrator.engine.progress import Progress
from orchestrator.report import _csv, markdown_summary, write_report
from orchestrator.report.figures import literal, wrapped
from orchestrator.report.html import breakable
from orchestrator.report.latex import _ESCAPES, latex
from orchestrator.report.latex import escape as latex_escape
from orchestrator.report.markdown import _table, escape
from orchestrator.report.table import Cell as PrintedCell
from orchestrator.report.table import Table
from orchestrator.store.run_log import _JsonLines
from orchestrator.study.failures import failure_lines
from orchestrator.study.text import json_text, printable, spreadsheet_text
from tests.orchestrator.report.frames import arm, edit, make_results

ODD_NAMES = [
    "knn[p=1]",
    "[bold red]x[/]",
    "[/]",
    "[link=http://a.b]c[/link]",
    ":smile: :boom:",
    "a*b_c|d**e**",
    "__x__ _y_",
    "`code`",
    "[text](http://a.b)",
    "![image](x.png)",
    "[x]: http://a.b",
    "<b>bold</b>",
    "<script>alert(1)</script>",
    "<http://a.b>",
    "&amp; &lt; &#65;",
    "--></svg><script>x</script>",
    "\"quotes\" 'and' ``more''",
    "# heading #",
    "1. list",
    "- list",
    "+1",
    "> quotation",
    "~~struck~~ ~~~",
    "a$b$c",
    r"$\frac{",
    r"$\frac{$ and $x^2$",
    r"\$ \\$ $",
    "100 % of #1 & a_1^2 {x} ~y \\",
    r"\input{/etc/passwd}",
    "--- -- ,, <<",
    "[1ex] row",
    "* starred",
    '=HYPERLINK("http://a.b")',
    "-2+3+cmd|' /C calc'!A0",
    "@SUM(1)",
    "\t=1+1",
    "a;=1+1",
    "'=1+1",
    "-1.5",
    "\x1b[2J\x1b[31mred",
    "\x9b31m\x07bell",
    "two\nlines",
    "back\rover",
    "\u202egnp.exe",
    "{{ 7 * 7 }} {% raw %}",
    "%s {0} {name}",
    "na\u00efve 数据 😀",
    "nul\x00",
    "\ud800",
    "x" * 90,
]

names = st.one_of(
    st.sampled_from(ODD_NAMES),
    st.text(min_size=1, max_size=30),
    st.text("[]()*_`~|<>&#:$\\{}^%-'\"=+@!/\n\t\r\x1b ab1.", min_size=1, max_size=20),
)


# What a store can hold: UTF-8.
STORABLE = [name for name in ODD_NAMES if name != "\ud800"]
storable = names.filter(lambda name: name != "\ud800")


def with_odd_names(test):
    for name in ODD_NAMES:
        test = example(name=name)(test)
    return given(name=names)(test)


def spaces(text):
    return re.sub(r"[ \t\n]+", " ", text).strip()


@with_odd_names
def test_nothing_that_is_printed_controls_a_terminal(name):
    text = printable(name)
    assert not re.search(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]", text)
    assert text.encode("utf-8")
    if name.isprintable():
        assert text == name


@with_odd_names
def test_a_terminal_shows_it_whole(name):
    console = Console(record=True, file=io.StringIO(), width=4000, force_terminal=True)
    say(console, f"study {name} ends")
    console.print(as_text(name))
    assert console.export_text() == f"study {printable(name)} ends\n{printable(name)}\n"


@with_odd_names
def test_markdown_shows_it_whole(name):
    expected, text = spaces(printable(name, keep="\n\t")), escape(name)
    if not expected:
        return
    document = f"# {text}\n\n{text}\n\n| {text} | x |\n| --- | --- |\n| {text} | x |\n"
    tokens = MarkdownIt().enable("strikethrough").enable("table").parse(document)
    kinds = [token.type for token in tokens if token.type.endswith("_open")]
    assert kinds == [
        *("heading_open", "paragraph_open", "table_open"),
        *("thead_open", "tr_open", "th_open", "th_open"),
        *("tbody_open", "tr_open", "td_open", "td_open"),
    ]
    inline = [token.children for token in tokens if token.type == "inline"]
    assert {child.type for children in inline for child in children} <= {"text", "text_special"}
    found = ["".join(child.content for child in children).strip() for children in inline]
    assert found == [expected.strip(), expected.strip(), expected.strip(), "x", expected.strip(), "x"]


def test_a_sweep_over_texts_leaves_no_other_cell_empty_than_one_over_plain_names(tmp_path):
    """The names come out whole, and every other cell is that of a sweep over plain texts."""
    markup = [name for name in STORABLE if name.isprintable()]
    plain = [f"plain{i}" for i in range(len(markup))]
    tables = {}
    for texts in (markup, plain):
        arms = [arm(f"knn[tag={text}]", "knn", tag=text) for text in texts]
        means = {f"d{i}": {each["name"]: 0.9 for each in arms} for i in range(2)}
        findings = analyse(make_results(tmp_path, means, arms=arms, outer=2, inner=1))
        for name, frame in {"effort": frames.effort(findings), "scores": frames.scores(findings)}.items():
            rows = list(csv.DictReader(io.StringIO(_csv(frame))))
            found = [row.pop("solver") for row in rows]
            assert found == [spreadsheet_text(each["name"]) for each in arms] * 2
            tables.setdefault(name, []).append(rows)
    for with_markup, without in tables.values():
        assert with_markup == without


class Cell(HTMLParser):
    def __init__(self, source):
        super().__init__()
        self.tags, self.text = [], ""
        self.feed(source)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)

    def handle_comment(self, data):
        self.tags.append("comment")

    def handle_data(self, data):
        self.text += data


@with_odd_names
def test_html_shows_it_whole(name):
    cell = Cell(f"<td>{breakable(name)}</td>")
    assert cell.text == printable(name, keep="\n\t")
    assert set(cell.tags) <= {"td", "wbr"}


LATEX = {escape: character for character, escape in _ESCAPES.items()}


def from_latex(text):
    """Undo the escapes, one after the other; what LaTeX would not print as it stands must not be left."""
    plain = ""
    while text:
        known = next(
            (escape for escape in sorted(LATEX, key=len, reverse=True) if text.startswith(escape)), None
        )
        if known is not None:
            plain, text = plain + LATEX[known], text[len(known) :]
        elif text.startswith("{}"):
            text = text[2:]
        else:
            assert text[0] not in '\\{}$&%#_^~"<>|`', text
            assert text[:2] not in ("--", ",,", "''"), text
            plain, text = plain + text[0], text[1:]
    return plain


@with_odd_names
def test_latex_prints_it_whole(name):
    text = latex_escape(name)
    assert from_latex(text) == spaces(printable(name, keep="\n\t"))
    assert not text.startswith(("[", "*"))


@with_odd_names
def test_a_figure_shows_it_whole(name):
    label = matplotlib.text.Text(text=literal(name))
    assert label._preprocess_math(label.get_text()) == ("\n".join(map(printable, name.split("\n"))), False)
    assert wrapped(name).replace("\n", "").replace(" ", "") == printable(name).replace(" ", "")


FORMULA = ("=", "+", "-", "@", "\t", "\r")


@with_odd_names
def test_a_spreadsheet_takes_it_for_a_text(name):
    buffer = io.StringIO(newline="")
    csv.writer(buffer, quoting=csv.QUOTE_NONNUMERIC).writerow([spreadsheet_text(name), -1.5])
    buffer.seek(0)
    ((text, number),) = csv.reader(buffer)
    assert number == "-1.5"
    assert not text.startswith(FORMULA)
    whole = printable(name, keep="\t\n")
    assert text in (whole, f"'{whole}")
    assert (text[0] == "'") == (text != whole)


@pytest.mark.parametrize("value", [-1, -0.5, float("-inf"), True, None])
def test_numbers_stay_numbers_in_a_spreadsheet(value):
    assert spreadsheet_text(value) is value


@with_odd_names
def test_json_gives_it_back(name):
    text = json_text({name: [name, -1]})
    assert json.loads(text) == {name: [name, -1]}
    assert printable(text) == text


CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""What nothing is given that is written: all but newline and tab that controls, reverses or is no UTF-8."""

hostile = st.text(
    st.one_of(
        st.sampled_from(
            "\x1b\x9b\x07\r\x00\x0b\x0c\x85\u2028\u202e\u2067\ud800\udfff=+-@\t\n\"'\\{}$&%#_^~|<>,;"
        ),
        st.characters(categories=("Cc", "Cf", "Cs", "L", "N")),
    ),
    min_size=1,
    max_size=12,
)


@given(name=hostile, message=hostile)
def test_no_writer_lets_through_what_controls(name, message):
    columns = {"solver": [name, message], "share": [-0.5, 1.5], "mixed": [message, -2]}
    data = pd.DataFrame({key: pd.Series(values, dtype=object) for key, values in columns.items()})
    data = data.assign(share=data["share"].astype(float)).rename(columns={"mixed": f"={printable(name)}"})
    table = Table(
        name="failures",
        title=name,
        caption=message,
        header=["Arm", name],
        rows=[[PrintedCell(name, strong=True), PrintedCell(message)]],
        data=data,
        last_is_text=True,
    )
    columns = ["dataset", "solver", "status", "message", "score"]
    trials = pd.DataFrame([(name, name, "error", message, None)], columns=columns, dtype=object)
    console = Console(record=True, file=io.StringIO(), width=400, force_terminal=True)
    for line in failure_lines(trials):
        say(console, line)
    record = logging.LogRecord("orchestrator", logging.INFO, "x.py", 1, "%s", (message,), None)
    written = {
        "csv": _csv(table.data),
        "tex": latex(table),
        "md": _table(table),
        "json": json_text({name: message}),
        "log": _JsonLines().format(record),
        "html": str(breakable(name)),
        "terminal": console.export_text(),
    }
    for kind, text in written.items():
        assert not CONTROL.search(text), kind
        assert text.encode("utf-8")
    check_csv(written["csv"])
    check_tex(written["tex"])
    _, first, _ = csv.reader(io.StringIO(written["csv"], newline=""))
    assert first[1] == "-0.5"


def check_csv(text):
    """Numbers are no texts; of the others none is a formula, whatever a spreadsheet splits at."""
    for row in csv.reader(io.StringIO(text, newline="")):
        for cell in row:
            assert is_number(cell) or not cell.startswith((*FORMULA, "\n")), cell


def is_number(text):
    try:
        return text == text.strip() and float(text) is not None
    except ValueError:
        return False


def check_tex(text):
    """Braces and environments are closed in the order in which they are opened."""
    depth = 0
    for token in re.findall(r"\\.|[{}]", text, re.DOTALL):
        depth += {"{": 1, "}": -1}.get(token, 0)
        assert depth >= 0
    assert depth == 0
    opened = []
    for kind, name in re.findall(r"\\(begin|end)\{(\w+)\}", text):
        if kind == "begin":
            opened.append(name)
        else:
            assert opened.pop() == name
    assert not opened


# -- whole reports -------------------------------------------------------------------------------


class Tables(HTMLParser):
    """The cells of a page's tables, its title and its text, and the tags it uses."""

    def __init__(self, source):
        super().__init__()
        self.cells, self.tags, self.title, self.text, self.open = set(), set(), "", "", []
        self.scripts = source.count("<script")
        self.feed(source)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        if tag not in ("meta", "wbr"):
            self.open.append(tag)
        if tag in ("td", "th"):
            self.cell = ""

    def handle_endtag(self, tag):
        self.open.pop()
        if tag in ("td", "th"):
            self.cells.add(self.cell)
            self.cell = ""

    def handle_data(self, data):
        self.text += data
        if hasattr(self, "cell"):
            self.cell += data
        if self.open and self.open[-1] == "title":
            self.title += data


def study_of_odd_names(folder, names):
    """Return a study that calls everything by such names."""
    first, second = (f"{names[0]}(1)", f"{names[-1]}(2)")
    arms = [
        arm(first, "solver", **{names[0]: names[1 % len(names)]}),
        arm(second, "solver", **{names[0]: names[2 % len(names)]}),
    ]
    for each in arms:
        each["space"] = {names[0]: [0.25, 1.0], names[-1] + "!": [0.5, 2.0]}
    means = {name: {first: 0.9, second: 0.8 + i / 100} for i, name in enumerate(names)}
    results = make_results(
        folder, means, name=names[0], outer=2, inner=1, profile="timing", arms=arms, also=["f1"]
    )
    columns = {"param_C": f"param_{names[0]}", "param_gamma": f"param_{names[-1]}!"}
    results = replace(
        results,
        **{
            name: getattr(results, name).rename(columns=columns) for name in ("trials", "selections", "outer")
        },
    )
    results = edit(
        results, lambda f: (f.dataset == names[-1]) & (f.inner == 0), status="error", message=names[0]
    )
    results.provenance[0]["command"] = ["svmbench", "run", names[0]]
    return results


def check_everything(results, names, folder):
    index = write_report(results, folder)
    page = Tables(index.read_bytes().decode("utf-8"))
    shown = [printable(name, keep="\n\t") for name in names]
    assert set(shown) <= page.cells
    assert page.title == f"{shown[0]} · svmbench report"
    assert not page.tags & {"b", "img"}
    assert page.scripts == 1, "our own"
    for arm_name in (f"{names[0]}(1)", f"{names[-1]}(2)"):
        assert printable(arm_name, keep="\n\t") in page.cells
    assert any(cell.endswith(f": {shown[0]}") for cell in page.cells), "the message of a failure"
    assert f"svmbench run {shown[0]}" in page.cells
    twin = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    assert {row["dataset"] for row in twin["tables"]["scores"]["rows"]} == set(names)
    assert twin["study"] == names[0]
    with (folder / "tables" / "scores.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["dataset"] for row in rows} == {spreadsheet_text(name) for name in names}
    assert float(rows[0]["mean"]) == pytest.approx(0.9)
    tex = (folder / "tables" / "scores.tex").read_bytes().decode("utf-8")
    for name in names:
        assert f"\n{latex_escape(name)} & " in tex
    texts = [path for path in folder.glob("[tf]*/*") if path.suffix != ".pdf"]
    for path in [*texts, folder / "report.json", index]:
        text = path.read_bytes().decode("utf-8")
        assert not CONTROL.search(text), path.name
        if path.suffix in (".csv", ".tex"):
            {".csv": check_csv, ".tex": check_tex}[path.suffix](text)
    for figure in (folder / "figures").glob("*.svg"):
        assert ElementTree.parse(figure).getroot().tag.endswith("svg")
    console = Console(record=True, file=io.StringIO(), width=3000)
    console.print(MarkdownText(markdown_summary(results)))
    text = spaces(console.export_text())
    for name in shown:
        assert spaces(name) in text


@pytest.mark.full
@pytest.mark.figures
def test_a_study_of_odd_names_is_reported_whole(tmp_path):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")
        check_everything(study_of_odd_names(tmp_path, STORABLE), STORABLE, tmp_path / "report")


@pytest.mark.figures("scores", "choices")
@settings(max_examples=3, phases=[Phase.generate])
@given(drawn=st.lists(storable, min_size=3, max_size=4, unique_by=lambda name: spaces(printable(name))))
def test_a_study_of_any_names_is_reported_whole(drawn, tmp_path_factory):
    folder = tmp_path_factory.mktemp("any")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")
        check_everything(study_of_odd_names(folder, drawn), drawn, folder / "report")


# -- what the verbs print ------------------------------------------------------------------------


@pytest.mark.parametrize("width", [80, 4000])
def test_a_plan_shows_every_arm_by_its_name(width):
    arms = [f"knn[p={p},weights=distance,algorithm=ball_tree]" for p in (1, 2)]
    console = Console(record=True, file=io.StringIO(), width=width)
    lines = [PlanLine(name, arm_name, 10, 5, 1, 3.0) for name in ODD_NAMES for arm_name in arms]
    status.print_lines(f"Plan of {ODD_NAMES[0]}", lines, console)
    text = console.export_text()
    assert "Plan of knn[p=1]" in text
    if width == 80:
        assert "…" not in text
        assert text.count("p=1") > len(ODD_NAMES)
        return
    for name in [*ODD_NAMES, *arms]:
        assert f"{printable(name)} " in text


@pytest.mark.parametrize("terminal", [False, True])
def test_progress_shows_every_arm_by_its_name(terminal):
    for name in ODD_NAMES:
        file = io.StringIO()
        console = Console(file=file, width=4000, force_terminal=terminal, legacy_windows=False)
        with Progress({("iris", name): 2, (name, "knn[p=2]"): 2}, display(console)) as progress:
            for pair in progress.counts:
                progress.finished(pair, False)
                progress.finished(pair, True)
            progress.note(f"{name} has a note")
            progress.show(lambda pair, left: 1.0)
        text = Text.from_ansi(file.getvalue()).plain
        assert f"{printable(name, keep=chr(10))} has a note" in text
        assert text.count(printable(name)) >= 2
        assert "knn[p=2]" in text
        assert "1 failed" in text
        assert "[red]" not in text
