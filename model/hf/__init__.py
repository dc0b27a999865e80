"""Model folders of transformers; `python -m model.hf` checks, exports and compares them.

keys, keys.toml  names of parameters in this project and in transformers
hub              models by their names at Hugging Face
load             any folder or name to a model
tokenizers       tokenizers' files
tokenizers.toml  values of their configurations
export           a pretrained model to transformers' folder
fine_tuned       a fine-tuned model to it, and back
card             the model card
cards            its templates, and programs that use a model
compare          outputs in both implementations
"""
