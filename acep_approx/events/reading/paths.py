"""The files and folders that a user names: paths, and names with ``*`` in them."""

from __future__ import annotations

import re
from glob import glob, has_magic
from pathlib import Path

from acep_approx.errors import DataError

_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://?")
"""``Path`` makes one slash of two."""
BROKERS = ("amqp", "amqps", "mqtt", "mqtts", "nats", "pulsar", "redis", "rediss", "ws", "wss")
"""Where messages come from that are no files."""


def named_paths(given: str | Path) -> list[Path]:
    """The paths that a name stands for; a name with ``*``, ``?`` or ``[...]`` for all that fit, in name order.

    Raises
    ------
    DataError
        ``ACEP-D010`` there is no such file; ``ACEP-D181`` an address such as ``https://...``.
    """
    path = Path(given)
    if is_there(given) and str(given) != "":  # which Path takes for the folder that one is in
        return [path]
    if address := _ADDRESS.match(str(given)):
        raise _an_address(str(given), address)
    if not has_magic(str(given)):
        raise _no_such_file(given)
    if found := sorted(glob(str(given), recursive=True)):  # noqa: PTH207  (a Path globs below a folder only)
        return [Path(name) for name in found]
    raise DataError(f"{path}: no file has such a name", code="ACEP-D010", hint="check the folder and the pattern")


def is_there(given: str | Path) -> bool:
    """Whether there is a file or a folder of a name that one can have.

    Raises
    ------
    DataError
        ``ACEP-D010``: none can.
    """
    if "\n" in str(given):
        raise DataError(
            f"{str(given).splitlines()[0]!r:.60} ...: a path has no lines: this is text",
            code="ACEP-D010",
            hint="write it to a file, and name that; or read it first, as by pyarrow.csv.read_csv(io.BytesIO(...))",
        )
    if "\0" in str(given):
        raise DataError(f"{str(given)!r:.80}: no file has such a name", code="ACEP-D010", hint="check the path")
    try:
        return Path(given).exists()
    except OSError as error:  # longer than names can be, such as a query
        raise DataError(
            f"{str(given)!r:.60} ...: no file has such a name: {error.strerror}",
            code="ACEP-D010",
            hint="name the file; a query comes before its inputs",
        ) from error


def _an_address(given: str, found: re.Match[str]) -> DataError:
    scheme = found[1].lower()
    address = f"{found[1]}://{given[found.end() :]}"
    if scheme in ("http", "https", "ftp"):
        hint = f"load it first: curl -L -o FILE '{address}'; or feed it: curl -sL '{address}' | acep look -"
    elif scheme == "file":
        hint = f"name the file itself: {re.sub('^/*', '/', given[found.end() :])}"
    elif scheme == "kafka":
        hint = "a topic is named kafka://BROKER:9092/TOPIC"
    elif scheme in BROKERS:
        hint = "let a client of it write the messages, one on a line: ... | acep run QUERY -"
    else:
        hint = f"copy it here first; or open it in Python: query.match(pyarrow.dataset.dataset({address!r}))"
    return DataError(f"{address}: an address, and only files are read", code="ACEP-D181", hint=hint)


def _no_such_file(given: str | Path) -> DataError:
    path = Path(given)
    if str(given) == "":
        return DataError("an empty name is no file", code="ACEP-D010", hint="is a variable of the shell not set?")
    from difflib import get_close_matches

    there = [other.name for other in path.parent.iterdir()] if path.parent.is_dir() else []
    close = get_close_matches(path.name, there, n=1)
    hint = f"did you mean {str(path.parent / close[0])!r}?" if close else "check the path"
    return DataError(f"{path}: there is no such file", code="ACEP-D010", hint=hint)
