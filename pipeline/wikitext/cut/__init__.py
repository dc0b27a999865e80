"""The first pass over a page's wikitext: what spans lines and gives no running text is cut, in linear time.

blocks  before it: heading tags, poems and lists as lines of their own; after it: rows of tables without a table
cutter  reads the page once, from mark to mark; templates leave what they show
hidden  elements that a browser does not show
tokens  the marks that the cutter looks for, and the stretches that it replaces
"""

import re
from collections import Counter
from operator import attrgetter

from pipeline.mediawiki.tags import BLOCK_TAGS, INLINE_TAGS, KINDS
from pipeline.wikitext.cut.blocks import keep_bars, split_blocks
from pipeline.wikitext.cut.cutter import Cutter
from pipeline.wikitext.cut.tokens import Tokens, count_drops, pieces
from pipeline.wikitext.placeholders import ANGLE, without_controls
from pipeline.wikitext.templates.losses import Losses, count_loss, count_tag
from pipeline.wikitext.templates.table import TemplateTable

_KNOWN_TAGS = "|".join(sorted({*KINDS, *INLINE_TAGS, *BLOCK_TAGS, "table"}))
_UNKNOWN_TAG = re.compile(r"<([A-Za-z][A-Za-z0-9]*)(?:[\s/][^<>]*)?>")  # none that is known is left
_LEFT_TAG = re.compile(rf"</?(?:{_KNOWN_TAGS})(?![\w-])[^<>]*>", re.IGNORECASE | re.ASCII)


def cut(
    text: str, wanted: Tokens, templates: TemplateTable | None = None, title: str = ""
) -> tuple[str, Counter[str], Losses]:
    """(text without comments, tables, references, file links and the like, drops by reason, what templates cost).

    A template leaves the text that its rule shows on the page of this title, or nothing; without `templates` none shows
    any. Time is linear in the text.
    """
    text = without_controls(text)
    text = text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text
    drops: Counter[str] = Counter()
    losses: Losses = {}
    source = text = split_blocks(text)
    for _ in range(2):  # attributes can hold comments and templates, which hide a tag from the first reading
        regions = Cutter(text, wanted, templates, title).run()
        for region in filter(attrgetter("kind"), regions):
            count_drops(drops, text, region)
            if region.kind == "templates" and templates:
                count_loss(losses, text, region.start, region.end, templates)
        text = "".join(pieces(text, regions, 0, len(text)))
        if "<" not in text or not _LEFT_TAG.search(text):
            break
    if "<" in text and templates:
        text = text.replace("</>", "") if "<tvar|" in source else text  # the end tag of Translate's
        for tag in _UNKNOWN_TAG.finditer(text):
            drops["markup:unknown_tag"] += 1
            count_tag(losses, tag)
    return keep_bars(text).replace("<", ANGLE), drops, losses
