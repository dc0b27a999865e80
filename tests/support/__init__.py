"""Builders and oracles that several tests use, and where test data lie."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "tests" / "data"
# Seconds after which a process that a test waits for is taken to hang. Slow machines are some times slower than others.
PATIENCE = 600
