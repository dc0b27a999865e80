"""What benchmarks take of the tests, oracles and tiny weights: the one place that knows where they are."""

from tests.support.grid import experiments
from tests.support.oracle import extract
from tests.support.oracle_sequences import Tokenizer

__all__ = ["Tokenizer", "experiments", "extract"]
