"""Spellings of options that meant something else in another command: each is read as the one there is now.

An option means one thing in all commands. ``--key-column`` is a column and ``--key`` a value of it; ``--around`` is a
time; ``-o`` is a file and ``--output`` a kind of result; events are arguments.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import PurePath

from acep_approx.cli.options.output import ResultKind

OLDER = {"--key": "--key-column", "--at": "--around"}
"""Options that are called otherwise now, in commands that have no other option of the older name."""
TO_A_FILE = "-o"
KIND = "--output"
EVENTS = "--input"
QUIET = ("-q", "--quiet")


def respelled(args: Sequence[str], known: Collection[str], *, takes_events: bool) -> tuple[list[str], list[str]]:
    """Return the arguments of a command as they are spelled now, and notes on what was spelled otherwise.

    Parameters
    ----------
    args : sequence of str
    known : collection of str
        The options of the command.
    takes_events : bool
        Whether the events are arguments of the command.

    Returns
    -------
    tuple of list of str
        The arguments, and the notes; none where the command is to be quiet.

    Examples
    --------
    >>> respelled(["ab", "--input", "a.csv", "--key=user"], ["--key-column"], takes_events=True)
    (['ab', '--key-column', 'user', 'a.csv'], ['--key is called --key-column now: --key user still works'])
    >>> respelled(["ab", "a.csv", "--output", "found.csv"], ["--output", "-o"], takes_events=True)
    (['ab', 'a.csv', '-o', 'found.csv'], ['--output says which kind of result; the file is taken as -o found.csv'])
    >>> respelled(["ab", "a.csv", "--output", "points"], ["--output", "-o"], takes_events=True)
    (['ab', 'a.csv', '--output', 'points'], [])
    """
    read, notes, events = list[str](), list[str](), list[str]()
    for option, value in _pairs(args):
        new = OLDER.get(option)
        if value is None:
            read.append(option)
        elif new is not None and new in known and option not in known:
            read += [new, value]
            notes.append(f"{option} is called {new} now: {option} {value} still works")
        elif option == KIND and TO_A_FILE in known and TO_A_FILE not in args and _is_file(value, known):
            read += [TO_A_FILE, value]
            if KIND in known:
                notes.append(f"{KIND} says which kind of result; the file is taken as {TO_A_FILE} {value}")
        elif option == EVENTS and takes_events and EVENTS not in known:
            events.append(value)
        else:
            read += [option, value]
    return read + events, [] if any(word in args for word in QUIET) else notes


def _pairs(args: Sequence[str]) -> Iterator[tuple[str, str | None]]:
    """The arguments one by one; the options of this file with their values."""
    words = iter(args)
    for word in words:
        option, equals, value = word.partition("=")
        if word == "--":
            yield from ((rest, None) for rest in (word, *words))
        elif option not in (*OLDER, KIND, EVENTS):
            yield word, None
        else:
            yield option, value if equals else next(words, None)


def _is_file(value: str, known: Collection[str]) -> bool:
    """Whether a value of ``--output`` names a file: where it can be a kind of result, only what looks like one."""
    return KIND not in known or (value not in list(ResultKind) and PurePath(value).name != PurePath(value).stem)
