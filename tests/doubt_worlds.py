"""Random files of rules in which what is shed matters: rules on runs write what others read, at nearly every event.

The worlds of ``rule_worlds`` have the whole language, but few of their runs lead to a match that a reader depends on.
"""

from __future__ import annotations

from random import Random

from tests.rule_worlds import ATTRIBUTES, Row, RuleWorld

TABLES = (
    "TABLE t (k text, n int DEFAULT 0, m int DEFAULT 1, KEY (k))",
    "TABLE t (k text, n int, m int DEFAULT 1, KEY (k))",
)
READS = (
    *("store.t[{e}.k].n = 0", "store.t[{e}.k].n > 0", "store.t[{e}.s].n < 2", "store.t[{e}.k].m = 1"),
    *("EXISTS store.t[{e}.k]", "NOT EXISTS store.t[{e}.s]", "store.t[{e}.s].m != 0"),
)
SETS = ("n = 1", "n = 0", "n = old.n + 1", "m = old.n", "n = old.m, m = 1", "n = {e}.x", "m = 0")
PATTERNS = (
    *("SEQ(A a, B b)", "SEQ(A a, B b)", "SEQ(A a, ~(C c), B b)", "SEQ(A+ a, B b)", "SEQ(A a, C c, B b)"),
    *("SEQ(A a, B b, ~(C c))", "SEQ(A a, A b)", "SEQ(C a, B b)"),
)
CLAUSES = ("", "", "", "", " NON OVERLAP", " FIRST MATCH", " ERRORS 1 WEIGHTS (a = 2, b = 2)")


def doubt_world(seed: int) -> RuleWorld:
    """The world that comes of a seed."""
    random = Random(f"doubt {seed}")
    text = "\n".join([random.choice(TABLES), *(_rule(random, number) for number in range(random.choice((2, 2, 3, 4))))])
    rows = _stream(random)
    cuts = sorted(random.randrange(len(rows) + 1) for _ in range(random.choice((0, 1, 2, 4))))
    return RuleWorld(text, rows, {}, tuple(cuts))


LATE = """TABLE t (k text, n int DEFAULT 0, KEY (k))
TABLE u (k text, n int DEFAULT 0, KEY (k))
RULE r0 ON PATTERN SEQ(A a, B b) WHERE b.x > a.x WITHIN 6 DO UPDATE t SET n = old.n + 1 AT (b.k) END
RULE r1 ON PATTERN C e WHERE e.x > 1 WITHIN 0 DO UPDATE t SET n = 0 AT (e.k) END
RULE r2 ON PATTERN SEQ(A a, B b) WHERE store.t[a.k AT b].n > 0 WITHIN 3 DO UPDATE u SET n = 1 AT (b.k) END
RULE r3 ON PATTERN C e WHERE store.u[e.k].n = 0 WITHIN 0 DO UPDATE u SET n = 0 AT (e.s) END"""
"""Rules in no circle, of which one reads for one event as of another."""


SHEDS = """TABLE t (k text, s text DEFAULT 'a', n int DEFAULT 0, KEY (k))
TABLE u (k text, s text DEFAULT 'a', KEY (k))
RULE lost ON PATTERN SEQ(A a, B b) WHERE b.x * b.x > a.x * b.x WITHIN 99
DO UPDATE t SET s = 'c', n = old.n + 1 AT (b.k) END
"""
"""All of its runs are shed. Its condition is not asked of lost runs: what could not be completed leaves doubt, too."""
BY_HAND = {
    "several count": (
        "RULE see ON PATTERN F f WHERE store.t[f.k].n < 3 WITHIN 0",
        "A1 A1 A1 A1 A1 A9 Bp5 Fp0",
    ),
    "what leads on": (
        "RULE see ON PATTERN SEQ(D a, F f) WHERE store.t[a.k].s = 'a' WITHIN 99",
        "A3 A9 Bp5 Dp0 Fp0",
    ),
    "an earlier event": (
        """RULE also ON PATTERN SEQ(A a, C b) WHERE b.x * b.x > a.x * b.x WITHIN 99 DO UPDATE u SET s = 'b' AT (b.k) END
        RULE guarded ON PATTERN SEQ(D a, E b) WHERE store.t[a.k].s = 'a' AND store.u[b.k].s = 'a' WITHIN 99
        DO UPDATE u SET s = 'b' AT (b.k) END
        RULE see ON PATTERN F f WHERE store.u[f.k].s = 'b' WITHIN 0""",
        "A3 A9 Bp5 Cp1 Dp0 Ep0 Fp0",
    ),
    "another row": (
        """RULE guarded ON PATTERN E e WHERE store.t[e.k].s = 'a' WITHIN 0 DO UPDATE t SET s = 'b' AT (e.s) END
        RULE see ON PATTERN F f WHERE store.t[f.k].s != 'a' WITHIN 0""",
        "A3 A9 Bp5 Bq1 Ep0 Fq0",
    ),
    "two that write": (
        """RULE also ON PATTERN E e WITHIN 0 DO UPDATE t SET s = 'a' AT (e.k) END
        RULE guarded ON PATTERN E e WHERE store.t[e.k].s = 'a' WITHIN 0 DO UPDATE t SET s = 'b' AT (e.k) END
        RULE see ON PATTERN F f WHERE store.t[f.k].s != 'a' WITHIN 0""",
        "A3 A9 Bp5 Ep0 Fp0",
    ),
}
"""Rules and events, by what must be seen: type, key and ``x`` of each; ``s`` is ``q``."""


def world_by_hand(name: str) -> RuleWorld:
    """One of ``BY_HAND``."""
    rules, events = BY_HAND[name]
    rows = []
    for tick, event in enumerate(events.split()):
        values = (event[0], event[1:-1] or "p", 0, int(event[-1]), 0.5, "q", True)
        rows.append(dict(zip(ATTRIBUTES, (tick, *values), strict=True)))
    return RuleWorld(SHEDS + rules, tuple(rows), {}, ())


def late_world(seed: int) -> RuleWorld:
    """A stream for rules that read what is in doubt as of earlier events."""
    random = Random(f"late {seed}")
    rows = _stream(random)
    return RuleWorld(LATE, rows, {}, (random.randrange(len(rows)),))


LEVELS = ("= 'a'", "= 'b'", "!= 'a'", "!= 'c'", "= 'c'")
COUNTS = ("< 2", "> 0", "= 1", ">= 3")
STEPS = ("s = 'a'", "s = 'b'", "s = 'c'", "s = 'b', n = old.n + 1", "n = old.n + 1", "n = 0", "s = 'a', n = old.n - 1")


def circle_world(seed: int) -> RuleWorld:
    """Rules that keep a state: each asks for the level or the number that stands in the row which it writes."""
    random = Random(f"circle {seed}")
    rules = [_of_circle(random, number) for number in range(random.choice((3, 4, 5)))]
    table = "TABLE t (k text, s text DEFAULT 'a', n int DEFAULT 0, KEY (k))"
    rows = _stream(random)
    cuts = sorted(random.randrange(len(rows) + 1) for _ in range(random.choice((0, 1, 3))))
    return RuleWorld("\n".join([table, *rules]), rows, {}, tuple(cuts))


def _of_circle(random: Random, number: int) -> str:
    """A rule of a circle; the first ones have partial matches, of which some are shed."""
    is_long = number < 2 or random.random() < 0.4
    first, last = random.choice((("A", "B"), ("A", "C"), ("B", "C"), ("C", "B")))
    conditions = [random.choice(("b.x > a.x", "b.x >= a.x"))] if is_long else random.choice(([], ["b.x > 1"]))
    conditions += ["[k]"] if is_long and random.random() < 0.7 else []
    for event in ("b", "a") if is_long and random.random() < 0.4 else ("b",):
        column, asked = ("s", LEVELS) if random.random() < 0.65 else ("n", COUNTS)
        conditions.append(f"store.t[{event}.{random.choice('kks')}].{column} {random.choice(asked)}")
    pattern = f"SEQ({first} a, {last} b)" if is_long else f"{last} b"
    each = "FOR EACH POINT\n" if random.random() < 0.5 else ""
    action = f"UPDATE t SET {random.choice(STEPS)} AT (b.{random.choice('kkks')})"
    acts = f"\n{each}DO {action} END" if number < 2 or random.random() < 0.7 else ""
    within = random.choice((3, 6)) if is_long else 0
    return f"RULE r{number} ON PATTERN {pattern} WHERE {' AND '.join(conditions)} WITHIN {within}{acts}"


def _rule(random: Random, number: int) -> str:
    """A rule; the first ones are on runs and write, the others mostly read."""
    if number and random.random() < 0.35:
        return _single(random, number)
    pattern = random.choice(PATTERNS)
    late, kleene = pattern.endswith("~(C c))"), "+" in pattern
    conditions = ["b.x >= a[1].x" if kleene else "b.x >= a.x"] if number == 0 or random.random() < 0.6 else []
    if random.random() < 0.6:
        conditions.append("[k]")
    if number and random.random() < 0.75:
        conditions.append(_read(random, "b" if kleene or random.random() < 0.6 else "a"))
    if "~(C c)" in pattern and random.random() < 0.3:
        conditions.append(_read(random, "c"))
    if number and not kleene and not late and random.random() < 0.1:
        conditions.append("store.t[a.k AT b].n = 0")
        clause = ""
    else:
        clause = random.choice(CLAUSES)
    if "ERRORS" in clause and (kleene or "C c" not in pattern or "~" in pattern):
        clause = ""
    strategy = "skip_till_next_match" if random.random() < 0.15 and "AT b" not in " ".join(conditions) else ""
    where = " AND ".join(conditions) or "a.x = a.x"
    if strategy:
        names = ", ".join(name for name in "acb" if f" {name}" in pattern and f"~(C {name})" not in pattern)
        where = f"{strategy}({names}) {{ {where} }}"
    when = f"\n  WHEN {_read(random, 'b')}" if random.random() < 0.25 else ""
    window = random.choice((2, 4, 8, 8)) if random.random() < 0.9 else "6 EVENTS"
    each = "FOR EACH POINT\n" if random.random() < 0.2 and not late else ""
    event = "b" if each or random.random() < 0.8 or kleene else "a"
    actions = [_write(random, event) for _ in range(random.choice((1, 1, 2)))]
    head = f"RULE r{number} ON PATTERN {pattern} WHERE {where} WITHIN {window}{clause}"
    return f"{head}{when}\n{each}DO {'; '.join(actions)} END"


def _single(random: Random, number: int) -> str:
    """A rule of one event, which cells answer: it reads, or puts what is in doubt right."""
    kind = random.choice("ABC")
    where = random.choice((_read(random, "e"), "e.x > 1", "e.x = e.x"))
    acts = f"\nDO {_write(random, 'e')} END" if random.random() < 0.7 else ""
    return f"RULE r{number} ON PATTERN {kind} e WHERE {where} WITHIN 0{acts}"


def _read(random: Random, event: str) -> str:
    return random.choice(READS).format(e=event)


def _write(random: Random, event: str) -> str:
    key = random.choice((f"{event}.k", f"{event}.k", f"{event}.s"))
    if random.random() < 0.12:
        return f"DELETE t AT ({key})"
    return f"{random.choice(('UPDATE', 'UPSERT'))} t SET {random.choice(SETS).format(e=event)} AT ({key})"


def _stream(random: Random) -> tuple[Row, ...]:
    """Thirty to sixty events of few keys, none of them missing."""
    tick, rows = 0, []
    steps, types = random.choice(((1,), (0, 1, 1), (0, 0, 1, 2))), random.choice(("AAB", "AABC", "ABC", "ABBC"))
    for _ in range(random.choice((30, 40, 60))):
        tick += random.choice(steps)
        kind, key, x, other = (random.choice(some) for some in (types, "pq", (0, 1, 2, 3), "pqu"))
        values = (kind, key, 0, x, 0.5, other, True)
        rows.append(dict(zip(ATTRIBUTES, (tick, *values), strict=True)))
    return tuple(rows)
