"""Rows of results as messages of Kafka: their keys, and what readers know duplicates by."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

import pyarrow as pa

from acep_approx.events.writing.tables import plain_text

MATCH = "acep_match"
"""The header of a message that is the same when it comes again."""


def match_id(value: bytes, before: int = 0) -> str:
    """Return what a row is known by.

    Parameters
    ----------
    value : bytes
        The message.
    before : int
        How many equal ones come before it, where they are told apart.

    Examples
    --------
    >>> match_id(b"row") == match_id(b"row"), match_id(b"row") == match_id(b"row", 1), len(match_id(b"row"))
    (True, False, 32)
    """
    return hashlib.blake2b(value, digest_size=16, salt=before.to_bytes(16, "big")).hexdigest()


def keys_of(table: pa.Table, columns: Sequence[str]) -> pa.Array:
    """Return the keys of messages: the text of one column, or those of several as a JSON array.

    Parameters
    ----------
    table : pyarrow.Table
    columns : sequence of str
        Those that are not there are passed over; without any, messages have no key.

    Examples
    --------
    >>> rows = pa.table({"shop": ["one", None], "n": [5, 7]})
    >>> keys_of(rows, ["n"]).to_pylist(), keys_of(rows, ["shop", "n"]).to_pylist(), keys_of(rows, ["x"]).to_pylist()
    (['5', '7'], ['["one", "5"]', '[null, "7"]'], [None, None])
    """
    there = [name for name in columns if name in table.column_names]
    texts = [plain_text(table.column(name).combine_chunks(), ", ").to_pylist() for name in there]
    if not texts:
        return pa.nulls(len(table), pa.string())
    if len(texts) == 1:
        return pa.array(texts[0], pa.string())
    return pa.array([json.dumps(key, ensure_ascii=False) for key in zip(*texts, strict=True)], pa.string())
