"""Compiled loops over flat arrays, which know no query."""
