"""What a run will take, told before it begins, and how far it is.

plan        the step that users call
costs.toml  what each stage took, as measured
watch       the state of a run, as its files show it
"""
