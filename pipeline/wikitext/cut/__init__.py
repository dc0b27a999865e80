"""The first pass over a page's wikitext: what spans lines and gives no running text is cut, in linear time.

preprocessor  first: tags that leave nothing, as comments do
blocks        then: heading tags, poems and lists as lines of their own; at the end: rows of tables without a table
cutter        reads the page once, from mark to mark; templates leave what they show
hidden        elements that a browser does not show
tokens        the marks that the cutter looks for
regions       the stretches that it replaces, and what they drop
"""

import re
from collections import Counter

from pipeline.mediawiki.tags import BLOCK_TAGS, INLINE_TAGS, KINDS
from pipeline.wikitext.cut.blocks import keep_bars, split_blocks
from pipeline.wikitext.cut.cutter import Cutter
from pipeline.wikitext.cut.preprocessor import preprocess
from pipeline.wikitext.cut.regions import count_drops, pieces
from pipeline.wikitext.cut.tokens import IMAGE_OPTION, Tokens, tokens
from pipeline.wikitext.placeholders import ANGLE, without_controls
from pipeline.wikitext.templates.losses import Losses, count_loss, count_tags
from pipeline.wikitext.templates.table import TemplateTable

__all__ = ["IMAGE_OPTION", "cut", "tokens"]

_KNOWN_TAGS = "|".join(sorted({*KINDS, *INLINE_TAGS, *BLOCK_TAGS, "table"}))
_LEFT_TAG = re.compile(rf"</?(?:{_KNOWN_TAGS})(?![\w-])[^<>]*>", re.IGNORECASE | re.ASCII)


def cut(
    text: str, wanted: Tokens, templates: TemplateTable | None = None
) -> tuple[str, Counter[str], Losses]:
    """(text without comments, tables, references, file links and the like, drops by reason, what templates cost).

    A template leaves the text that its rule shows, or nothing; without `templates` none shows any. Time is linear in
    the text.
    """
    text = without_controls(text)
    text = text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text
    drops: Counter[str] = Counter()
    losses: Losses = {}
    text = split_blocks(preprocess(text, drops) if templates else text)
    text = _cut_once(text, wanted, templates, drops, losses)
    if "<" in text and _LEFT_TAG.search(text):  # its attributes held comments or templates
        text = _cut_once(text, wanted, templates, drops, losses)
    return keep_bars(text).replace("<", ANGLE), drops, losses


def _cut_once(
    text: str, wanted: Tokens, templates: TemplateTable | None, drops: Counter[str], losses: Losses
) -> str:
    cutter = Cutter(text, wanted, templates)
    regions = cutter.run()
    for region in regions:
        if region.kind:
            count_drops(drops, text, region)
            if region.kind == "templates" and templates:
                count_loss(losses, text, region.start, region.end, templates)
    if cutter.unknown and templates:
        drops["markup:unknown_tag"] = len(cutter.unknown)  # a second reading finds the same ones
        losses.update(count_tags(text, cutter.unknown))
    return "".join(pieces(text, regions, 0, len(text)))
