"""Active rules: what each way of running them takes, beside what is wanted.

    python -m experiments.speed.rules [read lockstep toggle push stepping commit plain] [--events 400000] [--rounds 3]

``read``: a rule with a read of the store, against the same with a condition on the event. ``lockstep``: three rules
that read and write one table, over a thousand keys. ``toggle``: two rules on one row, where each write decides the next
read. ``push``: one event at a time. ``stepping``: a circle with conditions across events. ``commit``: a checkpoint of
a thousand rows. ``plain``: the rules of ``lockstep`` by hand, in plain Python with dicts.

Reading is left out. Times are CPU times of the thread, the best of some rounds.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa

from acep_approx import compile_rules

CHUNK = 1 << 17
TYPES = ("EXIT", "SANITIZE", "ENTER", "TOUCH")
TABLE = "TABLE status (hcw text, level int DEFAULT 0, KEY (hcw))\n"
WARN, VIOLATE = 9000, 6000
"""Windows, in ticks."""


def rule(name: str, pattern: str, where: str, within: int, level: int) -> str:
    """A rule that sets the level of a health-care worker."""
    return (
        f"RULE {name} ON PATTERN {pattern} WHERE [hcw] AND {where} WITHIN {within}\n"
        f"FOR EACH POINT DO UPDATE status SET level = {level} AT (z.hcw) END\n"
    )


LEVEL = "store.status[z.hcw].level"
THREE = TABLE + "".join(
    (
        rule("warn", "SEQ(EXIT a, ~(SANITIZE s), ENTER z)", f"{LEVEL} = 0", WARN, 1),
        rule("violate", "SEQ(ENTER a, ~(SANITIZE s), TOUCH z)", f"{LEVEL} = 1", VIOLATE, 2),
        rule("clean", "SANITIZE z", f"{LEVEL} IN (1, 2)", 0, 0),
    )
)
ACROSS = THREE.replace(f"{LEVEL} = 0", f"{LEVEL} = 0 AND z.x > a.x")
WRITER = TABLE + rule("warn", "SEQ(EXIT a, ~(SANITIZE s), ENTER z)", "z.x >= 0", WARN, 1)
READER = "RULE look ON PATTERN SEQ(ENTER a, TOUCH z) WHERE [hcw] AND {} WITHIN 6000"
TOGGLE = "".join(
    (
        "TABLE lamp (id text, is_on int DEFAULT 0, KEY (id))\n",
        "RULE on ON PATTERN TOUCH z WHERE store.lamp[z.lamp].is_on = 0 WITHIN 1\n",
        "FOR EACH POINT DO UPDATE lamp SET is_on = 1 AT (z.lamp) END\n",
        "RULE off ON PATTERN TOUCH z WHERE store.lamp[z.lamp].is_on = 1 WITHIN 1\n",
        "FOR EACH POINT DO UPDATE lamp SET is_on = 0 AT (z.lamp) END\n",
    )
)


def stream(events: int, keys: int, types: tuple[float, ...] = (0.25, 0.15, 0.3, 0.3)) -> pa.Table:
    """Health-care workers who leave, clean, enter and touch."""
    dice = np.random.default_rng(1)
    kinds = pa.DictionaryArray.from_arrays(pa.array(dice.choice(4, events, p=types), pa.int32()), pa.array(TYPES))
    workers = pa.array(dice.integers(0, keys, events), pa.int32())
    return pa.table(
        {
            "ts": np.cumsum(dice.integers(0, 3, events)),
            "type": kinds,
            "hcw": pa.DictionaryArray.from_arrays(workers, pa.array([f"h{n}" for n in range(keys)])),
            "lamp": pa.DictionaryArray.from_arrays(pa.array(np.zeros(events), pa.int32()), pa.array(["lamp"])),
            "x": dice.integers(0, 100, events),
        }
    )


def seconds(text: str, events: pa.Table, rounds: int, chunk: int = CHUNK) -> float:
    """CPU seconds per event."""
    rules, best = compile_rules(text), float("inf")
    for _ in range(rounds):
        run = rules.start()
        run.push(events.slice(0, 1))
        begun = time.thread_time()
        for first in range(1, events.num_rows, chunk):
            run.push(events.slice(first, chunk))
        best = min(best, time.thread_time() - begun)
    return best / (events.num_rows - 1)


def read(events: int, rounds: int) -> str:
    """What a read costs."""
    stream_, with_read = stream(events, 1000), WRITER + READER.format(f"{LEVEL} = 1")
    plain = WRITER + READER.format("z.x >= 0")
    more = seconds(with_read, stream_, rounds) - seconds(plain, stream_, rounds)
    return f"a read: {more * 1e9:+.0f} ns per event (wanted: at most +10)"


def lockstep(events: int, rounds: int) -> str:
    """Three rules in one kernel."""
    taken = seconds(THREE, stream(events, 1000), rounds)
    return f"three rules, 1,000 keys: {1 / taken / 1e6:.2f} M events/s, Arrow to matches (wanted: 1.5)"


def toggle(events: int, rounds: int) -> str:
    """Two rules on one row."""
    taken = seconds(TOGGLE, stream(events, 1, (0.0, 0.0, 0.0, 1.0)), rounds)
    return f"toggle on one row: {1 / taken / 1e6:.2f} M events/s, Arrow to matches"


def push(events: int, rounds: int) -> str:
    """One event at a time."""
    taken = seconds(THREE, stream(min(events, 2000), 1000), rounds, chunk=1)
    return f"one event per push: {taken * 1e6:.0f} us (wanted: at most 300)"


def stepping(events: int, rounds: int) -> str:
    """A circle in turn."""
    taken = seconds(ACROSS, stream(min(events, 20_000), 1000), rounds)
    return f"stepping: {1 / taken:,.0f} relevant events/s (wanted: 40,000)"


def commit(events: int, rounds: int) -> str:  # noqa: ARG001  (as the others)
    """A checkpoint of a thousand rows."""
    best = float("inf")
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            run = compile_rules(THREE).start(at=Path(folder) / "store.db", checkpoint=1 << 40)
            run.push(stream(20_000, 1000))
            begun = time.perf_counter()
            run.checkpoint()
            best = min(best, time.perf_counter() - begun)
            run.close()
    return f"checkpoint of 1,000 rows, on the disk: {best * 1e3:.1f} ms (wanted: at most 20)"


def plain(events: int, rounds: int) -> str:
    """The same by hand, one event after the other, with dicts."""
    table, best = stream(events, 1000), float("inf")
    for _ in range(rounds):
        begun = time.thread_time()
        by_hand(table)
        best = min(best, time.thread_time() - begun)
    ours = seconds(THREE, table, rounds)
    return f"by hand: {best / events * 1e9:,.0f} ns per event, {best / events / ours:.1f} times ours (wanted: 2)"


def by_hand(table: pa.Table) -> dict[str, int]:
    """The levels after the events: what ``THREE`` does, for one who knows these rules only."""
    level: dict[str, int] = {}
    left: dict[str, int] = {}
    entered: dict[str, int] = {}
    columns = (table.column(name).to_pylist() for name in ("ts", "type", "hcw"))
    for ts, kind, who in zip(*columns, strict=True):
        now = level.get(who, 0)
        if kind == "EXIT":
            left[who] = ts
        elif kind == "SANITIZE":
            left.pop(who, None)
            entered.pop(who, None)
            if now:
                level[who] = 0
        elif kind == "ENTER":
            if now == 0 and ts - left.get(who, -WARN - 1) <= WARN:
                level[who] = 1
            entered[who] = ts
        elif now == 1 and ts - entered.get(who, ts - VIOLATE - 1) <= VIOLATE:
            level[who] = 2
    return level


PARTS: dict[str, Callable[[int, int], str]] = {
    one.__name__: one for one in (read, lockstep, toggle, push, stepping, commit, plain)
}


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="part", help=", ".join(PARTS))
    parser.add_argument("--events", type=int, default=400_000)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    for part in asked.parts or PARTS:
        print(PARTS[part](asked.events, asked.rounds), flush=True)


if __name__ == "__main__":
    main()
