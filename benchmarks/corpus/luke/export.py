"""What wikipedia2vec's database of a dump holds, as JSON lines: `python luke_export.py DUMP.db OUT.jsonl`.

Runs in the peers' environment. The first line is an object with all titles and redirects; then a line a page:
[title, [[text, [[target, start, end], ...]], ...]]. The first line also has what the library's own `resolve_redirect`
gives for the titles that need more than one hop.
"""

import json
import sys

from wikipedia2vec.dump_db import DumpDB


def export(database: str, path: str) -> None:
    db = DumpDB(database)
    redirects = dict(db.redirects())
    chains = [title for title, target in redirects.items() if target in redirects]
    head = {
        "titles": list(db.titles()),
        "redirects": redirects,
        "resolved": {title: db.resolve_redirect(title) for title in chains},
    }
    with open(path, "w", encoding="utf-8") as lines:
        lines.write(json.dumps(head) + "\n")
        for title in head["titles"]:
            paragraphs = [
                [paragraph.text, [[link.title, *link.span] for link in paragraph.wiki_links]]
                for paragraph in db.get_paragraphs(title)
            ]
            lines.write(json.dumps([title, paragraphs]) + "\n")


if __name__ == "__main__":
    export(*sys.argv[1:])
