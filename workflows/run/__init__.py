"""A run: the values that a work directory is built from, in its `run.toml`.

kinds     what a value has to be
tables    every option, declared once: type, check, help, flag
values    a run of these tables; presets, which are run files, too
document  the text of a run file
file      run.toml: changed and written whole
"""
