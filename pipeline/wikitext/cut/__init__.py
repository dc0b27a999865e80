"""What is no running text is cut out of a page's wikitext, and templates leave what they show.

cutter        the entry point: reads a page once, from mark to mark
preprocessor  before it: tags that leave nothing, as comments do
blocks        before it: heading tags, poems and lists as lines of their own; after it: rows of tables without a table
hidden        elements that a browser does not show
tokens        the marks that it looks for
regions       the stretches that it replaces, and what they drop
"""

from pipeline.wikitext.cut.cutter import cut
from pipeline.wikitext.cut.tokens import IMAGE_OPTION, tokens

__all__ = ["IMAGE_OPTION", "cut", "tokens"]
