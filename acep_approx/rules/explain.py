"""Rules in words: who writes and reads which table, who waits for whom, what runs each part of a rule, and why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

from acep_approx.diagrams.graph import Edge, Graph, Group, Node
from acep_approx.diagrams.svg import WRITERS
from acep_approx.errors import UsageError
from acep_approx.planning.explain import section
from acep_approx.planning.many_matches import REMEDY, why_many
from acep_approx.query.printer import event_name, field_name, to_text
from acep_approx.query.rules.named_events import as_of, is_late, reads_of_query
from acep_approx.query.rules.syntax import Call, Table
from acep_approx.rules.compiled import CompiledRule
from acep_approx.rules.graph import PRESENCE, Cell, Part, Stage
from acep_approx.rules.lockstep.eligible import Planned, planned_stages
from acep_approx.rules.program import Program
from acep_approx.visible import printable

DRIVERS = {
    "batch": "over a whole batch at a time",
    "lockstep": "in one kernel, event by event",
    "stepping": "in turn, in the order of the stream, one transaction after the other",
}
"""What the drivers do, by their names."""


def driver_of(planned: Planned) -> str:
    """What runs a stage: "batch", or for a circle "lockstep", or "stepping" where the kernel cannot."""
    if not planned.stage.is_cycle:
        return "batch"
    return "lockstep" if planned.in_kernel else "stepping"


def explain(program: Program) -> str:
    """A program in words.

    Parameters
    ----------
    program : Program

    Examples
    --------
    >>> from acep_approx import compile_rules
    >>> text = compile_rules('''
    ... TABLE seen (id text, n int DEFAULT 0, KEY (id))
    ... RULE count ON PATTERN Login a WITHIN 1 DO UPDATE seen SET n = old.n + 1 AT (a.user) END
    ... RULE third ON PATTERN Login a WHERE store.seen[a.user].n = 2 WITHIN 1
    ... ''').explain()
    >>> [line for line in text.splitlines() if "->" in line]
    ['graph    count -> third, because of seen.n']
    """
    words = _Words(program)
    sections = [
        *(("table", [*words.table(table)]) for table in program.file.tables),
        ("graph", [*words.edges()] or ["no rule reads what a rule writes"]),
        *(("circle", [text]) for text in words.circles()),
        *((f"stage {number}", [*words.stage(stage)]) for number, stage in enumerate(words.stages, 1)),
        *(("rule", [*words.rule(rule)]) for rule in program.rules),
    ]
    return printable("\n".join(line for label, texts in sections for line in section(label, texts)))


def many_matches(rule: CompiledRule) -> str | None:
    """Say why a rule may have more matches than anybody reads, and what limits them; None where its clauses do."""
    why = why_many(rule.plan) if rule.lists else None
    return why and f"{why}: FOR EACH POINT acts once for each event that completes a match. {REMEDY}"


def drawn(program: Program, format: str = "mermaid") -> str:  # noqa: A002  (as on the command line)
    """Rules and tables as a diagram: arrows lead from tables to rules that read them, and on to what these write.

    Parameters
    ----------
    program : Program
    format : {"mermaid", "dot", "svg"}

    Raises
    ------
    UsageError
        ``ACEP-U001``: no such format.
    """
    if format not in WRITERS:
        raise UsageError(f"there is no format {format!r}", code="ACEP-U001", hint="choose one of " + ", ".join(WRITERS))
    return WRITERS[format](graph_of(program))


class _Words:
    """Sentences about the parts of a program."""

    def __init__(self, program: Program) -> None:
        self.graph = program.graph
        self.rules = program.rules
        self.stages = [  # those in which more is done than that matches are handed on
            one
            for one in planned_stages(program, "auto")
            if one.stage.detecting or any(_does(self.rules[rule]) for rule in one.stage.firing)
        ]
        self.number = {part: number for number, one in enumerate(self.stages, 1) for part in one.stage.parts}

    def _names(self, rules: Iterable[int]) -> str:
        return _and([self.rules[number].name for number in sorted(set(rules))])

    # --- tables and the graph -----------------------------------------------------------------------------------

    def table(self, table: Table) -> Iterator[str]:
        """What a table is, who writes it and who reads it."""
        if table.is_static:
            what = "static: no rule writes it"
        elif table.is_total:
            what = "total: each key has a row, with defaults where nothing was written"
        else:
            what = "a key has a row if one was loaded or made"
        yield f"{table.name}, by {_and([field_name(name) for name in table.key])}; {what}"
        for verb, uses in (("written by", _written), ("read by", _read)):
            some = [f"{rule.name} ({columns})" for rule in self.rules if (columns := uses(rule, table.name))]
            if some:
                yield f"{verb} {', '.join(some)}"
            elif not (table.is_static and uses is _written):
                yield f"{verb} nobody"

    def edges(self) -> Iterator[str]:
        """Which rules write what others read."""
        cells: dict[tuple[int, int], set[Cell]] = {}
        for (reader, _), waits in self.graph.waits.items():
            for (writer, _), some in waits.items():
                if some:
                    cells.setdefault((writer, reader), set()).update(some)
        for (writer, reader), some in sorted(cells.items()):
            yield f"{self.rules[writer].name} -> {self.rules[reader].name}, because of {_cells(some)}"

    def circles(self) -> Iterator[str]:
        """Which rules wait for one another."""
        for stage in self.graph.stages():
            members = sorted({rule for rule, _ in stage.parts})
            if stage.is_cycle and len(members) == 1:
                yield f"{self.rules[members[0]].name} reads what it writes"
            elif stage.is_cycle:
                yield f"{self._names(members)} read what rules among them write"

    # --- stages -------------------------------------------------------------------------------------------------

    def stage(self, planned: Planned) -> Iterator[str]:
        """What runs a stage, and what is done in it."""
        stage, driver = planned.stage, driver_of(planned)
        yield f"{driver}: {DRIVERS[driver]}"
        if driver == "stepping":
            yield f"not in one kernel, because {planned.why_not}"
        if stage.detecting:
            yield _verb(self._names(stage.detecting), stage.detecting, "detect")
        for verb in ("fire", "test"):
            some = [rule for rule in stage.firing if _does(self.rules[rule]) == verb]
            if some:
                object_ = " complete matches" if verb == "test" else ""
                yield f"{_verb(self._names(some), some, verb)}{object_}"

    # --- rules --------------------------------------------------------------------------------------------------

    def rule(self, rule: CompiledRule) -> Iterator[str]:
        """How a rule is run, and why."""
        yield rule.name
        yield self._part(rule, "detect", "detects")
        if verb := _does(rule):
            yield self._part(rule, "fire", {"fire": "fires", "test": "tests complete matches"}[verb])
        yield from self._engine(rule)
        yield from self._reads(rule)
        yield "its matches are listed" if rule.lists else "its matches are not listed: points say all that is asked"
        if (why := many_matches(rule)) is not None:
            yield why
        if rule.is_late:
            yield "a negation at its end makes matches wait until their windows have closed; they are transactions then"

    def _part(self, rule: CompiledRule, which: Literal["detect", "fire"], verb: str) -> str:
        part: Part = (rule.number, which)
        planned = self.stages[self.number[part] - 1]
        where = f"{verb} in stage {self.number[part]}, {driver_of(planned)}: "
        if planned.stage.is_cycle:
            return where + self._in_circle(part, planned.stage)
        others = [other for other in self.graph.waits[part] if other[0] != rule.number]
        if not others:
            own = "its matches and for nobody else" if which == "fire" else "nobody"
            return where + f"waits for {own}"
        cells = set().union(*(self.graph.waits[part][other] for other in others))
        return where + f"waits for {self._names(other[0] for other in others)}, because of {_cells(cells)}"

    def _in_circle(self, part: Part, stage: Stage) -> str:
        """Why a part is run in turn: because of what it reads, or, if it reads nothing, of who waits for it."""
        mine = set(stage.parts)
        waits = {other: cells for other, cells in self.graph.waits[part].items() if other in mine and cells}
        if waits:
            writers = _verb(self._names(rule for rule, _ in waits), (rule for rule, _ in waits), "write")
            return f"it reads {_cells(set().union(*waits.values()))}, which {writers}"
        readers = {
            other: self.graph.waits[other][part]
            for other in stage.parts
            if part in self.graph.waits[other] and self.graph.waits[other][part]
        }
        if not readers:
            return "it goes along with the circle, which needs it"
        cells = set().union(*readers.values())
        own = _verb(self._names(rule for rule, _ in readers), (rule for rule, _ in readers), "read")
        return f"it writes {_cells(cells)}, which {own}"

    def _engine(self, rule: CompiledRule) -> Iterator[str]:
        plan = rule.plan
        if plan.engine == "cells":
            yield "engine cells, because one event alone decides each condition"
            return
        yield f"engine {plan.engine}"
        yield from (f"because the cells cannot answer {why}" for why in plan.why_runs)

    def _reads(self, rule: CompiledRule) -> Iterator[str]:
        query = rule.rule.query
        for read in dict.fromkeys(reads_of_query(query)):
            event = as_of(read, query)
            assert event is not None, "checks refuse reads of no event"
            if is_late(read, query):
                yield f"reads {to_text(read)} late: of complete matches, as of {event_name(event)}"
            else:
                yield f"reads {to_text(read)} as a column of the events {event_name(event)}"
        for read in rule.when_reads:
            yield f"reads {to_text(read)} for WHEN, as of the event that completes the match"


def _does(rule: CompiledRule) -> Literal["fire", "test"] | None:
    """What a rule does with its matches, beside handing them on."""
    if rule.rule.actions:
        return "fire"
    return "test" if rule.when_reads or rule.late or rule.conditions else None


def _written(rule: CompiledRule, table: str) -> str:
    """The columns that a rule writes, and whether it deletes rows."""
    writes = [write for write in rule.writes if write.table == table]
    columns = [*dict.fromkeys(field_name(one.column) for write in writes for one in write.sets)]
    whole = [f"{write.kind}s rows" for write in writes if write.kind == "delete"]
    return ", ".join([*columns, *dict.fromkeys(whole)])


def _read(rule: CompiledRule, table: str) -> str:
    """The columns that a rule reads."""
    reads = [read for read in (*reads_of_query(rule.rule.query), *rule.when_reads) if read.table == table]
    return ", ".join(dict.fromkeys("EXISTS" if read.column is None else field_name(read.column) for read in reads))


def _cells(cells: Iterable[Cell]) -> str:
    """Columns in words; that rows come and go is told only of tables of which no column is named."""
    named = sorted((table, column) for table, column in cells if column != PRESENCE)
    bare = sorted({table for table, _ in cells} - {table for table, _ in named})
    texts = [f"{table}.{field_name(column)}" for table, column in named]
    return _and([*texts, *(f"which rows {table} has" for table in bare)])


def _and(texts: list[str]) -> str:
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"


def _verb(names: str, rules: Iterable[int], verb: str) -> str:
    return f"{names} {verb}{'s' if len(set(rules)) == 1 else ''}"


# --- pictures ---------------------------------------------------------------------------------------------------


def graph_of(program: Program) -> Graph:
    """Tables, rules and calls as a graph to be drawn; the rules of a circle are a group."""
    tables = [
        Node(f"t{number}", table.name + " STATIC" * table.is_static, "table")
        for number, table in enumerate(program.file.tables)
    ]
    circles = [*_circles(program)]
    in_circles = [number for circle in circles for number in circle]
    numbers = dict.fromkeys([*in_circles, *range(len(program.rules))])
    rules = [Node(f"r{number}", program.rules[number].name, "rule") for number in numbers]
    calls = [Node(f"c{number}", f"CALL {name}", "call") for number, name in enumerate(program.call_names)]
    groups = [Group("in turn", tuple(f"r{number}" for number in circle)) for circle in circles]
    return Graph("rules", [*tables, *rules, *calls], [*_arrows(program)], groups)


def _arrows(program: Program) -> Iterator[Edge]:
    """From each table to the rules that read it, and from each rule to what it writes and calls."""
    tables = [table.name for table in program.file.tables]
    for rule in program.rules:
        for number, table in enumerate(tables):
            if columns := _read(rule, table):
                yield Edge(f"t{number}", f"r{rule.number}", columns)
        for number, table in enumerate(tables):
            if columns := _written(rule, table):
                yield Edge(f"r{rule.number}", f"t{number}", columns)
        for call in dict.fromkeys(one.name for one in rule.rule.actions if isinstance(one, Call)):
            yield Edge(f"r{rule.number}", f"c{program.call_names.index(call)}")


def _circles(program: Program) -> Iterator[list[int]]:
    """The rules of each circle; one in two circles is in the first."""
    seen: set[int] = set()
    for stage in program.graph.stages():
        if stage.is_cycle:
            yield sorted({rule for rule, _ in stage.parts} - seen)
            seen |= {rule for rule, _ in stage.parts}
