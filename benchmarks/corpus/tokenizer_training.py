"""TrainTokenizer alone: seconds and the largest size of its process, on a dump and on text without blanks.

The second is made: words of one to three Chinese letters by Zipf's law, in clauses of 4 to 16 words. It has more than
the sample takes.
"""

import json
from pathlib import Path

from benchmarks.harness.options import Options, absolute
from benchmarks.harness.report import Report, progress, target
from benchmarks.harness.workloads import run
from pipeline import storage
from pipeline.sequences.tokenizer_training import LETTER_COST, LONGEST_RUN
from workflows.stages.sequences import TOKENIZER_SIZES, TrainTokenizer

WORKLOADS = "corpus.tokenizer_workloads"
CHARACTERS: int = TrainTokenizer.tokenizer_characters._default
MOST_MB = 2000
HEAD = f"""Vocabulary of the preset base, --tokenizer-characters {CHARACTERS:,}. Letters without blanks count
{LETTER_COST} times, and their runs are cut at {LONGEST_RUN}. The largest size is the kernel's high-water mark of the
process; "before" is its size when it began to train."""


def main() -> None:
    parser = Options("corpus.tokenizer_training", __doc__, quick="a tenth of the characters")
    parser.add_argument("--pages", type=absolute, required=True, help="a folder that ExtractPages wrote")
    options = parser.read()
    report = Report("A tokenizer of its own", options, ("tokenizers", "pyarrow"))
    characters = CHARACTERS // 10 if options.quick else CHARACTERS
    dump = ", ".join(part["name"] for part in json.loads(dump_manifest(options.pages))["facts"]["parts"])
    rows = []
    for name, pages in ((dump, str(options.pages)), ("made, without blanks", "")):
        more = {"pages": pages, "characters": characters, "vocab_size": TOKENIZER_SIZES["base"]}
        found = run(WORKLOADS, "train", more)
        progress(f"{name}: {found.get('failure') or round(found['largest MB'])}")
        report.note_failure(name, found)
        rows += [] if "failure" in found else [{"text": name, **found}]
    report.add("Targets", [target(f"{row['text']}, MB", row["largest MB"], most=MOST_MB) for row in rows])
    report.add("Training", rows, HEAD)
    report.finish()


def dump_manifest(pages: Path) -> bytes:
    """The manifest of the dump that the pages are of, which lies beside them."""
    wanted = storage.read_manifest(str(pages)).inputs["FetchDump"]
    folders = map(str, pages.parent.glob("dump-*"))
    folder = next(folder for folder in folders if storage.manifest_sha256(folder) == wanted)
    return storage.read_bytes(storage.join(folder, storage.MANIFEST))


if __name__ == "__main__":
    main()
