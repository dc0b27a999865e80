"""New entities for a pretrained model without training it: an entity's row is the likeliest one for its mentions.

The model is left as it is. Where an entity is masked, its head gives a state, whose logits are those of all rows. The
rows that the model has, and so the sum of their exponentials at each state, do not change; the new ones maximise the
likelihood of the masked entities under a Gaussian prior around what the words of their titles say, which is a convex
problem in these rows alone. Their bias is the one by which their titles' rows make the mentions likeliest, so that new
entities are named about as often as they are mentioned. How titles become rows, and how far from that a row may be, are
learnt from the earlier entities. One that no sequence mentions is what its title says.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from model.data.held_out import HeldOut
from model.data.masking import Masker
from model.data.shards import Corpus, epoch_order, list_lengths
from model.files import EVALUATION, PRETRAINING, read_optional, save_model, write_aside, write_json
from model.hf.load import load_strictly, read_model
from model.luke.batch import Integers, collate
from model.luke.config import SPECIAL_ENTITIES
from model.luke.heads import ENTITY_LOSS, LukeForPretraining
from model.luke.titles import named_vectors
from model.pretraining.evaluation import MOST_SEQUENCES, evaluate, evaluating
from model.pretraining.start import check_base, without_spare_words
from model.training.precision import autocast

MENTIONS = 8  # sequences that are read for each new entity, at most
STEPS, BIAS_STEPS = 12, 30  # of L-BFGS, and of Newton's method
# A row may be farther from its title than the earlier ones are on average: benchmarks/LOG.md has the measurement.
LOOSENESS = 30
RIDGES = (1e-3, 1e-2, 1e-1)
BATCH = 32
LOGITS_AT_ONCE = 1 << 24
SEED = 20_201_116
ROWS, BIAS = "luke.entity_embeddings.token.weight", "entity_head.bias"


@dataclass(frozen=True)
class Mentions:
    """Masked entities."""

    vectors: Tensor  # (mentions, width) of the head
    labels: Tensor
    weights: Tensor  # by which they stand for a corpus
    earlier: Tensor  # the log of the sum of the exponentials of all earlier entities' logits


@torch.no_grad()
def update(
    sequences: Path,
    earlier: Path,
    output: Path,
    *,
    known: int,
    device: str,
    commonest: Path | None = None,
    progress: Callable[[int, int], None],
) -> dict[str, float]:
    """Write into `output` the model of the folder `earlier` with the entities of a folder of sequences.

    Its first `known` entities are those of the sequences' vocabulary, and keep their rows to the bit. Returns how many
    entities are new, how many of them are mentioned, how many sequences and mentions were read, and held-out figures as
    those of a pretraining, beside the labels of the file `commonest`. Raises ValueError where the model and the
    sequences do not fit together.
    """
    corpus = Corpus(sequences)
    module = grown_model(corpus, str(earlier), known).to(device)
    start, deviation = rows_of_titles(module, corpus, known)
    rows = module.luke.entity_embeddings.token.weight
    rows[known:] = start
    chosen, weights = choose(corpus, known)
    record = read_optional(earlier / PRETRAINING)
    precision = record.get("recipe", {}).get("precision", "float32")
    mentions = read_mentions(module, corpus, known, chosen, weights, progress, precision=precision)
    mentioned = torch.unique(mentions.labels[mentions.labels >= known])
    bias = float(module.entity_head.bias[SPECIAL_ENTITIES:known].mean())
    if len(mentioned):
        bias = likeliest_bias(mentions, known, start, bias)
        numbered = known + torch.searchsorted(mentioned, mentions.labels)
        labels = torch.where(mentions.labels >= known, numbered, mentions.labels)
        rows[mentioned] = likeliest(replace(mentions, labels=labels), known, rows[mentioned], bias, deviation)
    module.entity_head.bias[known:] = bias
    counts = {"new": len(rows) - known, "mentioned": len(mentioned)}
    counts |= {"sequences": len(chosen), "mentions": len(mentions.labels)}
    held_out = HeldOut.open(sequences, commonest)
    with autocast(device, precision):
        figures = evaluate(module, held_out, sequences=MOST_SEQUENCES, first_new=known) if len(held_out) else {}
    output.mkdir(parents=True, exist_ok=True)
    lines = json.dumps({"step": 0, **figures}) + "\n"
    write_aside(output / EVALUATION, lambda aside: aside.write_text(lines, encoding="utf-8"))
    write_json(output / PRETRAINING, {**record, "updated": counts})
    save_model(output, module)
    return counts | {f"held_out_{name}": value for name, value in figures.items()}


def grown_model(corpus: Corpus, source: str, known: int) -> LukeForPretraining:
    """The model with a row for each entity of the corpus; those behind the first `known` are zero."""
    config, weights = read_model(source)
    check_base(config, corpus.facts, source)
    config, weights = without_spare_words(config, weights, corpus.facts.word_vocab_size)
    size = corpus.facts.entity_vocab_size
    if not known <= config.entity_vocab_size or known > size:
        raise ValueError(
            f"{source}: {config.entity_vocab_size:,} entities, wanted {known:,} of the {size:,} of {corpus.folder}"
        )
    for name in (ROWS, BIAS):  # transformers' format has one behind the entities
        table = weights[name][:known]
        weights[name] = torch.cat([table, table.new_zeros(size - known, *table.shape[1:])])
    module = LukeForPretraining(replace(config, entity_vocab_size=size))
    load_strictly(module, weights, source=source, optional=set())
    return module.eval()


@torch.no_grad()
def rows_of_titles(module: LukeForPretraining, corpus: Corpus, known: int) -> tuple[Tensor, float]:
    """Rows of new entities (new, width) by the words of their titles, and how far from that they may be.

    A ridge regression of the earlier rows on the means of their titles' words; one half of them chooses its strength,
    and gives the variance of a number of a row, of which the prior has `LOOSENESS` times as much.
    """
    words = module.luke.word_embeddings.token.weight
    titles = named_vectors(words, corpus.titles(), words.mean(dim=0)).double()
    rows = module.luke.entity_embeddings.token.weight[:known].double()
    fitted, checked = (torch.arange(SPECIAL_ENTITIES + part, known, 2, device=rows.device) for part in range(2))
    errors = {
        strength: float((ridge(titles[fitted], rows[fitted], strength, titles[checked]) - rows[checked]).pow(2).mean())
        for strength in RIDGES
    }
    best = min(errors, key=lambda strength: errors[strength])
    old = slice(SPECIAL_ENTITIES, known)
    return ridge(titles[old], rows[old], best, titles[known:]).float(), (LOOSENESS * errors[best]) ** 0.5


def ridge(inputs: Tensor, outputs: Tensor, strength: float, at: Tensor) -> Tensor:
    """The outputs `at` other inputs, by linear regression; its strength is in units of the inputs' mean square."""
    input_mean, output_mean = inputs.mean(dim=0), outputs.mean(dim=0)
    centred = inputs - input_mean
    penalty = strength * len(inputs) * centred.pow(2).mean()
    gram = centred.T @ centred + penalty * torch.eye(centred.shape[1], device=inputs.device, dtype=inputs.dtype)
    return (at - input_mean) @ torch.linalg.solve(gram, centred.T @ (outputs - output_mean)) + output_mean


def choose(corpus: Corpus, known: int) -> tuple[Integers, Mapping[bool, float]]:
    """The sequences to read, rising: up to `MENTIONS` for each new entity, and as many that have none.

    Beside them for how many of its kind in the corpus a sequence with a new entity stands (True), and one without.
    """
    entities, places = new_mentions(corpus, known)
    order = epoch_order(len(places), seed=SEED, epoch=0)
    entities, places = entities[order], places[order]
    by_entity = np.argsort(entities, kind="stable")
    first = np.searchsorted(entities[by_entity], entities)
    rank = np.empty(len(entities), np.int64)
    rank[by_entity] = np.arange(len(entities)) - first[by_entity]
    with_new, read = np.unique(places), np.unique(places[rank < MENTIONS])
    others = np.setdiff1d(np.arange(len(corpus)), with_new)
    beside = others[epoch_order(len(others), seed=SEED, epoch=1)[: len(read)]]
    weights = {True: len(with_new) / max(1, len(read)), False: len(others) / max(1, len(beside))}
    return np.union1d(read, beside), weights


def new_mentions(corpus: Corpus, known: int) -> tuple[Integers, Integers]:
    """The entity of each mention of a new one, and the index of its sequence; one block is read at a time."""
    entities, places, start = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], 0
    for block in corpus.table.column("entity_ids").chunks:
        ids = block.flatten().to_numpy().astype(np.int64)
        index = np.repeat(np.arange(start, start + len(block)), list_lengths(block))
        entities.append(ids[ids >= known])
        places.append(index[ids >= known])
        start += len(block)
    return np.concatenate(entities), np.concatenate(places)


@torch.no_grad()
def read_mentions(
    module: LukeForPretraining,
    corpus: Corpus,
    known: int,
    chosen: Integers,
    weights: Mapping[bool, float],
    progress: Callable[[int, int], None],
    *,
    precision: str = "float32",
) -> Mentions:
    """The model's answers at the entities of these sequences, all of which are masked; words are as they are.

    The encoder has the precision of its pretraining, the head float32.
    """
    device = next(module.parameters()).device
    masker = Masker(corpus.facts, corpus.word_starts, profile="fixed", seed=SEED, word_share=0.0, entity_share=1.0)
    table, bias = module.luke.entity_embeddings.token.weight[:known], module.entity_head.bias[:known]
    parts: list[tuple[Tensor, ...]] = [(torch.zeros(0, table.shape[1]), torch.zeros(0).long(), *2 * [torch.zeros(0)])]
    with evaluating(module):
        for first in range(0, len(chosen), BATCH):
            masked = [masker.mask(corpus[index], epoch=0, index=index) for index in chosen[first : first + BATCH]]
            batch = collate(masked, max_mention_words=corpus.facts.max_mention_words, entities=True)
            with autocast(str(device), precision):
                states, labels = module.masked_states(batch.to(device))[ENTITY_LOSS]
            vectors = module.entity_head.transform(states.float())
            sums = functional.linear(vectors, table, bias)[:, SPECIAL_ENTITIES:].logsumexp(dim=1)
            of_each = [weights[bool((each.entity_labels >= known).any())] for each in masked]
            of_all = torch.tensor(of_each).repeat_interleave(torch.tensor([len(each.entity_ids) for each in masked]))
            is_known = labels >= SPECIAL_ENTITIES
            found = (vectors, labels, of_all.to(device), sums)
            parts.append(tuple(each[is_known].cpu() for each in found))
            progress(min(first + BATCH, len(chosen)), len(chosen))
    return Mentions(*(torch.cat(column) for column in zip(*parts, strict=True)))


def likeliest_bias(mentions: Mentions, known: int, rows: Tensor, bias: float) -> float:
    """The bias of all new entities by which their titles' rows make the mentions likeliest, by Newton's method.

    It tells how often new entities are mentioned. Before any mention it lies around `bias`, with a variance of 1.
    """
    size = max(1, LOGITS_AT_ONCE // len(rows))
    sums = [
        functional.linear(part.to(rows.device), rows).logsumexp(dim=1).cpu() for part in mentions.vectors.split(size)
    ]
    ahead, is_new, found = torch.cat(sums) - mentions.earlier, mentions.labels >= known, bias
    for _ in range(BIAS_STEPS):
        shares = torch.sigmoid(ahead + found)
        slope = float((mentions.weights * (shares - is_new.float())).sum()) + found - bias
        curvature = float((mentions.weights * shares * (1 - shares)).sum()) + 1
        found -= max(-1.0, min(1.0, slope / curvature))
    return found


def likeliest(mentions: Mentions, known: int, start: Tensor, bias: float, deviation: float) -> Tensor:
    """Rows (new, width) that maximise the likelihood of the mentions under the prior around `start`."""
    rows = start.clone().requires_grad_()
    optimiser = torch.optim.LBFGS([rows], max_iter=STEPS, history_size=STEPS, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        value, rows.grad = objective(rows.detach(), mentions, known, start, bias, deviation)
        return value

    optimiser.step(closure)
    return rows.detach()


def objective(
    rows: Tensor, mentions: Mentions, known: int, start: Tensor, bias: float, deviation: float
) -> tuple[Tensor, Tensor]:
    """The negative logarithm of the posterior of new rows, less a constant, and its gradient, both for one mention.

    At each mention the new rows compete with one another and with all earlier ones, whose part of the sum is known.
    """
    away = rows - start
    value, gradient = away.pow(2).sum() / (2 * deviation**2), away / deviation**2
    columns = (mentions.vectors, mentions.labels - known, mentions.weights, mentions.earlier)
    size = max(1, LOGITS_AT_ONCE // len(rows))
    for chunk in zip(*(column.split(size) for column in columns), strict=True):
        vectors, labels, weights, earlier = (each.to(rows.device) for each in chunk)
        logits = functional.linear(vectors, rows).add_(bias)
        sums = torch.logaddexp(earlier, logits.logsumexp(dim=1))
        is_new = labels >= 0
        own = torch.where(is_new, logits.gather(1, labels.clamp(min=0)[:, None])[:, 0], earlier)
        value += (weights * (sums - own)).sum()
        errors = logits.sub_(sums[:, None]).exp_()
        errors[is_new, labels[is_new]] -= 1
        gradient += errors.mul_(weights[:, None]).T @ vectors
    total = mentions.weights.sum().to(rows.device)
    return value / total, gradient / total
