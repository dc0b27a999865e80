"""What `corpus.py` measures inside of a process of its own."""

import json
import os
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.corpus import lukes_method
from benchmarks.harness.workloads import Record, in_turn, serve, steady_collector
from pipeline.jobs.build_sequences import read_paragraphs
from pipeline.lookup.counting import Links, NameKeys, find_keys, write_keys
from pipeline.lookup.entities import Aliases
from pipeline.sequences.packing import Limits, build_page
from pipeline.sequences.sentences import split
from pipeline.sequences.tokenizer import WordTokenizer
from pipeline.sequences.tokenizer_files import tokenizer_files
from pipeline.storage.arrow import open_arrow
from tests.support.oracle_sequences import Tokenizer

UNKNOWN_ENTITY = 1


def sample_pages(folder: str, every: int) -> list[list[Any]]:
    """The paragraphs of every so many-th page that ExtractPages wrote."""
    paths = sorted(map(str, Path(folder, "paragraphs").glob("*.parquet")))
    pages = (paragraphs for path in paths for _, paragraphs in read_paragraphs(path))
    return list(islice(pages, 0, None, every))


class PlainTokenizer(Tokenizer):
    """What transformers' slow tokenizer does, by the tests' BPE in plain Python, and nothing else.

    Bytes become characters, words come from a memory or are merged, and tokens become ids in a second step.
    """

    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        self.names = {number: token for token, number in self.vocab.items()}
        self.memory: dict[str, list[str]] = {}

    def tokenize(self, text: str, *, add_prefix_space: bool) -> list[str]:
        tokens: list[str] = []
        leading = " " if add_prefix_space and text and not text[0].isspace() else ""
        for piece in self.PIECES.findall(leading + text):
            word = "".join([self.alphabet[byte] for byte in piece.encode()])
            if word not in self.memory:
                self.memory[word] = [self.names[number] for number in self._word(piece)]
            tokens += self.memory[word]
        return tokens

    def convert_tokens_to_ids(self, tokens: list[str]) -> list[int]:
        return [self.vocab[token] for token in tokens]


def sequences(
    *, pages: str, every: int, tokenizer: str, aliases: str, limits: dict[str, int], rounds: int,
    pages_file: str,
) -> Record:  # fmt: skip
    """Pages to sequences by the pipeline, and its parts alone; LUKE's method in plain Python on the same pages.

    The pages are left in `pages_file`, with the spans of their sentences and the ids of their links, so that another
    Python can do LUKE's method with an old transformers.
    """
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # as in the workers of the pipeline
    sample, entity_id, fast = sample_pages(pages, every), Aliases(aliases).get, fast_tokenizer(tokenizer)
    told = [[as_text(each, entity_id, sentences(each)) for each in page] for page in sample]
    Path(pages_file).write_text("".join(json.dumps(page) + "\n" for page in told), encoding="utf-8")

    def build(encoder: Any) -> list[Any]:
        chosen: Record = {"language": "en", "profile": "fixed", "limits": Limits(**limits)}
        return [build_page(page, tokenizer=encoder, entity_id=entity_id, **chosen)[0] for page in sample]

    def alone() -> int:
        texts = ([paragraph.text for paragraph in page] for page in sample)
        return sum(sum(map(len, fast.encode_batch_fast(batch))) for batch in texts)

    built = build(WordTokenizer.load(tokenizer))
    digests = lukes_method.digests([lukes_method.Row(**vars(row)) for row in page] for page in built)
    tokenizers = [WordTokenizer.load(tokenizer) for _ in range(rounds)]
    methods: dict[str, Callable[[], Any]] = {
        "first": lambda: build(tokenizers[-1]),
        "again": lambda: build(tokenizers.pop()),
        "tokenizer alone": alone,
        "sentence splitting alone": lambda: [sentences(each) for page in sample for each in page],
    }
    steady_collector()
    rows = in_turn(methods, rounds)
    plain = lukes_method.measure(told, lambda: PlainTokenizer(tokenizer), limits, rounds)
    # All methods make the same tokens of the same text, but the tokenizer alone, which does not cut it at links.
    tokens = {"first": plain["tokens"], "again": plain["tokens"], "tokenizer alone": alone()}
    size = sum(len(text.text.encode()) for page in told for text in page)
    facts = {"pages": len(sample), "text_bytes": size, "digests": digests, "tokens": tokens, "rows": rows}
    return {**facts, "slow": [{"name": "plain Python", **plain}]}


def fast_tokenizer(folder: str) -> Any:
    """The fast tokenizer as it is, without anything of the pipeline."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    tokenizer = Tokenizer(models.BPE.from_file(*map(str, tokenizer_files(Path(folder)).values())))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    return tokenizer


def sentences(paragraph: Any) -> list[tuple[int, int]]:
    """The spans that `build_page` makes sentences of, in profile `fixed`."""
    return split(paragraph.text, "en", links=[(link.start, link.end) for link in paragraph.links])


def as_text(paragraph: Any, entity_id: Callable[[str], int | None], sentences: Any) -> Any:
    """A paragraph for LUKE's method; links to no entity are [UNK]."""
    ids = [(entity_id(link.target), link) for link in paragraph.links]
    links = [(UNKNOWN_ENTITY if number is None else number, link.start, link.end) for number, link in ids]
    return lukes_method.Text(paragraph.text, links, sentences)


def mention_counting(*, pages: str, every: int, candidates: str, names: str, rounds: int) -> Record:
    """Counting the table's names in every so many-th page; `names` is where they are written for that."""
    wanted = open_arrow(candidates).column("mention").to_pylist()
    write_keys(names, [wanted], len(wanted))
    sample, known = sample_pages(pages, every), NameKeys(names)
    paragraphs = [each for page in sample for each in page]
    texts = [each.text for each in paragraphs]
    spans = [(number, link.start, link.end) for number, each in enumerate(paragraphs) for link in each.links]
    links = Links(*np.array(spans, np.int64).T)

    def count() -> int:
        return sum(int(known.count(keys)[1].sum()) for _, keys in find_keys(texts, links, known))

    facts = {"pages": len(sample), "text_bytes": sum(len(text.encode()) for text in texts)}
    size = sum(os.path.getsize(f"{names}.{kind}") for kind in ("keys", "table"))
    facts |= {"occurrences": count(), "names": len(wanted), "names_bytes": size}
    steady_collector()
    return {**facts, "rows": in_turn({"mention counting": count}, rounds)}


if __name__ == "__main__":
    serve(sequences, mention_counting)
