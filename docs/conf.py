"""Sphinx: `make docs` writes build/docs/index.html. Everything is made here; nothing is fetched."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE / "_ext")]

project = "LUKE from any Wikipedia dump"
author = "The authors of luke-from-wikipedia"
html_show_copyright = False
extensions = ["myst_parser", "generated", "mathml"]
exclude_patterns = ["_ext"]

smartquotes = False  # "--" begins a flag
myst_enable_extensions = ["amsmath", "dollarmath"]
myst_heading_anchors = 4
nitpicky = True
# Results of benchmarks hold charts of a language that Pygments does not colour.
suppress_warnings = ["misc.highlighting_failure"]

html_theme = "furo"
html_title = project
html_math_renderer = "mathml"
html_show_sourcelink = False
html_show_sphinx = False
