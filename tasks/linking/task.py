"""What training asks of a task (`tasks.task.Task`): here its loss is over the candidates of each mention."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from model.data.collation import collate
from model.luke.flat import FlatBatch
from model.luke.heads import ENTITY_LOSS, LukeForPretraining
from model.pretraining.ranking import logits_of_candidates
from tasks.entities.candidates import CandidateFinder
from tasks.entities.disambiguation import Floats, Question, probabilities
from tasks.entities.documents.document import Mention
from tasks.entities.scores import Pair, disambiguation_scores, linking_scores, resolver
from tasks.linking.inputs import Documents, Input
from tasks.task import MAX_MENTION_POSITIONS


@dataclass(frozen=True, eq=False)
class CandidateBatch:
    """Inputs, and the known candidates of all mentions asked for, one mention after the other.

    Attributes:
        inputs: the windows.
        rows, log_priors: (candidates) in the model's entity table, and the logarithms of their priors.
        mentions, columns: (candidates) which mention each is of, and its number among that mention's.
        golds: (mentions) the number of the right one; -1 where it is not told.
        counts: how many mentions each input asks for.
    """

    inputs: FlatBatch
    rows: Tensor
    log_priors: Tensor
    mentions: Tensor
    columns: Tensor
    golds: Tensor
    counts: Sequence[int]

    def to(self, device: torch.device | str) -> "CandidateBatch":
        """The same batch on another device."""
        return replace(self, **{k: v.to(device) for k, v in vars(self).items() if hasattr(v, "to")})


@dataclass(frozen=True)
class Disambiguation:
    """Scores of a candidate are those of `link`: the entity head's logit + `prior_weight` x log prior."""

    finder: CandidateFinder
    prior_weight: float
    DEV_METRIC = "accuracy"
    BEST_EPOCH_IN_PAPER = True

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
        golds = [-1 if each.gold is None else each.gold for each in asked]
        return CandidateBatch(
            collate([f.sequence for f in features], max_mention_words=MAX_MENTION_POSITIONS, entities=True),
            torch.from_numpy(rows),
            torch.from_numpy(priors).float(),
            torch.from_numpy(np.repeat(np.arange(len(asked)), sizes)),
            torch.from_numpy(columns),
            torch.tensor(golds, dtype=torch.int64),
            [len(feature.asked) for feature in features],
        )

    def loss(self, module: LukeForPretraining, batch: CandidateBatch) -> dict[str, Tensor]:
        """Cross entropy over the known candidates of each mention, the mean over mentions."""
        scores = candidate_scores(module, batch) + self.prior_weight * batch.log_priors
        width = int(batch.columns.max()) + 1
        rows = scores.new_full((len(batch.golds), width), -torch.inf)
        rows = rows.index_put((batch.mentions, batch.columns), scores)
        return {"loss": functional.cross_entropy(rows, batch.golds)}

    def logits(self, module: LukeForPretraining, batch: CandidateBatch) -> list[list[Floats]]:
        """For each input the logits of the known candidates of each mention."""
        found = candidate_scores(module, batch).double().cpu().numpy()
        sizes = np.bincount(batch.mentions.cpu().numpy(), minlength=len(batch.golds))
        each = iter(np.split(found, np.cumsum(sizes)[:-1]))
        return [[next(each) for _ in range(count)] for count in batch.counts]

    def decode(
        self,
        dataset: Documents,
        features: Sequence[Input],
        logits: Sequence[Sequence[Floats]],
        labels: Sequence[str],
    ) -> list[list[Mention]]:
        """For each document its mentions with the titles of the likeliest candidates, as `link --local` answers."""
        of_question = {
            id(each.question): row
            for feature, rows in zip(features, logits, strict=True)
            for each, row in zip(feature.asked, rows, strict=True)
        }

        def title(question: Question | None, titles: Sequence[str]) -> str | None:
            if question is None:
                return titles[0] if titles else None
            found = of_question[id(question)]
            shares = probabilities(question, found if len(found) else None, self.prior_weight)
            return titles[int(shares.argmax())]

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
            Pair.of(document, found, resolve)
            for document, found in zip(dataset.documents, predictions, strict=True)
        ]
        figures = disambiguation_scores(pairs, self.finder)
        overall = figures["overall"]
        recall = overall["candidate_recall"]
        return {
            "accuracy": overall["accuracy"] / recall if recall else 0.0,
            "f1": linking_scores(pairs)["micro"]["f1"],
            "disambiguation": figures,
        }


def candidate_scores(module: LukeForPretraining, batch: CandidateBatch) -> Tensor:
    """The entity head's logits (candidates), in single precision."""
    states, _ = module.asked(batch.inputs)[ENTITY_LOSS]
    head, table = module.heads[ENTITY_LOSS]
    return logits_of_candidates(head, states, table.weight, batch.rows, batch.mentions)
