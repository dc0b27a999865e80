"""A run: the values that a work directory is built from, in its `run.toml`.

kinds               what a value has to be
tables              every option, declared once: type, default, check, flag
options, help.toml  the options of all tables by their names, and what each is
document            the text of a run file
file                a run of these tables, read from run.toml, changed and written whole
"""
