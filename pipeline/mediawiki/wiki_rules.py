"""A user's own rules for a wiki: a file with tables as those in `data/`, which hold beside them.

namespaces = { 108 = ["Recipe"], file = ["Pic"] }   # other names of namespaces, by number, or file or category
variants = ["xx", "xx-latn"]                        # codes of the wiki's scripts, the first of them preferred
interwiki = ["de", "cooks"]                         # prefixes of other wikis, and of the wiki in other languages
[templates]                                         # as a language's table in templates.toml
silent = ["stock photo"]
text = { "dish" = "{1}" }
[tags]                                              # tags of extensions
shown = ["hint"]                                    # their content is text of the line
blocks = ["recipe"]                                 # their content is text, and begins and ends lines
hidden = ["timer"]                                  # they show no text
"""

import re
import tomllib
from collections.abc import Callable
from functools import cache
from typing import Any

from pipeline.mediawiki.languages import read_table

# What a tag of the user's is read as: one that becomes the same.
_READ_AS = {"shown": "span", "blocks": "div", "hidden": "indicator"}
_LISTS = ("variants", "interwiki")  # the fields that are no tables


def read_rules(path: str) -> str:
    """The text of a file of rules. Raises: ValueError: there is none, or a field is not as it has to be."""
    try:
        with open(path, encoding="utf-8-sig") as stream:
            text = stream.read()
        tables = tomllib.loads(text)
    except (OSError, ValueError) as error:
        raise ValueError(f"corpus.wiki_rules {path}: cannot be read as TOML ({error})") from None
    templates = {key for table in read_table("templates").values() for key in table}
    known = {"templates": templates, "tags": set(_READ_AS), "namespaces": {"a number", "file", "category"}}

    def check(field: str, is_right: object, wanted: str) -> None:
        if not is_right:
            raise ValueError(f"corpus.wiki_rules {path}: found the field {field}; wanted {wanted}")

    for name, table in tables.items():
        check(name, name in known or name in _LISTS, f"one of {', '.join([*known, *_LISTS])}")
        is_right = _is_list(table) if name in _LISTS else isinstance(table, dict)
        check(name, is_right, "a list of texts" if name in _LISTS else "a table")
        for key, value in table.items() if name in known else ():
            is_key = key in known[name] or (name == "namespaces" and key.isdecimal())
            check(f"{name}.{key}", is_key, f"one of {', '.join(sorted(known[name]))}")
            is_table = name == "templates" and isinstance(value, dict)
            is_right = all(isinstance(each, str | list) for each in value.values()) if is_table else _is_list(value)
            check(f"{name}.{key}", is_right, "a list of texts")
    return text


def _is_list(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


@cache
def parse_rules(text: str) -> dict[str, Any]:
    """The tables of such a file's text."""
    return tomllib.loads(text)


@cache
def tag_reader(text: str) -> Callable[[str], str] | None:
    """A function that gives wikitext with the tags of these rules as known tags; None where there are none."""
    tags = {tag.lower(): _READ_AS[kind] for kind, names in parse_rules(text).get("tags", {}).items() for tag in names}
    if not tags:
        return None
    pattern = re.compile(rf"(</?)({'|'.join(map(re.escape, tags))})(?=[\s/>])", re.IGNORECASE)
    return lambda wikitext: pattern.sub(lambda found: found[1] + tags[found[2].lower()], wikitext)
