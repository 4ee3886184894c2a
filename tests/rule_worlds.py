"""Random files of rules, as text, with random streams and tables; the same seed gives the same.

Kinds of worlds:

``cells``: rules that read what they and others write, without conditions across events; what is read is compared with
constants, or with what the same event says; actions name the last event, or what all events of a match share, and
mostly do the same for each match of an event.
``acyclic``: no rule writes a table that it or a rule which it feeds reads.
``late``: most rules end with a negation, or read as of another event than that whose key they have.
``any``: the whole language of rules, in cycles.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from random import Random
from typing import Any, Literal

import pyarrow as pa

from acep_approx.query.rules.parser import parse_rules
from acep_approx.query.rules.syntax import RuleFile
from acep_approx.query.rules.syntax import Table as TableSyntax
from acep_approx.query.shape import atoms, kleene_variables
from acep_approx.query.syntax import QuerySyntax
from tests.naive_rules import Outcome, run_rules
from tests.rule_writer import KINDS, FileWriter, value

Kind = Literal["cells", "acyclic", "late", "any"]
KINDS_OF_WORLDS: tuple[Kind, ...] = ("cells", "acyclic", "late", "any", "any")
Row = dict[str, Any]
ATTRIBUTES = {
    "ts": pa.int64(),
    "type": pa.string(),
    "k": pa.string(),
    "j": pa.int64(),
    "x": pa.int64(),
    "y": pa.float64(),
    "s": pa.string(),
    "f": pa.bool_(),
}
"""The columns of a stream."""
MOST_IN_A_WINDOW = 14
HELD = {"int": pa.int64(), "float": pa.float64(), "text": pa.string(), "bool": pa.bool_()}
"""The types of the columns of tables."""


@dataclass(frozen=True)
class RuleWorld:
    """A file of rules, the rows its tables begin with, and a stream.

    ``cuts`` are where its batches end, ``attributes`` the columns of its events.
    """

    text: str
    rows: tuple[Row, ...]
    tables: Mapping[str, Sequence[Row]] = field(default_factory=dict)
    cuts: tuple[int, ...] = ()
    attributes: Mapping[str, pa.DataType] = field(default_factory=lambda: ATTRIBUTES)

    @cached_property
    def file(self) -> RuleFile:
        """The tree."""
        return parse_rules(self.text)

    @cached_property
    def expected(self) -> Outcome:
        """What comes of it, by brute force."""
        return run_rules(self.file, self.rows, self.tables)

    def events(self) -> pa.Table:
        """The stream as columns."""
        columns = self.attributes.items()
        return pa.table({name: pa.array([row[name] for row in self.rows], kind) for name, kind in columns})

    def batches(self, cuts: Sequence[int] | None = None) -> list[pa.Table]:
        """The stream in parts, which may be empty."""
        events, ends = self.events(), [*(self.cuts if cuts is None else cuts), len(self.rows)]
        return [events.slice(low, high - low) for low, high in zip([0, *ends], ends, strict=False)]

    def store(self) -> dict[str, pa.Table]:
        """What the tables begin with, as columns."""
        found = {}
        for table in self.file.tables:
            if table.name in self.tables:
                rows = self.tables[table.name]
                columns = {c.name: pa.array([row[c.name] for row in rows], HELD[c.holds]) for c in table.columns}
                found[table.name] = pa.table(columns)
        return found


def rule_world(seed: int, kind: Kind | None = None, *, failures: bool | None = None) -> RuleWorld:
    """The world that comes of a seed.

    ``failures``: whether actions may fail, which ends a run; mostly they may not.
    """
    random = Random(f"{seed} {kind}")
    kind = kind or random.choice(KINDS_OF_WORLDS)
    failures = random.random() < 0.08 if failures is None else failures
    writer = FileWriter(random, kind, failures=failures)
    text = writer.file()
    rows = stream(random)
    file = parse_rules(text)
    tables = {
        table.name: table_rows(random, table)
        for table in file.tables
        if table.is_static or random.random() < (0.3 if table.is_total else 0.85)
    }
    while any(most_in_a_window(rule.query, rows) > MOST_IN_A_WINDOW for rule in file.rules):
        rows = rows[:-1]
    cuts = sorted(random.randrange(len(rows) + 1) for _ in range(random.choice((0, 1, 1, 2, 3, 5))))
    return RuleWorld(text, rows, tables, tuple(cuts))


def most_in_a_window(query: QuerySyntax, rows: Sequence[Row]) -> int:
    """How many events of one window and key a repetition may take: brute force looks at each subset of them."""
    several = kleene_variables(query.pattern)
    types = {atom.type for atom in atoms(query.pattern) if atom.variable in several}
    taken = [row for row in rows if None in types or row["type"] in types]
    if query.window.unit == "events":
        return 0
    names, most = [one.name for one in query.equivalences], 0
    for first in taken:
        until, key = first["ts"] + query.window.amount, [first[name] for name in names]
        alike = [row for row in taken if [row[name] for name in names] == key]
        most = max(most, sum(first["ts"] <= row["ts"] <= until for row in alike))
    return most


def stream(random: Random) -> tuple[Row, ...]:
    """Five to forty events with ties in time, few keys, and missing values."""
    tick, rows = random.choice((0, 1, -3)), []
    keys, steps = random.choice(("p", "pq", "pq", "pqr")), random.choice(((1,), (0, 1, 1, 2), (0, 0, 1), (0, 1, 1, 4)))
    for _ in range(random.choice((5, 10, 15, 20, 25, 30, 40, 40))):
        tick += random.choice(steps)
        values = (
            random.choice("AAABBBC"),
            random.choice(keys) if random.random() < 0.96 else None,
            random.choice((0, 1, 1, 2)) if random.random() < 0.96 else None,
            random.choice((0, 1, 2, 3, None)),
            random.choice((0.5, 1.0, 2.0, 2.5, -1.0, None)),
            random.choice(("u", "v", "p", "q", None)),
            random.choice((True, False, None)),
        )
        rows.append(dict(zip(ATTRIBUTES, (tick, *values), strict=True)))
    return tuple(rows)


def table_rows(random: Random, table: TableSyntax) -> list[Row]:
    """Some rows, no key twice."""
    found: dict[tuple[Any, ...], Row] = {}
    for _ in range(random.choice((3, 5, 8))):
        row = {column.name: value(random, column.holds) for column in table.columns}
        row |= {column.name: random.choice(KINDS[column.holds]) for column in table.keys}
        found[tuple(row[name] for name in table.key)] = row
    return list(found.values())
