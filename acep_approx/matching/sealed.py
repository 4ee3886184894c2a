"""Bytes that are kept between runs, under a digest of all of them: nothing is made of bytes that have changed.

Layout: eight bytes that say what it is; the SHA-256 of what follows; what was sealed. A state holds indices that
kernels follow without looking, so the digest is looked at before anything else, and it is one that no change passes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

MAGIC = b"acepst2\n"
UNSEALED = b"acep-st\n"
"""What the bytes of earlier versions, which had no digest, begin with."""
DIGEST = hashlib.sha256().digest_size


class OlderBytesError(ValueError):
    """The bytes are of a version that wrote no digest."""


def sealed(parts: Iterable[Any]) -> bytes:
    """Parts, bytes or the like, one after the other, behind their digest.

    Complexity: O(bytes); a second for about 600 MB.

    Examples
    --------
    >>> bytes(unsealed(sealed([b"some", b"thing"])))
    b'something'
    """
    parts = [*parts]
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return b"".join([MAGIC, digest.digest(), *parts])


def unsealed(whole: Any) -> memoryview:
    """What was sealed: a copy that can be written to.

    Raises
    ------
    OlderBytesError
        They were written by an earlier version.
    ValueError
        They are not the bytes that ``sealed`` gave.
    """
    try:
        held = memoryview(bytearray(memoryview(whole)))
    except TypeError as error:
        raise ValueError("these are no bytes") from error
    if held[: len(UNSEALED)] == UNSEALED:
        raise OlderBytesError("these bytes have no digest")
    content = held[len(MAGIC) + DIGEST :]
    if held[: len(MAGIC) + DIGEST] != MAGIC + hashlib.sha256(content).digest():
        raise ValueError("these bytes are not those that were written")
    return content
