"""A learner as bytes, to go on after a restart: an archive.

What a learner and its parts save are dicts of numbers, texts, arrays, and such dicts of their own parts: a scope each.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from acep_approx.archive import Kind, Scope
from acep_approx.learning.learner import Learner
from acep_approx.ranges import check, reading

LEARNER = Kind("learner")


def learner_to_bytes(learner: Learner | None, header: dict[str, Any]) -> bytes:
    """A learner, and what the caller wants to keep, as JSON. Complexity: O(tests that are kept)."""
    scope = Scope({"caller": header})
    if learner is not None:
        scope.parts["learner"] = _scope_of(learner.save())
    return LEARNER.pack(scope)


def learner_of(raw: bytes, learner: Learner | None) -> dict[str, Any]:
    """Restore a new learner to what ``learner_to_bytes`` wrote; returns the caller's header.

    Raises
    ------
    ValueError
        Not such bytes, or those of a learner of another query.
    """
    scope = LEARNER.unpack(raw)
    with reading(lambda: ValueError("these bytes are not those of a learner, or of one of another query")):
        check("learner", good=("learner" in scope.parts) == (learner is not None))
        if learner is not None:
            learner.load(_saved_in(scope.parts["learner"]))
        return dict(scope.head["caller"])


def _scope_of(saved: dict[str, Any]) -> Scope:
    scope = Scope()
    for name, value in saved.items():
        if isinstance(value, dict):
            scope.parts[name] = _scope_of(value)
        elif isinstance(value, np.ndarray):
            scope.arrays[name] = value
        else:
            scope.head[name] = value
    return scope


def _saved_in(scope: Scope) -> dict[str, Any]:
    return {**scope.head, **scope.arrays, **{name: _saved_in(part) for name, part in scope.parts.items()}}
