"""The sections of a report's page: functions that return a title, and what is shown under it, with captions.

Sections of a user's own take their place among them in the same form.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from markupsafe import Markup

from orchestrator.analysis.findings import Findings
from orchestrator.analysis.inner_scores import by_dataset, visits_differ
from orchestrator.analysis.pairwise import ALL_PAIRS_UP_TO
from orchestrator.report import format as fmt
from orchestrator.report.captions import arms_note, protocol
from orchestrator.report.coverage import coverage_note
from orchestrator.report.methods import methods
from orchestrator.report.sections import PrintedSection
from orchestrator.report.table import Table


@dataclass(frozen=True)
class Drawing:
    """A figure of the page: its name, and a caption that says how to read it."""

    name: str
    caption: str


@dataclass(frozen=True)
class Heading:
    """A title within a section."""

    text: str


@dataclass(frozen=True)
class Terms:
    """Terms and their explanations."""

    texts: Mapping[str, str]


@dataclass(frozen=True)
class Paragraph:
    """A text; a small one if it explains others."""

    text: str
    small: bool = False


@dataclass(frozen=True)
class Glance:
    """A table that is shown before it is explained."""

    table: Table


@dataclass(frozen=True)
class Fold:
    """Details that are shown on demand, and always in print."""

    summary: str
    parts: Sequence["Part"]

    @property
    def kinds(self) -> list[tuple[str, "Part"]]:
        """Each part with what it is, for a template."""
        return _kinds(self.parts)


Part = Table | Drawing | Heading | Terms | Paragraph | Glance | Fold

FOLD_FROM = 40
"""Dataset × arm from which on what is told of each of them is folded away."""


def _kinds(parts: Sequence[Part]) -> list[tuple[str, Part]]:
    return [(type(part).__name__.lower(), part) for part in parts]


@dataclass(frozen=True)
class PageSection:
    """A section of the page.

    Attributes
    ----------
    anchor, title : str
    link : str
        What the page's contents call it.
    parts : sequence of Part
    """

    anchor: str
    title: str
    link: str
    parts: Sequence[Part]

    @cached_property
    def kinds(self) -> list[tuple[str, Part]]:
        """Each part with what it is, for a template."""
        return _kinds(self.parts)


@dataclass(frozen=True)
class Page:
    """What sections are made of: all that was found, and the tables by their names."""

    findings: Findings
    tables: Mapping[str, Table]
    own: Sequence[PrintedSection] = ()

    def table(self, name: str, titled: bool = True) -> list[Part]:
        """Return a table under its title, if the report has it."""
        if name not in self.tables:
            return []
        table = self.tables[name]
        return [Heading(table.title), table] if titled else [table]

    def section(self, name: str, link: str, *parts: Part) -> PageSection:
        """Return a section that is about one table."""
        table = self.tables[name]
        return PageSection(name, table.title, link, [table, *parts])

    def by_dataset(self, name: str, link: str, summary: str, *parts: Part) -> PageSection:
        """Return a section about a table of each dataset × arm, folded away if they are many."""
        table = self.tables[name]
        return PageSection(name, table.title, link, self.folded(summary, [table, *parts]))

    def folded(self, summary: str, parts: Sequence[Part]) -> Sequence[Part]:
        """Return parts about each dataset × arm, folded away if they are many."""
        return [Fold(summary, parts)] if len(self.findings.design.pairs) >= FOLD_FROM else parts

    def drawing(self, name: str, caption: str) -> Drawing:
        """Return a figure whose caption says which arms it leaves out."""
        return Drawing(name, caption + arms_note(self.findings))


def page_sections(page: Page) -> list[PageSection]:
    """Return the sections that this study has something to say in, in the page's order."""
    always = (_standings, _same_arms, _matrix, _heat_map, _compared, _coverage)
    scored = () if page.findings.is_empty else (_scores, _tests, _sweep, _time, _effort, _selections)
    makers: tuple[Callable[[Page], PageSection | None], ...] = (*always, *scored, _failures, _sensitivity)
    found = [section for make in makers if (section := make(page)) is not None]
    return [*found, *map(_of_user, page.own), *_paper(page), _provenance(page)]


def _standings(page: Page) -> PageSection | None:
    if "standings" not in page.tables:
        return None
    table = page.tables["standings"]
    return PageSection("standings", table.title, "Arms", [Glance(table)])


def _same_arms(page: Page) -> PageSection | None:
    return page.section("same_arms", "Studies") if "same_arms" in page.tables else None


def _matrix(page: Page) -> PageSection | None:
    if "comparison_matrix" not in page.tables:
        return None
    return page.section("comparison_matrix", "Pairs")


def _heat_map(page: Page) -> PageSection | None:
    return page.section("heat_map", "Differences") if "heat_map" in page.tables else None


def _compared(page: Page) -> PageSection:
    parts = [
        Terms(protocol(page.findings)),
        Heading("Datasets"),
        *page.table("datasets", titled=False),
        Heading("Arms"),
        *page.table("arms", titled=False),
    ]
    return PageSection("protocol", "How it was compared", "Protocol", parts)


def _coverage(page: Page) -> PageSection:
    table = page.folded("Trainings of each dataset and arm", page.table("coverage", titled=False))
    changed = [Paragraph(f"{sentence}.") for sentence in page.findings.results.changed]
    parts = [Paragraph(coverage_note(page.findings)), *changed, *table, *page.table("apart")]
    return PageSection("coverage", "What was run", "What was run", parts)


def _scores(page: Page) -> PageSection:
    metric = page.findings.design.metric
    figure = page.drawing(
        "scores",
        f"Left: mean {fmt.metric_name(metric)} over the outer folds, with the corrected standard error. "
        "Right: the same numbers enlarged, as differences from the mean of all arms on the same dataset"
        f"{fmt.in_unit(metric)}; lines are again the corrected standard error. Overlapping lines are no "
        "test.",
    )
    others = [part for name in page.findings.other_scores for part in page.table(f"scores_{name}")]
    parts = (figure, *page.table("differences"), *others)
    return page.by_dataset("scores", "Scores", "Scores of each dataset and arm, and a figure", *parts)


def _tests(page: Page) -> PageSection | None:
    if "tests" not in page.tables:
        return None
    posterior = Drawing(
        "triangles",
        "The posteriors behind these probabilities (Benavoli et al., 2017): each draw is a point whose three "
        "distances tell the shares of better, practically equal and worse, near a corner where that is "
        "nearly all; colours stand out with the number of draws. The probability in a corner: the part of "
        "the draws in its third.",
    )
    practical = [*page.table("practical"), posterior] if len(page.findings.densities) else []
    parts = [*page.table("sequence"), *page.table("test_details"), *practical]
    if "ranks" in page.tables:
        caption = "Mean rank of every arm, the best on top."
        if len(page.findings.means.columns) <= ALL_PAIRS_UP_TO:
            caption += (
                " A thick line on the right joins arms between which no pairwise test found a difference; "
                "because it comes from pairwise tests, two joined arms may each differ from a third."
            )
        parts += [*page.table("ranks"), page.drawing("ranks", caption)]
    return page.section("tests", "Tests", *parts)


def _sweep(page: Page) -> PageSection | None:
    if "sweep" not in page.tables:
        return None
    figure = page.drawing(
        "sweep",
        "Every setting against the first one. Thin lines are datasets; the thick line is their median for "
        "differences, and their geometric mean for ratios; a dataset where a training was stopped has no "
        "ratio to draw, and its setting no mean. Shaded: the simultaneous band of the typical difference.",
    )
    tests = (*page.table("sweep_curves"), *page.table("sweep_selected"))
    return page.section("sweep", "Sweeps", figure, *tests)


def _time(page: Page) -> PageSection:
    if "timing" not in page.tables:
        text = Markup(
            "No times are compared. Seconds are comparable only when every training runs alone and cold, and "
            "no training of this study ran under the profile “timing”. Run it again with "
            "<code>protocol.profile=timing</code> to measure them. Iterations and kernel evaluations below "
            "do not depend on it."
        )
        return PageSection("time", "Time", "Time", [Paragraph(text)])
    figure = page.drawing(
        "timing",
        "Mean times of the refits. Where times span decades the axis is logarithmic and dots replace bars. "
        "Lines on the training times are corrected standard errors; a triangle marks a lower bound, where "
        "trainings were stopped.",
    )
    summary = "Times of each dataset and arm, and a figure"
    each = page.folded(summary, [*page.table("timing"), figure])
    metric = fmt.metric_name(page.findings.design.metric)
    against = page.drawing(
        "time_accuracy",
        f"Mean {metric} against training time, the geometric mean of the ratios to the control with its "
        "interval: higher is more accurate, further left is faster. Arms of which trainings were stopped are "
        "not drawn.",
    )
    profiles = page.drawing(
        "profile",
        "Performance profiles: on which share of the datasets an arm's training takes at most so many times "
        "as long as the fastest arm's. Higher is better; where a line begins it is the fastest.",
    )
    drawn = [against, *page.table("profile"), profiles] if "profile" in page.tables else []
    growth = Drawing(
        "scaling",
        "Each point is a dataset: the mean training time of the refits against their mean size. Lines are "
        "the fitted power laws.",
    )
    fitted = [*page.table("scaling"), growth] if "scaling" in page.tables else []
    parts = [*page.table("time_ratios"), *drawn, *fitted, *each]
    return PageSection("time", "Time", "Time", parts)


def _effort(page: Page) -> PageSection:
    figure = page.drawing(
        "effort",
        "Means over the refits; k stands for thousand, M for million. Where counts span decades the axis is "
        "logarithmic and dots replace bars. A triangle marks a lower bound, where trainings were stopped.",
    )
    return page.by_dataset(
        "effort", "Models and work", "Models of each dataset and arm, and a figure", figure
    )


def _selections(page: Page) -> PageSection | None:
    if "selections" not in page.tables:
        return None
    figure = page.drawing(
        "choices",
        "How often each pair of hyper-parameters won, over all datasets and outer folds; empty cells never "
        "won. Wins along a border suggest a wider range.",
    )
    summary = "Choices of each dataset and arm, and a figure"
    return page.by_dataset("selections", "Hyper-parameters", summary, figure, *_inner_scores(page))


def _inner_scores(page: Page) -> list[Part]:
    """Return the maps of inner scores, those of single datasets folded away."""
    frame = page.findings.inner_scores
    if frame.empty:
        return []
    metric = fmt.metric_name(page.findings.design.metric)
    caption = (
        f"Mean inner {metric} of each candidate, over the trainings that it had, as the distance from the "
        "best candidate of the same dataset, on average over the datasets where it was tried; the more its "
        "colour stands out, the nearer to the best; blank cells were not tried. Rings: what the search "
        "chose, larger for more outer folds."
    )
    if visits_differ(frame):
        caption += " Dots: where it trained, larger for more trainings."
    if len(mapped := frame["solver"].unique()) < len(page.findings.design.arms):
        caption += f" Shown: {fmt.listed(list(mapped))}."
    single = Drawing("inner_scores_by_dataset", "The same on single datasets, with the highest mean of each.")
    folded = (
        [Fold("Maps of single datasets", [single])]
        if by_dataset(frame, len(page.findings.design.arms))
        else []
    )
    return [Drawing("inner_scores", caption), *folded]


def _failures(page: Page) -> PageSection:
    nothing = [Paragraph("No stored training failed or ran out of time.")]
    parts = page.table("failures", titled=False) or nothing
    return PageSection("failures", "Failures", "Failures", parts)


def _sensitivity(page: Page) -> PageSection | None:
    return page.section("sensitivity", "Sensitivity") if "sensitivity" in page.tables else None


def _of_user(section: PrintedSection) -> PageSection:
    parts: list[Part] = [] if section.table is None else [section.table]
    if section.figure:
        parts.append(Drawing(section.name, section.caption))
    parts += map(Paragraph, section.paragraphs)
    if section.paragraphs and section.caption:
        parts.append(Paragraph(section.caption, small=True))
    return PageSection(f"section-{section.name}", section.title, section.title, parts)


def _paper(page: Page) -> list[PageSection]:
    if "checklist" not in page.tables:
        return []
    parts = [Paragraph(methods(page.findings)), *page.table("checklist")]
    return [PageSection("methods", "For a paper", "For a paper", parts)]


def _provenance(page: Page) -> PageSection:
    parts: list[Part] = [Paragraph("No run of this study left a record of itself.")]
    if "runs" in page.tables and page.tables["runs"].rows:
        parts = page.table("runs", titled=False)
    software = Paragraph("".join(_software(page.findings)), small=True)
    return PageSection("provenance", "Provenance", "Provenance", [*parts, software])


def _software(findings: Findings) -> Iterator[str]:
    runs = findings.results.provenance
    if not runs:
        yield "Versions were not recorded."
        return
    versions = runs[-1].get("versions") or {}
    yield f"Software of the latest run: {', '.join(f'{name} {number}' for name, number in versions.items())}"
    if any((run.get("versions") or {}) != versions for run in runs):
        yield "; earlier runs used other versions, see report.json"
    yield "."
