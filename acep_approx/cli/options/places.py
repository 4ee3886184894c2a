"""What a command reads and writes: no output takes the place of an input, or of another output, by whatever name."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from fnmatch import fnmatch
from glob import glob, has_magic
from pathlib import Path
from typing import Any, NamedTuple

from acep_approx.cli.logs import LEVELS
from acep_approx.cli.options.output import COMPRESSED_FILES, is_folder, is_topic
from acep_approx.errors import UsageError
from acep_approx.events.live.growing import is_followed, would_be_followed
from acep_approx.events.live.kafka_address import KafkaAddress, is_address, parse_address, parse_target
from acep_approx.events.reading.files import ONLY_CSV, files_below, would_be_read
from acep_approx.events.writing.outfile import check_name, known_as, read_again, written_as
from history.places import StorePath, is_remote, is_stored, place_of

WRITTEN = {
    "file": "results",
    "output": "results",
    "save": "what was learned",
    "page": "the page",
    "report": "the report",
    "shed": "shed runs",
    "learn_log": "the learning log",
    "late": "late events",
    "rejects": "rejected rows",
    "calls": "calls",
    "changes": "changes",
    "store": "the store",
    "checkpoint": "checkpoints",
    "plot": "the curves",
    "save_events": "events",
    "log": "the log",
}
"""Options that name what is written, and what that is."""
HERE = ("store", "log")
"""Of these options those whose files are on this machine: they are written bit by bit."""
EVENTS = ("inputs", "past")
"""Arguments that name events."""
FOLDERS = ("queries", "history")
"""Options that name folders of which all files are read."""
BESIDE = {"checkpoint": ("/checkpoint", "/lock"), "store": ("-wal", "-shm", "-journal")}
"""Files of ours beside, or in, what is named."""


NOTHING: Mapping[str, Path] = {}


class Output(NamedTuple):
    """Something that is written, in words; where it goes; what that is known by; in which folder that users named."""

    what: str
    path: Path
    keys: set[object]
    folder: Path | None = None


def check_places(given: Mapping[str, Any], also: Mapping[str, Path] = NOTHING) -> None:
    """Refuse to write over what is read, to one file twice, or where it would be read again.

    Parameters
    ----------
    given : mapping
        The arguments of a command.
    also : mapping
        Files that are written to its folders, by what they hold.

    Raises
    ------
    UsageError
        ``ACEP-U013``: an output is an input; ``ACEP-U017``: two outputs are one; ``ACEP-U191``: no file can have such a
        name; ``ACEP-U193``: an output would be read with the files of a folder.

    Notes
    -----
    Files are told by what they are, not by their names: links of both kinds lead to the same one. Pipes and devices are
    nobody's place.
    """
    _check_topic(given)
    outputs = [*_outputs(given), *(Output(what, path, written_as(path), path.parent) for what, path in also.items())]
    streams = list(_streams())
    taken: dict[object, Output] = {}
    for output in [*streams, *outputs]:
        other = next((taken[key] for key in output.keys if key in taken), None)
        if other is not None and output not in streams:
            raise UsageError(
                f"{other.what} and {output.what} cannot both go to {str(output.path)!r}",
                code="ACEP-U017",
                hint="name another file",
            )
        taken |= dict.fromkeys(output.keys, output)
    if not taken:
        return
    for path in _read(given):
        hit = next((taken[key] for key in known_as(path) if key in taken), None)
        if hit is not None:
            where = path if hit in streams else hit.path
            raise UsageError(
                f"{hit.what} would go to {str(where)!r}, which is one of the inputs",
                code="ACEP-U013",
                hint="name another file",
            )
    for place in _events(given):
        for output in outputs:
            if _would_be_among(place, output.path, given):
                raise read_again(output.folder or output.path, output.what, place)


def _check_topic(given: Mapping[str, Any]) -> None:
    """Refuse to write to a topic that is read (``ACEP-U013``), or results and calls to one topic (``ACEP-U017``)."""
    read = {_topic(parse_address(one)) for one in _listed(given.get("inputs")) if is_address(one)}
    written: dict[tuple[str, str], str] = {}
    for option in ("file", "calls"):
        if not is_topic(target := given.get(option)):
            continue
        what, topic = WRITTEN[option], _topic(parse_target(str(target)))
        if topic in read:
            raise UsageError(
                f"{what} would go to the topic {topic[1]!r}, which is one of the inputs",
                code="ACEP-U013",
                hint="name another topic",
            )
        if topic in written:
            raise UsageError(
                f"{written[topic]} and {what} cannot both go to the topic {topic[1]!r}",
                code="ACEP-U017",
                hint="name another topic",
            )
        written[topic] = what


def _topic(address: KafkaAddress) -> tuple[str, str]:
    return address.brokers, address.topic


# --- what is written ----------------------------------------------------------------------------------------------


def _outputs(given: Mapping[str, Any]) -> Iterator[Output]:
    for name, what in WRITTEN.items():
        if given.get("stream") and name != "log":
            continue  # its folders are checked where a stream is begun
        for value in _listed(given.get(name)):
            if isinstance(value, Path) or (name == "log" and isinstance(value, str) and value.lower() not in LEVELS):
                path = place_of(str(value))
                if is_address(str(path)) or (name == "file" and is_remote(path) and given.get("spark")):
                    continue  # it is a topic, or workers write there
                check_name(path, may_be_stored=name not in HERE)
                keys = written_as(path)
                for beside in BESIDE.get(name, ()):
                    keys |= known_as(Path(f"{path}{beside}"))
                if keys:
                    yield Output(what, path, keys)
                if name == "save" or (name == "output" and given.get("past")):  # a history has tables
                    yield Output(what, path / "table.parquet", set(), path)
    folder = given.get("file")
    is_compressed = getattr(given.get("output"), "value", "") == "compressed" and folder and not is_topic(folder)
    by_workers = given.get("spark") and not given.get("stream") and is_folder(folder) and not is_remote(folder)
    for name in COMPRESSED_FILES if is_compressed else ("part-0.parquet",) if by_workers else ():
        path = given["file"] / name
        yield Output(f"results ({name})", path, written_as(path), given["file"])


def _streams() -> Iterator[Output]:
    for what, stream in (("standard output", sys.stdout), ("what is said on stderr", sys.stderr)):
        with suppress(OSError, ValueError, AttributeError):
            status = os.fstat(stream.fileno())
            if stat.S_ISREG(status.st_mode):
                yield Output(what, Path(what), {(status.st_dev, status.st_ino)})


# --- what is read -------------------------------------------------------------------------------------------------


def _read(given: Mapping[str, Any]) -> Iterator[Path]:
    for name in _events(given):
        yield from _files(name, given)
    for query in _listed(given.get("query")):
        path = Path(query.removeprefix("@"))
        with suppress(OSError, ValueError):  # such as a query, which is longer than names can be
            if path.is_file():
                yield path
    for table in _listed(given.get("table")):
        yield Path(table.partition("=")[2])
    yield from map(Path, _listed(given.get("schema")))
    for setting in _listed(given.get("kafka_option")):
        if setting.startswith("@"):
            yield Path(setting[1:])
    for option in FOLDERS:
        for folder in _listed(given.get(option)):
            yield from Path(folder).rglob("*")


def _events(given: Mapping[str, Any]) -> Iterator[str]:
    """What names events; beside a folder of queries there is no query."""
    names = [str(value) for option in EVENTS for value in _listed(given.get(option))]
    if given.get("queries") is not None:
        names += map(str, _listed(given.get("query")))
    yield from (name for name in names if name and "\0" not in name and not is_address(name))


def _files(name: str, given: Mapping[str, Any]) -> Iterator[Path]:
    if is_stored(name):
        yield place_of(name)
        return
    path = Path(name)
    try:
        if name == "-":
            with suppress(ValueError, AttributeError):
                if stat.S_ISREG(os.fstat(sys.stdin.fileno()).st_mode):
                    yield Path("/dev/stdin")
        elif path.is_dir():
            yield path
            if given.get("follow"):
                with os.scandir(path) as entries:
                    yield from (Path(entry.path) for entry in entries if is_followed(entry.name))
            else:
                yield from (file.path for file in files_below(path, *_format(given)))
        elif path.exists() or not has_magic(name):
            yield path
        else:
            yield from map(Path, glob(name, recursive=True))  # noqa: PTH207  (as it is read)
    except OSError:  # it cannot be read, which is told where it is
        return


def _would_be_among(name: str, output: Path, given: Mapping[str, Any]) -> bool:
    """Whether an output would be one of the files of a folder, or fit a pattern of names."""
    path = place_of(name)
    if isinstance(path, StorePath):
        return is_stored(output) and path.is_dir() and would_be_read(path, output, *_format(given))
    with suppress(OSError, ValueError):
        if path.is_dir():
            if given.get("follow"):
                return would_be_followed(path, output)
            return would_be_read(path, output, *_format(given))
        if has_magic(path.name) and not path.exists():
            is_beside = os.path.realpath(path.parent) == os.path.realpath(output.parent)
            return is_beside and fnmatch(output.name, path.name)
    return False


def _format(given: Mapping[str, Any]) -> tuple[str | None, bool]:
    """What is said of the format of events, and whether something is said that only CSV has."""
    said = given.get("input_format")
    form = "lines" if given.get("line_format") else getattr(said, "value", said)
    return form, any(given.get(name) is not None for name in ONLY_CSV)


def _listed(value: Any) -> list[Any]:
    if value is None:
        return []
    return list(value) if isinstance(value, list | tuple) else [value]
