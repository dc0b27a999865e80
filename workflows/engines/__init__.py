"""What stages need of the machine.

beam, spark  the engines
devices      torch devices
workers      stages side by side, in processes
disk         scratch, free space
"""
