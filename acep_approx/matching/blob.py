"""A JSON header and flat arrays as one string of bytes: no archive, no checksums, no copies but one.

Layout: eight bytes that say what it is; the length of the header in eight bytes; the header, as UTF-8; then the arrays,
one after the other. All begin at multiples of eight. ``arrays`` of the header has the name, type and length of each.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

MAGIC = b"acep-st\n"
WORD = len(MAGIC)
TYPES = ("int64", "uint8")
"""What arrays may hold."""


def joined(header: dict[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> bytes:
    """A header and arrays as bytes.

    Parameters
    ----------
    header : dict
        As JSON allows.
    arrays : mapping of str to array
        Flat ones, of a type of ``TYPES``.

    Complexity: O(bytes).

    Examples
    --------
    >>> header, arrays = split(joined({"format": 7}, {"rows": np.arange(3), "text": np.array([65], np.uint8)}))
    >>> header["format"], arrays["rows"].tolist(), arrays["text"].tolist()
    (7, [0, 1, 2], [65])
    """
    shapes = [[name, TYPES.index(array.dtype.name), array.size] for name, array in arrays.items()]
    text = json.dumps({**header, "arrays": shapes}, separators=(",", ":")).encode()
    parts: list[Any] = [MAGIC, len(text).to_bytes(WORD, "little"), text, bytes(-len(text) % WORD)]
    for array in arrays.values():
        parts += [np.ascontiguousarray(array).data, bytes(-array.nbytes % WORD)]
    return b"".join(parts)


def split(blob: bytes) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """What ``joined`` put together; the arrays can be written to.

    Raises
    ------
    ValueError
        It was not put together so, or is not whole.
    """
    held = bytearray(blob)
    if held[:WORD] != MAGIC:
        raise ValueError("this does not begin as it should")
    length = int.from_bytes(held[WORD : 2 * WORD], "little")
    header = json.loads(held[2 * WORD : 2 * WORD + length])
    at = 2 * WORD + length + -length % WORD
    arrays = {}
    for name, type_, size in header.pop("arrays"):
        kind = np.dtype(TYPES[type_])
        arrays[name] = np.frombuffer(held, kind, size, at)
        at += size * kind.itemsize + -(size * kind.itemsize) % WORD
    if at != len(held):
        raise ValueError("there are more or fewer bytes than the header says")
    return header, arrays
