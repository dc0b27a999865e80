"""A run: the values that a work directory is built from, in its `run.toml`.

kinds    what a value has to be
tables   every option, declared once: type, check, help, flag
values   a run of these tables; presets, which are run files, too
file     run.toml: read, changed and written whole
"""
