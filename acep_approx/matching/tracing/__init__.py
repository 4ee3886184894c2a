"""Compressed and partial matches, and what runs went through."""
