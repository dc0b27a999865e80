"""A new tokenizer from the corpus: byte-level BPE in RoBERTa's format, learnt from a sample of bounded size.

What the trainer holds grows with the different words of its texts, some 950 bytes for each. Where no blanks part the
words nearly every run of letters is different: some 300 bytes for each letter. So such a letter counts `LETTER_COST`
times, and runs are cut; without cuts the longest would be the whole paragraph.
"""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from tokenizers import Regex, Tokenizer, models, pre_tokenizers, trainers

from pipeline.lookup.names import mixed
from pipeline.mediawiki.languages import UNSPACED_SCRIPTS
from pipeline.sequences.tokenizer import WordTokenizer
from pipeline.sequences.tokenizer_files import SPECIAL_TOKENS
from pipeline.storage import Result, atomic_folder, describe, join, read_batches

LETTER_COST = 25
LONGEST_RUN = 16
_WITHOUT_BLANKS = rf"[{UNSPACED_SCRIPTS}\p{{Tibetan}}]"
_PROGRESS_EVERY = 1000  # paragraphs
_BUCKETS = 1 << 16  # the sample is as exact as one of so many parts of the corpus


def build(
    paragraphs: Sequence[str],
    folder: str,
    *,
    vocab_size: int,
    characters: int,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Result:
    """TrainTokenizer: learn a tokenizer from a sample of the corpus, into a stage's folder.

    Letters without blanks between words count `LETTER_COST` times among the `characters` of the sample, which a smaller
    corpus is as a whole. `progress` gets the paragraphs that are read, and all of the sample; the merges follow.
    """
    sample = Sample(paragraphs, characters)
    target = join(folder, "tokenizer")
    with atomic_folder(target) as temporary:
        train_tokenizer(_with_progress(sample, progress), temporary, vocab_size)
    files = tuple(describe(folder, f"tokenizer/{name}") for name in sorted(os.listdir(target)))
    rows = {"word_types": WordTokenizer.load(target).vocab_size, "paragraphs": sample.paragraphs}
    return Result(files, rows, {"paragraphs:not_in_sample": sample.left_out} if sample.left_out else {})


def _with_progress(sample: "Sample", progress: Callable[[int, int], None]) -> Iterator[str]:
    for number, text in enumerate(sample):
        if number % _PROGRESS_EVERY == 0:
            progress(number, sample.paragraphs)
        yield text
    progress(sample.paragraphs, sample.paragraphs)


class Sample:
    """Texts of the paragraphs whose hash of page and number is below a bound, in the corpus's order.

    The bound is the largest at which the texts have no more than the wanted characters. Blocks, files and processes do
    not matter; a batch of the corpus is held at a time. `paragraphs` counts them, and `left_out` the others.
    """

    def __init__(self, paths: Sequence[str], characters: int) -> None:
        self._paths = paths
        sizes, counts = np.zeros(_BUCKETS, np.int64), np.zeros(_BUCKETS, np.int64)
        for path in paths:
            for batch in read_batches(path, ["page_id", "paragraph", "text"]):
                buckets = _buckets(batch)
                np.add.at(sizes, buckets, _costs(batch.column("text")))
                np.add.at(counts, buckets, 1)
        self._end = int(np.searchsorted(np.cumsum(sizes), characters, side="right"))
        self.paragraphs, self.left_out = int(counts[: self._end].sum()), int(counts[self._end :].sum())

    def __iter__(self) -> Iterator[str]:
        for path in self._paths:
            for batch in read_batches(path, ["page_id", "paragraph", "text"], rows=4096):
                yield from batch.column("text").filter(pa.array(_buckets(batch) < self._end)).to_pylist()


def _buckets(batch: pa.RecordBatch) -> NDArray[np.int64]:
    """The bucket of each paragraph, by a hash of its page and its number."""
    page, number = (batch.column(name).to_numpy().astype(np.uint64) for name in ("page_id", "paragraph"))
    keys = mixed(page * np.uint64(0x9E3779B97F4A7C15) + number * np.uint64(0xD1B54A32D192ED03))
    return (keys % np.uint64(_BUCKETS)).astype(np.int64)


def _costs(texts: pa.Array) -> NDArray[np.int64]:
    """The characters of each text, as they count."""
    lengths = pc.utf8_length(texts).to_numpy().astype(np.int64)
    is_plain = lengths == pc.binary_length(texts).to_numpy()
    other = texts.filter(pa.array(~is_plain))  # few in most languages, and looked at more slowly
    lengths[~is_plain] += (LETTER_COST - 1) * pc.count_substring_regex(other, _WITHOUT_BLANKS).to_numpy()
    return lengths


def train_tokenizer(texts: Iterable[str], folder: str | Path, vocab_size: int) -> None:
    """Learn a byte-level BPE from texts and write it in RoBERTa's format: ids 0 to 3 as there, <mask> last.

    The same texts in the same order give the same files. The vocabulary is smaller than ``vocab_size`` where
    the texts hold too few different words; it is 261 (256 bytes and five special tokens) at least.
    """
    tokenizer = Tokenizer(models.BPE())
    too_long = Regex(f"{_WITHOUT_BLANKS}{{{LONGEST_RUN}}}(?={_WITHOUT_BLANKS})")
    cut = pre_tokenizers.Split(too_long, "merged_with_previous")
    of_bytes = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([cut, of_bytes])
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size - 1,
        min_frequency=2,
        show_progress=False,
        special_tokens=list(SPECIAL_TOKENS[:-1]),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    tokenizer.train_from_iterator(texts, trainer)
    learnt = json.loads(tokenizer.to_str())["model"]
    vocab = {**learnt["vocab"], SPECIAL_TOKENS[-1]: len(learnt["vocab"])}
    ordered = dict(sorted(vocab.items(), key=lambda item: item[1]))
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    (target / "vocab.json").write_text(json.dumps(ordered, ensure_ascii=False), encoding="utf-8")
    merges = "".join(f"{' '.join(pair)}\n" for pair in learnt["merges"])
    (target / "merges.txt").write_text(f"#version: 0.2\n{merges}", encoding="utf-8")
