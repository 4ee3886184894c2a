"""Numbers, times and commands as people read them."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

from acep_approx.events.reading.layout import Layout
from acep_approx.events.time_formats import TimeFormat
from acep_approx.shell import command_of, option_of
from acep_approx.timeline.picture import nice

LONGEST = 40
"""Characters of a value that are shown."""
SCALE = (("d", 86_400_000_000), ("h", 3_600_000_000), ("min", 60_000_000), ("s", 1_000_000), ("ms", 1_000), ("us", 1))
NICE = {
    "ms": (1, 2, 5, 10, 20, 50, 100, 200, 500),
    "s": (1, 2, 5, 10, 15, 30),
    "min": (1, 2, 5, 10, 15, 30),
    "h": (1, 2, 3, 6, 12),
    "d": (1, 2, 3, 7, 14, 30, 60, 90, 180, 365),
}
"""Lengths that people would write, by unit."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def shown(value: Any) -> str:
    r"""A value of a column, on one line and not too long.

    Examples
    --------
    >>> shown("a\nb"), shown(1.5), shown("x" * 50)[-4:]
    ('a\\nb', '1.5', 'x...')
    """
    text = value.isoformat(" ") if isinstance(value, datetime) else str(value)
    text = text.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
    return text if len(text) <= LONGEST else text[:LONGEST] + "..."


def moment(tick: int, *, is_time: bool) -> str:
    """A tick: a time in UTC, or the number itself.

    Examples
    --------
    >>> moment(1_700_000_000_500_000, is_time=True), moment(17, is_time=False)
    ('2023-11-14 22:13:20.5', '17')
    """
    if not is_time:
        return f"{tick:,}" if abs(tick) < 10**6 else str(tick)
    try:
        when = EPOCH + timedelta(microseconds=tick)
    except OverflowError:
        return f"{tick} us"
    fraction = f".{when.microsecond:06d}".rstrip("0") if when.microsecond else ""
    return f"{when:%Y-%m-%d %H:%M:%S}{fraction}"


def distance(ticks: float, *, is_time: bool) -> str:
    """How far two times lie apart.

    Examples
    --------
    >>> distance(90_000_000, is_time=True), distance(1.5e6, is_time=True), distance(12, is_time=False)
    ('1.5 min', '1.5 s', '12')
    """
    if not is_time:
        return f"{ticks:,.6g}" if ticks < 10**6 else f"{ticks:,.0f}"
    for unit, size in SCALE:
        if ticks >= size:
            return f"{ticks / size:,.3g} {unit}" if ticks < 1000 * size else f"{ticks / size:,.0f} {unit}"
    return "0 s"


def window(ticks: float, *, is_time: bool) -> str:
    """A window of at least so many ticks, and a millisecond, as a query says it, with a number that people would write.

    Examples
    --------
    >>> window(91e6, is_time=True), window(2.1e6, is_time=True), window(23, is_time=False), window(4e13, is_time=True)
    ('2 min', '5 s', '50', '463 d')
    """
    if not is_time:
        return str(nice(ticks))
    lengths = ((step, unit, size) for unit, size in reversed(SCALE[:-1]) for step in NICE[unit])
    days = f"{-(-int(ticks) // 86_400_000_000)} d"
    return next((f"{step} {unit}" for step, unit, size in lengths if step * size >= ticks), days)


def options(given: Mapping[str, Any]) -> list[str]:
    """Arguments of ``Query.match`` and ``open_source`` as options of ``acep run``.

    Examples
    --------
    >>> options({"time": "when", "format": "csv", "columns": ["when", "x"], "sort": True})
    ['--time', 'when', '--input-format', 'csv', '--columns', 'when,x', '--sort']
    >>> options({"time_format": TimeFormat("%d/%m/%Y", year=2024)})
    ['--time-format', '%d/%m/%Y', '--time-year', '2024']
    """
    words: list[str] = []
    for name, value in given.items():
        if name == "time_format":
            written = TimeFormat.of(value) or TimeFormat()
            times = {"--time-format": written.text, "--time-zone": written.zone, "--time-year": written.year}
            times["--time-fold"] = written.fold
            words += [word for option, said in times.items() if said is not None for word in (option, str(said))]
            continue
        if name in ("column_types", "null"):
            option = "--null" if name == "null" else "--column-type"
            several = [value] if isinstance(value, str) else list(value)
            if isinstance(value, Mapping):
                several = [",".join(f"{column}={type_}" for column, type_ in value.items())]
            words += [word for said in several for word in (option, said)]
            continue
        words.append(option_of(name))
        if value is not True:
            words.append(",".join(value) if isinstance(value, list | tuple) else str(value))
    return words


def arguments(words: str) -> str:
    """Options as a shell takes them, as arguments of Python.

    Examples
    --------
    >>> arguments("--time 'made at' --unit ms --sort"), arguments("--key COLUMN"), arguments("--on-malformed skip")
    ("time='made at', unit='ms', sort=True", "key='COLUMN'", "on_malformed='skip'")
    """
    made: dict[str, Any] = {}
    for word in shlex.split(words):
        if word.startswith("--"):
            made[name := word[2:].replace("-", "_")] = True
        else:
            made[name] = word
    return _arguments(made).removeprefix(", ")


def command(query: str, inputs: Sequence[str], given: Mapping[str, Any]) -> str:
    """The command that runs a query, as a shell takes it.

    Examples
    --------
    >>> command("PATTERN SEQ(A a, B b) WITHIN 5", ["my events.csv"], {"time": "when"})
    "acep run 'PATTERN SEQ(A a, B b) WITHIN 5' 'my events.csv' --time when"
    """
    return command_of(["acep", "run", query, *inputs, *options(given)])


def look_command(inputs: Sequence[str] | None, given: Mapping[str, Any]) -> str:
    """The command that looks at events, as a shell takes it; of events that are no files the call of Python.

    Examples
    --------
    >>> look_command(["events.csv"], {"type": "what", "key": "who"}), look_command(None, {"key": "who"})
    ('acep look events.csv --type what --key-column who', "look(events, key='who')")
    """
    if inputs is None:
        return f"look(events{_arguments(given)})"
    return command_of(["acep", "look", *inputs, *options(given)])


def call(query: str, inputs: Sequence[str] | None, given: Mapping[str, Any]) -> str:
    """The same from Python; without files the events are called so.

    Examples
    --------
    >>> call("PATTERN SEQ(A a, B b) WITHIN 5", None, {"time": "when", "sort": True})
    "compile_query('PATTERN SEQ(A a, B b) WITHIN 5').match(events, time='when', sort=True)"
    """
    events = "events" if inputs is None else repr(inputs[0] if len(inputs) == 1 else list(inputs))
    texts = {name: str(value) if isinstance(value, StrEnum) else value for name, value in given.items()}
    if texts.get("time_format"):
        written = TimeFormat.of(texts["time_format"]) or TimeFormat()
        texts["time_format"] = _Written(written) if written.zone or written.year or written.fold else written.text
    if texts.keys() & vars(Layout()).keys() - {"time_format", "time"}:  # only what opens files knows these
        opened = {name: value for name, value in texts.items() if name in (*vars(Layout()), "format", "on_malformed")}
        events = f"open_source({events}{_arguments(opened)})"
        texts = {name: texts[name] for name in texts if name in ("time", "time_format") or name not in opened}
    return f"compile_query({query!r}).match({events}{_arguments(texts)})"


class _Written:
    """How times are written, as a call that makes it; only what is said stands in it."""

    def __init__(self, written: TimeFormat) -> None:
        said = {"text": written.text, "zone": written.zone, "year": written.year, "fold": written.fold}
        self._call = f"TimeFormat({_arguments({name: value for name, value in said.items() if value})[2:]})"

    def __repr__(self) -> str:
        return self._call


def _arguments(given: Mapping[str, Any]) -> str:
    return "".join(f", {name}={value!r}" for name, value in given.items())
