"""The mentions of an answer in the order of its text, and the addresses of their pages."""

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any
from urllib.parse import quote

LinkedMention = Mapping[str, Any]
# Wikis whose names end like those of Wikipedias, and that are none.
OTHERS = {"commons", "foundation", "incubator", "mania", "media", "mediawiki", "meta", "outreach", "sources"}
OTHERS |= {"species", "test", "test2", "wikidata", "wikifunctions", "wikimania"}
TURTLE = ("text/turtle", "application/x-turtle")  # types of texts in NIF, in HTTP
_NAME = re.compile(r"([a-z][a-z0-9_]*)wiki-")


def ordered(values: Mapping[str, Any]) -> list[LinkedMention]:
    """The mentions of an answer from left to right. Raises: ValueError where two overlap, which no format can say."""
    mentions: Sequence[LinkedMention] = values["mentions"]
    found = sorted(mentions, key=lambda each: (each["start"], each["end"]))
    for left, right in pairwise(found):
        if right["start"] < left["end"]:
            raise ValueError(
                f"the mentions {left['mention']!r} at {left['start']} and {right['mention']!r} at {right['start']} "
                "overlap, which JSON alone can say; give one of them, or --format json"
            )
    return found


def wiki_of(facts: Mapping[str, Any]) -> str | None:
    """The address of a Wikipedia, to which titles are appended, by the facts of a mention table.

    The name of its dump tells it: enwiki-..., simplewiki-..., zh_yuewiki-... . None for any other name: a dump's
    language does not say which of the wikis in this language it is from.
    """
    names: Sequence[str] = facts.get("dump", ())
    codes = {match[1] if (match := _NAME.match(name)) else "" for name in names} - OTHERS
    code = codes.pop() if len(codes) == 1 else ""
    return f"https://{code.replace('_', '-')}.wikipedia.org/wiki/" if code else None


def address(wiki: str, title: str) -> str:
    """The address of a page: of its title, all is escaped that means something to HTML or wikitext."""
    return wiki + quote(title.replace(" ", "_"), safe="/:,")
