"""Wikitext to paragraphs: running text with the spans and targets of its links, in bounded time.

A page goes through passes over all of its text: ``cut`` removes what is no running text and leaves what templates show,
``choose_variants`` chooses among scripts, ``mark_links`` marks the links, ``split_lines`` joins and sorts the lines,
``close_holes`` mends what was cut out of them, ``clean`` leaves the reader's text, ``read_lines`` measures it.
"""

import re

from pipeline.mediawiki.site import SiteInfo
from pipeline.wikitext.cut import cut
from pipeline.wikitext.holes import close_holes
from pipeline.wikitext.lines import clean, split_lines
from pipeline.wikitext.link_rules import link_rules
from pipeline.wikitext.links import mark_links
from pipeline.wikitext.paragraphs import Extraction, read_lines
from pipeline.wikitext.placeholders import GONE
from pipeline.wikitext.scripts import choose_variants
from pipeline.wikitext.templates.table import DumpTemplates

PROFILES = ("fixed", "paper")
_NOTHING_BEFORE_TEXT = re.compile(rf"\n{GONE}[{GONE} \t]*")
# Punctuation behind it may end the line before.
_NO_SENTENCE_BEFORE_TEXT = re.compile(rf"\n{GONE}[{GONE} \t]*+(?![,)，、）،]|\.\s)")


def extract(
    text: str, site: SiteInfo, *, title: str = "", profile: str = "fixed", dumped: DumpTemplates | None = None
) -> Extraction:
    """The paragraphs of the wikitext of the page that has this title.

    Profile "fixed" shows the text of templates and closes the holes that others leave, drops image captions, joins
    hard-wrapped lines, takes link trails into the mention and cuts fragments off targets; "paper" does the opposite of
    each, as the paper's code does. Both choose among the forms of a wiki in several scripts, which the paper has none
    of. Templates without a rule show what `dumped` says. ValueError for an unknown profile; no text raises anything.
    """
    if profile not in PROFILES:
        raise ValueError(f"profile: unknown value {profile!r}; use one of {', '.join(PROFILES)}")
    rules = link_rules(site, profile, dumped)
    plain, drops, losses = cut(text, rules.tokens, rules.templates, title)
    if rules.variants and "-{" in plain:
        plain = choose_variants(plain, rules.variants, drops)
    marked, targets = mark_links("\n" + plain, rules, drops)
    marked = (_NO_SENTENCE_BEFORE_TEXT if rules.templates else _NOTHING_BEFORE_TEXT).sub("\n", marked)
    sources, kinds = split_lines(marked, rules)
    lines = "\n".join(sources)
    if rules.templates:
        lines = close_holes(lines, rules.templates.lead_in, drops, unspaced=not rules.line_joint)
    return read_lines(clean(lines, drops), kinds, targets, drops)._replace(losses=losses)
