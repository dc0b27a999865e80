"""The subcommands of `python -m tasks.linking`.

options    options that several of them share
inputs     the documents that link reads
link       link and serve
score      score and convert
calibrate  calibrate
"""
