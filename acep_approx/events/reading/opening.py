"""Opens what paths stand for: files, folders, a pipe, standard input; refuses what is said of it in vain."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from acep_approx.errors import UsageError
from acep_approx.events.late import LateEvents
from acep_approx.events.live.kafka_address import is_address
from acep_approx.events.reading.arriving import is_pipe, open_pipe, open_stdin
from acep_approx.events.reading.files import find_files, open_file, says_csv, would_be_read
from acep_approx.events.reading.layout import Layout, Understood
from acep_approx.events.reading.malformed import MalformedRows
from acep_approx.events.reading.multiple_files import FileEvents
from acep_approx.events.reading.python_objects import Reader
from acep_approx.events.writing.outfile import check_name, read_again, refuse_input, written_as


def open_paths(
    paths: Sequence[str | Path], format: str | None, layout: Layout, malformed: MalformedRows, late: LateEvents  # noqa: A002
) -> Reader:
    """Open files, folders, a pipe, or standard input.

    Raises
    ------
    DataError
        A file is not there, or its columns cannot be read.
    UsageError
        ``ACEP-U108``: what is read once is not alone; ``ACEP-U140``: a topic of Kafka; ``ACEP-U106``, ``ACEP-U114``:
        rows that are left out would overwrite an input; ``ACEP-U193``: they would be read with it.
    """
    if "-" in paths:
        if len(paths) > 1:
            raise UsageError(
                "standard input '-' cannot be combined with files",
                code="ACEP-U108",
                hint="name the files, or feed all events to standard input",
            )
        _refuse_inputs(malformed, late, [Path("/dev/stdin")])
        return open_stdin(format, malformed, layout)
    if any(map(is_address, paths)):
        raise UsageError(
            "a topic of Kafka has no end, and cannot be read as a whole",
            code="ACEP-U140",
            hint="run a query over it: acep run QUERY kafka://... (query.follow in Python); for all else write "
            "messages to a file first: kcat -C -b BROKER -t TOPIC -c 1000 -e > events.jsonl",
        )
    if any(map(is_pipe, paths)):
        if len(paths) > 1:
            raise UsageError(
                "a pipe cannot be combined with other inputs", code="ACEP-U108", hint="feed all events to one pipe"
            )
        return open_pipe(Path(paths[0]), format, malformed, layout)
    files = find_files(paths, format, layout)
    named = [file.path for file in files]
    _refuse_inputs(malformed, late, named)
    for what, output in (("rejected rows", malformed.rejects), ("late events", late.file)):
        for folder in paths:
            if output and Path(folder).is_dir() and would_be_read(Path(folder), output, format, says_csv(layout)):
                raise read_again(output, what, folder)
    return FileEvents([open_file(file, malformed, layout) for file in files], reusable=True, paths=named)


def _refuse_inputs(malformed: MalformedRows, late: LateEvents, inputs: Sequence[Path]) -> None:
    refuse_input(malformed.rejects, "rejected rows", inputs, "ACEP-U106")
    refuse_input(late.file, "late events", inputs, "ACEP-U114")


def refuse_same(rejects: Path | None, late: Path | None) -> None:
    """Refuse to write rejected rows and late events to one file (``ACEP-U114``)."""
    for file in filter(None, (rejects, late)):
        check_name(file)
    if rejects is None or late is None or written_as(rejects).isdisjoint(written_as(late)):
        return
    raise UsageError(
        f"rejected rows and late events cannot both go to {rejects}", code="ACEP-U114", hint="name another file"
    )


def layout_of(given: dict[str, Any], time: str | None = None) -> Layout:
    """What is said of how text files are written, by the arguments of ``open_source``."""
    try:
        return Layout(**given, time=time)
    except TypeError as error:
        wrong = next(name for name in given if name not in Layout.__dataclass_fields__)
        raise TypeError(f"open_source() got an unexpected keyword argument {wrong!r}") from error


def refuse_said_again(layout: Layout, understood: Understood | None, **others: Any) -> None:
    """Refuse to say how an open source is read (``ACEP-U147``), but for the format of times, which is for all text."""
    written = layout.time_format
    times = understood.times.values() if understood else ()
    is_other = written is not None and not all(one.is_like(written) for one in times)
    said = [name for name in layout.said if name != "time_format" or is_other]
    said += [name for name, value in others.items() if (value != "refuse" if name.startswith("on_") else value)]
    if said:
        raise UsageError(
            f"{', '.join(said)}: how these events are read was said when they were opened",
            code="ACEP-U147",
            hint="give it to open_source(), not here",
        )
