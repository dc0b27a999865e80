"""The links of a page: where they lead, what they show, and where their text is.

A link that is an annotation becomes its text between ``OPEN`` and ``CLOSE``; its title goes to a list, in order.

marks     has a page read by those below, in turn; links to addresses
plain     plain links, by one regular expression
brackets  where brackets are left over, the page once more, as MediaWiki reads it
paper     in profile "paper" the page by mwparserfromhell, as the paper's code does
"""

from pipeline.wikitext.links.marks import mark_links

__all__ = ["mark_links"]
