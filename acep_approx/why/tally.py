"""What single events and keys tell of a pattern: how many fit a variable, what keeps others out, what never meets."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acep_approx.arrays import Bools, Ints
from acep_approx.automaton.letters import Truths, unbound
from acep_approx.events.counts import counted
from acep_approx.events.keys import as_key
from acep_approx.matching.pipeline import Pipeline
from acep_approx.matching.stream_batch import ColumnOf
from acep_approx.matching.tracing.partial import States
from acep_approx.matching.unseen import NEAR, nearest
from acep_approx.planning.planner import Plan
from acep_approx.query.evaluate import evaluate_asked
from acep_approx.query.printer import to_text
from acep_approx.query.shape import MIRRORED, is_static, variables
from acep_approx.query.syntax import Attribute, Binary, Constant, Expression
from acep_approx.why.place import StreamPlace
from acep_approx.why.result import NoMatch, Step
from acep_approx.why.waiting import shown

EXAMPLES = 3
"""Values of an attribute that are shown."""
COMPARED = 100_000
"""Distinct values of each side that are compared by how they are written."""
LIKENESSES: tuple[tuple[str, Callable[[str], str]], ...] = (
    ("blanks around them", str.strip),
    ("upper and lower case", lambda text: text.strip().casefold()),
    ("zeros in front", lambda text: text.strip().casefold().lstrip("0")),
    ("how they are encoded", lambda text: unicodedata.normalize("NFKC", text).strip().casefold()),
    ("signs between letters and digits", lambda text: "".join(c for c in text.casefold() if c.isalnum())),
)
"""Ways in which two texts may mean the same, the most alike first."""


@dataclass(frozen=True)
class OwnCondition:
    """A condition on single events of one variable: how many events of its type fail it, and how nearly they hold."""

    condition: str
    failing: int
    nearest: str = ""


@dataclass(frozen=True)
class Tally:
    """Of one variable: its type, how many events are of that type, and how many of these meet its own conditions.

    ``first`` is the place of the first event that fits, or else is of the type; None where no event is.
    """

    variable: str
    type: str | None
    events: int
    fitting: int
    failed: tuple[OwnCondition, ...] = ()
    first: int | None = None

    @property
    def name(self) -> str:
        """The variable with its type; see ``typed_name``."""
        return typed_name(self.variable, self.type)


def typed_name(variable: str, type_: str | None) -> str:
    """``Delivered (d)``; only one of them where they are the same, or there is no type."""
    return variable if type_ is None or type_ == variable else f"{type_} ({variable})"


class Letters:
    """Which letters of the automaton stand for which variables, and what is reached with some of them.

    Attributes
    ----------
    order : tuple of str
        The variables that bind events, in the order of the pattern.
    types : dict of str to (str or None)
        Of these.
    bits : dict of str to int
        Per variable its letters, as a mask.
    """

    def __init__(self, plan: Plan) -> None:
        self.automaton = plan.automaton
        self._states = States(plan.query, self.automaton)
        self.types = {one.variable: one.type for one in self.automaton.components if not one.is_negated}
        self.order = tuple(self.types)
        self.bits = dict.fromkeys(self.order, 0)
        for arc in self.automaton.arcs:
            for name in self._states.names(arc.label, arc.letter, arc.target):
                self.bits[name] = self.bits.get(name, 0) | 1 << arc.letter

    def accepts(self, present: int) -> bool:
        """Whether a match could be made of events of these letters, in any order and number."""
        paid = self._reached(present)
        left = self.automaton.errors
        return any(f.state in paid and paid[f.state] + f.cost <= left for f in self.automaton.finals)

    def blocking(self, present: int) -> tuple[str, ...]:
        """The variables that events of these letters do not get past: those that are needed; else any that would do."""
        paid, left = self._reached(present), self.automaton.errors
        found = {
            name
            for arc in self.automaton.arcs
            if arc.source in paid and paid[arc.source] + arc.cost <= left and not present >> arc.letter & 1
            for name in self._states.names(arc.label, arc.letter, arc.target)
        }
        every = sum(1 << number for number in range(len(self.automaton.letters)))
        needed = {name for name in found if not self.accepts(every & ~self.bits[name])}
        return tuple(name for name in self.order if name in (needed or found))

    def _reached(self, present: int) -> dict[int, int]:
        """The states that can be reached, each with the fewest errors."""
        paid = {0: 0}
        waiting = [0]
        while waiting:
            state = waiting.pop()
            for arc in self.automaton.arcs:
                cost = paid[state] + arc.cost
                if arc.source != state or cost > self.automaton.errors or not present >> arc.letter & 1:
                    continue
                if cost < paid.get(arc.target, self.automaton.errors + 1):
                    paid[arc.target] = cost
                    waiting.append(arc.target)
        return paid


def tallies(place: StreamPlace, letters: Letters) -> tuple[Tally, ...]:
    """The tally of each variable, in the order of the pattern.

    Complexity: O(events x conditions), vectorised.
    """
    counter = _Counter(place)
    return tuple(counter.tally(name, letters.types[name], letters.bits[name]) for name in letters.order)


class _Counter:
    def __init__(self, place: StreamPlace) -> None:
        self._place = place
        self._column = ColumnOf(place.table.to_batches()[0], place.roles)
        self._truths = Truths(len(place.rows), self._column)

    def tally(self, name: str, type_: str | None, bits: int) -> Tally:
        fits = (self._place.masks & np.uint64(bits)) != 0
        typed = np.ones(len(fits), np.bool_)
        if type_ is not None:
            names, codes = self._truths.types
            typed = np.array([*(name is not None and str(name) == type_ for name in names), False])[codes]
        failed = []
        for text, condition in self._conditions(name, bits):
            holds = self._truths.holds_on(condition, lambda: typed)
            if not holds[typed].all():
                failing = int((typed & ~holds).sum())
                failed.append(OwnCondition(text, failing, self._nearest(condition, typed)))
        firsts = np.flatnonzero(fits if fits.any() else typed)
        first = int(firsts[0]) if len(firsts) else None
        return Tally(name, type_, int(typed.sum()), int(fits.sum()), tuple(failed), first)

    def _conditions(self, name: str, bits: int) -> Iterator[tuple[str, Expression]]:
        query, letters = self._place.plan.query, self._place.plan.automaton.letters
        mine = [letter for number, letter in enumerate(letters) if bits >> number & 1]
        if len(mine) != 1:  # an automaton written by hand asks for other things elsewhere
            return
        texts = {unbound(p): to_text(p) for p in query.predicates if is_static(p) and variables(p) == {name}}
        for condition in mine[0].conditions:
            yield texts.get(condition, to_text(condition)), condition

    def _nearest(self, condition: Expression, typed: Bools) -> str:
        """What values there are, where a side of a comparison is a constant."""
        match condition:
            case Binary(op=op, left=side, right=Constant(value=wanted)) if op in MIRRORED:
                pass
            case Binary(op=mirrored, left=Constant(value=wanted), right=side) if mirrored in MIRRORED:
                op = MIRRORED[mirrored]
            case _:
                return ""
        found = evaluate_asked(side, lambda leaf: self._column(str(leaf.name)), lambda: typed)
        if isinstance(found, pa.Scalar):
            return ""
        values = found.filter(pa.array(typed)).drop_null()
        if pa.types.is_dictionary(values.type):
            values = values.dictionary_decode()
        if not len(values):
            return f"{to_text(side)} is NULL in all of them" if isinstance(side, Attribute) else "it is always NULL"
        return _nearest_value(op, wanted, values)


def _nearest_value(op: str, wanted: object, values: pa.Array) -> str:
    if op in (">", ">=") and not pa.types.is_boolean(values.type):
        return f"the largest is {shown(pc.max(values).as_py())}"
    if op in ("<", "<=") and not pa.types.is_boolean(values.type):
        return f"the smallest is {shown(pc.min(values).as_py())}"
    found = pc.value_counts(values)
    order = np.argsort(-found.field("counts").to_numpy(zero_copy_only=False), kind="stable")
    distinct = found.field("values").take(pa.array(order)).to_pylist()
    if op == "=" and isinstance(wanted, str):
        near = nearest(wanted, {str(value) for value in distinct[:1000]}, NEAR)
        if near is not None:
            return f"did you mean {shown(near)}?"
    examples = ", ".join(shown(value) for value in distinct[:EXAMPLES])
    return f"the only value is {examples}" if len(distinct) == 1 else f"values are for example {examples}"


def no_match_from_counters(plan: Plan, pipeline: Pipeline, found: int) -> NoMatch:
    """Why a run found nothing, as far as its counters tell.

    Parameters
    ----------
    plan : Plan
        Of the query.
    pipeline : Pipeline
        Of the run, which counted its events: ``Preparer.counts_classes``.
    found : int
        How many results it gave.
    """
    events = pipeline.progress.events
    if found:
        return NoMatch(events, False, "found", f"there are matches: the run gave {counted(found, 'result')}")
    if not events:
        return NoMatch(0, False, "no events", "no match: there are no events")
    if plan.query.is_algebra:
        said = f"no match: {events:,} events were read; how far they came cannot be said, as they are gone"
        return NoMatch(events, False, "unknown", said)
    preparer, letters = pipeline.preparer, Letters(plan)
    masks = np.array(preparer.classes, np.uint64)
    counts = preparer.class_counts[: len(masks)]
    numbers = [preparer.letters.letters.index(letter) for letter in plan.automaton.letters]  # those of all queries
    fitting = [int(counts[(masks >> np.uint64(number)) & np.uint64(1) == 1].sum()) for number in numbers]
    present = sum(1 << number for number, count in enumerate(fitting) if count)
    steps = []
    for name, type_ in letters.types.items():
        mine = (count for number, count in enumerate(fitting) if letters.bits[name] >> number & 1)
        steps.append(Step(name, type_, None, max(mine, default=0)))
    if letters.accepts(present):
        headline = f"no match: {_counts(steps)}; how far they came together cannot be said, as they are gone"
        return NoMatch(events, False, "unknown", headline, tuple(steps))
    step = letters.blocking(present)
    seen = preparer.letters.seen
    is_type = all(letters.types[name] is not None and letters.types[name] not in seen for name in step)
    others, clauses = seen - set(filter(None, letters.types.values())), []
    for name in step:
        type_ = letters.types[name]
        near = nearest(type_, others, NEAR) if type_ is not None else None
        meant = f" (did you mean {near!r}?)" if near else ""
        clauses.append(f"no event fits {typed_name(name, type_)}{meant}")
    before = [one for one in steps if one.fitting]
    headline = "no match: " + (f"{_counts(before)}, but " if before else "") + ", and ".join(clauses)
    return NoMatch(events, False, "type" if is_type else "condition", headline, tuple(steps), step)


def _counts(steps: list[Step]) -> str:
    return ", ".join(f"{counted(one.fitting, 'event')} fit {one.variable}" for one in steps)


# --- values that never agree: keys that no two variables share, and sides of an equality ------------------------


@dataclass(frozen=True)
class Keys:
    """How the variables share the values of the key.

    ``counts`` says per variable how many keys have an event that fits it, ``blocking`` what the keys that came furthest
    lack; it is empty where some key has all that a match needs. ``without_key`` events were left out: theirs is NULL.
    """

    names: tuple[str, ...]
    counts: dict[str, int]
    blocking: tuple[str, ...]
    without_key: int
    likeness: str = ""


def shared_keys(place: StreamPlace, letters: Letters) -> Keys | None:
    """How the variables share the values of the key; None where the query has no key.

    Complexity: O(events x letters), vectorised.
    """
    names = tuple(one.name for one in place.plan.query.equivalences)
    if not names:
        return None
    columns = [place.column(name) for name in names]
    codes, size = _coded(columns)
    masks, known = place.masks, codes >= 0
    present = np.zeros(size, np.uint64)
    for number in range(len(place.plan.automaton.letters)):
        bit = np.uint64(1 << number)
        present[np.unique(codes[known & ((masks & bit) != 0)])] |= bit
    counts = {name: int(((present & np.uint64(bits)) != 0).sum()) for name, bits in letters.bits.items()}
    distinct = np.unique(present).tolist()
    if any(letters.accepts(mask) for mask in distinct):
        blocking: tuple[str, ...] = ()
    else:
        best = min(distinct, key=lambda mask: (len(letters.blocking(mask)), -mask.bit_count()), default=0)
        blocking = letters.blocking(best)
    likeness = ""
    if blocking and len(columns) == 1:
        others = [name for name in letters.order if name not in blocking and counts[name]]
        sides = ((masks & np.uint64(letters.bits[name])) != 0 for name in (*others[:1], blocking[0]))
        if others:
            likeness = alike(*(_values(columns[0], side) for side in sides))
    return Keys(names, counts, blocking, int((~known).sum()), likeness)


def disjoint_sides(place: StreamPlace, letters: Letters) -> Iterator[tuple[str, str]]:
    """The conditions ``a.x = b.y`` whose sides have no value in common, with how such values are alike, if they are."""
    masks = place.masks
    for predicate in place.plan.query.predicates:
        match predicate:
            case Binary(op="=", left=Attribute() as one, right=Attribute() as other):
                if one.variable == other.variable or not {one.variable, other.variable} <= letters.bits.keys():
                    continue
                left, right = (
                    _values(place.column(side.name), (masks & np.uint64(letters.bits[str(side.variable)])) != 0)
                    for side in (one, other)
                )
                if left and right and not set(left) & set(right):
                    example = f"{shown(left[0])} on the left, and {shown(right[0])} on the right"
                    yield to_text(predicate), alike(left, right) or f"values are for example {example}"


def _coded(columns: list[pa.Array]) -> tuple[Ints, int]:
    """A number for each combination of values, -1 where one is NULL; and how many there are."""
    codes, size = np.zeros(len(columns[0]), np.int64), 1
    for column in columns:
        encoded = column if pa.types.is_dictionary(column.type) else pc.dictionary_encode(as_key(column))
        own = pc.fill_null(encoded.indices.cast(pa.int64()), -1).to_numpy(zero_copy_only=False)
        paired = np.where((codes < 0) | (own < 0), -1, codes * max(len(encoded.dictionary), 1) + own)
        distinct, inverse = np.unique(paired, return_inverse=True)
        has_null = int(len(distinct) > 0 and distinct[0] < 0)
        codes, size = inverse.astype(np.int64) - has_null, len(distinct) - has_null
    return codes, size


def _values(column: pa.Array, which: Bools) -> list[Any]:
    values: list[Any] = pc.unique(as_key(column).filter(pa.array(which))).drop_null().to_pylist()
    return values[:COMPARED]


def alike(one: list[Any], other: list[Any]) -> str:
    """How values that are not the same may mean the same, with an example; empty where they do not look so.

    Examples
    --------
    >>> alike(["U1", "U2"], ["u1"])
    "'U1' and 'u1' differ in upper and lower case"
    >>> alike(["007"], [7])
    "'007' is text and 7 a number"
    >>> alike(["a"], ["b"])
    ''
    """
    for name, folded in LIKENESSES:
        known = {key: value for value in one if (key := folded(str(value)))}
        for value in other:
            mine = known.get(folded(str(value)))
            if mine is None or mine == value:
                continue
            if isinstance(mine, str) != isinstance(value, str):
                texts = (mine, value) if isinstance(mine, str) else (value, mine)
                return f"{shown(texts[0])} is text and {shown(texts[1])} a number"
            return f"{shown(mine)} and {shown(value)} differ in {name}"
    return ""
