"""The parts of every stage.

stage            a Luigi task whose output is a manifest
parameters       values and errors
commandline      errors before anything runs
terminal         progress, reachable services
stopping         Ctrl-C and SIGTERM
machine          processors and memory of the container
experiment_file  where data and weights of experiments lie
"""
