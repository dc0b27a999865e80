"""Pages that are held out: pretraining never sees them, and counts for its judgement leave them out."""

import hashlib

HELD_OUT = "held_out"  # what pretraining never sees: a folder of sequences, a file of documents


def is_held_out(page_id: int, share: float) -> bool:
    """Return whether a page is among the given share that pretraining never sees.

    It is a matter of the page's id alone; a page that is held out at one share is so at every larger one.
    """
    return page_hash(page_id) < share * (1 << 64)


def page_hash(page_id: int) -> int:
    """64 bits that follow from a page's id alone."""
    return int.from_bytes(hashlib.blake2b(str(page_id).encode(), digest_size=8).digest(), "big")
