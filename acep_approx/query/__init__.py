"""What to look for: the query language, from text or from Python, to a tree that is checked and typed.

``parser`` reads text, ``builder`` makes the same tree in Python, ``printer`` writes it back, ``checks`` and
``types`` refuse what makes no sense, ``predicates`` and ``evaluate`` are for those who run the query.
"""
