"""How files are written, in words: what was told, and what was found out."""

from __future__ import annotations

from collections.abc import Iterator

from acep_approx.events.reading.layout import DELIMITERS
from acep_approx.events.roles import ZONE_OF_LETTERS
from acep_approx.events.source import Source

FORMATS = {
    "parquet": "Parquet",
    "csv": "CSV",
    "jsonl": "JSON lines",
    "json": "JSON",
    "lines": "lines of a log",
}
SIGNS = {sign: name for name, sign in DELIMITERS.items() if name.isalpha()}


def layout_words(source: Source, files: int) -> Iterator[str]:
    """How the files of a source are written, and what of its columns may not be expected; ``files`` is their number.

    Examples
    --------
    >>> from acep_approx.events import open_source
    >>> list(layout_words(open_source([{"ts": 1}]), 0))
    []
    """
    found = source.understood
    if found is None:
        yield from source.notes
        return
    format_ = FORMATS.get(found.format, found.format)
    yield f"{files} files, the first of them {format_}" if files > 1 else format_
    if found.delimiter is not None:
        name = SIGNS.get(found.delimiter)
        yield f"delimiter {found.delimiter!r}" + (f" ({name})" if name else "")
    if found.encoding is not None:
        yield f"encoding {found.encoding}"
    if found.compression is not None:
        yield f"compressed with {found.compression}"
    if found.header is False:
        yield "no header"
    yield from (note for note in source.notes if not note.startswith(("encoding ", "delimiter ")))
    for name, fitting in found.open_times.items():
        if len(fitting) == 1 and "%Z" in fitting[0]:
            yield f"{name} stays text, because its times end in letters that may name several zones: {ZONE_OF_LETTERS}"
        elif len(fitting) == 1:
            yield f"{name} stays text, because its times ({fitting[0]}) have no year: say --time-year, such as 2013"
        else:
            yield f"{name} stays text, because it fits more than one format of times: " + " or ".join(
                f"--time-format '{text}'" for text in fitting
            )
