"""Wikitext to paragraphs: running text with the spans and targets of its links, in bounded time.

A page goes through passes over all of its text: ``cut`` removes what is no running text and leaves what templates show,
``choose_variants`` chooses among scripts, ``mark_links`` marks the links, ``split_lines`` joins and sorts the lines,
``close_holes`` mends what was cut out of them, ``clean`` leaves the reader's text, ``read_lines`` measures it.
"""

import re

from pipeline.mediawiki.site import SiteInfo
from pipeline.mediawiki.wiki_rules import tag_reader
from pipeline.wikitext.cut import cut
from pipeline.wikitext.holes import close_holes
from pipeline.wikitext.lines import clean, split_lines
from pipeline.wikitext.link_rules import link_rules
from pipeline.wikitext.links import mark_links
from pipeline.wikitext.paragraphs import Extraction, read_lines
from pipeline.wikitext.placeholders import GONE, KIND
from pipeline.wikitext.scripts import choose_variants
from pipeline.wikitext.templates.table import DumpTemplates

_NOTHING_BEFORE_TEXT = re.compile(rf"\n{GONE}[{GONE}{KIND} \t]*")
# Punctuation behind it may end the line before.
_NO_SENTENCE_BEFORE_TEXT = re.compile(rf"\n{GONE}[{GONE}{KIND} \t]*+(?![,)，、）،]|\.\s)")


def extract(
    text: str, site: SiteInfo, *, title: str = "", profile: str = "fixed", dumped: DumpTemplates | None = None
) -> Extraction:
    """The paragraphs of the wikitext of the page that has this title, which no link on it names.

    Profile "fixed" shows the text of templates and closes the holes that others leave, drops image captions, joins
    hard-wrapped lines, takes link trails into the mention and cuts fragments off targets; "paper" does the opposite of
    each, as the paper's code does. Both choose among the forms of a wiki in several scripts, which the paper has none
    of. Templates without a rule show what `dumped` says. No text raises anything.
    """
    rules = link_rules(site, profile, dumped)
    if site.rules and not rules.paper and (read_tags := tag_reader(site.rules)):
        text = read_tags(text)
    plain, drops, losses = cut(text, rules.tokens, rules.templates, title)
    if rules.variants and "-{" in plain:
        plain = choose_variants(plain, rules.variants, drops)
    marked, targets = mark_links("\n" + plain, rules, drops, title)
    marked = (_NO_SENTENCE_BEFORE_TEXT if rules.templates else _NOTHING_BEFORE_TEXT).sub("\n", marked)
    sources, kinds = split_lines(marked, rules)
    lines = "\n".join(sources)
    if rules.templates:
        lead_in = rules.templates.lead_in
        lines = close_holes(lines, lead_in, drops, lead_in | rules.spoken, unspaced=not rules.line_joint)
    return read_lines(clean(lines, drops, paper=rules.paper), kinds, targets, drops)._replace(losses=losses)
