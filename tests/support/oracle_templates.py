"""The oracle's templates: those with a rule become their text before the page is parsed again.

The rules are the product's, a table like those of titles and languages; which template is shown, with which arguments,
is decided here, by mwparserfromhell's tree.
"""

import mwparserfromhell
from mwparserfromhell.nodes import Argument, Comment, Tag, Template
from mwparserfromhell.wikicode import Wikicode

from pipeline.mediawiki.site import SiteInfo
from pipeline.wikitext.placeholders import BREAK, GONE, reveal
from pipeline.wikitext.templates.rules import Arguments
from pipeline.wikitext.templates.table import TemplateTable, silent


def expanded(text: str, site: SiteInfo) -> str:
    """The wikitext of a page with the text of each template that has a rule in its place."""
    table = TemplateTable(site)
    tree = mwparserfromhell.parse(text, skip_style_tags=True)
    replace_all(tree, table, "")
    return str(tree)


def replace_all(tree: Wikicode, table: TemplateTable, line: str) -> None:
    """Replace the templates of a tree, the inner ones first; `line` is what stands before the tree on its line."""
    for node in list(tree.nodes):
        if isinstance(node, Template):
            shown = shown_by(node, table, line)
            if shown is not None:
                tree.replace(node, shown)
                line += shown
        elif isinstance(node, Tag) and node.contents is not None and str(node.tag).strip() != "nowiki":
            if node.wiki_markup is None or node.wiki_markup != "{|":
                replace_all(node.contents, table, line)
            line += str(node)
        else:
            for inner in node.__children__() if not isinstance(node, Argument | Comment) else ():
                if inner is not node and isinstance(inner, Wikicode):
                    replace_all(inner, table, line)
            line += str(node)
        line = line.rpartition("\n")[2][-300:]


def shown_by(template: Template, table: TemplateTable, line: str) -> str | None:
    """The text that a template shows; None where it has no rule, or its rule says nothing of these arguments."""
    name, rule = table.find(str(template.name))
    in_bracket = sum(map(line.count, "(（")) > sum(map(line.count, ")）"))
    if rule is None or rule is silent or (name in table.spoken and in_bracket):
        return None
    for part in (template.name, *(parameter.value for parameter in template.params)):
        replace_all(part, table, "")
        for lost in part.filter_templates(recursive=False):
            part.replace(lost, GONE)
    shown = rule(Arguments(str(template)[2:-2], table.wiki))
    return None if shown is None else reveal(shown).replace(BREAK, "<br>").replace(GONE, "{{lost}}")
