"""Hooks of mkdocs: pages of public names, pages that no section lists, and the help of commands."""

import argparse
import inspect
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import griffe
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

import orchestrator
import solvers
import svmbench
from orchestrator.cli import main
from orchestrator.comparison.result import Comparison
from orchestrator.store.results import StudyResults

PUBLIC = {
    "Solvers": {f"solvers.{name}": getattr(solvers, name) for name in solvers.__all__},
    "Python": {
        "svmbench.compare": svmbench.compare,
        "svmbench.write_report": svmbench.write_report,
        "orchestrator.comparison.result.Comparison": Comparison,
        **{f"orchestrator.{name}": getattr(orchestrator, name) for name in orchestrator.__all__},
        "orchestrator.store.results.StudyResults": StudyResults,
    },
}
"""Public names with a page of signatures under "Reference", by section."""


class WholeTypes(griffe.Extension):
    """Extension that keeps types such as `{"auto"} or float` whole; the parser would keep only the braces."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Write choices as `"a" or "b"`."""
        if obj.docstring:
            types = re.compile(r"^(\s*[\w, ]+ : )\{(.+?)\}", re.MULTILINE)
            obj.docstring.value = types.sub(
                lambda found: found[1] + found[2].replace(", ", " or "), obj.docstring.value
            )


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add a page for every public name and two files of the root, and add every page to the navigation."""
    for name in ("CHANGELOG.md", "CONTRIBUTING.md"):
        path = Path(__file__).parents[1] / name
        files.append(File.generated(config, name.lower(), content=path.read_text(encoding="utf-8")))
    sections: dict[str, list[Any]] = {}
    for entry in config.nav or ():
        if isinstance(entry, dict):
            sections |= entry
    named = str(config.nav)
    sections["Develop"] += sorted(
        file.src_uri for file in files.documentation_pages() if f"'{file.src_uri}'" not in named
    )
    for section, public in PUBLIC.items():
        pages: list[dict[str, str]] = []
        for path, thing in public.items():
            page = f"reference/{thing.__name__}.md"
            files.append(File.generated(config, page, content=_reference(path, thing)))
            pages.append({thing.__name__: page})
        sections["Reference"].append({section: pages})
    return files


def _reference(path: str, thing: Any) -> str:
    """Return the page of a class or function, with the methods that this project defines."""
    package = path.partition(".")[0]
    members = [
        name
        for name, member in inspect.getmembers(thing, inspect.isroutine)
        if hasattr(member, "__name__")  # a cached property has none
        and member.__name__ == name
        and not name.startswith("_")
        and member.__module__.startswith(package)
    ]
    return f"::: {path}\n    options: {{members: {members}}}\n"


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Replace the line `<!-- help -->` by the help of every command, and link to generated pages.

    In the checkout, links lead to files of the root, and to the source of a public name: `FILE.py#NAME`.
    """
    markdown = re.sub(r"\]\(\.\./[\w/]+\.py#(\w+)\)", r"](reference/\1.md)", markdown)
    markdown = re.sub(r"\]\(\.\./([A-Z]+\.md)", lambda found: f"]({found[1].lower()}", markdown)
    return markdown.replace("<!-- help -->", "\n".join(_help(main._parser())))


def _help(parser: argparse.ArgumentParser) -> Iterator[str]:
    os.environ["COLUMNS"] = "76"
    for action in parser._actions:
        if not isinstance(action, argparse._SubParsersAction):
            continue
        for command in action.choices.values():
            if command.epilog:
                command.epilog = None  # `svmbench --help` shows it
            if any(isinstance(each, argparse._SubParsersAction) for each in command._actions):
                yield from _help(command)
            else:
                yield f"## {command.prog}\n\n```text\n{command.format_help()}```\n"


def on_post_build(config: MkDocsConfig) -> None:
    """Write the list of external links of all pages."""
    site = Path(config.site_dir)
    found = {
        link
        for page in site.rglob("*.html")
        for link in re.findall(r'href="(https?://[^"]+)"', page.read_text(encoding="utf-8"))
    }
    (site / "external-links.txt").write_text("\n".join([*sorted(found), ""]), encoding="utf-8")
