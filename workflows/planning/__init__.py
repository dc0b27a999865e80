"""What a run will take, told before it begins.

plan        the step that users call
costs.toml  what each stage took, as measured
"""
