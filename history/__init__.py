"""Learned history: which situations led to matches before. Nothing is here yet but the name.

Knows match vectors, bundles, rewards and event counts; imports nothing of ``acep_approx``.
"""

__distribution__ = "acep-approx"
