"""Learning while the stream runs. Nothing is here yet but the name.

May import ``history``; imports nothing of ``acep_approx``.
"""

__distribution__ = "acep-approx"
