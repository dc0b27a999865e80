"""Speed, memory and quality of the project beside others.

README.md  each benchmark: its command, and what is counted
corpus     from the dump to the shards
model      training
tasks      fine-tuning and what it reads, linking
evidence   what entities are worth
harness    what all share
results    dated results
"""
