"""MergeSequences: the sequences of several wikis in one folder, by other names of the same files, or copies."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pipeline import storage
from pipeline.jobs.build_sequences import write_statistics
from pipeline.sequences.shards import PARTS, write_title_words, write_word_starts
from pipeline.sequences.tokenizer import WordTokenizer

_COUNTS = ("annotations", "sentences", "sentences_read", "sequences", "unknown_entities", "words")


def build(
    sources: Mapping[str, str], folder: str, *, titles: Sequence[str], tokenizer: str, exponent: float
) -> storage.Result:
    """Link the shards of each language, and write what a model must know of words.

    `sources` has the folder of BuildSequences by language; `titles` are those of all entities, by id; `exponent` says
    how often pretraining draws from a language, and is kept as a fact.
    """
    made, files = {language: storage.read_manifest(source) for language, source in sources.items()}, []
    for language, manifest in made.items():
        for file in manifest.files:
            part, _, name = file.path.partition("/")
            if part in PARTS:
                path = f"{part}/{language}/{name}"
                storage.link_or_copy(storage.join(sources[language], file.path), storage.join(folder, path))
                files.append(replace(file, path=path))
    rows = {part: sum(manifest.rows[part] for manifest in made.values()) for part in PARTS}
    facts = {name: sum(manifest.facts[name] for manifest in made.values()) for name in _COUNTS}
    facts = {**next(iter(made.values())).facts, **facts, "languages": list(made), "language_exponent": exponent}
    result, words = storage.Result(tuple(files), rows, facts=facts), WordTokenizer.load(tokenizer)
    beside = write_statistics(folder, result), write_word_starts(folder, words.word_starts())
    return replace(result, files=(*files, *beside, write_title_words(folder, titles, words)))
