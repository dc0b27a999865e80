"""Entity recognition beside transformers, and the costs of linking."""
