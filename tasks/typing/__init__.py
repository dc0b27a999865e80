"""Entity typing (Open Entity).

entity_typing  the task
"""
