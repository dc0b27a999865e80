"""Matrix products in a precision; weights stay as they are."""

import pytest
import torch

from model.training.precision import PRECISIONS, autocast


@pytest.mark.parametrize(("precision", "wanted"), zip(PRECISIONS, (torch.float32, torch.bfloat16), strict=True))
def test_products_have_the_precision(precision: str, wanted: torch.dtype) -> None:
    layer = torch.nn.Linear(3, 2)
    with autocast("cpu", precision):
        assert layer(torch.zeros(1, 3)).dtype == wanted
    assert layer.weight.dtype == torch.float32
