"""Entity typing and relation classification (sections 4.1 and 4.2 of the paper).

entity_typing, relation_classification   the tasks
examples   their files      markers   mentions between markers, the head over them
"""
