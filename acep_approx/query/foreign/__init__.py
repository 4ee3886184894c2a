"""Texts of other languages, and what is written by who comes from them: how the same is said here."""
