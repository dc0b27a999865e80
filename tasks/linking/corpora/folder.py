"""BuildLinker: the parts of a linker in; out one folder with all of them, for any machine.

mentions/, contexts/  the folders of BuildMentionTable and BuildContexts
model/, tokenizer/    the model; a tokenizer of its own where the model's folder has none
calibration/          a file for each method
linker.json           what it was made of, its sizes, and how often it was right
"""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pipeline import storage
from tasks.linking.certainty import Figures
from tasks.linking.linker import VERSION

LINKER = "linker.json"
SCORES = ("accuracy", "accuracy_interval", "candidate_recall", "candidate_recall_interval")


def build(folder: str, parts: Mapping[str, tuple[str, Sequence[str]]], scores: Figures, facts: Figures) -> None:
    """Link the files of each part, a folder with names in it, into a folder of the part's name; then describe them.

    `scores` are those of EvaluateLinking, `facts` what else `linker.json` has.
    """
    sizes = dict[str, int]()
    for part, (source, names) in parts.items():
        for name in names:
            target = Path(folder, part, name)
            storage.link_or_copy(os.path.join(source, name), str(target))
            sizes[part] = sizes.get(part, 0) + target.stat().st_size
    table = storage.read_manifest(os.path.join(folder, "mentions"))
    told = {
        "version": VERSION,
        "language": table.facts["language"],
        "dump": table.facts["dump"],
        "names": table.rows["names"],
        "titles": table.rows["targets"],
        "entities": table.facts["entities"],
        "bytes": sizes,
        **facts,
        "sets": list(map(_set_of, scores["sets"])),
    }
    text = json.dumps(told, indent=1, ensure_ascii=False) + "\n"
    storage.write_bytes(os.path.join(folder, LINKER), text.encode())


def _set_of(scored: Figures) -> dict[str, Any]:
    """Return the figures of a set of documents: of each method the shares of right answers and of reachable pages."""
    return {
        **{name: scored[name] for name in ("name", "of_dump", "documents")},
        "methods": {
            method: {name: figures["disambiguation"]["overall"][name] for name in SCORES}
            | {"expected_calibration_error": figures["calibration"]["expected_calibration_error"]}
            for method, figures in scored["methods"].items()
        },
    }
