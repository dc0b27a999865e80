"""What MediaWiki's preprocessor takes out of a page before it looks at the beginnings of lines.

Tags that say what other pages include, and those of the extension Translate, leave nothing in their places, as
comments do: what stands behind them still begins its line.
"""

import re
from collections import Counter

from pipeline.mediawiki.tags import KINDS
from pipeline.wikitext.cut.tokens import END_TAGS

_WITH_CONTENT = "includeonly"  # without an end tag the rest of the page goes
_TAGS = (_WITH_CONTENT, "noinclude", "onlyinclude", "translate", "tvar")
# Their content is no wikitext.
_LITERAL = {"nowiki", *KINDS} - {_WITH_CONTENT, "ref", "references", "gallery", "imagemap"}
_SOME = re.compile(rf"(?ai)</?(?:{'|'.join(_TAGS)})(?![\w-])")
_NAMES = "|".join((*_TAGS, *sorted(_LITERAL)))
_TOKEN = re.compile(rf"(?ai)<(?:!--|(?P<slash>/?)(?P<name>{_NAMES})(?![\w-])[^<>]*>|(?P<short>/>))")
_ENDS = {"": re.compile("-->"), **{name: END_TAGS[name] for name in (_WITH_CONTENT, *_LITERAL)}}


def preprocess(text: str, drops: Counter[str]) -> str:
    """The page without these tags, and without what is for other pages alone; time is linear in the text."""
    if not _SOME.search(text):
        return text
    kept: list[str] = []
    position = behind = 0  # where to look on; where the last cut ended
    has_variables = "<tvar|" in text  # of Translate's, which </> ends
    endless: set[str] = set()
    while token := _TOKEN.search(text, position):
        start, position = token.span()
        name = (token["name"] or "").lower()
        opens = not (token["slash"] or token["short"] or token[0].endswith("/>"))
        if opens and name in _ENDS and name not in endless:
            if end := _ENDS[name].search(text, position):
                position = end.end()
            elif name in ("", _WITH_CONTENT):
                position = len(text)
            else:
                endless.add(name)
        if name in _TAGS or (token["short"] and has_variables):
            kept.append(text[behind:start])
            behind = position
        drops["extensions:cut"] += name == _WITH_CONTENT and opens
    return "".join((*kept, text[behind:]))
