"""A training step, pretraining, and what a pretraining learnt."""
