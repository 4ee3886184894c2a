"""Archives taken apart and put together again, with something else in them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from acep_approx.archive import DIGEST, MAGIC, WORD, Kind, Scope


def kind_of(archive: bytes) -> Kind:
    """The kind that stands in an archive."""
    content = archive[len(MAGIC) + DIGEST :]
    length = int.from_bytes(content[:WORD], "little")
    return Kind(json.loads(content[WORD : WORD + length])["kind"])


def opened(archive: bytes) -> Scope:
    """What an archive of any kind holds."""
    return kind_of(archive).unpack(archive)


def scopes(scope: Scope, path: str = "") -> Iterator[tuple[str, Scope]]:
    """The scope and all parts of it, by where they are."""
    yield path, scope
    for name, part in scope.parts.items():
        yield from scopes(part, f"{path}/{name}")


def arrays_of(archive: bytes) -> dict[str, Any]:
    """All arrays of an archive, by where they are."""
    found = scopes(opened(archive))
    return {f"{path}/{name}": array for path, one in found for name, array in one.arrays.items()}
