"""The pages of a real dump, read with the standard library."""

import bz2
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

from pipeline.mediawiki.site import SiteInfo


def real_pages(path: Path, language: str) -> Iterator[tuple[SiteInfo, str]]:
    """The site and the wikitext of each page, in the order of the dump."""
    names: list[tuple[int, str]] = []
    with bz2.open(path) as file:
        for _, element in ElementTree.iterparse(file):
            tag = element.tag.rpartition("}")[2]
            if tag == "namespace":
                names.append((int(element.attrib["key"]), element.text or ""))
            elif tag == "text":
                yield SiteInfo(language, "", "first-letter", tuple(names)), element.text or ""
            elif tag == "page":
                element.clear()
