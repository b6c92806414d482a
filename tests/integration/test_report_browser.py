"""The report as a person sees it: opened in a real browser, wide and narrow."""

import re
from functools import cache

import pytest

from orchestrator.report import write_report
from tests.integration import browser
from tests.orchestrator.report.frames import QUICKSTART, arm, drop, edit, make_results, many, thirteen

pytestmark = [
    pytest.mark.figures,
    pytest.mark.skipif(
        browser.executable() is None, reason=f"needs a browser on the PATH: one of {', '.join(browser.NAMES)}"
    ),
]

# What a reader would call broken. Boxes that scroll may hold more than they show; the page may not.
PROBLEMS = """
(() => {
  const problems = [];
  for (const folded of document.querySelectorAll('details')) folded.open = true;
  const width = document.documentElement.clientWidth;
  const name = e => `${e.tagName}.${e.className} “${e.textContent.trim().slice(0, 40)}”`;
  if (document.documentElement.scrollWidth > width) problems.push('the page scrolls sideways');
  for (const e of document.body.querySelectorAll('*')) {
    if (e.closest('svg') || e.parentElement.closest('.scroll')) continue;
    const box = e.getBoundingClientRect();
    if (box.width && (box.right > width + 0.5 || box.left < -0.5)) problems.push('sticks out: ' + name(e));
  }
  for (const cell of document.querySelectorAll('td, th'))
    if (cell.scrollWidth > cell.clientWidth + 1) problems.push('cell too narrow: ' + name(cell));
  for (const svg of document.querySelectorAll('svg')) {
    const frame = svg.getBoundingClientRect();
    const figure = svg.closest('figure').id;
    const texts = [...svg.querySelectorAll('g[id*="-text_"]')].map(g => [g.id, g.getBoundingClientRect()]);
    if (!texts.length) problems.push('no text in ' + figure);
    texts.forEach(([id, a], i) => {
      const room = [a.left - frame.left, frame.right - a.right, a.top - frame.top, frame.bottom - a.bottom];
      if (Math.min(...room) < -1)
        problems.push(`cut in ${figure}: ${id}`);
      for (const [other, b] of texts.slice(i + 1))
        if (Math.min(a.right, b.right) - Math.max(a.left, b.left) > 0.5 &&
            Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 0.5)
          problems.push(`overlap in ${figure}: ${id} and ${other}`);
    });
  }
  const ids = [...document.querySelectorAll('[id]')].map(e => e.id);
  if (new Set(ids).size < ids.length) problems.push('two elements share an id');
  for (const link of document.querySelectorAll('a[href^="#"]'))
    if (!document.getElementById(link.hash.slice(1))) problems.push('dead link ' + link.hash);
  return problems;
})()
"""


def studies(folder):
    etas = (1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6)
    swept = {
        dataset: {f"mnsvm[eta={eta}]": base + 0.01 * eta * (i + 1) for eta in etas}
        for i, (dataset, base) in enumerate([("iris", 0.9), ("wine", 0.93), ("sonar", 0.85)])
    }
    partial = drop(make_results(folder, QUICKSTART), lambda f: (f.dataset == "wine") & (f.outer > 2))
    return {
        "two arms": make_results(folder, QUICKSTART, profile="timing", also=["balanced_accuracy", "roc_auc"]),
        "partial": edit(
            partial,
            lambda f: (f.dataset == "iris") & (f.outer == 0),
            status="error",
            score=float("nan"),
            message="ValueError: " + "a_very_long_word_without_any_space" * 5 + "\nand a second line",
        ),
        "large": make_results(
            folder,
            many(20, 12),
            profile="timing",
            seconds={"solver0": 0.001, "solver1": 3.0, "solver3": 200.0},
        ),
        "sweep": make_results(
            folder, swept, arms=[arm(f"mnsvm[eta={eta}]", "mnsvm", eta=eta) for eta in etas]
        ),
        "four arms": make_results(folder, many(9, 4)),
        "thirteen": make_results(folder, thirteen(), profile="timing"),
    }


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reports")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("orchestrator.report.figures.HIGHEST_PDF", 0.0)  # a page shows no PDF
        results = studies(folder)

        @cache
        def page(name):
            """Write the report of a study when it is first asked for."""
            return write_report(results[name], folder / name.replace(" ", "_"))

        yield page


@pytest.fixture(scope="module")
def chromium():
    with browser.chromium() as address:
        yield address


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", ["two arms", "partial", "sweep", "large", "four arms", "thirteen"])
def test_nothing_is_cut_or_overlapping_and_nothing_is_fetched(chromium, pages, name):
    url, errors = pages(name).as_uri(), []
    # Figures are the same at any width: texts are compared with one another once.
    steps = [(width, "light", PROBLEMS) for width in (1400, 800, 390)]
    problems, requests = browser.drive(chromium, url, steps, errors=errors)
    assert problems == [[], [], []]
    assert errors == []
    assert requests == [url]


# Texts whose colour is too near that of what is behind them (WCAG 2, level AA).
CONTRAST = """
(() => {
  for (const folded of document.querySelectorAll('details')) folded.open = true;
  const channels = colour => colour.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map(c => c / 255)
    .map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = e => {
    for (; e; e = e.parentElement) {
      const colour = channels(getComputedStyle(e).backgroundColor);
      if (colour.length < 4 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  const found = new Set();
  for (const e of document.body.querySelectorAll('*')) {
    if (e.closest('svg, script') || ![...e.childNodes].some(n => n.nodeType === 3 && n.data.trim())) continue;
    const [a, b] = [light(channels(getComputedStyle(e).color)), light(behind(e))].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < 4.5) found.add(`${e.tagName}.${e.className} ${ratio.toFixed(1)}`);
  }
  return [...found];
})()
"""

FOLD = "document.querySelector('#table-standings').getBoundingClientRect()"

CLICKS = """
(async () => {
  const table = name => document.getElementById('table-' + name);
  const column = (name, i) => [...table(name).tBodies[0].rows].filter(row => !row.hidden)
    .map(row => row.cells[i].textContent.trim());
  const heading = (name, text) =>
    [...table(name).tHead.rows[0].cells].findIndex(cell => cell.textContent.trim() === text);
  const sort = (name, text) => table(name).tHead.rows[0].cells[heading(name, text)].firstChild.click();
  const found = {};
  sort('standings', 'Mean rank');
  found.ranks = column('standings', heading('standings', 'Mean rank'));
  sort('standings', 'Mean rank');
  found.ranksDown = column('standings', heading('standings', 'Mean rank'));
  found.ariaSort = table('standings').tHead.rows[0].cells[heading('standings', 'Mean rank')].ariaSort;
  sort('effort', 'Arm');
  found.efforts = column('effort', 0).slice(0, 14);
  const filter = document.getElementById('filter');
  const show = text => { filter.value = text; filter.dispatchEvent(new Event('input')); };
  show('WORSE, better');
  found.arms = column('standings', 0);
  found.head = [...table('heat_map').tHead.rows[0].cells].filter(cell => !cell.hidden)
    .map(cell => cell.textContent.trim());
  found.pairs = column('tests', 0);
  const button = name => [...table('heat_map').parentElement.nextElementSibling.querySelectorAll('button')]
    .find(each => each.textContent === name);
  navigator.clipboard.writeText = async text => { found.copied = text; };
  const copies = {};
  for (const name of ['CSV', 'Markdown', 'LaTeX']) {
    button(name).click();
    await new Promise(done => setTimeout(done));
    copies[name] = found.copied.split('\\n');
  }
  found.copied = copies;
  show('');
  found.all = column('standings', 0).length;
  return found;
})()
"""

# A step of its own, because the browser allows this copy only within five seconds of the user's last action.
COPY_WITHOUT_CLIPBOARD = """
(async () => {
  navigator.clipboard.writeText = async () => { throw new Error('not allowed'); };
  let copied = '';
  document.addEventListener('copy', event => { copied = event.target.value; });
  const buttons = document.getElementById('table-heat_map').parentElement.nextElementSibling;
  [...buttons.querySelectorAll('button')].find(each => each.textContent === 'CSV').click();
  for (let i = 0; i < 100 && !copied; i++) await new Promise(done => setTimeout(done, 20));
  return [copied, document.querySelector('[role=status]').textContent];
})()
"""


def test_thirteen_arms_are_sorted_filtered_and_copied(chromium, pages):
    url, errors = pages("thirteen").as_uri(), []
    steps = [(1400, "light", f"{FOLD}.bottom"), (1400, "light", CONTRAST), (1400, "dark", CONTRAST)]
    steps += [(1400, "light", script) for script in (CLICKS, COPY_WITHOUT_CLIPBOARD)]
    (bottom, *faint, found, (copied, said)), _ = browser.drive(chromium, url, steps, errors=errors)
    assert errors == []
    assert bottom <= 900, "the table of arms is above the fold"
    assert faint == [[], []]
    # A rank stands before its interval, and the intervals of equal ranks differ.
    ranks, ranks_down = ([float(text.split()[0]) for text in found[name]] for name in ("ranks", "ranksDown"))
    assert ranks == sorted(ranks)
    assert ranks_down == ranks[::-1]
    assert found["ariaSort"] == "descending"
    assert found["efforts"] == [f"data{i}" for i in range(13)] + ["data0"]
    worse = [f"worse{i}" for i in range(4)]
    assert sorted(found["arms"]) == sorted(found["head"][1:]) == ["better", *worse]
    assert sorted(found["pairs"]) == [f"{name} − control" for name in ("better", *worse)]
    assert found["all"] == 13
    csv, markdown = (found["copied"][name] for name in ("CSV", "Markdown"))
    assert csv[0] == ",".join(f'"{name}"' for name in found["head"])
    assert markdown[1] == "| --- | --- | --- | --- | --- | --- |"
    file = pages("thirteen").parent / "tables" / "heat_map.tex"
    assert "\n".join(found["copied"]["LaTeX"]) == file.read_text(encoding="utf-8")
    assert len(csv) == 14
    assert copied.startswith('"Dataset","better","')
    assert said == "Copied as CSV"


def test_the_check_itself_sees_what_is_wrong(chromium, pages, tmp_path):
    faults = """
        <style>g[id*="-text_"] { transform: scale(3); transform-box: fill-box; }</style>
        <div style="width: 3000px">wide</div><img src="https://example.invalid/x.png">
    """
    broken = tmp_path / "broken.html"
    text = re.sub("<meta http-equiv=.*>", "", pages("two arms").read_text(), count=1)
    broken.write_text(text.replace("<footer>", faults + "<footer>"))
    problems, requests = browser.visit(chromium, broken.as_uri(), 1280, PROBLEMS)
    for expected in ("sideways", "sticks out: DIV", "overlap in figure-scores", "cut in figure-scores"):
        assert any(expected in problem for problem in problems), expected
    assert requests == [broken.as_uri(), "https://example.invalid/x.png"]
