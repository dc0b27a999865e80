"""The parts that all benchmarks share.

options, report, facts  the command line, the tables and checks, the machine and versions
workloads, measure      a workload in a process of its own, a command with all its processes
"""
