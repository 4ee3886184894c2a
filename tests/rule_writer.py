"""Writes random files of rules, as text, for ``rule_worlds``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from tests.rule_patterns import Part, PatternWriter

KINDS: dict[str, tuple[Any, ...]] = {
    "int": (0, 1, 2),
    "float": (0.5, 1.0),
    "text": ("p", "q"),
    "bool": (True, False),
}
"""Some values of each kind."""
OF_EVENTS = {"int": ("x", "x", "j"), "float": ("y",), "text": ("s", "k"), "bool": ("f",)}
"""The attributes of each kind."""
STRATEGIES = ("skip_till_next_match", "skip_till_next_match", "partition_contiguity", "strict_contiguity")
CALLS = ("ring", "mail")
LATE = {"cells": 0.0, "acyclic": 0.15, "any": 0.15, "late": 0.6}
"""How many patterns end with a negation, in each kind of worlds."""
SHARED = ((), (), (), ("k",), ("k",), ("k",), ("k",), ("j",), ("k", "j"))
CHOOSING = (
    *("NON OVERLAP",) * 3,
    *("FIRST MATCH", "CONSUME", "EVERY 2", "AFTER MATCH SKIP TO NEXT ROW", "FIRST MATCH EVERY 1"),
)
COMPARE = ("=", "=", "!=", "!=", "<", "<=", "<=", ">", ">=", ">=")


def value(random: Random, kind: str) -> Any:
    """A value of a kind, or NULL."""
    return random.choice((*KINDS[kind], *KINDS[kind], None))


def constant(random: Random, kind: str) -> str:
    """A value of a kind, as text."""
    return written(random.choice(KINDS[kind]))


def written(one: Any) -> str:
    """A value as text."""
    return f"'{one}'" if isinstance(one, str) else str(one).upper() if isinstance(one, bool) else str(one)


@dataclass(frozen=True)
class TableNames:
    """A table: the kinds of its columns by name."""

    name: str
    keys: dict[str, str]
    values: dict[str, str]
    text: str
    is_total: bool
    is_static: bool = False


class FileWriter:
    """Writes one file. ``failures``: its actions may fail."""

    def __init__(self, random: Random, kind: str, *, failures: bool) -> None:
        self.random, self.kind, self.failures = random, kind, failures
        self.tables: list[TableNames] = []

    def chance(self, share: float) -> bool:
        """True in so many cases."""
        return self.random.random() < share

    def file(self) -> str:
        """The text."""
        dynamic = self.random.choice((1, 1, 2, 2, 3) if self.kind != "acyclic" else (2, 3))
        self.tables = [self.table(f"t{i}", is_static=False) for i in range(dynamic)]
        if self.chance(0.4):
            self.tables.append(self.table("u", is_static=True))
        rules = [RuleWriter(self, f"r{i}").rule() for i in range(self.random.choice((1, 2, 2, 3, 3, 3, 4, 6)))]
        return "\n".join([*(table.text for table in self.tables), *rules])

    def table(self, name: str, *, is_static: bool) -> TableNames:
        """A table."""
        choices: tuple[dict[str, str], ...] = ({"k": "text"}, {"k": "text"}, {"j": "int"}, {"k": "text", "j": "int"})
        keys = self.random.choice(choices)
        columns = [("n", "int"), ("m", "int"), ("v", "float"), ("w", "text"), ("g", "bool")]
        values = dict(self.random.sample(columns, self.random.choice((1, 1, 2, 3))))
        if "n" not in values and self.chance(0.5):
            values = {"n": "int", **values}
        is_total = self.chance(0.5)
        texts = [f"{name} {kind}" for name, kind in keys.items()]
        for i, (one, kind) in enumerate(values.items()):
            has_default = is_total or (i > 0 and self.chance(0.4))
            texts.append(f"{one} {kind}" + (f" DEFAULT {constant(self.random, kind)}" if has_default else ""))
        text = f"TABLE {name} ({', '.join(texts)}, KEY ({', '.join(keys)})){' STATIC' * is_static}"
        return TableNames(name, keys, values, text, is_total, is_static)


class RuleWriter:
    """Writes one rule."""

    def __init__(self, file: FileWriter, name: str) -> None:
        self.file, self.name = file, name
        self.random, self.chance, self.kind = file.random, file.chance, file.kind
        self.is_plain = file.kind == "cells"
        dynamic = [table for table in file.tables if not table.is_static]
        static = [table for table in file.tables if table.is_static]
        self.read_tables, self.written_tables = file.tables, dynamic
        if file.kind == "acyclic":
            level = self.random.randrange(len(dynamic) + 1)
            self.read_tables, self.written_tables = dynamic[:level] + static, dynamic[level:]
        self.pattern = PatternWriter(self.random, is_plain=self.is_plain, late=LATE[self.kind]).write()
        self.shared: tuple[str, ...] = ()
        self.strategy = "skip_till_any_match"
        self.non_overlap = False
        self.not_null: set[tuple[str, str]] = set()
        self.uses_old = True

    # --- the rule ---

    def rule(self) -> str:
        """The text."""
        self.shared = self.random.choice(SHARED)
        if self.kind == "any" and self.chance(0.3):
            self.strategy = self.random.choice(STRATEGIES)
        is_count = self.chance(0.15) and not self.pattern.ends_late
        is_simultaneous = self.kind != "cells" and not is_count and self.chance(0.07)
        self.non_overlap = self.kind == "any" and not is_simultaneous and self.chance(0.12)
        conditions = self.conditions()
        when = f"WHEN {self.when()}" if self.chance(0.35) else ""
        does = self.does()
        required = sorted(f"{one}.{name} IS NOT NULL" for one, name in self.not_null if name not in self.shared)
        where = " AND ".join([*(f"[{name}]" for name in self.shared), *required, *conditions])
        if self.strategy != "skip_till_any_match":
            where = f"{self.strategy} {{ {where} }}" if where else self.strategy
        window = f"{self.random.choice((2, 3, 4, 6, 8))} events" if is_count else self.random.choice((1, 3, 4, 5, 6, 8))
        lines = [
            f"RULE {self.name} ON PATTERN {self.pattern.text}",
            f"WHERE {where}" if where else "",
            f"WITHIN {window}",
            "SIMULTANEOUS" if is_simultaneous else "",
            self.pattern.errors,
            Random(where).choice(CHOOSING) if self.non_overlap else "",
            self.returns() if self.chance(0.25) else "",
            when,
            does,
        ]
        return "\n  ".join(line for line in lines if line)

    # --- what is read ---

    def key(self, table: TableNames, event: str, *, all_constant: bool = False) -> str:
        """A key that names an event."""
        texts, named = [], False
        for kind in table.keys.values():
            options = {"text": ("k", "k", "k", "s"), "int": ("j", "j", "x")}[kind]
            is_constant = all_constant or (len(table.keys) > 1 and named and self.chance(0.3))
            text = constant(self.random, kind) if is_constant else f"{event}.{self.random.choice(options)}"
            if kind == "int" and not is_constant and self.chance(0.08):
                text += " + 1"
            named = True
            texts.append(text)
        return ", ".join(texts)

    def read(self, event: str) -> tuple[str, str]:
        """A read as of an event, and the kind of its column; the kind is bool for EXISTS."""
        table = self.random.choice(self.read_tables)
        row = f"store.{table.name}[{self.key(table, event)}]"
        if self.chance(0.12):
            return f"EXISTS {row}", "exists"
        if self.chance(0.06):
            row = f"store.{table.name}[{self.key(table, event, all_constant=True)} AT {event}]"
        elif self.chance(0.1) and self.shared == ("k",) and tuple(table.keys) == ("k",):
            other = self.random.choice(self.pattern.positive)
            row = f"store.{table.name}[{other.variable}{'[1]' if other.kind == 'kleene' else ''}.k AT {event}]"
        column, kind = self.random.choice(list(table.values.items()))
        return f"{row}.{column}", kind

    def late_read(self) -> tuple[str, str] | None:
        """A read of a row that one event names, as of another."""
        if len(self.pattern.positive) < 2:
            return None
        one, other = self.random.sample(self.pattern.positive, 2)
        if self.chance(0.5):  # as of the earlier event, mostly
            one, other = self.pattern.positive[-1], self.random.choice(self.pattern.positive[:-1])
        table = self.random.choice(self.read_tables)
        at = self.random.choice(("", "[1]", f"[{other.variable}.LEN]", "[i]")) if other.kind == "kleene" else ""
        of = self.random.choice(("[1]", f"[{one.variable}.LEN]", "[i]")) if one.kind == "kleene" else ""
        column, kind = self.random.choice(list(table.values.items()))
        key = self.key(table, f"{one.variable}{of}")
        return f"store.{table.name}[{key} AT {other.variable}{at}].{column}", kind

    def test(self, text: str, kind: str, events: Sequence[str]) -> str:
        """A condition on what is read: compared with constants, or with attributes of some events."""
        negation = self.random.choice(("", "NOT "))
        if kind == "exists":
            return f"{negation}{text}"
        if events and self.chance(0.4):
            operator = self.random.choice(COMPARE if kind in ("int", "float") else ("=", "!="))
            plus = " + 1" if kind == "int" and self.chance(0.02 if self.is_plain else 0.2) else ""
            return f"{text}{plus} {operator} {self.random.choice(events)}.{self.random.choice(OF_EVENTS[kind])}"
        match self.random.choice(("compare",) * 5 + ("null", "in", "between")):
            case "null":
                return f"{text} IS {negation}NULL"
            case "in" if kind != "bool":
                return f"{text} {negation}IN ({', '.join(map(written, self.random.sample(KINDS[kind], 2)))})"
            case "between" if kind in ("int", "float"):
                low, high = sorted(self.random.choices(KINDS[kind], k=2))
                return f"{text} {negation}BETWEEN {low} AND {high}"
        operator = self.random.choice(("=", "!=") if kind == "bool" else COMPARE)
        return f"{text} {operator} {constant(self.random, kind)}"

    def reading(self, part: Part) -> str:
        """A condition that reads as of an event of a variable."""
        event = part.one(self.random)
        text, kind = self.read(event)
        others = [event]
        if not self.is_plain and self.chance(0.5):
            others += [one.one(self.random) for one in self.pattern.positive if one != part]
        tested = self.test(text, kind, others)
        if self.chance(0.12):
            return f"({tested} OR {event}.x {self.random.choice(COMPARE)} {self.random.randrange(3)})"
        if self.chance(0.05):
            return f"NOT ({tested})"
        return tested

    def conditions(self) -> list[str]:
        """The conditions of WHERE, without what actions need."""
        found = []
        for part in self.pattern.parts:
            if self.chance(0.12):
                number = f"x {self.random.choice(COMPARE)} {self.random.randrange(3)}"
                found.append(f"{part.one(self.random)}." + self.random.choice((number, "s != 'u'", "f = TRUE")))
        if self.read_tables:
            parts = (*self.pattern.parts, self.pattern.positive[-1])
            found += [self.reading(self.random.choice(parts)) for _ in range(self.random.choice((0, 1, 1, 1, 1, 2)))]
        if not self.is_plain:
            found += self.across()
        return found

    def across(self) -> list[str]:
        """Conditions across events, and reads as of another event."""
        found = []
        positive, negated = self.pattern.positive, [part for part in self.pattern.parts if part.kind == "negated"]
        if len(positive) > 1 and self.chance(0.3):
            one, other = self.random.sample(positive, 2)
            if not one.kind == other.kind == "kleene":
                attribute, operator = self.random.choice((("x", "<="), ("x", "<"), ("y", ">="), ("s", "!=")))
                found.append(f"{one.one(self.random)}.{attribute} {operator} {other.one(self.random)}.{attribute}")
        if negated and self.chance(0.2):
            one = self.random.choice(positive)
            found.append(f"{self.random.choice(negated).variable}.x >= {one.one(self.random)}.x")
        kleene = [part for part in positive if part.kind == "kleene"]
        if kleene and self.chance(0.2):
            found.append(f"{kleene[0].variable}[i].x >= {kleene[0].variable}[i-1].x")
        may_be_late = self.strategy == "skip_till_any_match" and not self.non_overlap
        if self.read_tables and may_be_late and self.chance(0.7 if self.kind == "late" else 0.3):
            late = self.late_read()
            if late is not None:
                events = [one.variable for one in positive if one.kind != "kleene"] if self.chance(0.4) else []
                found.append(self.test(*late, events))
        return found

    def when(self) -> str:
        """What WHEN asks."""
        parts = [self.pattern.last] if self.is_plain and self.pattern.last else self.pattern.positive
        found = []
        for _ in range(self.random.choice((1, 1, 2))):
            event = self.one_event(self.random.choice(parts))
            tested = f"{event}.x {self.random.choice(COMPARE)} {self.random.randrange(3)}"
            if self.read_tables and self.chance(0.8):
                text, kind = self.read(event)
                while " AT " in text:
                    text, kind = self.read(event)
                tested = self.test(text, kind, [event])
            found.append(tested)
        return self.random.choice((" AND ", " OR ")).join(found)

    def returns(self) -> str:
        """RETURN, with reads."""
        found = []
        for part in self.pattern.positive:
            event = self.one_event(part)
            found.append(f"{event}.{self.random.choice(('x', 'ts', 's', 'k'))}")
            if self.read_tables and self.chance(0.6):
                found.append(self.read(event)[0])
            if part.kind == "kleene":
                found.append(f"count({part.variable}[])")
        return "RETURN " + ", ".join(f"{text} AS c{i}" for i, text in enumerate(found))

    # --- actions ---

    def does(self) -> str:
        """The actions; none where there is nothing that they may name, and now and then."""
        events = self.named_by_actions()
        if not events or self.chance(0.08):
            return ""
        each = ""
        if self.pattern.last is not None and not self.pattern.ends_late and self.chance(0.2):
            each, events = "FOR EACH POINT ", [self.pattern.last]
        if self.is_plain and not each and len(self.pattern.parts) > 1:
            self.uses_old = self.chance(0.1)
        actions = []
        for _ in range(self.random.choice((1, 1, 1, 2, 3))):
            writes = self.written_tables and self.chance(0.85)
            actions.append(self.write(events) if writes else self.call(events))
        return f"{each}DO {'; '.join(actions)} END"

    def call(self, events: list[Part]) -> str:
        """CALL with up to two arguments."""
        kinds = self.random.choices(list(KINDS), k=self.random.randrange(3))
        arguments = ", ".join(self.value(kind, events, {}) for kind in kinds)
        return f"CALL {self.random.choice(CALLS)}" + (f"({arguments})" if arguments else "")

    def named_by_actions(self) -> list[Part]:
        """The variables that they may name."""
        if self.is_plain:
            return [self.pattern.last] if self.pattern.last else []
        return self.pattern.sure

    def write(self, events: list[Part]) -> str:
        """UPDATE, UPSERT or DELETE."""
        table = self.random.choice(self.written_tables)
        key = ", ".join(self.key_part(kind, events) for kind in table.keys.values())
        if self.chance(0.1):
            return f"DELETE {table.name} AT ({key})"
        kind = self.random.choice(("UPDATE", "UPDATE", "UPSERT") if table.is_total else ("UPDATE", "UPSERT", "UPSERT"))
        columns = self.random.sample(list(table.values.items()), self.random.randint(1, len(table.values)))
        sets = ", ".join(f"{name} = {self.value(kind, events, table.values)}" for name, kind in columns)
        return f"{kind} {table.name} SET {sets} AT ({key})"

    def key_part(self, kind: str, events: list[Part]) -> str:
        """A part of the key of a row to write; mostly it is known not to be NULL."""
        if self.chance(0.08):
            return constant(self.random, kind)
        name = self.random.choice({"text": ("k", "k", "k", "k", "s"), "int": ("j", "j", "j", "x")}[kind])
        part = self.random.choice(events)
        if name in self.shared and self.chance(0.4):
            part = self.random.choice(self.pattern.sure)
        if not self.file.failures:
            self.not_null.add((f"{part.variable}[i]" if part.kind == "kleene" else part.variable, name))
        return f"{self.one_event(part)}.{name}"

    def one_event(self, part: Part) -> str:
        """The event of a variable, or one of its events."""
        if part.kind != "kleene":
            return part.variable
        return part.variable + self.random.choice(("[1]", f"[{part.variable}.LEN]"))

    def value(self, kind: str, events: list[Part], columns: dict[str, str]) -> str:
        """An expression of a kind; ``columns`` are those of the row that is written."""
        part = self.random.choice(events)
        attribute = f"{self.one_event(part)}.{self.random.choice(OF_EVENTS[kind])}"
        old = [f"old.{name}" for name, one in columns.items() if one == kind and self.uses_old]
        options = [constant(self.random, kind)] * 3 + [attribute] * 2
        if old and kind in ("int", "float"):
            options += [f"{self.random.choice(old)} + {constant(self.random, kind)}"] * 3
            options += [f"{self.random.choice(old)} - {attribute}"]
        elif old:
            options += [self.random.choice(old)] * 2
        if part.kind == "kleene" and kind == "int":
            options += [f"sum({part.variable}[].x)", f"count({part.variable}[])"] * 2
        if kind == "float":
            options += [f"{self.one_event(part)}.x"]
        if columns and self.chance(0.04):
            return "NULL"
        if self.file.failures and kind == "int":
            options += [f"{self.one_event(part)}.y", "4611686018427387904", *(f"{one} * 4" for one in old)]
        return self.random.choice(options)
