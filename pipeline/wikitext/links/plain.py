"""Plain links: one regular expression reads all of a page, and their titles are looked up together."""

from collections import Counter
from collections.abc import Sequence

from pipeline.wikitext.link_rules import LinkRules
from pipeline.wikitext.links.brackets import is_template, plain_label
from pipeline.wikitext.placeholders import BREAK, CLOSE, GONE, OPEN


def mark_plain(text: str, rules: LinkRules, drops: Counter[str]) -> tuple[str, list[str]]:
    """(the text with its plain links marked, their titles); other brackets stay."""
    pieces = rules.pattern.split(text)  # text, title, label and trail of a link, text, title, ...
    links = rules.resolve_all(pieces[1::4])
    written: Sequence[str | None] = pieces[2::4]
    if not rules.paper:
        written, links = _read_labels(written, links)
    # What a link shows without a label has no quotes and no breaks that are marks.
    labels = [label or shown for label, (_, _, shown) in zip(written, links, strict=True)]
    labels = [plain_label(label) if "''" in label or BREAK in label else label for label in labels]
    reasons = [reason for _, reason, _ in links]
    pieces[1::4] = ["" if reason else OPEN for reason in reasons]
    pieces[2::4] = [
        rules.show(reason, label, drops) if reason else label for reason, label in zip(reasons, labels, strict=True)
    ]
    pieces[3::4] = [trail if reason else trail + CLOSE for reason, trail in zip(reasons, pieces[3::4], strict=True)]
    return "".join(pieces), [target for target, reason, _ in links if not reason]


def _read_labels(
    written: Sequence[str | None], links: list[tuple[str, str, str]]
) -> tuple[Sequence[str | None], list[tuple[str, str, str]]]:
    """(labels, links): a label that is only a template is none; a link with an empty one is none."""
    if GONE in "".join(filter(None, written)):
        written = [None if label and is_template(label) else label for label in written]
    if "" in written:  # MediaWiki fills it in when the page is saved
        links = [
            ("", "invalid_title", link[2]) if label == "" and not link[1] else link
            for label, link in zip(written, links, strict=True)
        ]
    return written, links
