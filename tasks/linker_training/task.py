"""What training asks of a task (`tasks.task.Task`): here its loss is over the candidates of each mention."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from model.data.collation import collate
from model.kernels.cross_entropy import linear_cross_entropy
from model.luke.flat import FlatBatch
from model.luke.heads import ENTITY_LOSS, LukeForPretraining
from model.pretraining.ranking import logits_of_candidates
from tasks.entities.candidates import CandidateFinder
from tasks.entities.certainty import Certainty
from tasks.entities.disambiguation.answers import shares_of
from tasks.entities.disambiguation.entity_model import EntityModel
from tasks.entities.disambiguation.windows import Floats, Question
from tasks.entities.documents.document import Mention
from tasks.entities.scores import Pair, disambiguation_scores, linking_scores, resolver
from tasks.linker_training.inputs import Documents, Input
from tasks.task import MAX_MENTION_POSITIONS

Vector = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class CandidateBatch:
    """Inputs, and the known candidates of all mentions asked for, one mention after the other.

    Attributes:
        inputs: the windows.
        rows, log_priors: (candidates) in the model's entity table, and the logarithms of their priors.
        mentions, columns: (candidates) which mention each is of, and its number among that mention's.
        golds: (mentions) the number of the right one; -1 where it is not there.
        entities: (mentions) the row of the right page in the model's entity table; -1 where it has none.
        counts: how many mentions each input asks for.
    """

    inputs: FlatBatch
    rows: Tensor
    log_priors: Tensor
    mentions: Tensor
    columns: Tensor
    golds: Tensor
    entities: Tensor
    counts: Sequence[int]

    def to(self, device: torch.device | str) -> "CandidateBatch":
        """The same batch on another device."""
        return replace(self, **{k: v.to(device) for k, v in vars(self).items() if hasattr(v, "to")})


@dataclass(frozen=True)
class Disambiguation:
    """Scores of a candidate are those of `link`: the entity head's logit + `prior_weight` x log prior."""

    model: EntityModel
    finder: CandidateFinder
    prior_weight: float
    softmax_weight: float = 0.0
    DEV_METRIC = "accuracy"
    BEST_EPOCH_IN_PAPER = True
    BEGINS_WITHOUT_ENTITIES = False

    def feature_size(self, feature: Input) -> int:
        """Words and entities of an input."""
        return len(feature.sequence.word_ids) + len(feature.sequence.entity_ids)

    def loss_terms(self, feature: Input) -> int:
        """The mentions that are asked for."""
        return len(feature.asked)

    def collate(self, features: Sequence[Input], *, entities: bool, pad_id: int) -> CandidateBatch:
        """One batch, without padding."""
        asked = [each for feature in features for each in feature.asked]
        sizes = [len(each.rows) for each in asked]
        nothing = np.zeros(0)
        priors = np.concatenate([nothing, *(each.question.log_prior[each.is_known] for each in asked)])
        rows = np.concatenate([nothing, *(each.rows for each in asked)]).astype(np.int64)
        columns = np.concatenate([nothing, *map(np.arange, sizes)]).astype(np.int64)
        golds = [-1 if each.right.gold is None else each.right.gold for each in asked]
        right = [each.right.row for each in asked]
        return CandidateBatch(
            collate([f.sequence for f in features], max_mention_words=MAX_MENTION_POSITIONS, entities=True),
            torch.from_numpy(rows),
            torch.from_numpy(priors).float(),
            torch.from_numpy(np.repeat(np.arange(len(asked)), sizes)),
            torch.from_numpy(columns),
            torch.tensor(golds, dtype=torch.int64),
            torch.tensor(right, dtype=torch.int64),
            [len(feature.asked) for feature in features],
        )

    def loss(self, module: LukeForPretraining, batch: CandidateBatch) -> dict[str, Tensor]:
        """The mean over mentions of two cross entropies: over known candidates, and by its weight over all entities.

        Candidates have their priors. Where the right page is none of them, the other alone counts. All pages have a row
        in the model, as with `learns`.
        """
        states, _ = module.asked(batch.inputs)[ENTITY_LOSS]
        head, table = module.heads[ENTITY_LOSS]
        logits = logits_of_candidates(head, states, table.weight, batch.rows, batch.mentions)
        width = int(batch.columns.max()) + 1 if len(batch.columns) else 1
        rows = logits.new_full((len(batch.golds), width), -torch.inf)
        scores = logits + self.prior_weight * batch.log_priors
        is_candidate = batch.golds >= 0
        rows = rows.index_put((batch.mentions, batch.columns), scores)[is_candidate]
        loss = functional.cross_entropy(rows, batch.golds[is_candidate], reduction="sum")
        if self.softmax_weight:
            of_all, _ = linear_cross_entropy(head.transform(states), table.weight, head.bias, batch.entities)
            loss = loss + self.softmax_weight * of_all
        return {"loss": loss / len(batch.golds)}

    def logits(self, module: LukeForPretraining, batch: CandidateBatch) -> list[list[Vector]]:
        """For each input, of each mention, what the rows of its candidates are multiplied with (width)."""
        states, _ = module.asked(batch.inputs)[ENTITY_LOSS]
        head, _ = module.heads[ENTITY_LOSS]
        with torch.autocast(states.device.type, enabled=False):
            found = iter(head.transform(states.to(head.bias.dtype)).cpu().numpy())
        return [[next(found) for _ in range(count)] for count in batch.counts]

    def decode(
        self,
        dataset: Documents,
        features: Sequence[Input],
        logits: Sequence[Sequence[Vector]],
        labels: Sequence[str],
    ) -> list[list[Mention]]:
        """For each document its mentions with the titles of the likeliest candidates, as `link --local` answers."""
        model = replace(self.model)  # what titles tell is asked anew, of the words as they are now
        certainty, numbers = Certainty(prior_weight=self.prior_weight), dict[int, int]()
        for feature, rows in zip(features, logits, strict=True):
            questions = [each.question for each in feature.asked]
            for each, of_each in zip(questions, logits_of(model, questions, rows), strict=True):
                numbers[id(each)] = int(shares_of(each, of_each, certainty).argmax())

        def title(question: Question | None, titles: Sequence[str]) -> str | None:
            if question is None:
                return titles[0] if titles else None
            return titles[numbers[id(question)]]

        return [
            [
                Mention(mention.start, mention.end, title(question, [each.title for each in found.items]))
                for mention, found, question in zip(asked.mentions, asked.candidates, questions, strict=True)
            ]
            for asked, questions in zip(dataset.asked, dataset.questions, strict=True)
        ]

    def score(
        self, dataset: Documents, predictions: Sequence[Sequence[Mention]], labels: Any, negative: Any
    ) -> dict[str, Any]:
        """The scores of `tasks.entities score`; `accuracy` is that of gold mentions with the page among candidates."""
        resolve = resolver(self.finder)
        pairs = [
            Pair.of(document, found, resolve, without=own)
            for document, found, own in zip(dataset.documents, predictions, dataset.own, strict=True)
        ]
        figures = disambiguation_scores(pairs, self.finder)
        overall = figures["overall"]
        recall = overall["candidate_recall"]
        return {
            "accuracy": overall["accuracy"] / recall if recall else 0.0,
            "f1": linking_scores(pairs)["micro"]["f1"],
            "disambiguation": figures,
        }


@torch.inference_mode()
def logits_of(model: EntityModel, questions: Sequence[Question], hidden: Sequence[Vector]) -> list[Floats]:
    """The logits of all candidates of questions, each of which has its own vector (width)."""
    if not questions:
        return []
    sizes = [len(each.rows) for each in questions]
    vectors, biases = model.vectors(questions)
    of_each = torch.from_numpy(np.stack(hidden)).to(vectors.device)
    found = (of_each.repeat_interleave(torch.tensor(sizes).to(vectors.device), dim=0) * vectors).sum(
        dim=1
    ) + biases
    return np.split(found.double().cpu().numpy(), np.cumsum(sizes)[:-1])
