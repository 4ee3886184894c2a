"""What was seen in some events: as plain data, in words and tables, in a notebook."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from acep_approx.diagrams.fragments import plain, soft, table, title, view
from acep_approx.events.reading.layout import DELIMITERS
from acep_approx.events.roles import ZONE_OF_LETTERS
from acep_approx.events.source import Source
from acep_approx.profiling.columns import ColumnProfile
from acep_approx.profiling.first_query import FirstQuery
from acep_approx.profiling.roles import RoleFound
from acep_approx.profiling.times import TimeProfile
from acep_approx.shell import quoted
from acep_approx.visible import printable, visible

if TYPE_CHECKING:
    from acep_approx.profiling.columns import ColumnProfile
    from acep_approx.profiling.roles import RoleFound
    from acep_approx.profiling.times import TimeProfile


@dataclass(frozen=True)
class SecondChoice:
    """A type and a key that would do about as well as those that are chosen.

    Attributes
    ----------
    type, key : str or None
    command : str
        What takes them.
    """

    type: str | None
    key: str | None
    command: str


@dataclass(frozen=True)
class StreamProfile:
    """What is in some events.

    Attributes
    ----------
    name : str
        Where they come from.
    rows : int
        Events that were looked at.
    is_all : bool
        Whether these are all.
    size : int or None
        Bytes of the files.
    understood : tuple of str
        How the files are written: format, delimiter, formats of times, and so on.
    columns : tuple of ColumnProfile
    time, type, key : RoleFound
        The columns that play these roles, and those that could.
    second : SecondChoice or None
        Where the choice of the type and the key is a guess: what would do about as well.
    unit : str or None
        What a time column of numbers counts, if that was said or is plausible.
    is_unit_said : bool
        Whether it was said: without ``--unit`` numbers are plain ticks.
    times : TimeProfile or None
        None where no column is the time, or not one time can be read.
    types : tuple of (str, int)
        The most frequent types with their counts.
    malformed : int
        Rows that cannot be read.
    reasons : tuple of str
        Of the first of them.
    first : FirstQuery
    """

    name: str
    rows: int
    is_all: bool
    size: int | None
    understood: tuple[str, ...]
    columns: tuple[ColumnProfile, ...]
    time: RoleFound
    type: RoleFound
    key: RoleFound
    second: SecondChoice | None
    unit: str | None
    is_unit_said: bool
    times: TimeProfile | None
    types: tuple[tuple[str, int], ...]
    malformed: int
    reasons: tuple[str, ...]
    first: FirstQuery

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values, as for JSON."""
        return asdict(self)


PLAIN = {
    "string": "text",
    "double": "number",
    "float": "number",
    "bool": "true or false",
    "null": "nothing yet",
    "binary": "bytes",
}
NUMBERS = ("missing", "different", "events", "share")
"""Columns that stand to the right."""
OFTEN_EMPTY = ("missing", "range")
"""Columns that are left out where nothing stands in them."""
WIDE = 120
"""Characters of a line that all examples have room in."""
FEW = 20
"""Characters of the examples of a column where lines are shorter."""


@dataclass(frozen=True)
class Section:
    """A piece of what is shown: lines, and a table below them.

    Attributes
    ----------
    title : str
    lines : tuple of str
    header : tuple of str
        Of the table; empty where there is none.
    table : tuple of tuple of str
    code : tuple of str
        Lines to copy.
    """

    title: str
    lines: tuple[str, ...] = ()
    header: tuple[str, ...] = ()
    table: tuple[tuple[str, ...], ...] = ()
    code: tuple[str, ...] = ()

    def column(self, name: str) -> list[str]:
        """The texts of a column of the table."""
        place = self.header.index(name)
        return [row[place] for row in self.table]


def sections(look: StreamProfile, width: int = WIDE) -> list[Section]:
    """What is shown, in order; fewer examples where lines have less than ``WIDE`` characters."""
    shown = [Section(_headline(look), tuple(_about(look)))]
    if look.columns:
        shown.append(_columns(look, is_wide=width >= WIDE))
        shown.append(_roles(look))
    if look.types:
        shown.append(_types(look))
    if look.times is not None:
        shown.append(Section(f"times: {look.times.column}", tuple(_times(look, look.times))))
    return [*shown, _first(look)]


def _headline(look: StreamProfile) -> str:
    size = "" if look.size is None else f", {_bytes(look.size)}"
    rows = f"{look.rows:,} row{'' if look.rows == 1 else 's'}"
    return f"{look.name}: {rows}{size}" if look.is_all else f"{look.name}{size}: the first {rows} (there are more)"


def _about(look: StreamProfile) -> Iterator[str]:
    if look.understood:
        yield "; ".join(look.understood)
    if look.malformed:
        some, them = ("1 row", "it") if look.malformed == 1 else (f"{look.malformed:,} rows", "them")
        yield f"{some} cannot be read; a run stops there, or leaves {them} out: --on-malformed skip"
        yield from (f"  {reason}" for reason in look.reasons[:1])


def _bytes(size: int) -> str:
    for unit, factor in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if size >= factor:
            return f"{size / factor:.3g} {unit}"
    return f"{size} bytes"


def _columns(look: StreamProfile, *, is_wide: bool) -> Section:
    played = {role.column: role.role for role in (look.key, look.type, look.time)}
    rows = []
    for column in look.columns:
        distinct = "" if column.distinct is None else f"{'' if column.is_exact else 'about '}{column.distinct:,}"
        is_told_below = not is_wide and look.times is not None and column.name == look.times.column
        span = "" if column.least is None or is_told_below else f"{column.least} .. {column.most}"
        missing = f"{column.missing:,}" if column.missing else ""
        rows.append(
            (
                column.name,
                _type(column),
                missing,
                distinct,
                _examples(column, WIDE if is_wide else FEW),
                span,
                played.get(column.name, ""),
            )
        )
    header = ("column", "type", "missing", "different", "examples", "range", "taken as")
    kept = [place for place, name in enumerate(header) if name not in OFTEN_EMPTY or any(row[place] for row in rows)]
    return Section(
        f"{len(look.columns)} column{'' if len(look.columns) == 1 else 's'}",
        (),
        tuple(header[place] for place in kept),
        tuple(tuple(row[place] for place in kept) for row in rows),
    )


def _examples(column: ColumnProfile, room: int) -> str:
    """As many as there is room for, and at least one."""
    shown = ", ".join(column.examples[:1])
    for example in column.examples[1:]:
        if len(shown) + 2 + len(example) > room:
            break
        shown += f", {example}"
    return shown


def _type(column: ColumnProfile) -> str:
    name = column.type
    if name.startswith(("int", "uint")):
        return "whole number"
    if name.startswith("timestamp"):
        return "time" if "tz=" in name else "time without a zone"
    for begin, word in (("date", "date"), ("time", "time of day"), ("list", "list"), ("struct", "object")):
        if name.startswith(begin):
            return word
    return PLAIN.get(name, name)


def _roles(look: StreamProfile) -> Section:
    rows = []
    for role in (look.time, look.type, look.key):
        taken = "(none)" if role.column is None else role.column
        others = [(other.option, other.why) for other in role.others] or [(f"--{role.role} COLUMN", "")]
        rows.append((role.role, taken, _why(look, role), *others[0]))
        rows += [("", "", "", option, why) for option, why in others[1:]]
    header = ("role", "column", "why", "to say otherwise", "which has")
    lines = ("the time orders the events, a pattern names their types, and WHERE [key] keeps to events of one key",)
    return Section("what acep takes them for", lines + _doubt(look), header, tuple(rows))


def _doubt(look: StreamProfile) -> tuple[str, ...]:
    """What would do about as well as the type and the key that are chosen, if that is so."""
    if look.second is None:
        return ()
    pairs = (("type", look.type, look.second.type), ("key", look.key, look.second.key))
    others = [f"{other!r} as the {name}" for name, role, other in pairs if other != role.best]
    what = " and ".join(others)
    return (f"not sure of the type and the key: {what} would do about as well. To take that: {look.second.command}",)


def _why(look: StreamProfile, role: RoleFound) -> str:
    why = role.why
    if role.role == "time" and role.column and look.unit and not look.is_unit_said:
        why += f"; plain numbers without --unit {look.unit}"
    return why


def _types(look: StreamProfile) -> Section:
    column = next(c for c in look.columns if c.name == look.type.best)
    lines: tuple[str, ...] = () if look.type.column else (f"if you say --type {quoted(column.name)}",)
    if column.distinct is not None and column.distinct > len(look.types):
        lines += (f"the {len(look.types)} most frequent of {column.distinct:,}",)
    rows = tuple((name, f"{count:,}", f"{100 * count / look.rows:.1f}%") for name, count in look.types)
    return Section(f"types: {column.name}", lines, ("type", "events", "share"), rows)


def _times(look: StreamProfile, times: TimeProfile) -> Iterator[str]:
    if look.unit is not None and not look.is_unit_said:
        yield (
            f"these are numbers. As {_unit(look.unit)} they are the times below: say --unit {look.unit}; without it "
            "they are plain numbers, and windows count those"
        )
    elif times.digits is not None:
        yield (
            f"these are plain numbers, and look like times written as digits: say --time-format {times.digits}; "
            "without it windows count the numbers"
        )
    elif not times.is_time:
        yield "these are plain numbers: windows count them (WITHIN 10). If they are times, say of what: --unit s"
    if times.as_units and not look.is_unit_said and times.digits is None:
        yield "the first one would be " + "; ".join(f"{when} as {unit}" for unit, when in times.as_units)
    yield f"from {times.first} to {times.last}{' UTC' if times.is_time else ''}: {times.span}"
    yield _order(times)
    if times.ties:
        yield f"{times.ties:,} events share their time with another one: these stay in the order of the file"
    key = f"; within one {look.key.best} {look.first.typical}" if look.first.typical else ""
    yield f"typical distance from one event to the next: {times.typical}{key}"
    if times.gaps:
        yield "largest gaps: " + ", ".join(f"{gap.length} after {gap.after}" for gap in times.gaps)
    if times.kept < look.rows and times.kept + times.unreadable < look.rows:
        yield f"distances, gaps and equal times are those of the first {times.kept:,} events"
    if times.unreadable:
        most = "" if times.is_counted else "at least "
        yield f"{most}{times.unreadable:,} rows have no time that can be read; the first: {times.reason}"
        yield "a run stops there, or leaves such rows out: --on-malformed skip"


def _unit(unit: str) -> str:
    return {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}[unit] + " since 1970"


def _order(times: TimeProfile) -> str:
    if not times.late:
        return "in order of time"
    if times.is_reversed:
        return "the newest comes first: say --sort"
    return (
        f"not in order: {times.late:,} events are older than one before them, by {times.latest} at most. Say --sort, "
        f"or --watermark '{times.patience}' to wait for them in a stream"
    )


def _first(look: StreamProfile) -> Section:
    first = look.first
    if not first.text:
        return Section("a first query", (f"there is none: {first.lacks}",))
    where = f"all {first.rows:,}" if first.rows == look.rows and look.is_all else f"the first {first.rows:,}"
    lines = (first.why, f"{first.matches:,} match{'' if first.matches == 1 else 'es'} in {where} events")
    if look.name == "-":
        return Section("a first query", lines, code=(first.text, "", "feed the same input to:", "", first.command))
    commands = ("run it:", "", first.command, "") if first.command else ()
    return Section("a first query", lines, code=(first.text, "", *commands, "from Python:", "", first.code))


def as_text(look: StreamProfile) -> str:
    """All of it as plain text; lines are as long as they are."""
    return "\n".join(line for section in sections(look) for line in (*_lines(section), "")).rstrip()


def _lines(section: Section) -> Iterator[str]:
    yield visible(section.title)
    yield from (f"  {visible(line)}" for line in section.lines)
    if section.header:
        rows = [[*map(visible, row)] for row in (section.header, *section.table)]
        widths = [max(len(row[i]) for row in rows) for i in range(len(section.header))]
        yield from ("  " + "  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip() for row in rows)
    yield from (f"  {printable(line)}".rstrip() for line in section.code)


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


def look_view(look: StreamProfile) -> str:
    """All sections, one below the other."""
    return view(*(part for section in sections(look) for part in _parts(section)))


def _parts(section: Section) -> Iterator[str]:
    yield title(section.title)
    yield from map(soft, section.lines)
    if section.header:
        right = [place for place, name in enumerate(section.header) if name in NUMBERS]
        yield table(section.header, section.table, numbers=right)
    if section.code:
        yield plain("\n".join(section.code))
