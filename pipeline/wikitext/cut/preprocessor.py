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
_SOME = re.compile(rf"</?(?:{'|'.join(_TAGS)})(?![\w-])", re.IGNORECASE | re.ASCII)
_TOKEN = re.compile(
    rf"<(?:!--|(?P<slash>/?)(?P<name>{'|'.join((*_TAGS, *sorted(_LITERAL)))})(?![\w-])[^<>]*>|(?P<short>/>))",
    re.IGNORECASE | re.ASCII,
)
_ENDS = {"": re.compile("-->"), **{name: END_TAGS[name] for name in (_WITH_CONTENT, *_LITERAL)}}
_TABLE = re.compile(r"^([ \t:*#;]*+)\{\{(\(!|!\))\}\}", re.MULTILINE)


def preprocess(text: str, drops: Counter[str]) -> str:
    """The page without these tags, and without what is for other pages alone; time is linear in the text.

    A table whose marks are written as templates gets them.
    """
    if "{{(!}}" in text or "{{!)}}" in text:
        text = _TABLE.sub(lambda mark: f"{mark[1]}{{|" if mark[2] == "(!" else f"{mark[1]}|}}", text)
    if not _SOME.search(text):
        return text
    kept: list[str] = []
    position = behind = 0  # where to look on; where the last cut ended
    in_variable = False  # </> ends one of Translate's
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
        if name in _TAGS or (token["short"] and in_variable):
            kept.append(text[behind:start])
            behind = position
        if name == "tvar" or token["short"]:
            in_variable = opens
        drops["extensions:cut"] += name == _WITH_CONTENT and opens
    return "".join((*kept, text[behind:]))
