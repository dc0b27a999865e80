"""Builders and oracles that several tests use, and where test data lie."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "tests" / "data"
# Seconds in which a command ends by itself, or does what a test waits for; after them it is taken to hang.
PATIENCE = 600
