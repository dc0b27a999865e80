"""The links of a page: their titles, and the places of their texts.

A link that is an annotation becomes its text between ``OPEN`` and ``CLOSE``; its title goes to a list, in order.

marks     the entry point: runs the readers below, in turn; external links
brackets  plain links, by one regular expression, which joins link trails (`[[bus]]es`); where brackets are left over,
          the page once more, as MediaWiki reads it
paper     in profile "paper" the page by mwparserfromhell, as the paper's code does
"""

from pipeline.wikitext.links.marks import mark_links

__all__ = ["mark_links"]
