"""Which engine runs a query, why, at what cost, and what would make it cheaper."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from acep_approx.automaton.automaton import START, Automaton
from acep_approx.automaton.compile import compile_automaton
from acep_approx.automaton.determinize import Determinised
from acep_approx.errors import LimitError, QueryError, UnsupportedError
from acep_approx.matching.cells import MAX_ERRORS
from acep_approx.query.checks import check
from acep_approx.query.predicates import is_static
from acep_approx.query.shape import atoms, walk
from acep_approx.query.syntax import Absent, Aggregate, Attribute, Pattern, QuerySyntax, Span, Window

MICROSECONDS = {"us": 1, "ms": 1_000, "s": 1_000_000, "min": 60_000_000, "h": 3_600_000_000, "d": 86_400_000_000}
LARGEST_WINDOW = 2**60
RESERVED = ("errors", "start", "end", "missing", "row")
"""Columns that every table of matches or points has."""


@dataclass(frozen=True)
class Plan:
    """A query ready to run: its tree, its automaton, and the engine chosen for it."""

    query: QuerySyntax
    automaton: Automaton
    engine: str = "cells"

    @property
    def is_count_window(self) -> bool:
        """Whether the window counts events instead of time."""
        return self.query.window.unit == "events"

    def window_ticks(self, tick_unit: str | None) -> int:
        """The window in ticks (or events).

        Parameters
        ----------
        tick_unit : str or None
            ``"us"`` where ticks are microseconds, None where they are plain integers.
        """
        return window_ticks(self.query, tick_unit)

    @cached_property
    def cost(self) -> Cost:
        """What running takes, by the sizes of the tables."""
        return _cost(self.automaton)

    def reasons(self) -> tuple[str, ...]:
        """Why this engine, in sentences."""
        keyed = ", ".join(f"[{e.name}]" for e in self.query.equivalences)
        return (
            "every predicate is about one event alone, so a run is just (state, errors, start)",
            "skip_till_any_match: of two runs in one state with as many errors, the later start does all the other can",
            f"the equivalence {keyed} splits the stream: each key has cells of its own"
            if keyed
            else "no equivalence: one set of cells for the whole stream",
        )

    def advice(self) -> tuple[str, ...]:
        """What would make the query cheaper, or what to look out for."""
        notes = []
        if self.automaton.errors >= 2:
            notes.append(f"ERRORS {self.automaton.errors} multiplies the matches: look at points first, or lower k")
        if self.cost.determinised is None:
            notes.append("listing matches makes states while it runs; points and bundles never do")
        elif self.cost.determinised > 200:
            notes.append(
                f"listing needs {self.cost.determinised} determinised states: fewer optional or repeated parts help"
            )
        if not self.query.equivalences:
            notes.append("if all events of a match share an attribute, say so with [attribute]: fewer matches")
        return tuple(notes)


@dataclass(frozen=True)
class Cost:
    """Sizes that decide speed and memory.

    ``states`` and ``arcs`` of the automaton; ``bytes_per_key`` of detection; ``updates_per_event`` in the worst case
    over single letters; ``determinised`` states for listing (None: more than can be explored ahead).
    """

    states: int
    arcs: int
    letters: int
    bytes_per_key: int
    updates_per_event: int
    determinised: int | None


def plan(query: QuerySyntax) -> Plan:
    """Check a query and choose its engine.

    Raises
    ------
    QueryError
        For mistakes (``query.checks``), and as ``UnsupportedError`` for what only the runs engine could do.
    """
    check(query)
    _refuse_reserved(query)
    _refuse(query, list(_needs_runs(query)))
    if query.errors > MAX_ERRORS:
        raise LimitError(
            f"ERRORS {query.errors} is more than the cells engine can count",
            code="ACEP-Q906",
            given=query.errors,
            limit=MAX_ERRORS,
            hint=f"use at most {MAX_ERRORS}; with WEIGHTS, scale the weights down",
            text=query.text,
        )
    automaton = compile_automaton(query)
    _refuse(query, list(_edge_negations(automaton, query.pattern)))
    return Plan(query, automaton)


def _refuse_reserved(query: QuerySyntax) -> None:
    """Names that results have for columns of their own."""
    names = [(atom.variable, atom.span) for atom in atoms(query.pattern)] if not query.is_regex else []
    for name, span in [*names, *((output.name, output.span) for output in query.outputs)]:
        if name in RESERVED:
            raise QueryError(
                f"the name {name!r} is taken: results have a column {name!r} of their own",
                code="ACEP-Q901",
                hint="choose another name; taken are " + ", ".join(RESERVED),
                text=query.text,
                start=span[0],
                end=span[1],
            )


def _refuse(query: QuerySyntax, missing: list[tuple[str, Span]]) -> None:
    """Say honestly what no engine here can run yet."""
    if missing:
        what, span = missing[0]
        others = "".join(f"; also {other}" for other, _ in missing[1:4])
        raise UnsupportedError(
            f"{what} cannot be run yet{others}",
            code="ACEP-Q900",
            hint="it needs the runs engine (registers), which is not in this version; the query itself is right",
            text=query.text,
            start=span[0],
            end=span[1],
        )


def _needs_runs(query: QuerySyntax) -> Iterator[tuple[str, Span]]:
    """What the cells engine cannot do, each with its place in the text."""
    if query.strategy != "skip_till_any_match":
        yield f"the strategy {query.strategy}", NO_PLACE
    for predicate in query.predicates:
        if not is_static(predicate):
            yield "a predicate across events, or over an aggregate or an index of a Kleene variable,", predicate.span
    for output in query.outputs:
        for expression in walk(output.value):
            if isinstance(expression, Aggregate):
                yield "an aggregate in RETURN", expression.span
            elif isinstance(expression, Attribute) and expression.index is not None:
                yield "an indexed Kleene variable in RETURN", expression.span


NO_PLACE: Span = (0, 0)


def _edge_negations(automaton: Automaton, pattern: Pattern) -> Iterator[tuple[str, Span]]:
    """Negations before the first or after the last event: only the ends of the window can answer them."""
    place = next((part.span for part in walk(pattern) if isinstance(part, Absent)), NO_PLACE)
    if any(arc.guard for arc in automaton.arcs if arc.source == START):
        yield "a negation before the first event", place
    if any(final.guard for final in automaton.finals):
        yield "a negation after the last event", place


def window_ticks(query: QuerySyntax, tick_unit: str | None) -> int:
    """The window of ``query`` in ticks of the data; see ``Plan.window_ticks``."""
    window: Window = query.window
    where = {"text": query.text, "start": window.span[0], "end": window.span[1]}
    if window.unit == "events":
        size = int(window.amount)
    elif window.unit == "ticks":
        if tick_unit is not None:
            raise QueryError(
                f"WITHIN {window.amount} has no unit, but the time column holds real times",
                code="ACEP-Q907",
                hint=f"write a unit, e.g. WITHIN {window.amount} s, or WITHIN {window.amount} events",
                **where,  # type: ignore[arg-type]
            )
        size = int(window.amount)
    else:
        if tick_unit is None:
            raise QueryError(
                f"WITHIN {window.amount} {window.unit} asks for real time, but the time column holds plain integers",
                code="ACEP-Q908",
                hint="say what they count (unit='s', on the command line --unit s), or write WITHIN without a unit",
                **where,  # type: ignore[arg-type]
            )
        size = round(window.amount * MICROSECONDS[window.unit])
    if size > LARGEST_WINDOW:
        raise LimitError(
            "the window is longer than time itself can be counted",
            code="ACEP-Q909",
            given=size,
            limit=LARGEST_WINDOW,
            **where,  # type: ignore[arg-type]
        )
    return size


def _cost(automaton: Automaton) -> Cost:
    rows = {(arc.source, arc.guard) for arc in automaton.arcs if arc.source != START}
    lanes = 4 if automaton.errors < 4 else 16
    per_letter = [sum(arc.letter == j for arc in automaton.arcs) for j in range(len(automaton.letters))]
    determinised: int | None
    try:
        subset = Determinised(automaton, cap=2000)
        subset.add_classes([1 << j for j in range(len(automaton.letters))])
        unmade = any((s, c) not in subset.bound for s in range(len(subset)) for c in range(len(subset.classes)))
        determinised = None if unmade else len(subset)
    except LimitError:
        determinised = None
    return Cost(
        states=automaton.size,
        arcs=len(automaton.arcs),
        letters=len(automaton.letters),
        bytes_per_key=len(rows) * 2 * lanes * 8,
        updates_per_event=max(per_letter, default=0),
        determinised=determinised,
    )
