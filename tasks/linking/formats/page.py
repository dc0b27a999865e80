"""An HTML page of linked documents, which needs no network: what a mention stands for is its tooltip.

The shade of a mention says how sure its page is.
"""

import html
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tasks.linking.formats.links import LinkedMention, address, ordered
from tasks.serving.formats import Format, Place, Values, html_page, replaced

STYLE = """mark, a { background: rgb(110 155 255 / calc(.1 + .5 * var(--sure, 1))); color: #000; border-radius: .2em;
  padding: .1em .2em; }
a { text-decoration: underline; }
.none { background: none; outline: 1px dashed #999; }"""
LEGEND = '<mark>a page</mark> <mark style="--sure: 0.1">an unsure one</mark> <mark class="none">no page</mark>'


def page(wiki: str | None) -> Format:
    """The format; mentions are links where the address of the wiki is known. A document has its id as heading."""
    form = html_page("Linked documents", STYLE, LEGEND, lambda values: content(values, wiki))

    def answer(place: Place, values: Values) -> str:
        return form.answer({"id": str(values["id"])} if "id" in values else place, values)

    return replace(form, answer=answer)


def content(values: Values, wiki: str | None) -> str:
    """The text with its mentions. Raises: ValueError where these overlap."""
    mentions = ordered(values)
    spans = [(each["start"], each["end"], marked(each, wiki)) for each in mentions]
    return replaced(values["text"], spans, html.escape)


def marked(mention: LinkedMention, wiki: str | None) -> str:
    """A mention; all that was given or found is escaped."""
    text, hover, title = html.escape(mention["mention"]), html.escape(tooltip(mention)), mention["title"]
    if title is None:
        return f'<mark class="none" title="{hover}">{text}</mark>'
    shade = f'style="--sure: {mention["confidence"]:.2f}" title="{hover}"'
    if wiki is None or mention.get("own_id"):
        return f"<mark {shade}>{text}</mark>"
    target = html.escape(address(wiki, title))
    return f'<a href="{target}" rel="noreferrer" {shade}>{text}</a>'


def tooltip(mention: LinkedMention) -> str:
    """The page with its probability and, a line each, the candidates that are shown."""
    lines = [likely(mention)]
    for each in mention.get("candidates", ()):
        lines.append(f"{likely(each)}, prior {each['prior']:.1%}")
    return "\n".join(lines)


def likely(found: Mapping[str, Any]) -> str:
    """A title with its probability; without a title the probability is that of a page which is not given."""
    title, probability = found["title"], found["probability"]
    if title is None:
        return "no page"
    return title if probability is None else f"{title} {probability:.1%}"
