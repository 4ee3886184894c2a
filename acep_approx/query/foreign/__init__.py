"""Queries in other languages, and common slips: translated or repaired for the hint of an error."""
