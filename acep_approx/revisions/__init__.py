"""Streams that are late, revised and taken back: what was put out follows every change of the events."""
