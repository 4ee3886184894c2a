"""Which engine runs a query, and why, and what it takes by the sizes of tables; ``explain`` puts it into words."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

from acep_approx.automaton.automaton import START, Automaton, Letter
from acep_approx.automaton.compile import compile_automaton
from acep_approx.automaton.determinize import Determinised
from acep_approx.automaton.lengths import lengths_differ, may_be_followed
from acep_approx.automaton.machine import compile_machine
from acep_approx.automaton.paths import NoPathsError, Path, has_repetition, paths
from acep_approx.automaton.registers import RegisterAutomaton, compile_registers
from acep_approx.automaton.states import Counted
from acep_approx.errors import LimitError, UnsupportedError, UsageError, expect
from acep_approx.kernels.cells.detect import MAX_ERRORS
from acep_approx.kernels.runs.layout import LINK
from acep_approx.kernels.runs.pools import COLUMNS
from acep_approx.planning.growing import only_grows
from acep_approx.query.cel.printer import to_cel
from acep_approx.query.cel.syntax import CelQuery, Fold, Next, nodes, streams
from acep_approx.query.checks import check
from acep_approx.query.parameters import refuse_parameters
from acep_approx.query.printer import to_text
from acep_approx.query.shape import atoms, is_static, negation_windows, passing_less, walk
from acep_approx.query.syntax import MICROSECONDS, Absent, Machine, Pattern, QuerySyntax, RegisterValue, Span, Window

LINK_BYTES = 8 * LINK
"""One event bound by one run."""


@dataclass(frozen=True)
class CellsCost:
    """Sizes that decide speed and memory of the cells.

    ``states`` and ``arcs`` of the automaton; ``bytes_per_key`` of detection; ``updates_per_event`` in the worst case
    over single letters; ``determinised`` states for listing (None: more than can be explored ahead).
    """

    states: int
    arcs: int
    letters: int
    bytes_per_key: int
    updates_per_event: int
    determinised: int | None

    @property
    def work(self) -> str:
        """What an event takes."""
        return f"at most {self.updates_per_event} arc updates per event and letter"

    @property
    def memory(self) -> str:
        """What detection holds."""
        return f"{self.bytes_per_key} bytes per key"


@dataclass(frozen=True)
class RunsCost:
    """Sizes that decide speed and memory of the runs.

    ``states`` and ``arcs`` of the register automaton; ``bytes_per_run`` of its widest state; ``steps_per_run``: arcs
    that one event may try on one run, in the worst case over single letters.
    """

    states: int
    arcs: int
    letters: int
    bytes_per_run: int
    steps_per_run: int

    @property
    def work(self) -> str:
        """What an event takes."""
        return f"at most {self.steps_per_run} arc tests per event and run that it may move"

    @property
    def memory(self) -> str:
        """What a run holds."""
        return f"at most {self.bytes_per_run} bytes per run"


def cells_cost(automaton: Automaton) -> CellsCost:
    """What the cells take.

    Parameters
    ----------
    automaton : Automaton

    Complexity: of determinisation up to 2000 states.
    """
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
    return CellsCost(
        states=automaton.size,
        arcs=len(automaton.arcs),
        letters=len(automaton.letters),
        bytes_per_key=len(rows) * 2 * lanes * 8,
        updates_per_event=max(per_letter, default=0),
        determinised=determinised,
    )


def runs_cost(registers: RegisterAutomaton) -> RunsCost:
    """What the runs take.

    Parameters
    ----------
    registers : RegisterAutomaton

    Complexity: O(steps).
    """
    tried: dict[tuple[int, int], int] = {}
    for step in registers.steps:
        letter = step.letter if step.arc is None else registers.automaton.arcs[step.arc].letter
        place = step.source, letter
        tried[place] = tried.get(place, 0) + 1
    return RunsCost(
        states=len(registers.states),
        arcs=len(registers.steps),
        letters=len(registers.automaton.letters),
        bytes_per_run=8 * (COLUMNS + max(map(len, registers.live))),
        steps_per_run=max(tried.values(), default=0),
    )


LARGEST_WINDOW = 2**60
UNBOUNDED = "unbounded"
"""The unit of a window that nothing leaves: of queries in CEL that say no time."""
RESERVED = ("errors", "start", "end", "missing", "row")
"""Columns that every table of matches or points has."""


EngineKind = Literal["cells", "runs"]
MERGING = ("equal", "pareto", "chain")
"""Lossless mergings of the runs engine; see ``docs/how-it-works/runs.md``."""


def merging(names: str) -> frozenset[str]:
    """The mergings that a text asks for.

    Examples
    --------
    >>> sorted(merging("equal,chain")), sorted(merging("none"))
    (['chain', 'equal'], [])
    """
    expect("merge", names, str, "names such as 'equal,pareto', or 'none'")
    found = frozenset(name.strip() for name in names.split(",")) - {"none", ""}
    if not found <= set(MERGING):
        raise UsageError(
            f"there is no merging {min(found - set(MERGING))!r}",
            code="ACEP-U006",
            hint="choose from " + ", ".join(MERGING) + ", or none",
        )
    return found


@dataclass(frozen=True)
class Plan:
    """A query ready to run: its tree, its automaton, and the engine chosen for it.

    ``registers`` is the automaton with its conditions, for the runs engine; ``why_runs`` what the cells cannot do.
    ``cel`` is the query where it is in CEL: the attributes of its streams depend on the data, so that it is compiled
    again for them (``planning.cel.plan_for``). ``implied_key`` is the attribute by which its stream can be split.
    """

    query: QuerySyntax
    automaton: Automaton
    engine: EngineKind = "cells"
    registers: RegisterAutomaton | None = field(default=None, compare=False)
    why_runs: tuple[str, ...] = ()
    cel: CelQuery | None = field(default=None, compare=False)
    implied_key: str | None = field(default=None, compare=False)

    @property
    def letters(self) -> tuple[Letter, ...]:
        """What is asked of one event alone."""
        return self.automaton.letters if self.registers is None else tuple(self.registers.letters)

    @property
    def keys(self) -> tuple[str, ...]:
        """The attributes that split the stream: those of equivalences, which results show, then the implied one."""
        implied = () if self.implied_key is None else (self.implied_key,)
        return (*(one.name for one in self.query.equivalences), *implied)

    @cached_property
    def reads(self) -> frozenset[str]:
        """The types of events, or streams, that it names."""
        if self.cel is not None:
            return frozenset(streams(self.cel.select))
        return frozenset(letter.type for letter in self.letters if letter.type is not None)

    @property
    def looks_to_the_start(self) -> bool:
        """Whether it depends on all events of a partition where a match can begin: AT START, SINCE START."""
        return any(letter.unseen for letter in self.letters)

    @property
    def counted(self) -> Counted:
        """Which events the place of an event counts."""
        return "nothing" if self.registers is None else self.registers.counted

    def fingerprint(self) -> str:
        """Sixteen hex digits that change whenever what is run does."""
        return self._fingerprint

    @cached_property
    def _fingerprint(self) -> str:
        """Each state that is saved or restored asks for it."""
        if self.cel is not None:
            meaning = to_cel(replace(self.cel, window=None, select=replace(self.cel.select, publish=None)))
            return hashlib.sha256(meaning.encode()).hexdigest()[:16]
        automaton = self.automaton.fingerprint()
        if self.registers is None and self.query.selection.is_all:
            return automaton
        text = to_text(replace(self.query, window=Window(0, "ticks"), outputs=(), publish=None))
        meaning = repr((automaton, text, self.query.functions) if self.query.functions else (automaton, text))
        return hashlib.sha256(meaning.encode()).hexdigest()[:16]

    @property
    def known_as(self) -> str:
        """What its history is found by among others: the fingerprint, and the window as it was written."""
        return f"{self.fingerprint()}-{self.query.window.amount:g}{self.query.window.unit}"

    @cached_property
    def registers_of_walks(self) -> RegisterAutomaton:
        """The automaton with its conditions, where walks list maximal matches; known from one run to the next."""
        query = self.query
        return compile_machine(query) if query.is_machine else compile_registers(query, self.automaton)

    @cached_property
    def walks_maximal(self) -> bool:
        """Whether maximal matches are listed without the others: the cells can run the query, and it says MAXIMAL.

        Where all matches have equally many events, none is in another; but conditions across events are tested there.
        """
        selection = self.query.selection
        if self.registers is not None or selection.is_all:
            return False
        if not all(map(is_static, self.query.predicates)):
            return True
        return selection.depends_on_order or lengths_differ(self.automaton) or may_be_followed(self.automaton)

    @cached_property
    def paths(self) -> tuple[Path, ...]:
        """The ways in which match points can be found backwards; none where they cannot."""
        return self._paths if isinstance(self._paths, tuple) else ()

    @cached_property
    def paths_are_all(self) -> bool:
        """Whether each match is one of the ways in which match points can be found: nothing is repeated."""
        return bool(self.paths) and self.registers is not None and not has_repetition(self.registers)

    @cached_property
    def why_not_backwards(self) -> str | None:
        """Why match points cannot be found backwards; None where they can."""
        return None if isinstance(self._paths, tuple) else self._paths

    @cached_property
    def _paths(self) -> tuple[Path, ...] | str:
        try:
            return paths(self.registers) if self.registers is not None else "cells need no search"
        except NoPathsError as error:
            return str(error)

    @property
    def is_unbounded(self) -> bool:
        """Whether a run may stay for ever: a NEXT or FOLD of CEL waits, and no window says for how long.

        Examples
        --------
        >>> from acep_approx import compile_query
        >>> texts = "FROM A NEXT A", "FROM A NEXT A WITHIN 5", "FROM FILTER{DUR <= 5}(A NEXT A)", "FROM A"
        >>> [compile_query(text).plan.is_unbounded for text in texts]
        [True, False, False, False]
        """
        waits = self.cel is not None and any(isinstance(node, Next | Fold) for node in nodes(self.cel.select))
        return waits and self.query.window.unit == UNBOUNDED

    def refuse_unbounded(self, what: str) -> None:
        """Refuse what weighs runs by what they can still lead to, where they never end.

        Raises
        ------
        UsageError
            ``ACEP-U073``.
        """
        if self.is_unbounded:
            raise UsageError(
                f"{what} and a query in CEL without a window do not go together: what it waits for has no end",
                code="ACEP-U073",
                hint="say how long a partial match is worth keeping: --horizon '10 min' (horizon=); or how long a "
                "result may last: WITHIN 10 min behind FROM (--within)",
            )

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

    def negation_ticks(self, tick_unit: str | None) -> dict[str, int]:
        """The windows of negations that have one of their own, by their variables; in ticks as for ``window_ticks``."""
        windows = negation_windows(self.query.pattern)
        return {name: _ticks(self.query, window, "WITHIN", tick_unit) for name, window in windows.items()}

    def every_ticks(self, tick_unit: str | None) -> int:
        """The length of EVERY in ticks, as for ``window_ticks``; 0 where the query has none."""
        every = self.query.selection.every
        return 0 if every is None else _ticks(self.query, every, "EVERY", tick_unit)

    @cached_property
    def cost(self) -> CellsCost | RunsCost:
        """What running takes, by the sizes of the tables."""
        return cells_cost(self.automaton) if self.registers is None else runs_cost(self.registers)


def check_engine(engine: str) -> None:
    """Refuse a name of no engine.

    Raises
    ------
    UsageError
        ``ACEP-U005``.
    """
    if engine not in ("auto", "cells", "runs"):
        raise UsageError(f"there is no engine {engine!r}", code="ACEP-U005", hint="choose auto, cells or runs")


def plan(query: QuerySyntax, engine: str = "auto") -> Plan:
    """Check a query and choose its engine.

    Parameters
    ----------
    query : QuerySyntax
    engine : {"auto", "cells", "runs"}, default "auto"
        ``auto`` takes the cells where they can answer exactly.

    Raises
    ------
    QueryError
        For mistakes (``query.checks``), and as ``UnsupportedError`` where the engine asked for cannot run the query.
    """
    check_engine(engine)
    refuse_parameters(query)
    check(query)
    _refuse_reserved(query)
    registers = compile_machine(query) if isinstance(query.pattern, Machine) else None
    if registers is not None:
        automaton, reasons = registers.automaton, [*_machine_needs_runs(query, registers)]
    else:
        automaton = compile_automaton(query)
        reasons = [*_needs_runs(query), *_edge_negations(automaton, query.pattern)]
    if engine == "cells" and reasons:
        what, span = reasons[0]
        others = "".join(f"; also {other}" for other, _ in reasons[1:4])
        hint = "leave the choice of the engine open, or ask for the runs engine"
        raise query.fault("ACEP-Q900", f"the cells engine cannot answer {what}{others}", span, hint, UnsupportedError)
    if engine != "runs" and not reasons:
        return Plan(query, automaton)
    why = tuple(reason for reason, _ in reasons)
    registers = registers or compile_registers(query, automaton)
    if query.selection.maximal and reasons and engine != "runs":
        _refuse_long_lists(query, registers, reasons[0])
    return Plan(query, automaton, "runs", registers, why)


def _refuse_long_lists(query: QuerySyntax, registers: RegisterAutomaton, reason: tuple[str, Span]) -> None:
    """Refuse MAXIMAL where all matches must be listed to tell, and there may be one for each choice of events."""
    if not any(registers.is_passive(state) and registers.repeats(state) for state in _inner(registers)):
        return
    what, span = reason
    hint = "bound the repetition, as in {1,9}, use skip_till_next_match, or list all: engine='runs' (--engine runs)"
    message = f"MAXIMAL would need a list of all matches, of which W events can have 2^W, because of {what}"
    raise query.fault("ACEP-Q919", message, span or query.place("MAXIMAL"), hint, UnsupportedError)


def _inner(registers: RegisterAutomaton) -> range:
    return range(START + 1, len(registers.states))


def _machine_needs_runs(query: QuerySyntax, machine: RegisterAutomaton) -> Iterator[tuple[str, Span]]:
    span = query.pattern.span
    inner = {step.source for step in machine.steps} - {START}
    if not all(map(machine.is_passive, inner)):
        yield "states that do not ignore every event", span
    if any(step.checks for step in machine.steps):
        yield "conditions on registers", span
    if any(isinstance(node, RegisterValue) for output in query.outputs for node in walk(output.value)):
        yield "RETURN of registers", span
    if "" in machine.automaton.variables:
        yield "events without a variable", span
    if machine.has_late_ends:
        yield "TIMEOUT", span
    yield from _clauses_need_runs(query)


def _clauses_need_runs(query: QuerySyntax) -> Iterator[tuple[str, Span]]:
    if not query.selection.maximal:
        yield from ((clause, NO_PLACE) for clause in query.selection.clauses)
    if query.errors > MAX_ERRORS:
        yield f"ERRORS {query.errors}, above {MAX_ERRORS}", NO_PLACE


def _refuse_reserved(query: QuerySyntax) -> None:
    names = [(atom.variable, atom.span) for atom in atoms(query.pattern)] if not query.is_regex else []
    if isinstance(query.pattern, Machine):
        names = [(arc.variable, arc.span) for arc in query.pattern.arcs if arc.variable is not None]
    for name, span in [*names, *((output.name, output.span) for output in query.outputs)]:
        if name in RESERVED:
            message = f"the name {name!r} is taken: results have a column {name!r} of their own"
            raise query.fault("ACEP-Q901", message, span, "choose another name; taken are " + ", ".join(RESERVED))


def _needs_runs(query: QuerySyntax) -> Iterator[tuple[str, Span]]:
    if found := passing_less(query):
        yield found
    if query.is_simultaneous:
        yield "SIMULTANEOUS", NO_PLACE
    for predicate in query.predicates:
        if not is_static(predicate) and not (query.selection.maximal and only_grows(query, predicate)):
            yield f"the condition {to_text(predicate)}, which one event alone does not decide", predicate.span
    for part in walk(query.pattern):
        if isinstance(part, Absent) and part.within is not None:
            yield "a negation with a window of its own", part.span
        if isinstance(part, Absent) and part.in_order:
            yield "a negation of a sequence", part.span
    yield from _clauses_need_runs(query)


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
    if query.window.unit == UNBOUNDED:
        return LARGEST_WINDOW
    if query.window.unit == "events":
        return _counted(query, query.window, int(query.window.amount))
    return _ticks(query, query.window, "WITHIN", tick_unit)


def _ticks(query: QuerySyntax, length: Window, clause: str, tick_unit: str | None) -> int:
    """A length of time, given by a clause, in ticks of the data."""
    asked = f"{clause} {length.amount}"
    if length.unit == "ticks":
        if tick_unit is not None:
            message = f"{asked} has no unit, but the time column holds real times"
            events = f", or {asked} events" if length is query.window else ""
            raise query.fault("ACEP-Q907", message, length.span, f"write a unit, e.g. {asked} s{events}")
        return _counted(query, length, int(length.amount))
    if tick_unit is None:
        message = f"{asked} {length.unit} asks for real time, but the time column holds plain integers"
        hint = "say what they count (unit='s', on the command line --unit s), or how they are written as digits "
        hint += f"(--time-format %Y%m%d), or write {clause} without a unit"
        raise query.fault("ACEP-Q908", message, length.span, hint)
    return _counted(query, length, round(length.amount * MICROSECONDS[length.unit]))


def _counted(query: QuerySyntax, length: Window, size: int) -> int:
    if size > LARGEST_WINDOW:
        what = "the window" if length is query.window else "this"
        message = f"{what} is longer than time itself can be counted"
        raise query.too_large("ACEP-Q909", message, size, LARGEST_WINDOW, length.span)
    return size
