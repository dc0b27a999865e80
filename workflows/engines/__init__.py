"""The machine's part of stages: processes, memory, disk and sessions.

beam, spark  the engines
workers      stages side by side, in processes, each on a torch device of its own
disk         scratch, free space
"""
