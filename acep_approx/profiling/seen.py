"""What was seen in some events: as plain data, in words and tables, in a notebook."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from acep_approx.diagrams.fragments import never_raises, plain, soft, table, title, view
from acep_approx.events.counts import counted
from acep_approx.events.reading.layout import DELIMITERS
from acep_approx.events.roles import ZONE_OF_LETTERS
from acep_approx.events.source import Source
from acep_approx.profiling.columns import ColumnProfile, TimeProfile
from acep_approx.profiling.first_query import FirstQuery
from acep_approx.profiling.formatting import arguments
from acep_approx.profiling.roles import RoleFound
from acep_approx.shell import option_of, quoted
from acep_approx.visible import printable, visible


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
class Look:
    """What is in some events; made by ``look``. Prints itself, and draws itself in a notebook.

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
    more : tuple of FirstQuery
        Other queries that have matches in them.
    is_python : bool
        Whether the events are values of Python, so that what to say are arguments, and no options of a command.
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
    more: tuple[FirstQuery, ...] = ()
    is_python: bool = False

    def say(self, options: str) -> str:
        """Options of a command, or the arguments of Python that they stand for.

        Examples
        --------
        >>> from acep_approx import look
        >>> look([{"ts": 1}]).say("--time when --unit ms"), look([{"ts": 1}]).say("--sort")
        ("time='when', unit='ms'", 'sort=True')
        """
        return arguments(options) if self.is_python else options

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values, as for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        return as_text(self)

    def __repr__(self) -> str:
        return f"<Look at {visible(self.name)}: {self.rows:,} rows, {len(self.columns)} columns>"

    @never_raises
    def _repr_html_(self) -> str:
        return look_view(self)


FORMATS = {
    "parquet": "Parquet",
    "csv": "CSV",
    "jsonl": "JSON lines",
    "json": "JSON",
    "lines": "lines of a log",
}
SIGNS = {sign: name for name, sign in DELIMITERS.items() if name.isalpha()}
KINDS = (
    ("int", "whole number"),
    ("uint", "whole number"),
    ("date", "date"),
    ("time", "time of day"),
    ("list", "list"),
    ("struct", "object"),
)
"""What types are called that begin so."""
PLAIN = {
    "string": "text",
    "double": "number",
    "float": "number",
    "bool": "true or false",
    "null": "nothing yet",
    "binary": "bytes",
}
SINCE = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}
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


def sections(look: Look, width: int = WIDE) -> list[Section]:
    """What is shown, in order; fewer examples where lines have less than ``WIDE`` characters."""
    size = ""
    if look.size is not None:
        units = (("GB", 10**9), ("MB", 10**6), ("kB", 10**3))
        bytes_ = f"{look.size} bytes"
        size = ", " + next((f"{look.size / n:.3g} {unit}" for unit, n in units if look.size >= n), bytes_)
    rows = counted(look.rows, "row")
    told = f"{look.name}: {rows}{size}" if look.is_all else f"{look.name}{size}: the first {rows} (there are more)"
    about = ["; ".join(look.understood)] if look.understood else []
    if look.malformed:
        them = "it" if look.malformed == 1 else "them"
        some = f"{counted(look.malformed, 'row')} cannot be read"
        about.append(f"{some}; a run stops there, or leaves {them} out: {look.say('--on-malformed skip')}")
        about += [f"  {reason}" for reason in look.reasons[:1]]
    shown = [Section(told, tuple(about))]
    if look.columns:
        shown += [_columns(look, is_wide=width >= WIDE), _roles(look)]
    if look.types:
        shown.append(_types(look))
    if look.times is not None:
        shown.append(Section(f"times: {look.times.column}", tuple(_times(look, look.times))))
    return [*shown, _first(look), *_others(look)]


def _columns(look: Look, *, is_wide: bool) -> Section:
    played = {role.column: role.role for role in (look.key, look.type, look.time)}
    rows = []
    for column in look.columns:
        distinct = "" if column.distinct is None else f"{'' if column.is_exact else 'about '}{column.distinct:,}"
        is_told_below = not is_wide and look.times is not None and column.name == look.times.column
        span = "" if column.least is None or is_told_below else f"{column.least} .. {column.most}"
        missing = f"{column.missing:,}" if column.missing else ""
        examples, room = ", ".join(column.examples[:1]), WIDE if is_wide else FEW
        for example in column.examples[1:]:
            if len(examples) + 2 + len(example) > room:
                break
            examples += f", {example}"
        role = played.get(column.name, "")
        rows.append((column.name, _type(column.type), missing, distinct, examples, span, role))
    header = ("column", "type", "missing", "different", "examples", "range", "taken as")
    kept = [place for place, name in enumerate(header) if name not in OFTEN_EMPTY or any(row[place] for row in rows)]
    return Section(
        counted(len(look.columns), "column"),
        (),
        tuple(header[place] for place in kept),
        tuple(tuple(row[place] for place in kept) for row in rows),
    )


def _type(name: str) -> str:
    if name.startswith("timestamp"):
        return "time" if "tz=" in name else "time without a zone"
    return next((word for begin, word in KINDS if name.startswith(begin)), PLAIN.get(name, name))


def _roles(look: Look) -> Section:
    rows = []
    for role in (look.time, look.type, look.key):
        taken = "(none)" if role.column is None else role.column
        others = [(other.option, other.why) for other in role.others] or [(f"{option_of(role.role)} COLUMN", "")]
        is_guess = role.role == "time" and role.column and look.unit and not look.is_unit_said
        more = f"; plain numbers without {look.say(f'--unit {look.unit}')}" if is_guess else ""
        rows.append((role.role, taken, role.why + more, look.say(others[0][0]), others[0][1]))
        rows += [("", "", "", look.say(option), why) for option, why in others[1:]]
    header = ("role", "column", "why", "to say otherwise", "which has")
    lines = ["the time orders the events, a pattern names their types, and WHERE [key] keeps to events of one key"]
    if look.second is not None:
        pairs = (("type", look.type, look.second.type), ("key", look.key, look.second.key))
        what = " and ".join(f"{other!r} as the {name}" for name, role, other in pairs if other != role.best)
        take = f"To take that: {look.second.command}"
        lines.append(f"not sure of the type and the key: {what} would do about as well. {take}")
    return Section("what acep takes them for", tuple(lines), header, tuple(rows))


def _types(look: Look) -> Section:
    column = next(c for c in look.columns if c.name == look.type.best)
    lines: tuple[str, ...] = () if look.type.column else (f"if you say {look.say(f'--type {quoted(column.name)}')}",)
    if column.distinct is not None and column.distinct > len(look.types):
        lines += (f"the {len(look.types)} most frequent of {column.distinct:,}",)
    rows = tuple((name, f"{count:,}", f"{100 * count / look.rows:.1f}%") for name, count in look.types)
    return Section(f"types: {column.name}", lines, ("type", "events", "share"), rows)


def _times(look: Look, times: TimeProfile) -> Iterator[str]:
    if look.unit is not None and not look.is_unit_said:
        yield (
            f"these are numbers. As {SINCE[look.unit]} since 1970 they are the times below: say "
            f"{look.say(f'--unit {look.unit}')}; "
            "without it they are plain numbers, and windows count those"
        )
    elif times.digits is not None:
        yield (
            f"these are plain numbers, and look like times written as digits: say "
            f"{look.say(f'--time-format {times.digits}')}; "
            "without it windows count the numbers"
        )
    elif not times.is_time:
        yield "these are plain numbers: windows count them (WITHIN 10). If they are times, say of what: " + look.say(
            "--unit s"
        )
    if times.as_units and not look.is_unit_said and times.digits is None:
        yield "the first one would be " + "; ".join(f"{when} as {unit}" for unit, when in times.as_units)
    yield f"from {times.first} to {times.last}{' UTC' if times.is_time else ''}: {times.span}"
    if not times.late:
        yield "in order of time"
    elif times.is_reversed:
        yield f"the newest comes first: say {look.say('--sort')}"
    else:
        wait = look.say(f"--watermark '{times.patience}'")
        yield (
            f"not in order: {times.late:,} events are older than one before them, by {times.latest} at most. Say "
            f"{look.say('--sort')}, or {wait} to wait for them in a stream"
        )
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
        yield f"a run stops there, or leaves such rows out: {look.say('--on-malformed skip')}"


def _first(look: Look) -> Section:
    first = look.first
    if not first.text:
        return Section("a first query", (f"there is none: {first.lacks}",))
    lines = [first.why, _counted(look, first)]
    if first.can_miss and not look.more:
        lines.append("with ERRORS 1 MAXIMAL at its end it finds cases where one of these events is missing, too")
    commands = ("run it:", "", first.command, "") if first.command else ()
    in_python = (*commands, "from Python:", "", first.code)
    how = ("feed the same input to:", "", first.command) if look.name == "-" else in_python
    return Section("a first query", tuple(lines), code=(first.text, "", *how))


def _others(look: Look) -> Iterator[Section]:
    for number, query in enumerate(look.more):
        title = "more queries" if number == 0 else ""
        yield Section(title, (query.why, _counted(look, query)), code=(query.command or query.code,))


def _counted(look: Look, query: FirstQuery) -> str:
    where = f"all {query.rows:,}" if query.rows == look.rows and look.is_all else f"the first {query.rows:,}"
    return f"{counted(query.matches, 'match')} in {where} events"


def as_text(look: Look) -> str:
    """All of it as plain text; lines are as long as they are."""
    lines: list[str] = []
    for section in sections(look):
        lines += [*filter(None, [visible(section.title)]), *(f"  {visible(line)}" for line in section.lines)]
        if section.header:
            rows = [[*map(visible, row)] for row in (section.header, *section.table)]
            widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
            lines += ["  " + "  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
        lines += [*(f"  {printable(line)}".rstrip() for line in section.code), ""]
    return "\n".join(lines).rstrip()


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


def look_view(look: Look) -> str:
    """All sections, one below the other."""
    parts = []
    for section in sections(look):
        parts += [title(section.title), *map(soft, section.lines)]
        if section.header:
            right = [place for place, name in enumerate(section.header) if name in NUMBERS]
            parts.append(table(section.header, section.table, numbers=right))
        if section.code:
            parts.append(plain("\n".join(section.code)))
    return view(*parts)
