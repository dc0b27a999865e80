"""Elements that a browser does not show: by their style, or by the attribute ``hidden``."""

import re

from pipeline.mediawiki.characters import decode_references

_ATTRIBUTE = re.compile(r"""([^\s"'=<>/]+)(?:\s*+=\s*("[^"]*"|'[^']*'|[^\s"']+))?""")
_DECLARATION = re.compile(r"(?<![\w-])(display|visibility)\s*+:\s*+(\w+)")
_HIDING = {("display", "none"), ("visibility", "hidden"), ("visibility", "collapse")}
_TAG = re.compile(r"<(?:!--.*?(?:-->|\Z)|(/?)([a-z][a-z0-9]*)(?![\w-])([^<>]*)>)", re.DOTALL | re.IGNORECASE)
_MARKS = ("{{", "}}"), ("[[", "]]"), ("{|", "|}")


def _is_hiding(attributes: str) -> bool:
    """Return whether an element with these attributes is not shown; of two declarations the last one counts."""
    folded = attributes.lower()
    if "none" not in folded and "hidden" not in folded and "collapse" not in folded:
        return False
    values = dict(reversed(_ATTRIBUTE.findall(decode_references(folded))))
    return "hidden" in values or not _HIDING.isdisjoint(
        dict(_DECLARATION.findall(values.get("style", ""))).items()
    )


class Elements:
    """Where the elements of a page end, found in one pass when the first of them is hidden."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._ends: dict[int, int] | None = None
        self._shown = 0  # up to here nothing is hidden

    def end(self, start: int, behind_tag: int, attributes: str) -> int:
        """Return where the element of a tag ends if it is hidden, else where the tag ends.

        A hidden element without an end tag ends with its line. One that crosses a template, a link or a table is shown.
        """
        if start < self._shown or not _is_hiding(attributes):
            return behind_tag
        self._ends = self._find_ends() if self._ends is None else self._ends
        end = self._ends.get(start) or self.text.find("\n", behind_tag)
        end = len(self.text) if end < 0 else end
        count = self.text.count
        if all(count(opens, start, end) == count(shuts, start, end) for opens, shuts in _MARKS):
            return end
        self._shown = end
        return behind_tag

    def _find_ends(self) -> dict[int, int]:
        ends: dict[int, int] = {}
        opened: dict[str, list[int]] = {}
        for tag in _TAG.finditer(self.text):
            slash, name, attributes = tag.groups()
            if not name:  # a comment
                continue
            starts = opened.setdefault(name.lower(), [])
            if not slash and not attributes.endswith("/"):
                starts.append(tag.start())
            elif slash and starts:
                ends[starts.pop()] = tag.end()
        return ends
