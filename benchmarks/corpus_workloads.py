"""What `corpus.py` measures inside of a process: `python corpus_workloads.py WORKLOAD JSON` prints a line of JSON.

Seconds are CPU seconds of the process with all its threads, round after round, the methods in turn.
"""

import gc
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

UNKNOWN_ENTITY = 1
Seconds = dict[str, list[float]]


def steady_collector() -> None:
    """The garbage collector as in the workers of the pipeline."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)


def rounds_of(methods: Mapping[str, Callable[[], Any]], rounds: int) -> Seconds:
    """CPU seconds of each method in each round."""
    steady_collector()
    seconds: Seconds = {name: [] for name in methods}
    for _ in range(rounds):
        for name, method in methods.items():
            begin = time.process_time()
            method()
            seconds[name].append(time.process_time() - begin)
    return seconds


def sample_pages(paths: Sequence[str], every: int) -> list[list[Any]]:
    """The paragraphs of every so many-th page."""
    from pipeline.jobs.build_sequences import read_paragraphs

    pages = (paragraphs for path in paths for _, paragraphs in read_paragraphs(path))
    return list(islice(pages, 0, None, every))


class CountingTokenizer:
    """A tokenizer that counts the tokens that it gives."""

    def __init__(self, tokenizer: Any) -> None:
        self._encode, self.count = tokenizer.encode, 0

    def encode(self, segments: Sequence[str], leading_space: Sequence[bool]) -> list[list[int]]:
        ids = self._encode(segments, leading_space)
        self.count += sum(map(len, ids))
        return ids


def sequences(
    *,
    paragraphs: list[str],
    every: int,
    tokenizer: str,
    aliases: str,
    language: str,
    limits: dict[str, int],
    rounds: int,
    pages_file: str,
) -> dict[str, Any]:
    """Pages to sequences by the pipeline, and its parts alone; LUKE's method in plain Python on the same pages.

    The pages are left in `pages_file`, with the spans of their sentences and the ids of their links, so that another
    Python can do LUKE's method with an old transformers.
    """
    import luke_method

    from pipeline.lookup.entities import Aliases
    from pipeline.sequences.sentences import split
    from pipeline.sequences.packing import Limits, build_page
    from pipeline.sequences.tokenizer import WordTokenizer
    from pipeline.sequences.tokenizer_files import tokenizer_files

    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # as in the workers of the pipeline
    pages, entity_id = sample_pages(paragraphs, every), Aliases(aliases).get
    vocab, merges = tokenizer_files(Path(tokenizer)).values()
    fast = fast_tokenizer(vocab, merges)
    told = [
        [as_text(paragraph, entity_id, split(paragraph.text, language)) for paragraph in p] for p in pages
    ]
    Path(pages_file).write_text("".join(json.dumps(page) + "\n" for page in told), encoding="utf-8")

    def build(encoder: Any) -> list[Any]:
        chosen: dict[str, Any] = {"language": language, "profile": "fixed", "limits": Limits(**limits)}
        return [build_page(p, tokenizer=encoder, entity_id=entity_id, **chosen)[0] for p in pages]

    def alone() -> int:
        texts = ([paragraph.text for paragraph in page] for page in pages)
        return sum(sum(map(len, fast.encode_batch_fast(batch))) for batch in texts)

    counting = CountingTokenizer(WordTokenizer.load(tokenizer))
    rows = ([luke_method.Row(**vars(row)) for row in page] for page in build(counting))
    digests = luke_method.digests(rows)
    tokens = {"first": counting.count, "again": counting.count, "tokenizer alone": alone()}
    tokenizers = [WordTokenizer.load(tokenizer) for _ in range(rounds)]
    methods: dict[str, Callable[[], Any]] = {
        "first": lambda: build(tokenizers[-1]),
        "again": lambda: build(tokenizers.pop()),
        "tokenizer alone": alone,
        "sentence splitting alone": lambda: [split(text.text, language) for page in told for text in page],
    }
    seconds = rounds_of(methods, rounds)
    plain = luke_method.measure(told, lambda: luke_method.PlainTokenizer(vocab, merges), limits, rounds)
    size = sum(len(text.text.encode()) for page in told for text in page)
    facts = {"pages": len(pages), "text_bytes": size, "digests": digests}
    return {**facts, "tokens": tokens, "seconds": seconds, "slow": [{"name": "plain Python", **plain}]}


def fast_tokenizer(vocab: Path, merges: Path) -> Any:
    """The fast tokenizer as it is, without anything of the pipeline."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    tokenizer = Tokenizer(models.BPE.from_file(str(vocab), str(merges)))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    return tokenizer


def as_text(paragraph: Any, entity_id: Callable[[str], int | None], sentences: Any) -> Any:
    """A paragraph for LUKE's method; links to no entity are [UNK]."""
    from luke_method import Text

    ids = [(entity_id(link.target), link) for link in paragraph.links]
    links = [(UNKNOWN_ENTITY if number is None else number, link.start, link.end) for number, link in ids]
    return Text(paragraph.text, links, sentences)


def mention_counting(
    *, paragraphs: list[str], every: int, candidates: str, names: str, rounds: int
) -> dict[str, Any]:
    """Counting the table's names in every so many-th page; `names` is where they are written for that."""
    from pipeline import storage
    from pipeline.lookup import names as mentions
    from pipeline.storage import tries

    wanted = storage.open_arrow(candidates).column("mention").to_pylist()
    tries.write_texts(names, wanted)
    pages, known = sample_pages(paragraphs, every), mentions.Names(names, max(map(len, wanted)))
    rows = [
        (paragraph.text, [(link.start, link.end) for link in paragraph.links])
        for page in pages
        for paragraph in page
    ]

    def count() -> Counter[str]:
        counts: Counter[str] = Counter()
        for text, links in rows:
            counts.update(mentions.occurrences(text, links, known))
        return counts

    counts = count()
    return {
        "pages": len(pages),
        "text_bytes": sum(len(text.encode()) for text, _ in rows),
        "occurrences": counts.total(),
        "names": len(known),
        "names_bytes": os.path.getsize(names),
        "seconds": rounds_of({"mention counting": count}, rounds),
    }


def luke_builder(
    *, exported: str, workdir: str, dump: str, tokenizer: str, limits: dict[str, int]
) -> dict[str, Any]:
    """LUKE's vocabulary and sequences from wikipedia2vec's database, beside the stages' of the work directory."""
    from luke_compare import Database, compare

    from pipeline.sequences.packing import Limits
    from pipeline.sequences.tokenizer import WordTokenizer

    database = Database.open(Path(exported))
    return compare(database, Path(workdir), Path(dump), WordTokenizer.load(tokenizer), Limits(**limits))


WORKLOADS: Mapping[str, Callable[..., dict[str, Any]]] = {
    function.__name__: function for function in (sequences, mention_counting, luke_builder)
}

if __name__ == "__main__":
    print(json.dumps(WORKLOADS[sys.argv[1]](**json.loads(sys.argv[2]))))
