"""What benchmarks take of the tests, the oracles: the one place that knows where they are."""

from tests.support.oracle import extract
from tests.support.oracle_sequences import Tokenizer

__all__ = ["Tokenizer", "extract"]
