"""Fields of JSON that are text in one line and a list or an object in another: the latter as their JSON text."""

from __future__ import annotations

import json
import re

from acep_approx.events.reading.nested import Path

_CHANGED = re.compile(r"Column\(/(.*?)\) changed from (string|array|object) to (string|array|object)")
_BLANKS = re.compile(r"[ \t\r\n]*")
_decode = json.JSONDecoder().raw_decode


def mixed_column(message: str) -> Path | None:
    """Of the parser's message: the field that is text and a list or an object; None if it says something else."""
    found = _CHANGED.search(message)
    if found is None or "string" not in found.groups()[1:]:
        return None
    return tuple(found[1].split("/"))


def with_texts(data: bytes, path: Path) -> bytes:
    r"""Lines of JSON whose field is a list or an object, with that as text; other lines stay as they are.

    Examples
    --------
    >>> with_texts(b'{"m": [1, "x"], "n": 1.50}\n{"m": "y"}\n', ("m",))
    b'{"m": "[1, \\"x\\"]", "n": 1.50}\n{"m": "y"}\n'
    """
    name = re.escape(json.dumps(path[-1]).encode())
    is_nested = re.compile(name + rb"\s*:\s*[\[{]")
    lines = data.splitlines(keepends=True)
    return b"".join(_with_text(line, path) if is_nested.search(line) else line for line in lines)


def _with_text(line: bytes, path: Path) -> bytes:
    text = line.decode()
    try:
        begin, end = _span(text, _BLANKS.match(text, 0).end(), path)  # type: ignore[union-attr]
    except (ValueError, IndexError):  # which the parser refuses
        return line
    return (text[:begin] + json.dumps(text[begin:end], ensure_ascii=False) + text[end:]).encode() if end else line


def _span(text: str, place: int, path: Path) -> tuple[int, int]:
    """Where the list or object of a field begins and ends; (0, 0) where it is something else."""
    place = _behind(text, place + 1)
    while text[place] == '"':
        key, place = _decode(text, place)
        begin = _behind(text, _behind(text, place) + 1)
        value, end = _decode(text, begin)
        if key == path[0]:
            if len(path) > 1:
                return _span(text, begin, path[1:]) if isinstance(value, dict) else (0, 0)
            return (begin, end) if isinstance(value, list | dict) else (0, 0)
        place = _behind(text, _behind(text, end) + 1)
    return 0, 0


def _behind(text: str, place: int) -> int:
    """The place behind blanks."""
    found = _BLANKS.match(text, place)
    return place if found is None else found.end()
