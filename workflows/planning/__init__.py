"""The costs of a run, told before it begins, and its state while it goes on.

plan        the step that users call
costs.toml  what each stage took, as measured
watch       the state of a run, as its files show it
"""
