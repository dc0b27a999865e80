"""From the dump to the shards."""
