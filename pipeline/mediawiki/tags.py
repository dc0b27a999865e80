"""The tags that MediaWiki knows, by what becomes of them and of their content; and what begins an address."""

# ruff: noqa: SIM905

# Tags whose content is no running text, by the drop that they count as. They do not nest: the first end tag
# ends them.
_CONTENT_TAGS = {
    "references": "ref references",
    "math": "math chem ce",
    "galleries": "gallery imagemap",
    "code": "pre syntaxhighlight source",
    "extensions": """categorytree charinsert dynamicpagelist graph hiero includeonly indicator inputbox
    mapframe maplink phonos rss score templatedata templatestyles timeline""",
}
KINDS = {tag: kind for kind, tags in _CONTENT_TAGS.items() for tag in tags.split()}
# Content tags that are inside a line; the others break it.
INLINE_CONTENT = frozenset(
    "ref math chem ce charinsert hiero includeonly indicator maplink phonos templatestyles".split()
)
BLOCK_TAGS = frozenset(
    """blockquote br caption center dd div dl dt h1 h2 h3 h4 h5 h6 hr li ol p poem td th tr ul""".split()
)
INLINE_TAGS = frozenset(
    """a abbr b bdi bdo big cite code data del dfn em font i ins kbd langconvert mark noinclude nowiki
    onlyinclude q rb rbc rp rt rtc ruby s samp section small span strike strong sub sup time translate tt tvar u
    var wbr""".split()
)

# What an address begins with.
PROTOCOLS = (
    r"(?i:(?:https?|ftps?|sftp|ircs?|git|svn|ssh|gopher|telnet|nntp|redis|worldwind|mms)://"
    r"|(?:mailto|news|tel|sms|sips?|xmpp|urn|geo|magnet|bitcoin|matrix):|(?=//))"
)
