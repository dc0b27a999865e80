"""Named entity recognition by classification of all spans of a sentence (section 4.3 of the paper)."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np

from model.luke.encoder import LukeModel
from tasks.io.data_folder import LABEL_FILES
from tasks.io.metrics import micro_scores
from tasks.io.probabilities import Choices, of_classes, rounded, softmax
from tasks.io.records import Record
from tasks.ner import classifier
from tasks.ner.classifier import SpanFeature
from tasks.ner.columns import ColumnFile, Document, Sentence, check_same_words, lines_with_tags, read_columns
from tasks.ner.conllu import numbers_words, read_numbered
from tasks.ner.context import Piece, document_pieces, encode, with_context
from tasks.ner.spans import TAG, Span, enumerate_spans, parse_tag, select_spans, split_passes
from tasks.ner.threshold import best_shift
from tasks.ner.token_records import holds_records, read_token_records
from tasks.ner.words import blanks_before, record_lines
from tasks.task import MAX_MENTION_POSITIONS, Features, InputSettings, Outputs, PlaceClassifier, Task, presets

FIRST_CLASS = ("o", "nil")  # names of others, in small letters, for the class that must be the first
MAX_SPAN_LENGTH = 16
MAX_SPANS = 128
CHOSEN_AT_ONCE = 1000  # passes, whose choices are looked at together
NO_ENTITY = "O"
NO_ENTITY_CLASS = 0


def spans_of(word_positions: np.ndarray, piece: Piece, profile: str) -> tuple[np.ndarray, np.ndarray]:
    """Spans (spans, 2) in words of the sentence, and their word positions (spans, 2), both half open.

    `word_positions` holds where each word of the document starts in the model's input.
    """
    spans = np.array(enumerate_spans(piece.end - piece.start, MAX_SPAN_LENGTH), dtype=np.int64) + piece.start
    ends = word_positions[spans]
    if profile == "paper":
        short = ends[:, 1] - ends[:, 0] <= MAX_SPAN_LENGTH
        spans, ends = spans[short], ends[short]
    return spans - piece.first, ends


def coverage(dataset: ColumnFile, labels: Sequence[str], items: Sequence[SpanFeature]) -> dict[str, int]:
    """Return how many passes and spans there are, and which entities are misses whatever the model says."""
    spans = ((index, span) for index, sentence in enumerate(dataset.sentences) for span in sentence.spans)
    types = {(index, span.start, span.end): span.label for index, span in spans}
    reached = sum((item.sentence, *span) in types for item in items for span in item.spans.tolist())
    cut = sum(int((np.ptp(item.ends, axis=1) > MAX_MENTION_POSITIONS).sum()) for item in items)
    return {
        "passes": len(items),
        "spans": sum(len(item.spans) for item in items),
        "spans_with_positions_cut": cut,
        "entities_out_of_reach": len(types) - reached,
        "entities_of_unknown_type": sum(label not in labels for label in types.values()),
    }


def entity_spans(outputs: Outputs[ColumnFile, SpanFeature]) -> Iterator[tuple[int, Span, np.ndarray]]:
    """The spans that are an entity each by itself: the sentence's number, the span, its logits."""
    for feature, scores in zip(outputs.features, outputs.logits, strict=True):
        best = scores.argmax(axis=1)
        for row in np.flatnonzero(best != NO_ENTITY_CLASS):
            start, end = feature.spans[row].tolist()
            yield feature.sentence, Span(start, end, outputs.labels[best[row]]), scores[row]


class EntityRecognition(Task[ColumnFile, SpanFeature]):
    """The entities of sentences."""

    PRESETS = presets("ner")
    PREDICTIONS_SUFFIX = ".txt"
    BEGINS_WITHOUT_ENTITIES = True  # of which each span is one
    ARCHITECTURE = "LukeForEntitySpanClassification"
    loss_terms = staticmethod(classifier.loss_terms)
    collate = staticmethod(classifier.collate)
    starting_bias = staticmethod(classifier.starting_bias)

    def read(self, path: Path, *, tag_column: str = "", strict: bool = True) -> ColumnFile:
        """CoNLL columns, CoNLL-U, or records with `tokens` and `ner_tags`, told apart by the content.

        `tag_column` says where the tags are, if not in the last column, in MISC or in `ner_tags`. Their scheme is IOB1,
        IOB2, IOBES, BILOU or BMES; without `strict` they are read as `conlleval` does. Raises: ValueError naming the
        place.
        """
        read = read_token_records if holds_records(path) else read_numbered if numbers_words(path) else read_columns
        return read(path, tag_column=tag_column, strict=strict)

    def describe(self, dataset: ColumnFile) -> dict[str, Any]:
        """Sizes of a data set, the tag scheme that was found, and whether -DOCSTART- lines give documents."""
        sentences = dataset.sentences
        return {
            "documents": sum(bool(document.sentences) for document in dataset.documents),
            "has_document_boundaries": dataset.has_documents,
            "sentences": len(sentences),
            "words": sum(len(sentence.rows) for sentence in sentences),
            "entities": sum(len(sentence.spans) for sentence in sentences),
            "scheme": dataset.scheme,
        }

    def label_names(self, datasets: Mapping[str, ColumnFile], listed: Sequence[str] = ()) -> tuple[str, ...]:
        """The non-entity class, then the types `listed` (a label file) or else those of train in alphabetical order.

        Raises: ValueError where train has no entity, or, naming file and line, one whose type is not listed.
        """
        if NO_ENTITY in listed and len(listed) > 1 and all(map(TAG.fullmatch, listed)):  # tags, not types
            listed = tuple(dict.fromkeys(parse_tag(name).label for name in listed if name != NO_ENTITY))
        train = datasets["train"]
        types = {span.label for sentence in train.sentences for span in sentence.spans}
        if not types:
            raise ValueError(f"{train.path}: no entity in any sentence; the last column needs tags like B-PER")
        for sentence in train.sentences:
            for span in sentence.spans:
                if span.label == NO_ENTITY:
                    raise ValueError(
                        f"{sentence.place(span.start)}: an entity of type {NO_ENTITY!r}, which means none; "
                        "rename the type"
                    )
                if listed and span.label not in listed:
                    raise ValueError(
                        f"{sentence.place(span.start)}: type {span.label!r} is not in the label file "
                        f"beside it ({', '.join(LABEL_FILES)}), which lists {', '.join(listed)}; add it there"
                    )
        return (NO_ENTITY, *(label for label in listed or sorted(types) if label != NO_ENTITY))

    def negative_label(self, labels: Sequence[str], given: str) -> str | None:
        """The non-entity class. Raises: ValueError where another one is given."""
        if given not in ("", NO_ENTITY):
            raise ValueError(f"negative label {given!r}: that of entity recognition is {NO_ENTITY}")
        return NO_ENTITY

    def featurize(self, dataset: ColumnFile, inputs: InputSettings) -> Features[SpanFeature]:
        """All spans of all sentences, with as much of their document around them as fits (section 4.3).

        A sentence of more than `max_words - 2` sub-words is looked at in consecutive pieces, and a word of more
        is cut; entities that no span can express are never found. The profile `paper` limits spans to 16
        sub-words, `fixed` to 16 words. The counts tell how often each of this happened.
        """
        counts: Counter[str] = Counter()
        labels = inputs.labels
        gold = [
            {(span.start, span.end): labels.index(span.label) for span in each.spans if span.label in labels}
            for each in dataset.sentences
        ]
        items: list[SpanFeature] = []
        of_documents = []
        index, room = 0, inputs.max_words - 2
        for document in dataset.documents:
            before = counts.copy()
            encoded = encode(document, inputs.tokenizer, room, counts, profile=inputs.profile)
            found = list(document_pieces(document, encoded.offsets, index, room))
            for piece in found:
                word_ids, left = with_context(encoded, piece, inputs.tokenizer, room)
                spans, ends = spans_of(encoded.offsets - left + 1, piece, inputs.profile)
                classes = np.array([gold[piece.sentence].get((a, b), NO_ENTITY_CLASS) for a, b in spans.tolist()])
                items.extend(
                    SpanFeature(piece.sentence, word_ids, spans[part], ends[part], classes[part])
                    for part in split_passes(len(spans), MAX_SPANS)
                )
            counts["sentences_split"] += len({piece.sentence for piece in found if piece.start > piece.first})
            index += len(document.sentences)
            of_documents.append(counts - before)
        return Features(items, {**counts, **coverage(dataset, inputs.labels, items)}, of_documents)

    def head(self, luke: LukeModel, label_count: int, *, entities: bool) -> PlaceClassifier:
        """LUKE with a linear classifier over [h_first; h_last; h_entity], or over the words alone."""
        return PlaceClassifier(luke, 3 if entities else 2, label_count)

    def bias_shift(self, outputs: Outputs[ColumnFile, SpanFeature]) -> np.ndarray | None:
        """Return what makes the bias of the non-entity class give the best F1, as `best_shift` says."""
        one = np.eye(len(outputs.labels), dtype=np.float32)[NO_ENTITY_CLASS]
        shift = best_shift(
            [sentence.spans for sentence in outputs.dataset.sentences],
            lambda shift: self.decode(replace(outputs, logits=[scores - shift * one for scores in outputs.logits])),
        )
        return -shift * one if shift else None

    def decode(self, outputs: Outputs[ColumnFile, SpanFeature]) -> list[list[Span]]:
        """The entities of every sentence: all passes of a sentence together, chosen greedily by their logits."""
        candidates: list[list[tuple[float, Span]]] = [[] for _ in outputs.dataset.sentences]
        for sentence, span, scores in entity_spans(outputs):
            candidates[sentence].append((float(scores.max()), span))
        return [select_spans(scored) for scored in candidates]

    def choices(self, outputs: Outputs[ColumnFile, SpanFeature]) -> Iterator[Choices]:
        """The class of each span, no entity among them."""
        for start in range(0, len(outputs.features), CHOSEN_AT_ONCE):
            part = slice(start, start + CHOSEN_AT_ONCE)
            scores = np.concatenate(outputs.logits[part])
            gold = np.concatenate([feature.labels for feature in outputs.features[part]])
            yield scores, gold[:, None] == np.arange(scores.shape[1])

    def score(
        self,
        dataset: ColumnFile,
        predictions: Sequence[Sequence[Span]],
        labels: Sequence[str] = (),
        negative: str | None = NO_ENTITY,
    ) -> dict[str, Any]:
        """Precision, recall and F1 as `conlleval` computes them, overall and per type."""
        return micro_scores([each.spans for each in dataset.sentences], predictions, attrgetter("label"))

    def from_records(self, records: Sequence[Record]) -> ColumnFile:
        """Each record as a document: the words of a `text`, whose lines are its sentences, or a list `words`."""
        documents = []
        for record in records:
            lines = record_lines(record)
            blanks = [()] * len(lines) if "words" in record.values else blanks_before(lines)
            rows = [tuple((word,) for word, _, _ in line) for line in lines]
            places = [tuple((start, end) for _, start, end in line) for line in lines]
            parts = zip(rows, blanks, places, strict=True)
            documents.append(Document((), tuple(Sentence(row, (), blank, place) for row, blank, place in parts)))
        return ColumnFile(Path("input"), tuple(documents), None, " ", has_documents=True)

    def answers(
        self, outputs: Outputs[ColumnFile, SpanFeature], *, temperature: float = 1.0, top: int | None = None
    ) -> list[dict[str, Any]]:
        """`entities` of each record: `start` and `end` (characters of `text`, or numbers of `words`), `label`.

        With the `probability` that the span is such an entity and, with `top`, the `probabilities` of its likeliest
        classes.
        """
        scores = {(sentence, span): row for sentence, span, row in entity_spans(outputs)}
        left = iter(enumerate(self.decode(outputs)))
        found = []
        for document in outputs.dataset.documents:
            entities: list[dict[str, Any]] = []
            for sentence in document.sentences:
                number, spans = next(left)
                for span in spans:
                    shares = softmax(scores[number, span], temperature)
                    (first, _), (_, last) = sentence.places[span.start], sentence.places[span.end - 1]
                    share = rounded(shares.max())
                    entity = {"start": first, "end": last, "label": span.label, "probability": share}
                    entities.append(
                        entity | ({"probabilities": of_classes(outputs.labels, shares, top)} if top else {})
                    )
            found.append({"entities": entities})
        return found

    def prediction_lines(self, dataset: ColumnFile, predictions: Sequence[Sequence[Span]]) -> list[str]:
        return lines_with_tags(dataset, predictions)

    def score_files(
        self, gold_path: Path, predictions_path: Path, *, tag_column: str = "", predicted_column: str = ""
    ) -> dict[str, Any]:
        """Scores of a file against another with the same words, each in any of the formats of `read`.

        The gold tags must be in one scheme; those of the predictions are read as `conlleval` reads any tags.
        """
        gold = self.read(gold_path, tag_column=tag_column)
        predictions = self.read(predictions_path, tag_column=predicted_column, strict=False)
        check_same_words(gold, predictions)
        return self.score(gold, [sentence.spans for sentence in predictions.sentences])


TASK = EntityRecognition()
