"""Model folders: ours, transformers', and the authors' release.

keys        names of weights here and in transformers
load        weights and configurations, from whichever folder
original    the authors' release
export      for transformers' LUKE
card        what it says of itself
push        to the Hugging Face hub
tokenizers  that go with both exports
fine_tuned  heads of fine-tuned models
compare     the same folder in both implementations
"""
