"""States in which a number was changed and the digest made again, as somebody can who may write the file.

What is made of such a state is either refused with its code, or runs: maybe with other results, but without a crash, a
run that does not end, or memory without bound. A crash would end pytest: all is done in processes that are forked.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import traceback
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import numpy as np

from acep_approx.errors import AcepError
from acep_approx.matching import blob

SECONDS, ROOM = 20, 6 << 30
"""What a changed state may take at most, also on a busy machine, beside what the process has mapped."""
LARGE = (2**31, 2**32 + 1, 2**62, 2**63 - 1, -(2**63), -(2**62))
NUMBERS: list[Any] = [-1, 0, 1, 2, *LARGE, 2**64, 1.5, float("nan"), None, "x", [], True]
Use = Callable[[bytes], None]
"""Restores a state, and goes on with it as far as its events go."""


def changed(state: bytes, seed: int) -> tuple[bytes, str]:
    """The state with one number changed, and which."""
    dice = Random(seed)
    header, arrays = blob.split(state)
    full = [name for name, array in arrays.items() if array.size]
    if not full or dice.random() < 0.25:
        return blob.joined(*_with_other_header(header, arrays, dice))[:], f"header, seed {seed}"
    name = dice.choice(full)
    array = arrays[name].copy()
    at = dice.randrange(array.size)
    if array.dtype == np.uint8:
        inner = _inner(array.tobytes(), dice)
        if inner is not None:
            arrays[name] = np.frombuffer(inner, np.uint8)
            return blob.joined(header, arrays), f"{name} within, seed {seed}"
        array[at] ^= 1 << dice.randrange(8)
    else:
        old = int(array[at])
        array[at] = _fitting(dice.choice((*LARGE, -1, 0, old + 1, old - 1, -old, old << 1, dice.randrange(64))))
    arrays[name] = array
    if dice.random() < 0.1:
        arrays[name] = dice.choice((array[:-1], np.concatenate((array, array[-1:])), array[:0]))
    return blob.joined(header, arrays), f"{name}[{at}] = {array[at]}, seed {seed}"


def _inner(content: bytes, dice: Random) -> bytes | None:
    """A state within a state, changed."""
    try:
        blob.split(content)
    except ValueError:
        return None
    return changed(content, dice.randrange(1 << 30))[0]


def _fitting(number: int) -> int:
    return (number + 2**63) % 2**64 - 2**63


def _with_other_header(header: Any, arrays: Any, dice: Random) -> tuple[Any, Any]:
    header = json.loads(json.dumps(header))
    places = list(_places(header))
    if places:
        holder, key = dice.choice(places)
        old = holder[key]
        near = [old + 1, old - 1] if type(old) in (int, float) else []
        holder[key] = dice.choice([*NUMBERS, *near, *near])
    return header, arrays


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Where the single values of a header stand."""
    for key, one in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(one, dict | list) and one:
            yield from _places(one)
        else:
            yield value, key


def findings(state: bytes, use: Use, seeds: range, change: Callable[..., tuple[bytes, str]] = changed) -> list[str]:
    """What goes wrong with changed states: crashes, errors without a code, and what takes too long or too much."""
    found, first = [], seeds.start
    while first < seeds.stop:
        end = _forked(state, use, range(first, seeds.stop), change, found)
        if end is None:
            return found
        found.append(f"{change(state, end)[1]}: the process ended")
        first = end + 1
    return found


def _forked(state: bytes, use: Use, seeds: range, change: Callable[..., tuple[bytes, str]], found: list[str]) -> int | None:
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


def _try_all(state: bytes, use: Use, seeds: range, change: Callable[..., tuple[bytes, str]], said: Any) -> None:
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    with open("/proc/self/statm", encoding="ascii") as sizes:  # noqa: PTH123
        mapped = int(sizes.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (mapped + ROOM, resource.RLIM_INFINITY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 2)
    for seed in seeds:
        other, what = change(state, seed)
        print("at", seed, file=said, flush=True)
        signal.alarm(SECONDS)
        try:
            use(other)
        except AcepError:
            pass
        except BaseException as error:  # noqa: BLE001  (it is told to the other process)
            *_, where = traceback.extract_tb(error.__traceback__)
            text = f"{type(error).__name__} {error} in {where.filename.rpartition('acep_approx/')[2]}:{where.lineno}"
            print("found", f"{what}: {text}".replace("\n", " ")[:300], file=said, flush=True)
        signal.alarm(0)
