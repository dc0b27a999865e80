"""Probes of what a pretrained model knows of held-out pages, and how it links there."""
