"""Elements that a browser does not show: by their style, or by the attribute ``hidden``."""

import re
from collections import defaultdict
from functools import cached_property

from pipeline.mediawiki.characters import decode_references

_ATTRIBUTE = re.compile(r"""([^\s"'=<>/]+)(?:\s*+=\s*("[^"]*"|'[^']*'|[^\s"']+))?""")
_DECLARATION = re.compile(r"(?<![\w-])(display|visibility)\s*+:\s*+(\w+)")
_MAY_HIDE = re.compile("none|hidden|collapse", re.IGNORECASE)
_HIDING = {("display", "none"), ("visibility", "hidden"), ("visibility", "collapse")}
_TAG = re.compile(r"<(?:!--.*?(?:-->|\Z)|(/?)([a-z][a-z0-9]*)(?![\w-])([^<>]*)>)", re.DOTALL | re.IGNORECASE)
_MARKS = ("{{", "}}"), ("[[", "]]"), ("{|", "|}")


def _is_hiding(attributes: str) -> bool:
    """Return whether an element with these attributes is not shown; of two declarations the last one counts."""
    values = dict(reversed(_ATTRIBUTE.findall(decode_references(attributes.lower()))))
    style = dict(_DECLARATION.findall(values.get("style", "")))
    return "hidden" in values or not _HIDING.isdisjoint(style.items())


class Elements:
    """The ends of a page's elements, found in one pass when the first of them is hidden."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.shown = 0  # up to here nothing is hidden

    def end(self, start: int, behind_tag: int, attributes: str) -> int:
        """The end of a tag's element if it is hidden and crosses no template, link or table, else that of the tag."""
        if start < self.shown or not (_MAY_HIDE.search(attributes) and _is_hiding(attributes)):
            return behind_tag
        # Without an end tag it ends with its line.
        line_end = self.text.find("\n", behind_tag)
        end = self._ends.get(start, line_end if line_end >= 0 else len(self.text))
        count = self.text.count
        if all(count(opens, start, end) == count(shuts, start, end) for opens, shuts in _MARKS):
            return end
        self.shown = end
        return behind_tag

    @cached_property
    def _ends(self) -> dict[int, int]:
        ends: dict[int, int] = {}
        opened: dict[str, list[int]] = defaultdict(list)
        for tag in _TAG.finditer(self.text):
            slash, name, attributes = tag.groups("")  # no name: a comment
            starts = opened[name.lower()]
            if slash and starts:
                ends[starts.pop()] = tag.end()
            elif not slash and not attributes.endswith("/"):
                starts.append(tag.start())
        return ends
