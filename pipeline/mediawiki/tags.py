"""The tags that MediaWiki knows, by what becomes of them and of their content; and what begins an address."""

from pipeline.mediawiki.languages import read_table

_tags = read_table("tags")
# Tags whose content is no running text, by the drop that they count as.
KINDS: dict[str, str] = {tag: kind for kind, tags in _tags["content"].items() for tag in tags}
INLINE_CONTENT, BLOCK_TAGS, INLINE_TAGS = (frozenset(_tags[name]) for name in ("inline_content", "block", "inline"))
# What a file link may say beside its caption, as patterns.
IMAGE_OPTIONS: list[str] = _tags["image_options"]

# What an address begins with.
PROTOCOLS = (
    r"(?i:(?:https?|ftps?|sftp|ircs?|git|svn|ssh|gopher|telnet|nntp|redis|worldwind|mms)://"
    r"|(?:mailto|news|tel|sms|sips?|xmpp|urn|geo|magnet|bitcoin|matrix):|(?=//))"
)
