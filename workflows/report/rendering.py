"""The report as a page and as Markdown; what comes from outside is only text in each of them.

The page is one file that asks for nothing. Its policy (CSP) forbids every request, and every script but its own one,
known by its hash: nothing in a title could run even if it became markup. The texts that the script shows are in the
page as JSON and become text nodes.
"""

import base64
import hashlib
import json
import shlex
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from workflows.report.charts import charts
from workflows.report.overview import amount, headline, paragraph
from workflows.report.paper.comparison import Compared

TEMPLATES = Path(__file__).parent / "templates"
# What `<!--`, `</script>` and line ends of JavaScript are made of.
_IN_SCRIPTS = {ord(mark): f"\\u{ord(mark):04x}" for mark in "<>&\u2028\u2029"}


def environment(**options: Any) -> jinja2.Environment:
    """Jinja2 for one of the templates' languages."""
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


def render_page(
    content: Mapping[str, Any],
    compared: Compared,
    *,
    linked: Mapping[str, Any] | None = None,
    runs: Mapping[str, Mapping[str, Any]] | None = None,
    speeds: Mapping[str, Mapping[str, Any]] | None = None,
    settings: Mapping[str, str] | None = None,
) -> str:
    """The page of the report's figures, as in `results.json`, and of the paper's tables with ours beside them.

    It shows the documents `linked` with their links, of each stage's folder what its run.json says (`runs`), the
    throughput of each pretraining (`speeds`), and the run's values without folders of the machine (`settings`).
    """
    speeds, runs, settings = speeds or {}, runs or {}, settings or {}
    drawn = charts(content)
    script = (TEMPLATES / "page.js").read_text(encoding="utf-8")
    return render(
        "report.html",
        [script],
        **{**content, "compared": compared},
        charts=drawn,
        named=lambda start: [name for name in drawn if name.startswith(start)],
        headline=headline(content, speeds),
        paragraph=paragraph(linked),
        workdir=shlex.quote(settings.get("workdir", "work")),
        linked=linked,
        linked_data=Markup(as_data(linked)),
        runs=runs,
        made=max((run["started"][:10] for run in runs.values() if "started" in run), default=""),
        speeds=speeds,
        settings=settings,
        versions=versions(runs),
    )


def render(template: str, scripts: Sequence[str], **values: Any) -> str:
    """A page of its own: a template with the look of the report, and with these scripts alone."""
    html = environment(autoescape=True)
    readable = partial(json.dumps, ensure_ascii=False, indent=1, sort_keys=True)
    html.filters |= {"duration": duration, "json": readable, "amount": amount}  # the template escapes them
    style, safe = Markup((TEMPLATES / "page.css").read_text(encoding="utf-8")), [Markup(script) for script in scripts]
    return html.get_template(template).render(values, policy=policy(scripts), style=style, scripts=safe)


def as_data(value: Any) -> str:
    """A value as JSON that ends no script element, whatever texts are in it."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.translate(_IN_SCRIPTS)


def policy(scripts: Sequence[str]) -> str:
    """The page's Content-Security-Policy: no requests, and these scripts alone."""
    digests = (hashlib.sha256(script.encode()).digest() for script in scripts)
    hashes = " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests) or "'none'"
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
