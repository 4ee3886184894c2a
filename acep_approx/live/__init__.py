"""Runs that last: where they stood is kept in a folder, from which they go on after a stop."""

from __future__ import annotations
