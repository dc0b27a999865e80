"""The links of a page: where they lead, what they show, and where their text is.

A link that is an annotation becomes its text between ``OPEN`` and ``CLOSE``; its title goes to a list, in order.

    marks     all links of a page, and those to addresses
    plain     one regular expression reads all plain links
    brackets  where brackets are left over, the page is read again as MediaWiki does
    paper     the same in profile "paper": by mwparserfromhell, as the paper's code does
"""

from pipeline.wikitext.links.marks import mark_links
from pipeline.wikitext.links.paper import PARSER_LIMIT, TreeReader

__all__ = ["PARSER_LIMIT", "TreeReader", "mark_links"]
