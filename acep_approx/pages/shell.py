"""The shell of every page: one file of HTML with its style, its data and its script, which loads nothing."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from acep_approx.diagrams.colours import variables
from acep_approx.events.writing.outfile import check_name, refusing, whole_file
from acep_approx.visible import escape, printable
from history.places import place_of

CLOSING = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"})
"""What must not stand in a script, as JSON writes it otherwise."""
POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
"""What a page may load: nothing."""


def page(
    title: str,
    sections: Iterable[str],
    *,
    sheets: Sequence[str] = (),
    script: str | None = None,
    data: Mapping[str, Any] | None = None,
) -> str:
    """A whole page.

    Parameters
    ----------
    title : str
        Plain text.
    sections : iterable of str
        HTML, already escaped.
    sheets : sequence of str
        More style sheets: files of this package, e.g. ``"explorer.css"``.
    script : str, optional
        Its script, a file of this package, too.
    data : mapping, optional
        What the script reads: plain values, written once as JSON in the element ``data``.

    Returns
    -------
    str
        HTML that needs no other file and no network. The same for the same arguments.
    """
    style = "\n".join([variables(":root"), *(part_of_page(name) for name in ("page.css", *sheets))])
    body = "\n".join(sections)
    scripts = "" if data is None else f'<script type="application/json" id="data">{json_text(data)}</script>\n'
    if script is not None:
        scripts += f"<script>\n{part_of_page(script)}</script>\n"
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        f"<title>{escape(title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n<main>\n"
        f"{body}\n</main>\n{scripts}</body>\n</html>\n"
    )


def part_of_page(name: str) -> str:
    """A style sheet or a script of this package."""
    place = files("acep_approx.pages")
    for part in name.split("/"):
        place = place / part
    return place.read_text(encoding="utf-8")


def json_text(data: Any) -> str:
    r"""Plain values as JSON that may stand in an element ``script``, whatever is in them.

    Examples
    --------
    >>> print(json_text({"a": "</script>"}))
    {"a":"\u003c/script\u003e"}
    """
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return printable(text).translate(CLOSING)


def facts(shown: Iterable[tuple[str, str]]) -> str:
    """Names with what they stand for; plain text."""
    return "<dl>" + "".join(f"<dt>{escape(name)}</dt><dd>{escape(fact)}</dd>" for name, fact in shown) + "</dl>"


def write_page(text: str, path: str | Path) -> None:
    """Write a page; the file takes its name when it is whole.

    Raises
    ------
    UsageError
        ``ACEP-U012``: it cannot be written; ``ACEP-U025``: another run is writing it.
    """
    place = place_of(path)
    check_name(place)
    with refusing(place), whole_file(place) as sink:
        sink.write(text.encode())
