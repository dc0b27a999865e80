"""Documents in, mentions with their pages out: finds mentions, their candidates, and which of these is meant."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from pipeline.lookup.annotator import Annotator
from pipeline.lookup.contexts import ContextTable
from pipeline.storage.manifests import manifest_sha256
from tasks.io.probabilities import softmax
from tasks.io.records import Record
from tasks.io.windows import without_overlaps
from tasks.linking.candidates import NO_LINKS, CandidateFinder, DetectedMention, LinkingExample, OwnLinks
from tasks.linking.certainty import UNCALIBRATED, Certainty, Figures, Floats, Scores
from tasks.linking.documents.document import Mention
from tasks.linking.documents.json_lines import read_document
from tasks.linking.guesses import Candidate, Candidates

# Without a model nothing needs torch, which takes seconds and memory in each worker of a corpus.
if TYPE_CHECKING:
    from tasks.linking.model.entity_model import EntityModel

Answer = dict[str, Any]
Recognize = Callable[[Sequence[str]], Sequence[Sequence[DetectedMention]]]
"""The names in each of some texts, by a model of entity recognition."""
_CHARACTERS_AT_ONCE = 1 << 13  # of texts in which a model finds names
VERSION = 3  # rises where the same parts of a linker give other scores
GLOBAL, LOCAL, PRIOR = "global", "local", "prior"  # by the model in either way, or by the prior alone
NO_CANDIDATE, BELOW_THRESHOLD = "no_candidate", "below_threshold"  # reasons for no page
DIGITS = 6  # of what is written: those behind differ between machines


@dataclass(frozen=True)
class Linker:
    """Links documents."""

    finder: CandidateFinder  # of candidates
    annotator: Annotator  # finds the mentions of documents that bring none, by the table's names
    _: KW_ONLY
    recognize: Recognize | None = None  # if given, finds them instead of the annotator
    model: "EntityModel | None" = None  # without one the answer is what counts say
    contexts: ContextTable | None = None  # what is written around links; without them the counts are those of links
    is_global: bool = False  # see `disambiguation`
    # What turns scores into probabilities, and below which of them a mention that is given has no page.
    certainty: Certainty = UNCALIBRATED
    min_detected: float = 0.0  # the same of names that are found: how probable a link to the page has to be
    # Whether mentions are found also where the document brings its own, which are then not read.
    finds_all: bool = False
    shows_candidates: bool = False  # whether an answer has all candidates
    check: Callable[[], None] = lambda: None  # is called between parts of the work, and ends it by raising
    # Is called with the number of mentions that are found, and ends the work by raising.
    check_found: Callable[[int], None] = lambda _: None
    # How many mentions had their candidates by each step, over all answers.
    steps: Counter[str] = field(default_factory=Counter)
    unsure: Counter[str] = field(default_factory=Counter)  # of these, those whose page was not probable enough

    def answer(self, records: Sequence[Record], own: Sequence[OwnLinks] = ()) -> list[Answer]:
        """For each record its `mentions`, with their pages; a mention that was given keeps what it has beside.

        Args:
            records: the documents.
            own: links of each document's own, which are not counted: see `CandidateFinder.own_links`; none: all count.

        Raises: ValueError naming the record.
        """
        documents = self._documents(records, own or [NO_LINKS] * len(records))
        self.steps.update(candidates.step for each in documents for candidates in each.candidates)
        answers = []
        for record, example, scores in zip(records, documents, self.scores(documents), strict=True):
            names: Sequence[DetectedMention | None] = example.detected or [None] * len(example.mentions)
            rows = zip(example.mentions, example.candidates, scores, names, strict=True)
            found = [self._answer(example.text, *each) for each in rows]
            answers.append({"mentions": found if example.detected is not None else kept(record, found)})
        return answers

    def scores(self, documents: Sequence[LinkingExample]) -> list[list[Scores]]:
        """For each mention its candidates' shares, and what they are made of beside the priors.

        The shares are those at temperature 1; without a model they are by counts alone.
        """
        found = list[list[Scores]]()
        for each in documents:
            nothing = [None] * len(each.mentions)
            parts = (each.contexts or nothing, each.coherence or nothing)
            found.append(list(map(Scores, shares_by_counts(each, self.certainty), *parts)))
        if not self.model:
            return found
        from tasks.linking.model.answers import disambiguate

        answered = disambiguate(
            self.model, documents, is_global=self.is_global, certainty=self.certainty, check=self.check
        )
        for scores, mentions in zip(found, answered, strict=True):
            for at, mention in enumerate(mentions):
                if mention and mention.shares is not None:
                    alone = None if mention.logits is None else softmax(mention.logits, 1.0)
                    scores[at] = scores[at]._replace(shares=mention.shares, model=alone)
        return found

    def example(
        self,
        text: str,
        mentions: Sequence[Mention],
        own: OwnLinks = NO_LINKS,
        detected: Sequence[DetectedMention] | None = None,
    ) -> LinkingExample:
        """Return the example of a text with mentions, given or found there; its own links are not counted."""
        names = [text[each.start : each.end] for each in mentions]
        candidates = self.finder.of_document(names, own)
        example = LinkingExample(text, mentions, candidates, detected)
        if self.contexts is None:
            return example
        titles = [[each.title for each in of.items] for of in candidates]
        links = [each.probability for each in detected] if detected else [1.0] * len(names)
        shares = [
            [0.0 if each.guess else link * each.prior for each in of.items]  # a guess says nothing of others
            for link, of in zip(links, candidates, strict=True)
        ]
        cosines = self.contexts.cosines(text, titles)
        if self.finder.own:
            self.finder.own.add_cosines(cosines, titles, text, self.contexts)
        return example._replace(contexts=cosines, coherence=self.contexts.coherence(names, titles, shares))

    def _documents(self, records: Sequence[Record], own: Sequence[OwnLinks]) -> list[LinkingExample]:
        """Return the examples of records, with the mentions that they bring, or those that are found."""
        texts = [record.text("text") for record in records]
        given = [None if self.finds_all else read_document(record, 0).mentions for record in records]
        found = self._find([text for text, brought in zip(texts, given, strict=True) if brought is None])
        self.check_found(sum(map(len, found)))
        of_next, documents = iter(found), list[LinkingExample]()
        for text, mentions, links in zip(texts, given, own, strict=True):
            self.check()
            if mentions is not None:
                documents.append(self.example(text, mentions, links))
                continue
            names = next(of_next)
            places = [Mention(each.start, each.end) for each in names]
            documents.append(self.example(text, places, links, names))
        return documents

    def _find(self, texts: Sequence[str]) -> Sequence[Sequence[DetectedMention]]:
        """The mentions in each text."""
        if self.recognize:
            from model.data.batches import cut_by_tokens

            found = list[Sequence[DetectedMention]]()
            for part in cut_by_tokens(texts, len, _CHARACTERS_AT_ONCE):
                self.check()
                found += self.recognize(part)
            return found
        return [self._names(text) for text in texts]

    def _names(self, text: str) -> list[DetectedMention]:
        """The table's names in a text, and those of own entities; of two that overlap the longer one."""
        annotations = self.annotator.annotate(text)
        found = [DetectedMention(each.start, each.end, each.link_probability) for each in annotations]
        if not (own := self.finder.own):
            return found
        both = [*(DetectedMention(*place, 1.0) for place in own.find(text)), *found]
        return without_overlaps(sorted(both, key=lambda each: each.start - each.end))

    def _answer(
        self, text: str, mention: Mention, found: Candidates, scores: Scores, name: DetectedMention | None
    ) -> Answer:
        """Return what is said of a mention, found as `name` or given; of equal candidates the commoner one."""
        of_each = self.certainty.probabilities(scores.shares, found.open_share).tolist()
        best = max(range(len(of_each)), key=of_each.__getitem__, default=None)
        least = self.certainty.min_probability if name is None else self.min_detected
        is_link = 1.0 if name is None else name.probability  # a mention that was given is one
        confidence = None if best is None else of_each[best] * is_link
        is_sure = confidence is not None and confidence >= least
        chosen = found.items[best] if best is not None and is_sure else None
        self.unsure[found.step] += best is not None and not is_sure
        answer: Answer = {
            "mention": text[mention.start : mention.end],
            "start": mention.start,
            "end": mention.end,
            **self._page(chosen),
            "probability": None if best is None else round(of_each[best], DIGITS),
            "confidence": None if confidence is None else round(confidence, DIGITS),
            "reason": None if chosen else NO_CANDIDATE if best is None else BELOW_THRESHOLD,
            "link_probability": round(name.probability, DIGITS) if name and name.label is None else None,
            "step": found.step_of(best),
        }
        if name and name.label is not None:
            answer |= {"label": name.label, "label_probability": round(name.probability, DIGITS)}
        if self.shows_candidates:
            answer["candidates"] = [
                {
                    **self._page(each),
                    "prior": round(each.prior, DIGITS),
                    **scores.of(number),
                    "probability": round(share, DIGITS),
                    "step": found.step_of(number),
                }
                for number, (each, share) in enumerate(zip(found.items, of_each, strict=True))
            ]
        return answer

    def _page(self, candidate: Candidate | None) -> Answer:
        """Return what names a page."""
        target = self.finder.targets.get(candidate.title) if candidate else None
        page: Answer = {
            "title": candidate.title if candidate else None,
            "page_id": target.page_id if target else None,
            "qid": target.qid if target else None,
            "entity_id": candidate.entity_id if candidate else None,
        }
        if own := self.finder.own:
            entity = own.by_title.get(candidate.title) if candidate else None
            page["own_id"] = entity.id if entity else None
        return page


def basis_of(linker: Linker) -> Figures:
    """Return what a calibration of a linker is made for: tables, candidates, model and mode."""
    model, contexts = linker.model, linker.contexts
    fingerprint = max_words = None
    if model:
        from model.files import pretrained_words
        from model.hf.load import fingerprint_model

        fingerprint, max_words = fingerprint_model(str(model.folder)), pretrained_words(model.folder)
    return {
        "mentions": manifest_sha256(linker.finder.table.folder),
        "contexts": contexts and manifest_sha256(contexts.folder),
        "model": fingerprint,
        "max_words": max_words,  # of its windows
        "mode": (GLOBAL if linker.is_global else LOCAL) if model else PRIOR,
        "most_candidates": linker.finder.most,
        "version": VERSION,
    }


def shares_by_counts(example: LinkingExample, certainty: Certainty) -> "list[Floats | list[float]]":
    """For each mention the shares of its candidates by all that is counted; they sum to what the priors do."""
    priors = [[each.prior for each in of.items] for of in example.candidates]
    if example.contexts is None:
        return [*priors]
    found = list[Floats | list[float]]()
    by_counts = example.log_priors(certainty)
    for own, scores in zip(priors, by_counts, strict=True):
        powers = np.exp(scores - scores.max(initial=-np.inf))
        found.append(powers * (sum(own) / powers.sum()) if own else own)
    return found


def kept(record: Record, answers: Sequence[Answer]) -> list[Answer]:
    """The answers to the mentions of a record, with what each has beside, but for candidates of an earlier answer."""
    given = record.values.get("mentions") or [{}] * len(answers)  # other formats have no such objects
    return [
        {name: value for name, value in each.items() if name != "candidates"} | answer
        for each, answer in zip(given, answers, strict=True)
    ]
