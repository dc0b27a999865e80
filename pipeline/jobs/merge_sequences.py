"""MergeSequences: the sequences of several wikis in one folder, by other names of the same files, or copies."""

import json
from collections.abc import Mapping, Sequence

from pipeline import storage
from pipeline.sequences.shards import PARTS, STATISTICS, WORD_STARTS, describe_sequences, write_title_words
from pipeline.sequences.tokenizer import WordTokenizer

_COUNTS = ("annotations", "sentences", "sentences_read", "sequences", "unknown_entities", "words")


def build(
    sources: Mapping[str, str], folder: str, *, titles: Sequence[str], tokenizer: str, exponent: float
) -> storage.Result:
    """Link the shards of each language, and write what a model must know of words.

    `sources` has the folder of BuildSequences by language; `titles` are those of all entities, by id; `exponent` says
    how often pretraining draws from a language, and is kept as a fact.
    """
    made = {language: storage.read_manifest(source) for language, source in sources.items()}
    first = next(iter(made))
    names = [
        (language, file, f"{file.path.partition('/')[0]}/{language}/{file.path.partition('/')[2]}")
        for language, manifest in made.items()
        for file in manifest.files
        if file.path.startswith(tuple(f"{part}/" for part in PARTS))
    ]
    for language, file, name in names:
        storage.link_or_copy(storage.join(sources[language], file.path), storage.join(folder, name))
    storage.link_or_copy(storage.join(sources[first], WORD_STARTS), storage.join(folder, WORD_STARTS))
    statistics = {
        part: describe_sequences(storage.join(folder, name) for *_, name in names if name.startswith(f"{part}/"))
        for part in PARTS
    }
    storage.write_bytes(
        storage.join(folder, STATISTICS), json.dumps(statistics, sort_keys=True, indent=1).encode() + b"\n"
    )
    files = [storage.describe(folder, name, file.rows) for _, file, name in names]
    files += [
        storage.describe(folder, STATISTICS),
        storage.describe(folder, WORD_STARTS, made[first].facts["word_vocab_size"]),
    ]
    files.append(write_title_words(folder, titles, WordTokenizer.load(tokenizer)))
    rows = {part: sum(manifest.rows[part] for manifest in made.values()) for part in PARTS}
    counts = {name: sum(manifest.facts[name] for manifest in made.values()) for name in _COUNTS}
    facts = {**made[first].facts, **counts, "languages": list(made), "language_exponent": exponent}
    return storage.Result(tuple(files), rows, facts=facts)
