"""What every stage is made of.

stage        a Luigi task whose output is a manifest      settings     parameters, by concern
parameters   parameters that say what is wrong            terminal     progress, reachable services
commandline  errors before anything runs                  stopping     Ctrl-C and SIGTERM
experiment_file   where data and weights of experiments lie
"""
