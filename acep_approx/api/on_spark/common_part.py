"""States of shards without what the job says anyway: ids and constants of queries, which are the same in all shards.

Otherwise each of 16 shards would keep, read and write 100,000 queries with each micro-batch, whatever came.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from acep_approx.archive import Scope
from acep_approx.errors import DataError

LARGE, LONG = 1 << 12, 1 << 8
"""Bytes of an array, and items of a list, below which it is kept all the same: a small state needs nothing else."""
OMITTED = "as in the job"
"""In the head of a scope: names of arrays and of values of the head that are not in it."""
DIGEST = "digest of the job"
"""In the head of the whole: of all that could be left out."""


@dataclass(frozen=True)
class CommonPart:
    """What a state may leave out.

    Parameters
    ----------
    scope : Scope
        Of the queries of a job, before any event.
    digest : str
    """

    scope: Scope
    digest: str

    @classmethod
    def of(cls, scope: Scope) -> Self:
        """Take the large parts of a state before any event."""
        return cls(scope, _digest(scope))

    def omit(self, state: Scope) -> None:
        """Take out of a state what is the same here."""
        if _omit(state, self.scope):
            state.head[DIGEST] = self.digest

    def fill(self, state: Scope) -> None:
        """Put into a state what was left out.

        Raises
        ------
        DataError
            ``ACEP-S011``: it was another part that was left out.
        """
        if state.head.pop(DIGEST, self.digest) != self.digest:
            raise DataError(
                "the checkpoint is of another version, which keeps the constants of queries in another order",
                code="ACEP-S011",
                hint="go on with the version that wrote it, or start the query with a new checkpoint directory",
            )
        _fill(state, self.scope)


def _omit(state: Scope, common: Scope) -> bool:
    """Returns whether anything is left out."""
    arrays = [name for name, array in _large(common) if _equal(array, state.arrays.get(name))]
    heads = [name for name, value in _long(common) if value == state.head.get(name)]
    for name in arrays:
        del state.arrays[name]
    for name in heads:
        del state.head[name]
    if arrays or heads:
        state.head[OMITTED] = [arrays, heads]
    inner = [_omit(part, common.parts[name]) for name, part in state.parts.items() if name in common.parts]
    return bool(arrays or heads) or any(inner)


def _fill(state: Scope, common: Scope) -> None:
    arrays, heads = state.head.pop(OMITTED, ((), ()))
    state.arrays |= {name: common.arrays[name].copy() for name in arrays}
    state.head |= {name: common.head[name] for name in heads}
    for name, part in state.parts.items():
        if name in common.parts:
            _fill(part, common.parts[name])


def _large(scope: Scope) -> Iterator[tuple[str, Any]]:
    return ((name, array) for name, array in scope.arrays.items() if array.nbytes >= LARGE)


def _long(scope: Scope) -> Iterator[tuple[str, Any]]:
    return ((name, value) for name, value in scope.head.items() if isinstance(value, list) and len(value) >= LONG)


def _equal(one: Any, other: Any) -> bool:
    return other is not None and one.dtype == other.dtype and np.array_equal(one, other)


def _digest(scope: Scope) -> str:
    found = hashlib.sha256()
    for name, array in _large(scope):
        found.update(name.encode())
        found.update(np.ascontiguousarray(array).data)
    for name, value in _long(scope):
        found.update(json.dumps([name, value]).encode())
    for name, part in scope.parts.items():
        found.update(f"{name} {_digest(part)}".encode())
    return found.hexdigest()[:16]
