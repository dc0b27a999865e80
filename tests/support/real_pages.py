"""The pages of a real dump as the extraction makes them."""

import bz2
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

from pipeline.mediawiki.site import SiteInfo
from pipeline.mediawiki.titles import redirect_target
from pipeline.wikitext.extract import extract
from pipeline.wikitext.paragraphs import Paragraph


def real_pages(path: Path, language: str) -> Iterator[list[Paragraph]]:
    """The paragraphs of each page that is no redirect, in the order of the dump."""
    names: list[tuple[int, str]] = []
    with bz2.open(path) as file:
        for _, element in ElementTree.iterparse(file):
            tag = element.tag.rpartition("}")[2]
            if tag == "namespace":
                names.append((int(element.attrib["key"]), element.text or ""))
            elif tag == "text":
                site = SiteInfo(language, "", "first-letter", tuple(names))
                if not redirect_target(element.text or "", site):
                    yield list(extract(element.text or "", site).paragraphs)
            elif tag == "page":
                element.clear()
