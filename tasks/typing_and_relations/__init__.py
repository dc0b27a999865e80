"""Entity typing and relation classification (sections 4.1 and 4.2 of the paper).

entity_typing, relation_classification  the tasks
relation_format                         files of relations
examples                                mentions and predictions in records
markers                                 mentions between markers, the head over them
"""
