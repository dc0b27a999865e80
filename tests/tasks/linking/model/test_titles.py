"""The linear map of titles beside scikit-learn's, and where there is next to nothing to learn it from."""

from collections.abc import Sequence
from pathlib import Path

import pytest
import torch

pytest.importorskip("marisa_trie", reason="names are read with marisa-trie")

from sklearn.linear_model import Ridge

from tasks.linking.model import entity_model
from tasks.linking.model.entity_model import RIDGE, load_model, ridge


@pytest.mark.parametrize("rows", [1, 2, 5, 40])
def test_the_map_is_that_of_scikit_learn(rows: int) -> None:
    torch.manual_seed(rows)
    given, wanted = torch.randn(rows, 6).double(), torch.randn(rows, 3).double()
    centred = given - given.mean(dim=0)
    strength = max(RIDGE * float((centred**2).sum(dim=0).mean()), 1e-15)
    theirs = Ridge(alpha=strength, solver="svd").fit(given.numpy(), wanted.numpy())
    mention = torch.randn(4, 6).double()
    matrix, shift = ridge(given.clone(), wanted)
    torch.testing.assert_close(
        mention @ matrix + shift, torch.from_numpy(theirs.predict(mention.numpy()).reshape(4, 3))
    )


def test_without_rows_or_with_equal_ones_the_shift_alone_is_left() -> None:
    nothing = torch.zeros(0, 6).double(), torch.zeros(0, 3).double()
    equal = torch.ones(3, 6).double(), torch.arange(9.0).reshape(3, 3).double()
    for (given, wanted), shift in ((nothing, [0.0, 0.0, 0.0]), (equal, [3.0, 4.0, 5.0])):
        matrix, found = ridge(given, wanted)
        assert not matrix.any()
        assert found.tolist() == shift


def test_what_one_thread_forgets_another_still_has(models: Path, table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The memory of rows is full, and begins anew in the midst of a call."""
    from pipeline.lookup.mentions import MentionTable
    from pipeline.sequences.tokenizer import WordTokenizer

    monkeypatch.setattr(entity_model, "_AT_HAND", 2)
    words = WordTokenizer.load(models / "tokenizer")
    rows = load_model(models / "weights", MentionTable(str(table)), words, device="cpu").of_titles
    titles = ["Ann", "Bob", "Athens", "Rome"]
    wanted, vectors = rows(titles), rows._vectors
    rows(titles[:1])

    def interrupted(some: Sequence[str]) -> torch.Tensor:
        rows._vectors = vectors  # type: ignore[method-assign]
        rows(["one", "two", "three"])
        rows(["four"])
        return vectors(some)

    rows._vectors = interrupted  # type: ignore[method-assign]
    torch.testing.assert_close(rows(titles), wanted)
