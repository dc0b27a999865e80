"""What all benchmarks share.

options    command-line options
workloads  a workload in a process of its own, and how its work is timed there
measure    a command with all its processes: CPU time, wall time, memory
facts      the machine, the versions, the state of the code
arrays     arrays that one run keeps for another
report     medians, ratios, targets, checks, tables
"""
