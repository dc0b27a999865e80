"""What stages need of the machine.

beam, spark  the engines
devices      torch devices
hub          models by name
workers      stages side by side, in processes
disk         scratch, free space
"""
