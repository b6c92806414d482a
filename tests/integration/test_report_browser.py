"""The report as a person sees it: opened in a real browser, wide and narrow."""

import pytest

from orchestrator.report import write_report
from tests.integration import browser
from tests.orchestrator.report.frames import QUICKSTART, arm, drop, edit, make_results, many

pytestmark = pytest.mark.skipif(
    browser.executable() is None, reason=f"needs a browser on the PATH: one of {', '.join(browser.NAMES)}"
)

# What a reader would call broken. Boxes that scroll may hold more than they show; the page may not.
PROBLEMS = """
(() => {
  const problems = [];
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
    }


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reports")
    return {
        name: write_report(results, folder / name.replace(" ", "_"))
        for name, results in studies(folder).items()
    }


@pytest.fixture(scope="module")
def chromium():
    with browser.chromium() as address:
        yield address


@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("name", ["two arms", "partial", "large", "sweep", "four arms"])
def test_nothing_is_cut_or_overlapping_and_nothing_is_fetched(chromium, pages, name, width):
    url = pages[name].as_uri()
    problems, requests = browser.visit(chromium, url, width, PROBLEMS)
    assert problems == []
    assert requests == [url]


def test_the_check_itself_sees_what_is_wrong(chromium, pages, tmp_path):
    faults = """
        <style>g[id*="-text_"] { transform: scale(3); transform-box: fill-box; }</style>
        <div style="width: 3000px">wide</div><img src="https://example.invalid/x.png">
    """
    broken = tmp_path / "broken.html"
    broken.write_text(pages["two arms"].read_text().replace("</header>", faults + "</header>"))
    problems, requests = browser.visit(chromium, broken.as_uri(), 1280, PROBLEMS)
    for expected in ("sideways", "sticks out: DIV", "overlap in figure-scores", "cut in figure-scores"):
        assert any(expected in problem for problem in problems), expected
    assert requests == [broken.as_uri(), "https://example.invalid/x.png"]
