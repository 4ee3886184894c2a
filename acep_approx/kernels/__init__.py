"""Loops over flat arrays, which know no query."""
