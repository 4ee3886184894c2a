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

FORMAT = 13
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
Differences = Mapping[str, tuple[Any, Any]]
"""What an archive is of, and what it should be of, by name, where these are not the same."""


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
        arrays += map(np.ascontiguousarray, self.arrays.values())
        parts = {name: part._described(arrays) for name, part in self.parts.items()}
        return {"head": self.head, "arrays": [*self.arrays], "parts": parts}


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
    another : callable
        Makes the error of one that is of something else, such as another query: it is given what differs.

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
    another: Callable[[Differences], Exception] = lambda _: not_as_written()

    def pack(self, scope: Scope) -> bytes:
        """Return a scope as bytes. Complexity: O(bytes), which are copied once; a second for about 600 MB."""
        arrays: list[Any] = []
        described = scope._described(arrays)
        shapes = [[TYPES.index(array.dtype.name), *array.shape] for array in arrays]
        header = {"format": FORMAT, "kind": self.name, "arrays": shapes, "scope": described}
        text = json.dumps(header, separators=(",", ":")).encode()
        parts: list[Any] = [len(text).to_bytes(WORD, "little"), text, bytes(-len(text) % WORD)]
        for array in arrays:
            parts += [array.data, bytes(-array.nbytes % WORD)]
        digest = hashlib.sha256()
        for part in parts:
            digest.update(part)
        return b"".join([MAGIC, digest.digest(), *parts])

    def unpack(self, archive: Any, of: Mapping[str, Any] | None = None) -> Scope:
        """Return the scope that was packed: a copy of it, so that its arrays can be written to.

        Parameters
        ----------
        archive : bytes
        of : mapping of str to JSON, optional
            What it must be of: what its head has under ``of``.

        Raises
        ------
        Exception
            What ``damaged``, ``other_format`` or ``another`` give.
        """
        scope = self._whole(archive)
        with self.reading():
            of, theirs = of or {}, scope.head["of"] if of else {}
            different = {name: (theirs.get(name), ours) for name, ours in of.items() if theirs.get(name) != ours}
        if different:
            raise self.another(different)
        return scope

    def _whole(self, archive: Any) -> Scope:
        with self.reading():
            held = memoryview(bytearray(memoryview(archive)))
            content, theirs, is_older = held[len(MAGIC) + DIGEST :], f"less than {FORMAT}", True
            if bytes(held[: len(MAGIC)]) not in OLDER:
                check("digest", good=held[: len(MAGIC) + DIGEST] == MAGIC + hashlib.sha256(content).digest())
                length = int.from_bytes(content[:WORD], "little")
                header = json.loads(bytes(content[WORD : WORD + length]))
                check("kind", good=header["kind"] == self.name)
                theirs = header["format"]
                if theirs == FORMAT:
                    arrays = _arrays(content, WORD + length + -length % WORD, header["arrays"])
                    return _opened(header["scope"], arrays[::-1])
                is_older = type(theirs) is int and theirs < FORMAT
        raise self.other_format(f"{'the older format' if is_older else 'format'} {theirs}")

    def reading(self) -> AbstractContextManager[None]:
        """Read what an archive holds: whatever goes wrong because something else stands there is ``damaged``."""
        return reading(self.damaged)


def _arrays(content: memoryview, at: int, shapes: list[list[int]]) -> list[Any]:
    """Return the arrays that begin at a place, by their types and shapes."""
    found = []
    for type_, *shape in shapes:
        check("shape", good=shape and all(type(size) is int and size >= 0 for size in shape))
        array: Any = np.frombuffer(content, TYPES[type_], prod(shape), at).reshape(shape)
        check("bool", good=array.dtype != np.bool_ or (array.view(np.uint8) <= 1).all())
        found.append(array)
        at += array.nbytes + -array.nbytes % WORD
    return found


def _opened(described: Head, arrays: list[Any]) -> Scope:
    """Return the scope that a header describes; its arrays are taken from the end of ``arrays``."""
    head, names, parts = described["head"], described["arrays"], described["parts"]
    check("head", good=isinstance(head, dict))
    mine = {name: arrays.pop() for name in names}
    return Scope(head, mine, {name: _opened(part, arrays) for name, part in parts.items()})


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
