"""What `ner.py` measures inside of a process of its own."""

import itertools
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
import transformers

from benchmarks.harness.workloads import Record, in_turn, serve
from benchmarks.tasks.ner import ONE
from model.exchange.fine_tuned import load_fine_tuned
from model.exchange.load import load_strictly
from model.exchange.tokenizers import write_tokenizer
from model.luke.config import TRANSFORMERS_LACK, preset
from pipeline.sequences.tokenizer import WordTokenizer
from pipeline.sequences.tokenizer_training import train_tokenizer
from tasks.finetuning.inference import logits_of
from tasks.ner import task as ner
from tasks.ner.classifier import SpanFeature
from tasks.ner.columns import ColumnFile, Document, Sentence, read_columns
from tasks.ner.context import has_leading_space
from tasks.ner.spans import enumerate_spans
from tasks.task import InputSettings

LABELS = ("O", "LOC", "MISC", "ORG", "PER")
ENTITIES = {"[PAD]": 0, "[UNK]": 1, "[MASK]": 2, "[MASK2]": 3}
FEW, NARROW, DOCUMENTED = "transformers, batches of 4", f"{ONE}, bf16", f"{ONE}, spans of any length"
MANY_NARROW = "transformers, batches of 32, bf16"
TOKENS, GPU_TOKENS, PADDED = 2048, 16384, {"padded": True}
WORDS = 4000  # of a tokenizer that is made here
ON_A_GPU = (MANY_NARROW, f"ours, {GPU_TOKENS} tokens, bf16")
# Variants of ours: how many passes, or words and entities, at once; and how.
OURS: dict[str, Record] = {
    "ours, one pass at a time": {"batch_size": 1},
    "ours, padded batches of 8 passes": {"batch_size": 8, "changes": PADDED},
    "ours, padded batches of 8 passes of like length": {"batch_size": 8, "changes": PADDED, "sort": True},
    "ours, batches of 8 passes": {"batch_size": 8},
    "ours, batches of 8 passes of like length": {"batch_size": 8, "sort": True},
    f"ours, {TOKENS} tokens": {"batch_size": 1, "tokens_per_batch": TOKENS},
    f"ours, {TOKENS} tokens, bf16": {"batch_size": 1, "tokens_per_batch": TOKENS, "precision": "bf16"},
    ON_A_GPU[1]: {"batch_size": 1, "tokens_per_batch": GPU_TOKENS, "precision": "bf16"},
}
SHARED, APART = "words alone, passes over the same words share them", "words alone, each pass its own"


@dataclass(frozen=True)
class Models:
    """The same random weights in both implementations, and both tokenizers."""

    theirs: Any
    their_tokenizer: Any
    ours: Any
    words_alone: Any
    tokenizer: WordTokenizer
    device: str


def make_models(size: str, tokenizer: Path, device: str) -> Models:
    """A span classifier of that size, without a large entity vocabulary, as fine-tuning leaves it."""
    words = WordTokenizer.load(tokenizer)
    count = len(words.vocab)
    config = replace(preset(size), vocab_size=count + 2, entity_vocab_size=len(ENTITIES))
    values = {name: value for name, value in asdict(config).items() if name not in TRANSFORMERS_LACK}
    values |= {"use_entity_aware_attention": True, "num_labels": len(LABELS)}
    torch.manual_seed(0)
    theirs = transformers.LukeForEntitySpanClassification(transformers.LukeConfig(**values)).eval()
    with tempfile.TemporaryDirectory() as folder:
        theirs.save_pretrained(folder)
        task = "entity_span_classification"
        markers = {"<ent>": count, "<ent2>": count + 1}
        write_tokenizer(Path(folder), words.vocab | markers, ENTITIES, tokenizer, config.max_words, task=task)
        their_tokenizer = transformers.LukeTokenizer.from_pretrained(folder)
        fine_tuned = load_fine_tuned(folder)
    fine_tuned.luke.keep_entities(ner.ENTITY_ROWS)
    ours = ner.head(fine_tuned.luke, len(LABELS), entities=True).eval()
    load_strictly(ours.classifier, fine_tuned.head, source=size, optional=set())
    words_alone = ner.head(fine_tuned.luke, len(LABELS), entities=False).eval()
    return Models(theirs.to(device), their_tokenizer, ours.to(device), words_alone.to(device), words, device)


def make_tokenizer(data: str, folder: str) -> Path:
    """A tokenizer of the words of a column file, in a folder."""
    train_tokenizer(
        [" ".join(sentence.words) for sentence in read_columns(Path(data)).sentences], folder, WORDS
    )
    return Path(folder)


def samples(path: Path, count: int) -> tuple[ColumnFile, ColumnFile]:
    """So many sentences from all over the file, each alone; and its first documents that have as many."""
    file = read_columns(path)
    ends = itertools.accumulate(len(document.sentences) for document in file.documents)
    documents = file.documents[: sum(end < count for end in ends) + 1]
    sentences = file.sentences[:: max(1, len(file.sentences) // count)][:count]
    alone = tuple(Document((), (sentence,)) for sentence in sentences)
    return replace(file, documents=alone), replace(file, documents=documents)


def question(sentence: Sentence, longest: int) -> tuple[str, list[tuple[int, int]]]:
    """A text with the blanks before words that our tokenisation gives; its spans of so many words, in characters."""
    text, starts, ends = "", [], []
    for word in sentence.words:
        text += " " * (bool(text) and has_leading_space(word))
        starts.append(len(text))
        text += word
        ends.append(len(text))
    return text, [(starts[start], ends[end - 1]) for start, end in enumerate_spans(len(starts), longest)]


def ask_theirs(
    models: Models, sentences: Sequence[Sentence], size: int, longest: int = ner.MAX_SPAN_LENGTH
) -> Iterator[tuple[Any, Any]]:
    """What transformers' documentation shows: tokenizer, model, logits; batches of several are padded.

    The documentation lists every span of a text, whatever its length.
    """
    for start in range(0, len(sentences), size):
        asked = [question(sentence, longest) for sentence in sentences[start : start + size]]
        texts, spans = (list(part) for part in zip(*asked, strict=True))
        inputs = models.their_tokenizer(texts, entity_spans=spans, return_tensors="pt", padding=size > 1)
        yield inputs, models.theirs(**inputs.to(models.device)).logits.float().cpu()


def featurize(models: Models, dataset: ColumnFile) -> Sequence[SpanFeature]:
    return ner.featurize(dataset, InputSettings(models.tokenizer, LABELS, {}, 512, "fixed")).items


def changed_task(*, padded: bool = False, apart: bool = False) -> Any:
    """Entity recognition whose batches keep their padding, or share no words."""

    def collate(features: Sequence[SpanFeature], *, entities: bool, pad_id: int) -> Any:
        batch = ner.collate(features, entities=entities or apart, pad_id=pad_id)
        if apart:
            kept = replace(batch.inputs, entity_ids=None, entity_positions=None, entity_mask=None)
            batch = replace(batch, inputs=kept.unpadded())
        return replace(batch, inputs=replace(batch.inputs, packed=None)) if padded else batch

    return SimpleNamespace(**{**vars(ner), "collate": collate})


def ask_ours(
    models: Models, features: Sequence[SpanFeature], *, entities: bool = True, sort: bool = False,
    changes: Record | None = None, **amounts: Any,
) -> list[np.ndarray]:  # fmt: skip
    """Logits of every pass, in the order in which they are computed; `changes`: of `changed_task`."""
    task: Any = changed_task(**changes) if changes else ner
    ordered = sorted(features, key=ner.feature_size) if sort else features
    module = models.ours if entities else models.words_alone
    settings = {"pad_id": models.tokenizer.pad_id, "device": models.device}
    return logits_of(task, module, ordered, entities=entities, **settings, **amounts)


@torch.inference_mode()
def speed(
    *, size: str, data: str, sentences: int, rounds: int, device: str, threads: int, tokenizer: str = "",
    chosen: Sequence[str] | None = None,
) -> Record:  # fmt: skip
    """Seconds of the chosen variants (all but those for a GPU) on the same sentences, and whether both say the same.

    Without a tokenizer one is made of the data's words.
    """
    torch.set_num_threads(threads)
    with tempfile.TemporaryDirectory() as folder:
        models = make_models(size, Path(tokenizer) if tokenizer else make_tokenizer(data, folder), device)
    alone, documents = samples(Path(data), sentences)

    def calls(alone: ColumnFile, documents: ColumnFile) -> dict[str, Callable[[], object]]:
        every = variants(models, alone, documents)
        return {name: every[name] for name in chosen or every if chosen or name not in ON_A_GPU}

    for warm_up in calls(*samples(Path(data), 1)).values():
        warm_up()
    rows = in_turn(calls(alone, documents), rounds)
    features = {name: featurize(models, file) for name, file in (("alone", alone), ("documents", documents))}
    return {
        "rows": rows,
        "sizes": {name: sizes(found) for name, found in features.items()},
        "spans of any length": sum(len(question(each, sys.maxsize)[1]) for each in alone.sentences),
        "sentences": {"alone": len(alone.sentences), "documents": len(documents.sentences)},
        "same": differences(compare(models, alone), "sentences"),
        "narrow": narrow(models, features["alone"]),
        "sharing": differences(sharing(models, features["alone"]), "pairs"),
    }


def variants(models: Models, alone: ColumnFile, documents: ColumnFile) -> dict[str, Callable[[], object]]:
    """From words to logits: ours with the making of features, theirs with their tokenizer."""

    def theirs(size: int, precision: str = "float32", **longest: int) -> None:
        with torch.autocast(models.device, torch.bfloat16, enabled=precision == "bf16"):
            for _ in ask_theirs(models, alone.sentences, size, **longest):
                pass

    calls: dict[str, Callable[[], object]] = {
        ONE: lambda: theirs(1),
        FEW: lambda: theirs(4),
        NARROW: lambda: theirs(1, "bf16"),
        MANY_NARROW: lambda: theirs(32, "bf16"),
        DOCUMENTED: lambda: theirs(1, longest=sys.maxsize),
    }
    for name, options in OURS.items():
        calls[name] = lambda options=options: ask_ours(models, featurize(models, alone), **options)
    for name, apart in ((APART, True), (SHARED, False)):
        calls[name] = lambda apart=apart: ask_ours(
            models, featurize(models, documents), entities=False, changes={"apart": apart}, batch_size=8
        )
    return calls


def sizes(features: Sequence[SpanFeature]) -> Record:
    """Passes, and the words and entities in them; `repeated` are words of passes after a sentence's first."""
    first = {feature.sentence: len(feature.word_ids) for feature in features}
    words = sum(len(feature.word_ids) for feature in features)
    entities, repeated = sum(len(feature.spans) for feature in features), words - sum(first.values())
    return {"passes": len(features), "words": words, "entities": entities, "repeated": repeated}


def differences(pairs: Iterable[tuple[np.ndarray, np.ndarray]], of: str) -> Record:
    """How many pairs there are, how far the two of a pair lie apart at most, and how far their values spread."""
    found = [(float(np.abs(one - other).max()), float(other.std())) for one, other in pairs]
    largest, spread = map(max, zip((0.0, 0.0), *found, strict=True))
    return {of: len(found), "largest difference": largest, "standard deviation": spread}


def compare(models: Models, alone: ColumnFile) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Logits of both in sentences of one pass that both tokenise to the same ids."""
    features = featurize(models, alone)
    for index, (inputs, logits) in enumerate(ask_theirs(models, alone.sentences, 1)):
        own = [feature for feature in features if feature.sentence == index]
        if len(own) == 1 and own[0].word_ids.tolist() == inputs["input_ids"][0].tolist():
            yield ask_ours(models, own, batch_size=1)[0], logits[0].numpy()


def narrow(models: Models, features: Sequence[SpanFeature]) -> Record:
    """What bf16 changes: the largest difference of logits, and spans whose best class is another one."""
    both = [ask_ours(models, features, batch_size=8, precision=name) for name in ("float32", "bf16")]
    wide, bf16 = map(np.concatenate, both)
    changed = int((wide.argmax(axis=1) != bf16.argmax(axis=1)).sum())
    return {"largest difference": float(np.abs(wide - bf16).max()), "spans": len(wide), "changed": changed}


def sharing(models: Models, features: Sequence[SpanFeature]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The states of the same words in two passes of a sentence."""
    for one, other in itertools.pairwise(features):
        if one.sentence == other.sentence:
            both = ner.collate([one, other], entities=True, pad_id=models.tokenizer.pad_id)
            states = models.ours.luke(both.to(models.device).inputs)[0].float().cpu().numpy()
            yield states[0], states[1]


if __name__ == "__main__":
    serve(speed)
