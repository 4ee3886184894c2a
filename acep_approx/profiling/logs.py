"""Opens a log whose format is known by its lines, and whose times have no year."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from acep_approx.errors import DataError
from acep_approx.events.reading.files import likely_log
from acep_approx.events.source import Source, open_source
from acep_approx.events.time_formats import TimeFormat
from acep_approx.shell import quoted


def opened(
    events: Any, paths: Sequence[str] | None, time: str | None, counting: dict[str, Any], reading: dict[str, Any]
) -> tuple[Source, dict[str, Any], list[str]]:
    """The events, how they are read (as it was said, and as the lines of a log tell), and words on what nobody said.

    Parameters
    ----------
    events : table, frame, dicts or paths
    paths : sequence of str or None
        The paths, where they are such.
    time : str or None
        The column of the times, as far as it was said.
    counting : dict
        What lets rows that cannot be read be counted.
    reading : dict
        How the events are read, as far as it was said.
    """
    words: list[str] = []
    try:
        source = open_source(events, time=time, **(counting | reading))
    except DataError as error:
        if error.code != "ACEP-D012" or not paths or not (line_format := likely_log(paths[0])):
            raise
        reading = {name: value for name, value in reading.items() if value is not None} | {"line_format": line_format}
        source = open_source(events, time=time, **(counting | reading))
        words.append(f"as its lines look, which a run must be told: --line-format {quoted(line_format)}")
    year = _year(source)
    if year is None or TimeFormat.of(reading.get("time_format")) is not None:
        return source, reading, words
    reading = reading | {"time_format": TimeFormat(year=year)}
    words.append(f"the times have no year; that of the file's last change is taken: --time-year {year}")
    return open_source(events, time=time, **(counting | reading)), reading, words


def _year(source: Source) -> int | None:
    """The year in which a file was changed last, where times lack one; None: they do not."""
    found = source.understood
    if found is None or not source.paths or not source.reusable:
        return None
    lacks = any(len(fitting) == 1 and "%Z" not in fitting[0] for fitting in found.open_times.values())
    changed = datetime.fromtimestamp(source.paths[0].stat().st_mtime, UTC)
    return changed.year if lacks else None
