"""The parts that all benchmarks share: options, workloads, measures of a command, facts of the machine, reports."""
