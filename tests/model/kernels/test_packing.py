"""Layouts without padding: where tokens lie, and that no work is done on others."""

from model.luke.encoder import LukeModel
from tests.support import properties
from tests.support.flat_batches import layout_of
from tests.support.models import TINY, flat_of, random_batch
from tests.support.properties import st


def test_work_is_done_on_tokens_alone() -> None:
    batch = flat_of(random_batch())
    module = LukeModel(TINY).eval()
    rows: list[int] = []
    for layer in module.layers:
        for part in (layer.intermediate, layer.output_norm, layer.attention.key, layer.dropout):
            part.register_forward_hook(lambda *call: rows.append(call[1][0].shape[:-1].numel()))
    module(batch)
    assert set(rows) == {batch.shape.words + batch.shape.entities}


@properties.given(lengths=st.lists(st.tuples(st.integers(1, 6), st.integers(0, 4)), min_size=1, max_size=8))
def test_order_is_sequence_after_sequence(lengths: list[tuple[int, int]]) -> None:
    layout = layout_of(lengths)
    words = [(row, 0, number) for row, (count, _) in enumerate(lengths) for number in range(count)]
    entities = [(row, 1, number) for row, (_, count) in enumerate(lengths) for number in range(count)]
    packed = words + entities
    assert [packed[place] for place in layout.order.tolist()] == sorted(packed)
    assert layout.order[layout.places].tolist() == list(range(len(packed)))
    mixed = layout.mixed
    assert mixed.order.tolist() == mixed.places.tolist() == list(range(len(packed))), "it is in that order"
    assert mixed.offsets.tolist() == mixed.word_offsets.tolist() == layout.offsets.tolist()
    assert [words for words, _ in mixed.lengths] == layout.offsets.diff().tolist()
