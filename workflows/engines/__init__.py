"""What stages need of the machine.

beam, spark  the engines
workers      stages side by side, in processes, each on a torch device of its own
disk         scratch, free space
"""
