"""The manual as `make docs` builds it: without a warning, all links live, and as a person sees it."""

import os
import re
import subprocess
import sys
from html import unescape
from pathlib import Path
from urllib.parse import unquote

import pytest
import yaml

import orchestrator
import solvers
from tests.integration import browser

ROOT = Path(__file__).parents[2]
SHOWN = ("index.html", "reproduce.html", "results.html", "commands.html", "reference/MNSVC.html")
TOO_WIDE = """
(() => {
  const width = document.documentElement.clientWidth;
  const wide = [...document.querySelectorAll('article *')].filter(e =>
    e.getBoundingClientRect().right > width + 0.5 && !e.closest('.md-typeset__scrollwrap, pre'));
  const page = document.documentElement.scrollWidth > width ? ['the page scrolls sideways'] : [];
  return [...page, ...wide.map(e => `${e.tagName} “${e.textContent.trim().slice(0, 40)}”`)];
})()
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder of the built pages."""
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    return folder


@pytest.fixture(scope="module")
def texts(site):
    """The pages, by their files."""
    return {page: page.read_text(encoding="utf-8") for page in site.rglob("*.html") if page.stem != "404"}


def anchors(text):
    return {unescape(name) for name in re.findall(r'\sid="([^"]+)"', text)}


def test_every_internal_link_leads_somewhere(texts):
    dead, found = [], 0
    for page, text in texts.items():
        for link in map(unescape, re.findall(r'\s(?:href|src)="([^"]+)"', text)):
            if re.match(r"\w+:", link):
                continue
            path, _, anchor = link.partition("#")
            target = (page.parent / unquote(path)).resolve() if path else page
            found += 1
            if not target.exists() or (anchor and unquote(anchor) not in anchors(texts[target]) | {"__top"}):
                dead.append(f"{page.name}: {link}")
    assert not dead
    assert found > 500


def test_nothing_is_taken_from_other_hosts_and_external_links_are_listed(site, texts):
    taken = [
        link
        for text in texts.values()
        for link in re.findall(r'(?:src="|<link rel="stylesheet" href=")(https?:[^"]+)', text)
    ]
    assert not taken
    listed = (site / "external-links.txt").read_text().split()
    assert "https://keepachangelog.com/en/1.1.0/" in listed


@pytest.mark.parametrize("name", [*solvers.__all__, *orchestrator.__all__, "StudyResults"])
def test_every_public_name_is_in_the_reference_and_the_navigation(site, texts, name):
    text = texts[site / "reference" / f"{name}.html"]
    assert f'href="reference/{name}.html"' in texts[site / "index.html"]
    titles = set(re.findall(r'doc-section-title">(\w+):', text))
    if isinstance(getattr(solvers, name, None), type):
        assert {"Parameters", "Attributes", "Raises", "Examples"} <= titles
        use = "predict" if hasattr(getattr(solvers, name), "predict") else "transform"
        if name == "NuSVC":  # the rest is scikit-learn's
            use = "fit"
        assert {f"solvers.{name}.fit", f"solvers.{name}.{use}"} <= anchors(text)
        assert "References" in text
    elif name != "StudyResults":
        assert {"Parameters", "Returns", "Raises"} <= titles


def test_types_are_whole(site, texts):
    text = re.sub(r"<[^>]+>", "", texts[site / "reference" / "MNSVC.html"])
    assert re.search(r"gamma\s*\(\s*scale or auto or float", text)


def test_every_page_is_in_the_navigation(site, texts):
    for page in ROOT.glob("docs/**/*.md"):
        address = page.relative_to(ROOT / "docs").with_suffix(".html").as_posix()
        assert f'href="{address}"' in texts[site / "install.html"], address


def test_every_command_is_in_the_manual(site, texts):
    for verb in ("run", "plan", "status", "report", "list", "repair", "cluster-certs", "cluster-worker"):
        assert f"svmbench-{verb}" in anchors(texts[site / "commands.html"])


def test_every_key_of_the_protocol_is_in_the_manual(site, texts):
    keys = yaml.safe_load((ROOT / "conf" / "protocol" / "nested5x5.yaml").read_text(encoding="utf-8"))
    shown = re.sub(r"<[^>]+>", "", texts[site / "reproduce.html"])
    terms = re.findall(r"<dt>(.*?)</dt>", texts[site / "reproduce.html"])
    for key in keys:
        assert re.search(rf"^{key}: ", shown, re.MULTILINE), key
        assert any(f"<code>{key}</code>" in term for term in terms), key


@pytest.mark.skipif(
    browser.executable() is None, reason=f"needs a browser on the PATH: one of {', '.join(browser.NAMES)}"
)
def test_pages_fit_a_desk_and_a_phone_and_show_no_error(site):
    with browser.chromium() as address:
        for name in SHOWN:
            for width in (1280, 390):
                errors = []
                url = (site / name).as_uri()
                wide, requests = browser.visit(address, url, width, TOO_WIDE, errors=errors)
                assert (wide, errors) == ([], []), (name, width)
                assert all(request.startswith(("file:", "data:")) for request in requests), requests
