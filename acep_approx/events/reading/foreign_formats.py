"""Files that hold no events as text or Parquet: what they are, told from their first bytes, and what to do instead."""

from __future__ import annotations

import re

from acep_approx.errors import DataError

_PANDAS = "write it as Parquet in Python: pandas.{read}.to_parquet('events.parquet'); or give the frame to query.match"
_CAPTURE = "write it as CSV: tshark -r FILE -T fields -E header=y -E separator=, -e frame.time_epoch -e ip.src > p.csv"
_ROWS = "write its elements as rows, in Python: pandas.read_xml('FILE').to_csv('events.csv', index=False)"
_XES = "write it as CSV, in Python: pm4py.convert_to_dataframe(pm4py.read_xes('FILE')).to_csv('events.csv')"
_BINARY = (
    (
        b"SQLite format 3\x00",
        "a database of SQLite",
        "write a table of it as CSV: sqlite3 -header -csv FILE 'SELECT * FROM events ORDER BY ts' > events.csv",
    ),
    (b"\x89HDF\r\n\x1a\n", "a file of HDF5", _PANDAS.format(read="read_hdf(FILE)")),
    (b"ORC", "a file of ORC", _PANDAS.format(read="read_orc(FILE)")),
    (b"ARROW1", "a file of Arrow (Feather)", _PANDAS.format(read="read_feather(FILE)")),
    (b"Obj\x01", "a file of Avro", "write it as Parquet or JSON lines"),
    (b"\x93NUMPY", "an array of numpy", "give it to query.match in Python: numpy.load(FILE), with names of columns"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "a workbook of Excel (xls)", "save the sheet as CSV, and name that file"),
    (b"ElfFile\x00", "a log of Windows (EVTX)", "write it as JSON lines: evtx_dump -o jsonl FILE > events.jsonl"),
    (b"\xd4\xc3\xb2\xa1", "a capture of packets (pcap)", _CAPTURE),
    (b"\xa1\xb2\xc3\xd4", "a capture of packets (pcap)", _CAPTURE),
    (b"\x0a\x0d\x0d\x0a", "a capture of packets (pcapng)", _CAPTURE),
    (b"LPKSHHRH", "a journal of systemd", "write it as JSON lines: journalctl --file FILE -o json > events.jsonl"),
    (b"%PDF-", "a PDF", "get the data as CSV or JSON where the document comes from"),
)
"""How files begin, what they are, and what to do."""
PARQUET = b"PAR1"
"""How this format begins."""
_JSON_BEGIN = re.compile(rb"""(\[\s*)?\{\s*("([^"\\]|\\.)*"\s*:|\}$)""")
_PAGES = (b"<!doctype html", b"<html")
_XML = (
    (b"<log", "XML (a log of XES)", _XES),
    (b"<svg", "XML (a drawing, SVG)", "give the data that it shows, as CSV or JSON"),
    (b"<rss", "XML (a feed, RSS)", _ROWS),
    (b"<feed", "XML (a feed, Atom)", _ROWS),
    (b"<events", "XML", _ROWS),
    (b"<event", "XML", _ROWS),
)
"""The first element of XML, what that is, and what to do."""
_PROLOG = re.compile(rb"(?is)\s*(<\?xml.*?\?>|<!--.*?-->|<!doctype.*?>|\s)*")
_PICKLE = (b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")
_TAR = b"ustar"
_TAR_AT = 257
"""Where the mark of a tar archive stands."""


def refuse_foreign(head: bytes, name: str) -> None:
    """Refuse data that begin like something else than text.

    Parameters
    ----------
    head : bytes
        The first ones, some hundred.
    name : str
        For messages.

    Raises
    ------
    DataError
        ``ACEP-D028`` a tar archive; ``ACEP-D180`` something else that is read by other programs, or a page of the web.
    """
    if head[_TAR_AT:].startswith(_TAR):
        raise DataError(
            f"{name}: a tar archive",
            code="ACEP-D028",
            hint="unpack it, and name the files or their folder: tar xf FILE",
        )
    for begin, kind, hint in _BINARY:
        if head.startswith(begin):
            raise _refused(name, kind, hint)
    if head.startswith(_PICKLE):
        raise _refused(name, "a pickle of Python", _PANDAS.format(read="read_pickle(FILE)"))
    if head.lstrip(b"\xef\xbb\xbf \r\n\t").lower().startswith(_PAGES):
        hint = "perhaps the page of a login or of an error was saved in the place of the data: load these again"
        raise _refused(name, "a page of the web (HTML)", hint)
    _refuse_xml(head, name)


def _refuse_xml(head: bytes, name: str) -> None:
    """Refuse XML: a prolog, or an element that begins a document and no line of a log."""
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    ahead = _PROLOG.match(text)
    rest = text[ahead.end() :] if ahead else text
    known = next((found for found in _XML if re.match(re.escape(found[0]) + rb"[\s>]", rest.lower())), None)
    if known is not None or text.startswith(b"<?xml"):
        _, kind, hint = known or (b"", "XML", _ROWS)
        raise _refused(name, kind, hint)


def refuse_misnamed(start: bytes, name: str, format: str) -> None:  # noqa: A002  (the word of the public interface)
    """Refuse Parquet that is to be read as text, and JSON that is to be read as CSV (``ACEP-D182``).

    Parameters
    ----------
    start : bytes
        The first ones of a text, some thousand.
    name : str
        For messages.
    format : str
        What it is to be read as.
    """
    first = start.lstrip(b"\xef\xbb\xbf \r\n\t").split(b"\n", 1)[0].strip()
    other = ""
    if start.startswith(PARQUET):
        other = "parquet"
    elif format == "csv" and (_JSON_BEGIN.match(first) or first in (b"[", b"{")):
        other = "json"
    if other:
        raise DataError(
            f"{name}: to be read as {format}, but it holds {other}",
            code="ACEP-D182",
            hint=f"rename it to end with .{other}, or say it: --input-format {other} (format='{other}' in Python)",
        )


def _refused(name: str, kind: str, hint: str) -> DataError:
    return DataError(f"{name}: {kind}, which is not read", code="ACEP-D180", hint=hint)
