"""Rows of an entity table for pages that a model does not know, as their titles tell them.

A title's vector is the mean of what its words have in the model's word table. The linear map that fits the known
entities best, from their titles' vectors to their rows, gives a row to any other title.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from model.luke.heads import ENTITY_LOSS, LukeForPretraining
from model.luke.titles import named_vectors
from pipeline.sequences.tokenizer import WordTokenizer
from tasks.finetuning.entities import title_words

MOST = 1 << 15  # known entities that the map is fitted to
RIDGE = 0.01  # added to the variances of titles' vectors, as a share of their mean
_AT_HAND = 1 << 14  # titles


class TitleRows:
    """Rows that the entity table and the bias of its head would have for titles."""

    def __init__(
        self, module: LukeForPretraining, tokenizer: WordTokenizer, known: Sequence[tuple[int, str]]
    ) -> None:
        """Fit the map by ridge regression.

        `known` are rows of its entity table with titles, the rarest last. The rarer half counts, and of that the
        last `MOST`: pages that a model does not know are rare, too.
        """
        head, table = module.heads[ENTITY_LOSS]
        self._words, self._tokenizer = module.luke.word_embeddings.token, tokenizer
        self._centre = self._words.weight.detach().mean(dim=0)
        self._at_hand: dict[str, Tensor] = {}
        chosen = known[-min(MOST, -(-len(known) // 2)) :] if known else []
        rows = torch.tensor([row for row, _ in chosen], dtype=torch.int64, device=table.weight.device)
        with torch.inference_mode():
            wanted = torch.cat([table.weight[rows], head.bias[rows, None]], dim=1).double()
            given = self._vectors([title for _, title in chosen]).double()
            self._map = ridge(given, wanted)

    def _vectors(self, titles: Sequence[str]) -> Tensor:
        """The titles' vectors (titles, hidden)."""
        return named_vectors(self._words.weight, title_words(titles, self._tokenizer), self._centre)

    @torch.inference_mode()
    def __call__(self, titles: Sequence[str]) -> Tensor:
        """(titles, width + 1): the rows, and behind them the biases; of one title or more."""
        if len(self._at_hand) > _AT_HAND:
            self._at_hand.clear()
        new = [title for title in dict.fromkeys(titles) if title not in self._at_hand]
        if new:
            matrix, shift = self._map
            found = (self._vectors(new).double() @ matrix + shift).to(self._words.weight.dtype)
            self._at_hand.update(zip(new, found, strict=True))
        return torch.stack([self._at_hand[title] for title in titles])


def ridge(given: Tensor, wanted: Tensor) -> tuple[Tensor, Tensor]:
    """The matrix (in, out) and shift (out) by which `given` (n, in) comes closest to `wanted` (n, out).

    The square of the matrix counts, too, so that few rows are not learnt by heart; without any row both are zero.
    `given` is changed.
    """
    if not len(given):
        return given.new_zeros((given.shape[1], wanted.shape[1])), wanted.new_zeros(wanted.shape[1])
    means = given.mean(dim=0), wanted.mean(dim=0)
    given.sub_(means[0])
    square = given.T @ given
    strength = (RIDGE * square.diagonal().mean()).clamp(min=torch.finfo(square.dtype).eps)
    matrix = torch.linalg.solve(
        square + strength * torch.eye(len(square)).to(square), given.T @ (wanted - means[1])
    )
    return matrix, means[1] - means[0] @ matrix
