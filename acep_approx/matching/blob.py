"""A JSON header and flat arrays as one string of bytes: no archive, no copies but one.

Layout, behind the digest of ``sealed``: the length of the header in eight bytes; the header, as UTF-8; then the arrays,
one after the other. All begin at multiples of eight. ``arrays`` of the header has the name, type and length of each.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from acep_approx.matching.sealed import sealed, unsealed

WORD = 8
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
    parts: list[Any] = [len(text).to_bytes(WORD, "little"), text, bytes(-len(text) % WORD)]
    for array in arrays.values():
        parts += [np.ascontiguousarray(array).data, bytes(-array.nbytes % WORD)]
    return sealed(parts)


def split(blob: bytes) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """What ``joined`` put together; the arrays can be written to.

    Raises
    ------
    OlderBytesError
        An earlier version wrote it.
    ValueError
        It was not put together so, or is not whole.
    """
    held = unsealed(blob)
    length = int.from_bytes(held[:WORD], "little")
    at = WORD + length + -length % WORD
    arrays = {}
    try:
        header = json.loads(bytes(held[WORD : WORD + length]))
        for name, type_, size in header.pop("arrays"):
            kind = np.dtype(TYPES[type_])
            arrays[name] = np.frombuffer(held, kind, size, at)
            at += size * kind.itemsize + -(size * kind.itemsize) % WORD
    except (LookupError, TypeError, RecursionError) as error:
        raise ValueError("something else was sealed") from error
    return header, arrays
