"""From the dump to the shards, and what a reader finds wrong in the text."""
