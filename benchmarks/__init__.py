"""Benchmarks that measure the project beside others; README.md says what each one counts.

A script runs its workloads in processes of their own; `harness` has what all scripts share.
"""
