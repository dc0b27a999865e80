"""The measurements of `ner.py` in a process of its own."""

import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers

from benchmarks.harness.workloads import Record, in_turn, serve
from benchmarks.tasks.ner import VARIANTS
from model.hf.fine_tuned import load_fine_tuned
from model.hf.load import load_strictly
from model.hf.tokenizers import write_tokenizer
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
WORDS = 4000  # of a tokenizer that is made here
THEIRS: dict[str, tuple[int, str]] = VARIANTS["theirs"]
OURS: dict[str, Record] = VARIANTS["ours"]
ON_A_GPU = ("transformers, batches of 32, bf16", "ours, 16384 tokens, bf16")  # and on no other device


@dataclass(frozen=True)
class Models:
    """The same random weights in both implementations, and both tokenizers."""

    theirs: Any
    their_tokenizer: Any
    ours: Any
    tokenizer: WordTokenizer
    device: str


def make_models(size: str, tokenizer: Path, device: str) -> Models:
    """Return a span classifier of that size, without a large entity vocabulary, as fine-tuning leaves it."""
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
    fine_tuned.luke.keep_entities(ner.TASK.ENTITY_ROWS)
    ours = ner.TASK.head(fine_tuned.luke, len(LABELS), entities=True).eval()
    load_strictly(ours.classifier, fine_tuned.head, source=size, optional=set())
    return Models(theirs.to(device), their_tokenizer, ours.to(device), words, device)


def make_tokenizer(data: str, folder: str) -> Path:
    """Make a tokenizer of the words of a column file, in a folder."""
    texts = [" ".join(sentence.words) for sentence in read_columns(Path(data)).sentences]
    train_tokenizer(texts, folder, WORDS)
    return Path(folder)


def sample(path: Path, count: int) -> ColumnFile:
    """Return so many sentences from all over the file, each alone."""
    file = read_columns(path)
    sentences = file.sentences[:: max(1, len(file.sentences) // count)][:count]
    return replace(file, documents=tuple(Document((), (sentence,)) for sentence in sentences))


def question(sentence: Sentence) -> tuple[str, list[tuple[int, int]]]:
    """Return a text with our tokenisation's blanks before words, and its spans of up to 16 words in characters."""
    text, starts, ends = "", [], []
    for word in sentence.words:
        text += " " * (bool(text) and has_leading_space(word))
        starts.append(len(text))
        text += word
        ends.append(len(text))
    return text, [(starts[start], ends[end - 1]) for start, end in enumerate_spans(len(starts), ner.MAX_SPAN_LENGTH)]


def ask_theirs(models: Models, sentences: Sequence[Sentence], size: int) -> Iterator[tuple[Any, Any]]:
    """Yield what transformers' documentation shows: tokenizer, model, logits; batches of several are padded."""
    for start in range(0, len(sentences), size):
        asked = [question(sentence) for sentence in sentences[start : start + size]]
        texts, spans = (list(part) for part in zip(*asked, strict=True))
        inputs = models.their_tokenizer(texts, entity_spans=spans, return_tensors="pt", padding=size > 1)
        yield inputs, models.theirs(**inputs.to(models.device)).logits.float().cpu()


def featurize(models: Models, dataset: ColumnFile) -> Sequence[SpanFeature]:
    return ner.TASK.featurize(dataset, InputSettings(models.tokenizer, LABELS, {}, 512, "fixed")).items


def ask_ours(models: Models, features: Sequence[SpanFeature], **amounts: Any) -> list[np.ndarray]:
    """Return the logits of every pass, in the order in which they are computed."""
    return logits_of(ner.TASK, models.ours, features, entities=True, device=models.device, **amounts)


@torch.inference_mode()
def speed(
    *, size: str, data: str, sentences: int, rounds: int, device: str, threads: int, tokenizer: str = ""
) -> Record:
    """Measure the variants of the device on the same sentences, and compare what both implementations say.

    Without a tokenizer one is made of the data's words.
    """
    torch.set_num_threads(threads)
    with tempfile.TemporaryDirectory() as folder:
        models = make_models(size, Path(tokenizer) if tokenizer else make_tokenizer(data, folder), device)
    names = [name for name in (*THEIRS, *OURS) if device != "cpu" or name not in ON_A_GPU]
    file = sample(Path(data), sentences)
    for warm_up in calls(models, sample(Path(data), 1), names).values():
        warm_up()
    rows, features = in_turn(calls(models, file, names), rounds), featurize(models, file)
    first = {feature.sentence: len(feature.word_ids) for feature in features}
    words = sum(len(feature.word_ids) for feature in features)
    sizes = {"sentences": len(file.sentences), "passes": len(features), "words": words}
    sizes |= {"entities": sum(len(each.spans) for each in features), "repeated": words - sum(first.values())}
    same = differences(compare(models, file))
    return {"rows": rows, "sizes": sizes, "sentences": len(file.sentences), "same": same}


def calls(models: Models, file: ColumnFile, names: Sequence[str]) -> dict[str, Callable[[], object]]:
    """Return variants from words to logits: ours with the making of features, theirs with their tokenizer."""

    def theirs(size: int, precision: str) -> None:
        with torch.autocast(models.device, torch.bfloat16, enabled=precision == "bf16"):
            for _ in ask_theirs(models, file.sentences, size):
                pass

    def call(name: str) -> Callable[[], object]:
        if name in THEIRS:
            return lambda: theirs(*THEIRS[name])
        return lambda: ask_ours(models, featurize(models, file), **OURS[name])

    return {name: call(name) for name in names}


def differences(pairs: Iterable[tuple[np.ndarray, np.ndarray]]) -> Record:
    """Return how many pairs there are, how far the two of a pair lie apart at most, and how far values spread."""
    found = [(float(np.abs(one - other).max()), float(other.std())) for one, other in pairs]
    largest, spread = map(max, zip((0.0, 0.0), *found, strict=True))
    return {"sentences": len(found), "largest difference": largest, "standard deviation": spread}


def compare(models: Models, file: ColumnFile) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield logits of both in sentences of one pass that both tokenise to the same ids."""
    features = featurize(models, file)
    for index, (inputs, logits) in enumerate(ask_theirs(models, file.sentences, 1)):
        own = [feature for feature in features if feature.sentence == index]
        if len(own) == 1 and own[0].word_ids.tolist() == inputs["input_ids"][0].tolist():
            yield ask_ours(models, own, batch_size=1)[0], logits[0].numpy()


if __name__ == "__main__":
    serve(speed)
