"""Archives: what is kept between runs, as bytes under one digest. Each component saves itself to a scope of its own.

A scope has a head (JSON), arrays and Arrow tables by name, and scopes of its own for the parts of the component; never
pickle. Layout: eight bytes that say what it is; the SHA-256 of what follows; the length of the header in eight bytes;
the header as JSON in UTF-8: the format, the kind, and all scopes, with names, types and shapes of their arrays; then
the arrays, one after the other. All begin at multiples of eight.

A state holds indices that kernels follow without looking, so the digest is checked before anything else. It tells that
bytes have changed by accident. Somebody who can write a file can also make its digest anew, so numbers are believed
only within the ranges that the components which use them say (``ranges``).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
import pyarrow as pa

from acep_approx.errors import DataError
from acep_approx.ipc import from_ipc, to_ipc
from acep_approx.ranges import COUNT, DamagedError, Range, check, check_arrays, number_in, reading

FORMAT = 10
"""Changes when the layout does, or what anything of any kind of archive means."""
MAGIC = b"ACEPARC\n"
OLDER = (b"acepst2\n", b"acep-st\n")
"""What the bytes of earlier versions begin with. Each kind had a layout of its own; all formats had lower numbers."""
DIGEST = hashlib.sha256().digest_size
WORD = 8
TYPES = ("int64", "uint8", "float64", "bool")
"""What arrays may hold."""
Head = dict[str, Any]
"""As JSON allows."""


@dataclass
class Scope:
    """What one component keeps.

    Attributes
    ----------
    head : dict
        As JSON allows.
    arrays : dict of str to array
        Of a type of ``TYPES``; those of an archive that was read can be written to.
    parts : dict of str to Scope
        What the parts of the component keep.
    """

    head: Head = field(default_factory=dict)
    arrays: dict[str, Any] = field(default_factory=dict)
    parts: dict[str, Scope] = field(default_factory=dict)

    def sub(self, name: str, head: Head | None = None, arrays: Mapping[str, Any] | None = None) -> Scope:
        """Add the scope of a part, with what it keeps if that is known already."""
        made = self.parts[name] = Scope(head or {}, {**(arrays or {})})
        return made

    def put(self, name: str, value: Any) -> None:
        """Keep an array, bytes, a table, a batch of rows or a schema; of tables and arrays nothing is copied yet."""
        if isinstance(value, pa.RecordBatch):
            value = pa.Table.from_batches([value])
        elif isinstance(value, pa.Schema):
            value = value.empty_table()
        if isinstance(value, pa.Table):
            value = to_ipc(value)
        self.arrays[name] = np.frombuffer(value, np.uint8) if isinstance(value, bytes) else value

    def number(self, name: str, low: int = 0, end: int = COUNT) -> int:
        """Return a whole number of the head, ``low <= number < end``.

        Raises
        ------
        DamagedError, LookupError
        """
        return number_in(name, self.head[name], low, end)

    def array(self, name: str, wanted: Range = Range()) -> Any:  # noqa: B008  (it is immutable)
        """Return an array that is as its range says.

        Raises
        ------
        DamagedError
        """
        check_arrays(self.arrays, {name: wanted})
        return self.arrays[name]

    def table(self, name: str) -> pa.Table:
        """Return a table; nothing is copied.

        Raises
        ------
        pyarrow.ArrowInvalid, LookupError
        """
        return from_ipc(self.arrays[name])

    def batch(self, name: str) -> pa.RecordBatch:
        """Return the rows of a table as one batch."""
        table = self.table(name).combine_chunks()
        batches = table.to_batches()
        return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=table.schema)

    @property
    def words(self) -> int:
        """How many words the arrays have, those of parts too: nothing that was saved is larger than what holds it."""
        of_parts = sum(part.words for part in self.parts.values())
        return int(sum(array.nbytes // WORD for array in self.arrays.values())) + of_parts

    def _described(self, arrays: list[Any]) -> Head:
        """Return what the header of an archive says of it; all its arrays are added to ``arrays``."""
        shapes = [[name, TYPES.index(array.dtype.name), *array.shape] for name, array in self.arrays.items()]
        arrays += map(np.ascontiguousarray, self.arrays.values())
        parts = {name: part._described(arrays) for name, part in self.parts.items()}
        return {"head": self.head, "arrays": shapes, "parts": parts}


def not_as_written() -> DamagedError:
    """Return the error of bytes that are no archive, or have changed."""
    return DamagedError("these bytes are not those that were written")


def of_other_format(theirs: str) -> DamagedError:
    """Return the error of bytes that another version wrote."""
    return DamagedError(f"these bytes have {theirs}, this version reads format {FORMAT}")


@dataclass(frozen=True)
class Kind:
    """A kind of archive, and what is wrong with bytes that are none of it.

    Parameters
    ----------
    name : str
        What it holds; stands in the header.
    damaged : callable
        Makes the error of bytes that are no such archive, or not as they were written. Default: ``DamagedError``.
    other_format : callable
        Makes the error of one that another version wrote: it is given ``"format 12"`` or ``"the older format 9"``.

    Examples
    --------
    >>> kind, scope = Kind("rows"), Scope({"name": "größe"})
    >>> scope.sub("engine", {"runs": 7}).put("table", pa.table({"x": [1, 2]}))
    >>> scope.put("rows", np.arange(3))
    >>> again = kind.unpack(kind.pack(scope))
    >>> again.head, again.array("rows", Range(3, 0, 3)).tolist(), again.parts["engine"].number("runs", 0, 10)
    ({'name': 'größe'}, [0, 1, 2], 7)
    >>> again.parts["engine"].table("table").to_pydict()
    {'x': [1, 2]}
    """

    name: str
    damaged: Callable[[], Exception] = not_as_written
    other_format: Callable[[str], Exception] = of_other_format

    def pack(self, scope: Scope) -> bytes:
        """Return a scope as bytes. Complexity: O(bytes), which are copied once; a second for about 600 MB."""
        arrays: list[Any] = []
        header = {"format": FORMAT, "kind": self.name, "scope": scope._described(arrays)}
        text = json.dumps(header, separators=(",", ":")).encode()
        parts: list[Any] = [len(text).to_bytes(WORD, "little"), text, bytes(-len(text) % WORD)]
        for array in arrays:
            parts += [array.data, bytes(-array.nbytes % WORD)]
        digest = hashlib.sha256()
        for part in parts:
            digest.update(part)
        return b"".join([MAGIC, digest.digest(), *parts])

    def unpack(self, archive: Any) -> Scope:
        """Return the scope that was packed: a copy of it, so that its arrays can be written to.

        Raises
        ------
        Exception
            What ``damaged`` or ``other_format`` give.
        """
        with self.reading():
            held = memoryview(bytearray(memoryview(archive)))
            is_older = bytes(held[: len(MAGIC)]) in OLDER
            if not is_older:
                content = held[len(MAGIC) + DIGEST :]
                check("digest", good=held[: len(MAGIC) + DIGEST] == MAGIC + hashlib.sha256(content).digest())
                length = int.from_bytes(content[:WORD], "little")
                header = json.loads(bytes(content[WORD : WORD + length]))
                check("kind", good=header["kind"] == self.name)
                theirs = header["format"]
                if theirs == FORMAT:
                    return _opened(header["scope"], _Cursor(content, WORD + length + -length % WORD))
        if is_older:
            raise self.other_format(f"the older format less than {FORMAT}")
        is_older = isinstance(theirs, int) and theirs < FORMAT
        raise self.other_format(f"{'the older format' if is_older else 'format'} {theirs}")

    def reading(self) -> AbstractContextManager[None]:
        """Read what an archive holds: whatever goes wrong because something else stands there is ``damaged``."""
        return reading(self.damaged)


@dataclass
class _Cursor:
    """Where the next array begins."""

    content: memoryview
    at: int

    def next(self, type_: int, shape: list[int]) -> Any:
        """Return the next array.

        Raises
        ------
        DamagedError, ValueError, TypeError
        """
        kind = np.dtype(TYPES[number_in("type", type_, 0, len(TYPES))])
        check("shape", good=shape and all(type(size) is int and size >= 0 for size in shape))
        found = np.frombuffer(self.content, kind, prod(shape), self.at).reshape(shape)
        self.at += found.nbytes + -found.nbytes % WORD
        check("bool", good=kind != np.bool_ or (found.view(np.uint8) <= 1).all())
        return found


def _opened(described: Head, cursor: _Cursor) -> Scope:
    """Return the scope that a header describes."""
    head, arrays, parts = described["head"], described["arrays"], described["parts"]
    check("head", good=isinstance(head, dict))
    found = {name: cursor.next(type_, shape) for name, type_, *shape in arrays}
    return Scope(head, found, {name: _opened(part, cursor) for name, part in parts.items()})


# --- errors of states ---------------------------------------------------------------------------------------

START_AGAIN = "take a copy that is whole, or start from the beginning"


def damaged_state(of: str, hint: str = START_AGAIN) -> DataError:
    """Return the error that bytes are no state, or not as they were written (``ACEP-D040``).

    Parameters
    ----------
    of : str
        Of what.
    hint : str
    """
    return DataError(
        f"these bytes are not the state of {of}, or not all as they were written", code="ACEP-D040", hint=hint
    )


def damaged_part(what: str) -> DataError:
    """Return the error that something of a state, in the plural, is not as it was written (``ACEP-D040``)."""
    return DataError(
        f"{what} are not as they were written", code="ACEP-D040", hint="take a copy that is whole, or start anew"
    )


def state_of_other_format(theirs: str) -> DataError:
    """Return the error that another version wrote a state (``ACEP-D041``)."""
    return DataError(
        f"the state has {theirs}, this version reads format {FORMAT}",
        code="ACEP-D041",
        hint="go on with the version that wrote it, or start from the beginning",
    )
