"""What a run will take, told before it begins.

plan        the step that users call
costs       what was measured, and what follows for another dump
costs.toml  the figures
"""
