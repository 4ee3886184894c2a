"""States in which a number was changed and the digest made again, as somebody can who may write the file.

Whoever takes such a state either refuses it with a code, or runs: maybe with other results, but without a crash, a run
that does not end, or memory without bound. A crash would end pytest: all is done in processes that are forked.
"""

from __future__ import annotations

import io
import json
import os
import resource
import signal
import traceback
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator
from contextlib import suppress
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa

from acep_approx.archive import MAGIC
from acep_approx.errors import AcepError
from acep_approx.ipc import from_ipc, to_ipc
from history.errors import HistoryError
from tests.archives import kind_of, scopes

SECONDS, ROOM = 20, 6 << 30
"""What a changed state may take at most, also on a busy machine, beside what the process has mapped."""
LARGE = (2**31, 2**32 + 1, 2**62, 2**63 - 1, -(2**63), -(2**62))
NUMBERS: list[Any] = [-1, 0, 1, 2, *LARGE, 2**64, 10**400, 1.5, 1e300, float("nan"), None, "x", [], {}, True]
LEAST = 40
"""Characters of a text that may be bytes in base64."""
Use = Callable[[bytes], None]
"""Takes a state, and goes on with it as far as its events go."""
Change = Callable[[bytes, Random], bytes]


def changed(content: bytes, dice: Random) -> bytes:
    """The bytes with one value changed, somewhere in the parts that they consist of."""
    if content.startswith(MAGIC):
        return _changed_archive(content, dice)
    if content.startswith(b"PK"):
        return _changed_npz(content, dice)
    if content.startswith(b"\xff\xff\xff\xff"):
        return _changed_table(content, dice)
    if content.startswith(b"{"):
        with suppress(ValueError):
            return json.dumps(changed_json(json.loads(content), dice)).encode()
    other = bytearray(content)
    other[dice.randrange(len(other))] ^= 1 << dice.randrange(8)
    return bytes(other)


def _changed_archive(content: bytes, dice: Random) -> bytes:
    """An archive with another value in a head or an array, or without an array or a part."""
    kind = kind_of(content)
    root = kind.unpack(content)
    everything = dict(scopes(root))
    where = {(path, name): array for path, one in everything.items() for name, array in one.arrays.items()}
    if dice.random() < 0.05:
        chosen = dice.choice([*everything.values()])
        held: dict[str, Any] = dice.choice([some for some in (chosen.arrays, chosen.parts) if some] or [{"": None}])
        del held[dice.choice([*held])]
    elif dice.random() < 0.3 or not any(array.size for array in where.values()):
        for path, head in changed_json({path: one.head for path, one in everything.items()}, dice).items():
            everything[path].head = head
    else:
        for (path, name), array in changed_arrays(where, dice).items():
            everything[path].arrays[name] = array
    return kind.pack(root)


def _changed_npz(content: bytes, dice: Random) -> bytes:
    with np.load(io.BytesIO(content)) as held:
        arrays = changed_arrays(dict(held), dice)
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def _changed_table(content: bytes, dice: Random) -> bytes:
    """An Arrow stream with another value, other rows, other columns, or another header in its metadata."""
    table = from_ipc(content)
    about = {key: changed(value, dice) for key, value in (table.schema.metadata or {}).items()}
    if about and dice.random() < 0.4:
        return to_ipc(table.replace_schema_metadata(about))
    if table.num_columns and dice.random() < 0.2:
        return to_ipc(table.drop_columns([dice.choice(table.column_names)]))
    if not table.num_rows:
        return to_ipc(pa.table({"other": pa.nulls(dice.randrange(4))}))
    if dice.random() < 0.2:
        return to_ipc(dice.choice((table.slice(1), pa.concat_tables([table, table]), table[::-1])))
    at = dice.randrange(table.num_columns)
    values = table.column(at).to_pylist()
    where = dice.randrange(len(values))
    values[where] = dice.choice((None, dice.choice(values), *(NUMBERS if isinstance(values[where], int) else ())))
    with suppress(pa.ArrowException, OverflowError):
        return to_ipc(table.set_column(at, table.field(at), pa.array(values, table.field(at).type)))
    return to_ipc(table.slice(1))


def changed_arrays(arrays: dict[Any, Any], dice: Random) -> dict[Any, Any]:
    """Arrays of which one has another number, or is longer or shorter."""
    name = dice.choice([name for name, array in arrays.items() if array.size])
    array = arrays[name].copy()
    if array.dtype == np.uint8 and array.ndim == 1:
        array = np.frombuffer(changed(array.tobytes(), dice), np.uint8)
    else:
        _change_number(array.reshape(-1), dice)
    if dice.random() < 0.1:
        array = dice.choice((array[:-1], np.concatenate((array, array[-1:])), array[:0]))
    return {**arrays, name: array}


def _change_number(flat: Any, dice: Random) -> None:
    at = dice.randrange(flat.size)
    if flat.dtype.kind == "f":
        flat[at] = dice.choice((np.nan, np.inf, -1.0, 0.0, 1e300, -flat[at]))
    elif flat.dtype.kind in "iu":
        old = int(flat[at])
        number = dice.choice((*LARGE, -1, 0, old + 1, old - 1, -old, old << 1, dice.randrange(64)))
        flat[at] = np.array(number % 2**64, np.uint64).astype(flat.dtype)
    elif flat.dtype.kind == "b":
        flat[at] = not flat[at]


def changed_json(value: Any, dice: Random) -> Any:
    """A header with one other value."""
    value = json.loads(json.dumps(value))
    places = list(_places(value))
    if not places:
        return value
    holder, key = dice.choice(places)
    old = holder[key]
    if isinstance(old, str) and len(old) > LEAST and dice.random() < 0.8:
        with suppress(ValueError):
            holder[key] = b64encode(changed(b64decode(old, validate=True), dice)).decode()
            return value
    near = [old + 1, old - 1] * 2 if type(old) in (int, float) else []
    holder[key] = dice.choice([*NUMBERS, *near])
    return value


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Where the single values of a header stand; texts that hold more often than others."""
    for key, one in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(one, dict | list) and one:
            yield from _places(one)
        else:
            yield from [(value, key)] * (1 + min(len(one) // 1000, 20) if isinstance(one, str) else 1)


def findings(state: bytes, use: Use, seeds: range, change: Change = changed) -> list[str]:
    """What goes wrong with changed states: crashes, errors without a code, and what takes too long or too much."""
    found: list[str] = []
    first = seeds.start
    while first < seeds.stop:
        end = _forked(state, use, range(first, seeds.stop), change, found)
        if end is None:
            return found
        found.append(f"seed {end}: the process ended")
        first = end + 1
    return found


def _forked(state: bytes, use: Use, seeds: range, change: Change, found: list[str]) -> int | None:
    """Try changed states in a process of its own; returns the one that ended it, None where none has."""
    there, here = os.pipe()
    child = os.fork()
    if not child:
        os.close(there)
        with os.fdopen(here, "w") as said:
            _try_all(state, use, seeds, change, said)
        os._exit(0)
    os.close(here)
    last = None
    with os.fdopen(there) as lines:
        for line in lines:
            word, _, rest = line.rstrip("\n").partition(" ")
            if word == "at":
                last = int(rest)
            else:
                found.append(rest)
    _, status = os.waitpid(child, 0)
    return None if status == 0 else last


def _try_all(state: bytes, use: Use, seeds: range, change: Change, said: Any) -> None:
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    with open("/proc/self/statm", encoding="ascii") as sizes:  # noqa: PTH123
        mapped = int(sizes.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (mapped + ROOM, resource.RLIM_INFINITY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    for seed in seeds:
        other = change(state, Random(seed))
        print("at", seed, file=said, flush=True)
        signal.alarm(SECONDS)
        try:
            use(other)
        except (AcepError, HistoryError):
            pass
        except BaseException as error:  # noqa: BLE001  (it is told to the other process)
            *_, where = traceback.extract_tb(error.__traceback__)
            text = f"{type(error).__name__} {error} in {where.filename.rpartition('acep_approx/')[2]}:{where.lineno}"
            print("found", f"seed {seed}: {text}".replace("\n", " ")[:300], file=said, flush=True)
        signal.alarm(0)
