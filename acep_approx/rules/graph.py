"""Who must wait for whom: which rules write what others read, and in which order parts of rules are run.

A rule has two parts: it *detects* matches, where WHERE and RETURN may read the store, and it *fires* for them, where
WHEN may read it. A part waits for all that write what it reads. Parts that wait for one another in a circle are run
together, in the order of the stream; all others are run one after the other over a whole batch.

Source: the idea is that of low-water marks, Wang et al., PVLDB 4(10) 2011, section 5.3: a reader waits until all
writers of its tables have passed. At the size of batches, and by columns instead of tables, it is ours.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from acep_approx.query.rules.syntax import Table, Write
from acep_approx.query.shape import walk
from acep_approx.query.syntax import Attribute, Read
from acep_approx.rules.compiled import CompiledRule, ReadColumn, is_old

PRESENCE = ""
"""In the place of a column: which rows there are."""
Cell = tuple[str, str]
"""A column of a table."""
Part = tuple[int, Literal["detect", "fire"]]
"""What a rule, by its number, does."""

NO_MORE: Mapping[Part, Collection[Part]] = {}


@dataclass(frozen=True)
class Stage:
    """Parts of rules that are run together: in a circle, or because none waits for another."""

    parts: tuple[Part, ...]
    is_cycle: bool

    @property
    def detecting(self) -> tuple[int, ...]:
        """The rules that detect in it, by number."""
        return tuple(rule for rule, part in self.parts if part == "detect")

    @property
    def firing(self) -> tuple[int, ...]:
        """The rules that fire in it, by number."""
        return tuple(rule for rule, part in self.parts if part == "fire")


class RuleGraph:
    """Which parts of rules wait for which.

    Parameters
    ----------
    tables : sequence of Table
    rules : sequence of CompiledRule

    Attributes
    ----------
    waits : dict of Part to dict of Part to set of Cell
        For each part those it waits for, and because of what; a part of a rule that waits for itself is among them.
    """

    def __init__(self, tables: Sequence[Table], rules: Sequence[CompiledRule]) -> None:
        self.tables = {table.name: table for table in tables}
        self.rules = rules
        self._computed = _computed_from(rules)
        writers: dict[Cell, list[int]] = {}
        for rule in rules:
            for written in self.written(rule):
                writers.setdefault(written, []).append(rule.number)
        self.waits: dict[Part, dict[Part, set[Cell]]] = {}
        for rule in rules:
            detect = self._waits(map(cell, rule.reads), writers)
            fire = self._waits(map(cell, (*rule.when_reads, *rule.late_reads)), writers)
            fire.setdefault((rule.number, "detect"), set())
            self.waits[rule.number, "detect"], self.waits[rule.number, "fire"] = detect, fire

    def _waits(self, read: Iterable[Cell], writers: dict[Cell, list[int]]) -> dict[Part, set[Cell]]:
        """Who must have fired before these are read, and because of what."""
        found: dict[Part, set[Cell]] = {}
        for cell in self._with_origins(set(read)):
            for writer in writers.get(cell, ()):
                found.setdefault((writer, "fire"), set()).add(cell)
        return found

    def written(self, rule: CompiledRule) -> set[Cell]:
        """What a rule writes."""
        return {cell for write in rule.writes for cell in self.written_by(write)}

    def written_by(self, write: Write) -> set[Cell]:
        """What an action writes."""
        cells = {(write.table, one.column) for one in write.sets}
        if write.kind != "update" or self.tables[write.table].is_total:
            cells.add((write.table, PRESENCE))
        return cells

    def cells_of(self, table: str, column: str | None) -> set[Cell]:
        """What a column of a table is computed from; None stands for EXISTS."""
        return self._with_origins({(table, column or PRESENCE)})

    def writers_of(self, cells: set[Cell]) -> set[int]:
        """The rules that write some of these, by number."""
        return {rule.number for rule in self.rules if self.written(rule) & cells}

    def _with_origins(self, cells: set[Cell]) -> set[Cell]:
        """Cells with those that their values are computed from; rows come and go for all columns."""
        found, waiting = set(cells), list(cells)
        while waiting:
            table, column = waiting.pop()
            more = self._computed.get((table, column), set()) | {(table, PRESENCE)}
            waiting += more - found
            found |= more
        return found

    def stages(self, more: Mapping[Part, Collection[Part]] = NO_MORE) -> list[Stage]:
        """The parts in an order in which each comes after all that it waits for.

        Those that detect at the same distance from the beginning share a stage, and read their events together.
        ``more``: what some parts wait for besides, so that they come into circles.
        """
        waits = {part: {*others, *more.get(part, ())} for part, others in self.waits.items()}
        level: dict[Part, int] = {}
        cycles: list[tuple[int, tuple[Part, ...]]] = []
        singles: dict[tuple[int, str], list[Part]] = {}
        for component in _components(waits):
            before = [level[other] for part in component for other in waits[part] if other in level]
            own = max(before, default=-1) + 1
            level.update(dict.fromkeys(component, own))
            if len(component) > 1 or component[0] in waits[component[0]]:
                cycles.append((own, tuple(sorted(component))))
            else:
                singles.setdefault((own, component[0][1]), []).append(component[0])
        found = [(own, Stage(parts, is_cycle=True)) for own, parts in cycles]
        found += [(own, Stage(tuple(sorted(parts)), is_cycle=False)) for (own, _), parts in singles.items()]
        return [stage for _, stage in sorted(found, key=lambda one: one[0])]


def cell_words(one: Cell) -> str:
    """A cell for people: a column of a table, or the rows that there are.

    Examples
    --------
    >>> cell_words(("shops", "rises")), cell_words(("shops", PRESENCE))
    ('shops.rises', 'the rows of shops')
    """
    table, column = one
    return f"the rows of {table}" if column == PRESENCE else f"{table}.{column}"


def cell(read: ReadColumn | Read) -> Cell:
    """What a read asks for."""
    return read.table, read.column or PRESENCE


def _computed_from(rules: Sequence[CompiledRule]) -> dict[Cell, set[Cell]]:
    """Per cell those that actions compute it from."""
    found: dict[Cell, set[Cell]] = {}
    for write in (write for rule in rules for write in rule.writes):
        for one in write.sets:
            olds = {node.name for node in walk(one.value) if isinstance(node, Attribute) and is_old(node)}
            found.setdefault((write.table, one.column), set()).update((write.table, name) for name in olds)
    return found


def _components(waits: Mapping[Part, Collection[Part]]) -> Iterator[list[Part]]:
    """Strongly connected components, each after all that its parts wait for.

    Source: Tarjan, SIAM J. Comput. 1(2) 1972, without recursion.
    """
    number: dict[Part, int] = {}
    low: dict[Part, int] = {}
    stack: list[Part] = []
    for root, first in waits.items():
        if root in number:
            continue
        number[root] = low[root] = len(number)
        stack.append(root)
        path = [(root, iter(first))]
        while path:
            part, others = path[-1]
            for other in others:
                if other not in number:
                    number[other] = low[other] = len(number)
                    stack.append(other)
                    path.append((other, iter(waits[other])))
                    break
                if other in stack:
                    low[part] = min(low[part], number[other])
            else:
                path.pop()
                if path:
                    low[path[-1][0]] = min(low[path[-1][0]], low[part])
                if low[part] == number[part]:
                    at = stack.index(part)
                    yield stack[at:]
                    del stack[at:]
