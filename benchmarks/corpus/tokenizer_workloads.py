"""What `tokenizer_training.py` measures inside of a process of its own."""

import itertools
import random
import tempfile

from benchmarks.harness.workloads import Record, kernel_size, serve, timed
from pipeline import schemas, storage
from pipeline.sequences.tokenizer_training import LETTER_COST, Sample, build

WORDS, LETTERS, PAGE = 60_000, 6_000, 5  # of the made language; paragraphs of a page


def write_made(path: str, letters: int) -> None:
    """A table of paragraphs in a made language without blanks, with so many letters."""
    choose = random.Random(1)
    alphabet = [chr(0x4E00 + number) for number in range(LETTERS)]
    by_rank = list(itertools.accumulate(1 / (10 + rank) for rank in range(WORDS)))
    words = [
        "".join(choose.choices(alphabet, cum_weights=by_rank[:LETTERS], k=choose.choice((1, 2, 2, 2, 3))))
        for _ in range(WORDS)
    ]
    schema = schemas.TABLES["ExtractPages"]["paragraphs"].schema
    with storage.parquet_rows(path, schema) as writer:
        for number in itertools.count():
            clauses = (choose.choices(words, cum_weights=by_rank, k=choose.randint(4, 16)) for _ in range(6))
            text = "，".join(map("".join, clauses))
            writer.extend([(number // PAGE, "", number % PAGE, "", text, [])])
            letters -= len(text)
            if letters <= 0:
                return


def train(*, pages: str, characters: int, vocab_size: int) -> Record:
    """Train on a folder of ExtractPages, or on made text where none is given."""
    with tempfile.TemporaryDirectory() as scratch:
        paths = [f"{scratch}/made.parquet"]
        if pages:
            paths = storage.read_manifest(pages).paths(pages, "paragraphs/")
        else:
            write_made(paths[0], 2 * characters // LETTER_COST)
        before = kernel_size("VmRSS")
        sample, choosing = timed(lambda: Sample(paths, characters))
        result, building = timed(
            lambda: build(paths, f"{scratch}/stage", vocab_size=vocab_size, characters=characters)
        )
        taken = sum(map(len, sample))
    row = {"paragraphs": sample.paragraphs, "left out": sample.left_out, "characters": taken}
    row |= {"word types": result.rows["word_types"], "choosing, CPU s": choosing["cpu_seconds"]}
    row |= {"s": building["seconds"], "CPU s": building["cpu_seconds"]}
    return {**row, "before, MB": before, "largest MB": kernel_size("VmHWM")}


if __name__ == "__main__":
    serve(train)
