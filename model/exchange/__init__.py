"""Model folders: ours, transformers', and the authors' release.

files       safetensors, JSON, parts       keys        names of weights here and in transformers
save, load  folders of weights             original    the authors' release
export      for transformers' LUKE         card        its model card
fine_tuned  heads of fine-tuned models     compare     the same folder in both implementations
"""
