"""Kernels of the search for matches, backwards from where they can end."""
