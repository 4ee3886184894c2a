"""How a program is split among the shards of a job; one source of the words for logs and for ``explain``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from acep_approx.spark.worker.job import Part

if TYPE_CHECKING:
    import pyarrow as pa

    from acep_approx.events.roles import Roles
    from acep_approx.spark.worker.program import Program


def parts_of(program: Program, roles: Roles, shards: int, schema: pa.Schema | None = None) -> tuple[Part, ...]:
    """Return the parts of a program: those with keys have so many shards each, of the others each has one.

    Parameters
    ----------
    program : Program
    roles : Roles
    shards : int
    schema : pyarrow.Schema, optional
        Of the events, where it is known: of queries in CEL keys may depend on types.
    """
    found: list[Part] = []
    for one in program.divided(roles, shards):
        split = one.split(roles, schema)
        found.append(Part(one, split.keys, shards if split.keys else 1, is_copy=bool(found), why=split.why))
    return tuple(found)


def split_words(parts: Sequence[Part]) -> Iterator[str]:
    """Yield what to say of how a program is split, and why."""
    first = [part for part in parts if not part.stage.is_second]
    if len(first) > 1:
        yield f"the job has {len(first):,} parts, and each event goes to every part"
    for part in parts:
        whose = f"{part.program.words}: " if len(parts) > 1 else "all events are "
        apart = f"matched apart by {', '.join(part.keys)}" if part.keys else "matched in one task"
        yield f"{whose}{apart}: {part.why}"
