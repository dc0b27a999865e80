"""Fine-tuning, its features and its predictions."""
