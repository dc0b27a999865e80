"""Wikitext with a link at each mention; all that means something in wikitext is written as character references."""

import re
from collections.abc import Mapping
from typing import Any

from tasks.linking.formats.links import LinkedMention, ordered
from tasks.serving.formats import parts_of

# In any place; one of two or more in a row; at the beginning of a line.
ANYWHERE = r"[\[\]{}<>&|]"
IN_A_ROW = r"(?<=')'|'(?=')|(?<=_)_|_(?=_)|(?<=~)~|~(?=~)|(?<=-)-|(?=://):"
AT_LINE_START = r"^[*#:;=!\- \t]"
SPECIAL = re.compile(rf"{ANYWHERE}|{IN_A_ROW}|{AT_LINE_START}", re.M)
NO_TITLE = re.compile(r"[\[\]{}<>|#\x00-\x1f\x7f]")


def document(values: Mapping[str, Any]) -> str:
    """A heading with the id, and the text with its links.

    Raises: ValueError where mentions overlap, or a title is none.
    """
    links = [
        (each["start"], each["end"], link(each))
        for each in ordered(values)
        if each["title"] is not None and not each.get("own_id")
    ]
    heading = escape(" ".join(str(values.get("id", "")).split()))
    return f"== {heading or reference(' ')} ==\n{linked(values['text'], links)}\n\n"


def linked(text: str, links: list[tuple[int, int, str]]) -> str:
    """The text with its links; letters beside these are references, too, for a wiki takes them into the link."""
    inside = {place for start, end, _ in links for place in range(start, end)}
    beside = {place for start, end, _ in links for place in (start - 1, end) if text[place : place + 1].isalpha()}
    beside.update(found.start() for found in SPECIAL.finditer(text))
    others = [(place, place + 1, reference(text[place])) for place in beside - inside]
    return "".join(new or part for part, new in parts_of(text, sorted(links + others)))


def link(mention: LinkedMention) -> str:
    """A link; a title with a colon gets one before it, so that it is no file, category or other language."""
    title: str = mention["title"]
    if NO_TITLE.search(title) or not title.strip():
        raise ValueError(f"the title {title!r} fits in no link of wikitext; give --format json")
    colon = ":" if ":" in title or title.startswith("/") else ""
    shown = " ".join(mention["mention"].split())
    return f"[[{colon}{escape(title)}|{escape(shown)}]]"


def escape(text: str) -> str:
    """A text in a line, which a wiki shows as it is."""
    return SPECIAL.sub(lambda found: reference(found[0]), text)


def reference(character: str) -> str:
    return f"&#{ord(character)};"
