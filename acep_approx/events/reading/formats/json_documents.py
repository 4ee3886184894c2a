"""JSON documents as JSON lines: arrays, objects around an array, and objects over many lines.

Nothing is parsed here: what stands outside of strings and at the depth of the events is found, in whole blocks, and a
line ends there. So arrays of any length are read in little memory, by the parser of JSON lines.
"""

from __future__ import annotations

import json
import re
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import numpy as np

from acep_approx.arrays import Bools, Ints
from acep_approx.errors import DataError
from acep_approx.events.blocks import BYTE_ORDER_MARK

HEAD_BYTES = 1 << 20
"""Of a document that are looked at to see what it is."""
_STEP = np.zeros(256, np.int64)
_STEP[[ord("{"), ord("[")]], _STEP[[ord("}"), ord("]")]] = 1, -1
_IS_SIGN = _STEP != 0
_IS_SIGN[[ord(","), ord("\n"), ord("\r")]] = True
_NEXT_TO = re.compile(rb"\}[ \t]*\{")
_ARRAY_OF_OBJECTS = re.compile(rb'"((?:[^"\\]|\\.)*)"\s*:\s*\[\s*\{')


@dataclass(frozen=True)
class Document:
    """What a JSON document is.

    Parameters
    ----------
    kind : {"lines", "array", "object"}
        One object per line (nothing is to be done); an array of objects; an object that holds one; "objects": objects,
        or one, over many lines.
    begin : int
        Where the array begins.
    key : str, optional
        Under which name an object holds the array.
    """

    kind: str
    begin: int = 0
    key: str | None = None

    @property
    def depth(self) -> int:
        """Objects and arrays that the events stand in."""
        return {"lines": 0, "array": 1, "object": 2, "objects": 0}[self.kind]


def starts_array(head: bytes) -> bool:
    """Whether JSON that begins so is an array."""
    return head.removeprefix(BYTE_ORDER_MARK).lstrip().startswith(b"[")


def is_whole_document(start: bytes) -> bool:
    r"""Whether JSON that begins so is one document rather than an object on each line.

    Of what is still being written only the whole lines tell. A first line that is just cut off is no sign of it.

    Examples
    --------
    >>> is_whole_document(b'[{"ts": 1},'), is_whole_document(b'{"ok": true, "events": [\n'), is_whole_document(b'{\n')
    (True, True, True)
    >>> is_whole_document(b'{"ts": 1, "at": [{"x": 2}]}\n'), is_whole_document(b'{"ts": 1, "ty\n')
    (False, False)
    """
    text = start.removeprefix(BYTE_ORDER_MARK).lstrip()
    if text.startswith(b"["):
        return text[1:].lstrip().startswith(b"{")
    line, end, _ = text.partition(b"\n")
    if not end or not line.startswith(b"{"):
        return False
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return line.rstrip().endswith((b"{", b"["))
    values = list(found.values())  # an event has a time beside its arrays
    return len(values) == 1 and isinstance(values[0], list) and bool(values[0]) and isinstance(values[0][0], dict)


def split_objects(data: bytes) -> bytes:
    r"""Lines of JSON with an end of line between objects that stand on one.

    Examples
    --------
    >>> split_objects(b'{"a": "}{"} {"a": {}}\n{"a": 1}')
    b'{"a": "}{"} \n{"a": {}}\n{"a": 1}'
    """
    array = np.frombuffer(data, np.uint8)
    behind = np.flatnonzero(array[:-1] == ord("}")) + 1
    if (array[behind] == ord("\n")).all() or _NEXT_TO.search(data) is None:  # the first is true of most, and quicker
        return data
    places, depths = Signs().of(data)
    return _with_ends(array, places, depths, ord("\n"))


def has_several_on_a_line(head: bytes) -> bool:
    """Whether several objects stand on the first line of JSON that begins so."""
    line = head.removeprefix(BYTE_ORDER_MARK).lstrip().partition(b"\n")[0]
    return split_objects(line) != line


def _with_ends(array: Any, places: Ints, depths: Ints, before: int) -> bytes:
    """Text with an end of line ahead of each object that follows another one on its line.

    ``before`` is the sign before it.
    """
    signs = array[places]
    ahead = np.concatenate(([before], signs[:-1]))
    follows = (signs == ord("{")) & (depths == 1) & (ahead == ord("}"))
    return bytes(np.insert(array, places[follows], ord("\n")).tobytes()) if follows.any() else bytes(array.tobytes())


def document_of(head: bytes) -> Document:
    """What a document is that begins so.

    Examples
    --------
    >>> document_of(b'[{"ts": 1}]').kind, document_of(b'{"ts": 1}').kind
    ('array', 'objects')
    >>> document_of(b'{"ok": true, "events": [{"ts": 1}]}').key
    'events'
    """
    begin = len(head) - len(head.removeprefix(BYTE_ORDER_MARK).lstrip())
    if head[begin : begin + 1] == b"[":
        return Document("array", begin)
    if head[begin : begin + 1] != b"{":
        return Document("lines")
    signs = Signs()
    places, depths = signs.of(head)
    ends = places[(depths == 0) & (_STEP[np.frombuffer(head, np.uint8)[places]] < 0)]
    end = int(ends[0]) + 1 if len(ends) else len(head)
    if b"\n" not in head[begin:end] and head[end:].strip():
        return Document("objects" if head[end:].lstrip(b" \t\r").startswith(b"{") else "lines")
    for found in _ARRAY_OF_OBJECTS.finditer(head, begin, end):
        opening = head.index(b"[", found.end(1) + 1)
        place = int(np.searchsorted(places, opening))
        if place < len(places) and places[place] == opening and depths[place] == 2:
            return Document("object", opening, json.loads(b'"' + found[1] + b'"'))
    return Document("objects")


class Signs:
    """Brackets, commas and line ends outside of strings, block by block, and how deep they stand."""

    def __init__(self) -> None:
        self.depth = 0
        self._is_inside = False
        self._is_escaped = False

    def of(self, data: bytes) -> tuple[Ints, Ints]:
        """The places of the signs in the next block, and how many objects and arrays are open after each."""
        array = np.frombuffer(data, np.uint8)
        quotes = np.flatnonzero(array == ord('"'))
        if self._is_escaped or b"\\" in data:
            is_escaped, self._is_escaped = escaped(array, quotes, self._is_escaped)
            quotes = quotes[~is_escaped]
        places = np.flatnonzero(_IS_SIGN[array])
        is_inside = (np.searchsorted(quotes, places) + self._is_inside) % 2 == 1
        self._is_inside = (len(quotes) + self._is_inside) % 2 == 1
        places = places[~is_inside]
        depths = self.depth + np.cumsum(_STEP[array[places]])
        self.depth = int(depths[-1]) if len(depths) else self.depth
        return places, depths


def escaped(array: Any, quotes: Ints, is_open: bool = False) -> tuple[Bools, bool]:
    """Which quotes stand after an odd number of backslashes, and whether one behind all would.

    ``is_open``: one at the begin does, as the block before ends so.
    """
    is_other = np.concatenate(([True], array != ord("\\")))  # the one ahead stands for the block before
    others = np.flatnonzero(is_other) - 1
    places = np.append(quotes, len(array))
    last = others[np.searchsorted(others, places) - 1]
    is_odd = (places - last - 1 + (is_open & (last < 0))) % 2 == 1
    return is_odd[:-1], bool(is_odd[-1])


class AsLines(AbstractContextManager["AsLines"]):
    """A JSON document as a stream of JSON lines.

    Parameters
    ----------
    stream : binary file
    document : Document
    name : str
        File name for messages.

    Raises
    ------
    DataError
        While reading: ``ACEP-D013`` the document ends too early; ``ACEP-D037`` an object holds two arrays of events.
    """

    def __init__(self, stream: Any, document: Document, name: str) -> None:
        self._read = getattr(stream, "read1", stream.read)
        self._stream = stream
        self._document = document
        self._name = name
        self._signs = Signs()
        self._place = 0
        self._is_over = False
        self._after = b""
        self._last = 0

    def read(self, size: int = -1) -> bytes:
        """At most so many bytes; none at the end."""
        while data := self._read(size):
            if lines := self._lines(data):
                return lines
        if self._signs.depth > 0:
            raise DataError(
                f"{self._name}: the JSON document ends too early",
                code="ACEP-D013",
                hint="the file seems damaged or cut off: fetch or write it again",
            )
        return b""

    def close(self) -> None:
        """Close the stream."""
        self._stream.close()

    def __exit__(self, *_: object) -> None:
        self.close()

    def _lines(self, data: bytes) -> bytes:
        places, depths = self._signs.of(data)
        array = np.frombuffer(data, np.uint8).copy()
        signs, first = array[places], self._place
        self._place += len(data)
        is_end = (signs == ord("\n")) | (signs == ord("\r"))
        if self._document.kind == "objects":
            array[places[is_end & (depths > 0)]] = ord(" ")
            before = self._last
            self._last = int(signs[-1]) if len(signs) else before
            return _with_ends(array, places, depths, before)
        array[places[is_end]] = ord(" ")
        depth = self._document.depth
        array[places[(signs == ord(",")) & (depths == depth)]] = ord("\n")
        begin = max(self._document.begin - first, -1) + 1  # what stands before the array is left out
        if self._is_over:
            return self._rest(array, data)
        closing = places[(signs == ord("]")) & (depths == depth - 1) & (places >= begin)]
        if not len(closing):
            return array[begin:].tobytes()
        self._is_over = True
        end = int(closing[0])
        return array[begin:end].tobytes() + b"\n" + self._rest(array[end + 1 :], data[end + 1 :])

    def _rest(self, array: Any, data: bytes) -> bytes:
        """What stands after the events: of an array it is what should not be there."""
        if self._document.kind == "array":
            return bytes(array.tobytes()) if data.strip() else b""
        self._after = (self._after + data)[-HEAD_BYTES:]
        if other := _ARRAY_OF_OBJECTS.search(self._after):
            raise DataError(
                f"{self._name}: the object holds two arrays of objects: {self._document.key!r} and "
                f"{other[1].decode(errors='replace')!r}",
                code="ACEP-D037",
                hint=f"take one of them out first, for example: jq -c '.{self._document.key}[]' FILE > NEW.jsonl",
            )
        return b""
