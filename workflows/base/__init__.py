"""The parts of every stage.

stage                    a Luigi task whose output is a manifest
commandline, luigi.toml  the command line, read before Luigi does
helping                  help of a stage
outlook                  what a command would do, and why
terminal                 progress, reachable services
stopping                 Ctrl-C and SIGTERM
machine                  processors and memory of the container
"""
