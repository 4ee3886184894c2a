"""Rules that run in a process of their own, with their store in a file, until they end or are killed.

``python -m tests.rule_kills FOLDER SEED FATE`` goes on where the last one was. What it hands on, matches and calls, it
writes to ``log``, a line for each. FATE says when it kills itself, if it does: ``call`` (at a call, before or after it
is noted), ``push`` (when matches have been returned, before they are noted), ``live`` (never; others may).
"""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import sys
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa

from acep_approx import compile_rules

RULES = """
TABLE status (who text, level text DEFAULT 'safe', n int DEFAULT 0, risk float DEFAULT 0.5, KEY (who))
TABLE away (who text, since time, long bool, KEY (who))
TABLE room (id int, visits int DEFAULT 0, last text DEFAULT '', KEY (id))
RULE warn ON
  PATTERN SEQ(Exit a, ~(Wash w), Enter b)
  WHERE [who] AND a.room != b.room AND store.status[b.who].level = 'safe'
  WITHIN 30 s
DO UPDATE status SET level = 'warning', n = old.n + 1, risk = old.risk / 2 AT (b.who); CALL badge(b.who, b.room) END
RULE clean ON PATTERN Wash w WITHIN 1 s
DO UPDATE status SET level = 'safe' AT (w.who) END
RULE lost ON PATTERN SEQ(Exit a, ~(Enter b)) WHERE [who] WITHIN 12 s
DO UPSERT away SET since = a.ts, long = a.room > 2 AT (a.who); CALL search(a.who) END
RULE back ON PATTERN Enter e WHERE EXISTS store.away[e.who] WITHIN 1 s
DO DELETE away AT (e.who); CALL found(e.who) END
RULE visit ON PATTERN Enter e WITHIN 1 s
DO UPDATE room SET visits = old.visits + 1, last = e.who AT (e.room) END
"""
"""A cycle, negations in the middle and at the end, all kinds of actions."""
ROOMS = [{"id": 0, "visits": 100, "last": "nobody"}]
"""What a table begins with."""
CALLS = ("badge", "search", "found")
TABLES = ("status", "away", "room")
STORE, LOG, SIZE = "store.db", "log", "size"


def stream(number: int) -> pa.Table:
    """The first events of the one stream there is."""
    dice, now, events = Random(7), datetime(2024, 3, 1, 8), []  # noqa: DTZ001
    for _ in range(number):
        now += timedelta(seconds=dice.choice((0, 1, 1, 2)))
        kind = dice.choice(("Exit", "Exit", "Enter", "Enter", "Wash"))
        events.append({"ts": now, "type": kind, "who": f"p{dice.randrange(9)}", "room": dice.randrange(5)})
    return pa.Table.from_pylist(events)


# --- what was handed on -----------------------------------------------------------------------------------------------


def line_of_match(rule: str, match: Mapping[str, Any]) -> str:
    """What is noted of a match."""
    return json.dumps(["match", rule, match], default=str)


def line_of_call(call: Any) -> str:
    """What is noted of a call."""
    return json.dumps(["call", call.id, call.rule, call.name, call.time, call.row, call.arguments], default=str)


def lines_of(matches: Mapping[str, pa.Table]) -> Iterator[str]:
    """What is noted of the matches of some rules."""
    for rule, table in matches.items():
        yield from (line_of_match(rule, match) for match in table.to_pylist())


def in_order(lines: list[str]) -> dict[str, list[str]]:
    """What was handed on for the first time, by rule, and all calls together."""
    found: dict[str, list[str]] = {}
    for line in dict.fromkeys(lines):
        kind, name, *_ = json.loads(line)
        found.setdefault(name if kind == "match" else "calls", []).append(line)
    return found


# --- the store --------------------------------------------------------------------------------------------------------


def stored(place: Path) -> tuple[int, dict[str, list[tuple[Any, ...]]]]:
    """The offset and the rows that are in a file, as any tool reads it; 0 and nothing where there is no store yet."""
    connection = sqlite3.connect(place, isolation_level=None, timeout=60)
    try:
        connection.execute("BEGIN")
        if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'acep_checkpoint'").fetchall():
            return 0, {}
        offset: int = connection.execute("SELECT offset FROM acep_checkpoint").fetchone()[0]
        return offset, {name: connection.execute(f"SELECT * FROM {name} ORDER BY 1").fetchall() for name in TABLES}
    finally:
        connection.close()


def held(run: Any) -> dict[str, list[tuple[Any, ...]]]:
    """The rows that a run has in memory, as SQLite would show them."""
    return {name: sorted(tuple(map(_shown, row.values())) for row in run.store[name].to_pylist()) for name in TABLES}


def _shown(value: Any) -> Any:
    return value.strftime("%Y-%m-%d %H:%M:%S.%f") if isinstance(value, datetime) else value


# --- the process ------------------------------------------------------------------------------------------------------


class Life:
    """One process, from its start to its end.

    Parameters
    ----------
    folder : Path
        With the file, the log, and how many events there are.
    dice : Random
    fate : {"call", "push", "live"}
    """

    def __init__(self, folder: Path, dice: Random, fate: str) -> None:
        self.folder = folder
        self.dice = dice
        self.log = os.open(folder / LOG, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        self.left = {"call": dice.randrange(40), "push": dice.randrange(8), "live": 10**9}
        self.fate = fate

    def note(self, line: str) -> None:
        """Write a line, whole or not at all."""
        os.write(self.log, line.encode() + b"\n")

    def meet(self, what: str) -> None:
        """Die here, if it is time to."""
        if self.fate == what:
            self.left[what] -= 1
            if self.left[what] < 0:
                os.kill(os.getpid(), signal.SIGKILL)

    def called(self, call: Any, *, is_before: bool) -> None:
        """A function that rules call."""
        if is_before:
            self.meet("call")
        self.note(line_of_call(call))
        if not is_before:
            self.meet("call")

    def run(self) -> None:
        """Run the rules from where the last process left them to the end of the stream."""
        events = stream(int((self.folder / SIZE).read_text()))
        function = partial(self.called, is_before=self.dice.random() < 0.5)
        with compile_rules(RULES).start(
            at=self.folder / STORE,
            store={"room": ROOMS},
            calls=dict.fromkeys(CALLS, function),
            checkpoint=self.dice.choice((1, 1, 60)),
        ) as run:
            self.handed_on(run.undelivered)
            while run.offset < len(events):
                size = self.dice.choice((1, 9, 40, 120))
                some = events.slice(run.offset, size)
                found = run.push(pa.Table.from_batches(some.to_batches(max_chunksize=self.dice.choice((size, 7)))))
                self.meet("push")
                self.handed_on(found)
            self.handed_on(run.finish())

    def handed_on(self, matches: Mapping[str, pa.Table]) -> None:
        """Note matches."""
        for line in lines_of(matches):
            self.note(line)


def main(folder: str, seed: str, fate: str) -> None:
    """Live one life."""
    Life(Path(folder), Random(int(seed)), fate).run()


if __name__ == "__main__":
    main(*sys.argv[1:])
