"""The report as a page, as Markdown and as LaTeX; what comes from outside is only text in each of them.

The page is one file that asks for nothing. Its policy (CSP) forbids every request, and every script but its own two,
known by their hashes: nothing in a title could run even if it became markup. What the scripts show (figures and
linked texts) is in the page as JSON and becomes text nodes.
"""

import base64
import hashlib
import json
import unicodedata
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workflows.report.paper.comparison import Compared

if TYPE_CHECKING:
    import jinja2

TEMPLATES = Path(__file__).parent / "templates"
# What `<!--`, `</script>` and line ends of JavaScript are made of.
_IN_SCRIPTS = {ord(mark): f"\\u{ord(mark):04x}" for mark in "<>&\u2028\u2029"}

# Besides LaTeX's special characters: "-" is alone, or two would be a dash; "[", "]" and "*" would be options of the
# command before them, such as the end of a row.
_TABLES = json.loads((TEMPLATES / "latex.json").read_text(encoding="utf-8"))
CHARACTERS: dict[str, str] = _TABLES["characters"]
ACCENTS: dict[str, str] = _TABLES["accents"]
BREAK = r"\allowbreak{}"
UNBROKEN = 20  # characters, which are less than a line even as numbers


def environment(**options: Any) -> "jinja2.Environment":
    """Jinja2 for one of the templates' languages."""
    import jinja2

    loader = jinja2.FileSystemLoader(TEMPLATES)
    return jinja2.Environment(loader=loader, trim_blocks=True, lstrip_blocks=True, **options)


def render_tables(content: Mapping[str, Any], compared: Compared) -> str:
    """The tables as Markdown."""
    markdown = environment()
    markdown.filters["cell"] = markdown_cell
    return markdown.get_template("tables.md").render({**content, "compared": compared})


def markdown_cell(value: Any) -> str:
    """Text that Markdown shows as it is."""
    text = str(value).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    for mark in "\\`*_[]|":
        text = text.replace(mark, "\\" + mark)
    return " ".join(text.split())


def render_latex(compared: Compared) -> str:
    """The tables of results as a LaTeX document, one table of the paper a page."""
    options = {
        "block_start_string": "<%",
        "block_end_string": "%>",
        "variable_start_string": "<<",
        "variable_end_string": ">>",
        "comment_start_string": "<#",
        "comment_end_string": "#>",
    }
    # Every value that is printed is escaped, so that none can be forgotten.
    return environment(**options, finalize=escape).get_template("tables.tex").render(compared=compared)


def escape(value: Any) -> str:
    """Text that LaTeX prints as it is; white space is one blank, and a character without a glyph its number.

    A long word, such as a path, may be broken: it would run over the edge of the page.
    """
    return " ".join(map(_escape_word, str(value).split()))


def _escape_word(word: str) -> str:
    starts = range(0, len(word), UNBROKEN)
    return BREAK.join("".join(map(_escape_character, word[start : start + UNBROKEN])) for start in starts)


def _escape_character(character: str) -> str:
    if character in CHARACTERS:
        return CHARACTERS[character]
    if " " <= character <= "~":
        return character
    base, *marks = list(unicodedata.normalize("NFD", character))
    if base.isascii() and base.isalpha() and len(marks) == 1 and marks[0] in ACCENTS:
        return f"\\{ACCENTS[marks[0]]}{{{base}}}"
    return rf"\texttt{{U+{ord(character):04X}}}"


def render_page(
    content: Mapping[str, Any],
    compared: Compared,
    *,
    linked: Mapping[str, Any] | None = None,
    runs: Mapping[str, Mapping[str, Any]] | None = None,
    speeds: Mapping[str, Mapping[str, Any]] | None = None,
    settings: Mapping[str, str] | None = None,
) -> str:
    """The page.

    Args:
        content: the report's figures, as in `results.json`.
        compared: the paper's tables with ours beside them.
        linked: documents with their links.
        runs: of each stage's folder what its run.json says.
        speeds: throughput of each pretraining.
        settings: the values of the run, without folders of the machine.
    """
    import markupsafe
    from plotly.offline import get_plotlyjs

    from workflows.report import figures as plots

    figures = plots.figures(content, speeds or {})
    scripts = [get_plotlyjs(), (TEMPLATES / "page.js").read_text(encoding="utf-8")]
    html = environment(autoescape=True)
    readable = partial(json.dumps, ensure_ascii=False, indent=1, sort_keys=True)
    html.filters |= {"duration": duration, "json": readable}  # the template escapes both
    embedded = {"figures": figures, "linked": linked}
    return html.get_template("report.html").render(
        {**content, "compared": compared},
        figures=figures,
        linked=linked,
        runs=runs or {},
        speeds=speeds or {},
        settings=settings or {},
        versions=versions(runs or {}),
        policy=policy(scripts),
        style=markupsafe.Markup((TEMPLATES / "page.css").read_text(encoding="utf-8")),
        scripts=[markupsafe.Markup(script) for script in scripts],
        embedded={name: markupsafe.Markup(as_data(value)) for name, value in embedded.items()},
    )


def as_data(value: Any) -> str:
    """A value as JSON that ends no script element, whatever texts are in it."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.translate(_IN_SCRIPTS)


def policy(scripts: list[str]) -> str:
    """The page's Content-Security-Policy: no requests, and these scripts alone."""
    digests = (hashlib.sha256(script.encode()).digest() for script in scripts)
    hashes = " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )


def duration(seconds: float) -> str:
    """Seconds in the unit that suits."""
    if seconds < 120:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:,} h {minutes:02} min" if hours else f"{minutes} min {rest:02} s"


def versions(runs: Mapping[str, Mapping[str, Any]]) -> dict[str, list[str]]:
    """The versions of Python and of each package that the stages ran with, usually one."""
    found: dict[str, set[str]] = {}
    for run in runs.values():
        for package, version in {"Python": run.get("python"), **run.get("versions", {})}.items():
            if version:
                found.setdefault(package, set()).add(version)
    return {package: sorted(found[package]) for package in sorted(found, key=str.lower)}
