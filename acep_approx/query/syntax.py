"""The tree of a query: what the parser makes, the builder makes, the printer prints, the automaton reads.

Every node is an immutable value. Two queries are equal when they mean the same tree, wherever their pieces
stood in the text: positions (``span``) do not take part in comparisons.
"""
# ruff: noqa: RUF009  `span_field()` makes a dataclass field, which must be called once for each class

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, NoReturn
from typing import Literal as OneOf

from acep_approx.errors import LimitError, QueryError

Span = tuple[int, int]
"""Character offsets ``(start, end)`` of a node in the query text."""

NO_SPAN: Span = (0, 0)


def span_field() -> Span:
    """A field for the place of a node in its text, which plays no role where nodes are compared."""
    return field(default=NO_SPAN, compare=False, repr=False)


class Written:
    """What was read from a text, at whose pieces errors point; what was built without one has an empty text."""

    text: str

    def fault(
        self,
        code: str,
        message: str,
        span: Span = NO_SPAN,
        hint: str | None = None,
        kind: type[QueryError] = QueryError,
    ) -> QueryError:
        """An error that points at a piece of the text, if there is one.

        Parameters
        ----------
        code, message : str
            See `QueryError`.
        span : Span, optional
            The piece.
        hint : str, optional
            What to do.
        kind : class of errors, default QueryError

        Returns
        -------
        QueryError
            To be raised.
        """
        start, end = span if self.text else NO_SPAN
        return kind(message, code=code, hint=hint, text=self.text, start=start, end=end)

    def fail(self, code: str, message: str, span: Span = NO_SPAN, hint: str | None = None) -> NoReturn:
        """Raise such an error."""
        raise self.fault(code, message, span, hint)

    def too_large(
        self, code: str, message: str, given: int, limit: int, span: Span = NO_SPAN, hint: str | None = None
    ) -> LimitError:
        """The same, where ``given`` is above a ``limit``."""
        start, end = span if self.text else NO_SPAN
        text = self.text
        return LimitError(message, code=code, given=given, limit=limit, hint=hint, text=text, start=start, end=end)


ArcKind = OneOf["on", "epsilon", "timeout"]


# --- patterns ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Atom:
    """One event of the pattern: ``Shelf a``.

    ``type`` is the event type it asks for, or None for any (``ANY a``). In a bare regular expression the
    variable is the letter itself and may occur several times; elsewhere a variable occurs once.
    """

    type: str | None
    variable: str
    span: Span = span_field()


@dataclass(frozen=True)
class Sequence:
    """Parts that follow one another: ``SEQ(A a, B b)``; at least one part."""

    parts: tuple[Pattern, ...]
    span: Span = span_field()


@dataclass(frozen=True)
class Either:
    """Exactly one of the options: ``(A a | B b)``; at least two options."""

    options: tuple[Pattern, ...]
    span: Span = span_field()


Strategy = OneOf["skip_till_any_match", "skip_till_next_match", "partition_contiguity", "strict_contiguity"]
DEFAULT_STRATEGY: Strategy = "skip_till_any_match"
CONTIGUITY: dict[str, Strategy] = {"STRICT": "strict_contiguity", "CONTIGUOUS": "partition_contiguity"}
GAP_WORDS = CONTIGUITY | {"NEXT": "skip_till_next_match", "ANY": "skip_till_any_match"}
"""The words for the strategy of one gap, whatever that of the query is; ``CONTIGUITY``: nothing may lie there."""
WORD_FOR = {strategy: word for word, strategy in GAP_WORDS.items()}
Preference = OneOf["GREEDY", "RELUCTANT"]
PREFERENCES: dict[str, Preference] = {"GREEDY": "GREEDY", "RELUCTANT": "RELUCTANT"}


@dataclass(frozen=True)
class AllOf:
    """All parts, one after the other, in any order: ``ALL(A a, B b)``; at least two parts."""

    parts: tuple[Pattern, ...]
    span: Span = span_field()


@dataclass(frozen=True)
class Repeat:
    """``part`` at least ``least`` and at most ``most`` times (None: no limit): ``+ * ? {m} {m,} {m,n}``.

    ``between`` is the strategy of the gaps from one round to the next, ``B+ STRICT b[]``; None: what stands in the
    part, or else that of the query. ``prefers``: whether another round comes before what follows, or the other way
    round, where an event could be either; None: both count. ``until``: no round begins with such an event, or later.
    """

    part: Pattern
    least: int
    most: int | None
    span: Span = span_field()
    between: Strategy | None = field(default=None, kw_only=True)
    prefers: Preference | None = field(default=None, kw_only=True)
    until: Absent | None = field(default=None, kw_only=True)


@dataclass(frozen=True)
class Spaced:
    """A part with a strategy of its own for the gap before its first event: ``STRICT B b``, ``NEXT (B b, C c)``."""

    strategy: Strategy
    part: Pattern
    span: Span = span_field()


@dataclass(frozen=True)
class Absent:
    """Negation: none of ``options`` happens between the neighbours: ``~(Register b)``, ``~(A a | B b)``.

    ``in_order``: they do not happen one after the other, ``~(A a, B b)``. ``directly``: only the event that comes next
    counts, in the stream or in the partition, ``~(STRICT Register b)``. ``since_start``: none happens from the start of
    the partition to the first event of the match. ``within``: none happens so soon after the neighbour before; before
    the first event of the match, so shortly before that one.
    """

    options: tuple[Atom, ...]
    in_order: bool = field(default=False, kw_only=True)
    since_start: bool = field(default=False, kw_only=True)
    within: Window | None = field(default=None, kw_only=True)
    span: Span = span_field()
    directly: Strategy | None = field(default=None, kw_only=True)


@dataclass(frozen=True)
class OtherPattern:
    """A pattern of another language than this one: a machine of states and arcs, an algebra.

    ``text`` says all that it means. Whoever compiles it makes the automaton; nothing else looks into it.
    ``is_query``: it is a whole query, with the clauses that stand around patterns in this language.
    """

    text: str
    is_query: bool = field(default=False, kw_only=True)
    span: Span = span_field()


HOLDS = {"INT": "int", "FLOAT": "float", "TEXT": "text", "BOOLEAN": "truth", "TIME": "time", "DURATION": "duration"}
"""What a register can be declared to hold, and its kind in the tree."""


@dataclass(frozen=True)
class MachineRegister:
    """A register of a machine: ``level = 0``, ``top FLOAT``; ``holds`` is int, float, truth, text or time."""

    name: str
    holds: str
    initial: Constant
    span: Span = span_field()


@dataclass(frozen=True)
class Assignment:
    """``register = value`` after SET; ``value`` is computed with what the registers were before."""

    register: str
    value: Expression
    span: Span = span_field()


@dataclass(frozen=True)
class MachineArc:
    """A move of a machine: ``q0 -> q1 ON Tick t WHEN t.change < 0 SET level = level + 1``.

    ``kind``: an arc ``on`` an event consumes it; ``epsilon`` and ``timeout`` consume nothing. ``type`` is None for any
    (``ON ANY``), ``variable`` None where the event is not shown in matches. ``when`` None: always.
    """

    source: str
    target: str
    kind: ArcKind
    type: str | None = None
    variable: str | None = None
    when: Expression | None = None
    sets: tuple[Assignment, ...] = ()
    span: Span = span_field()


@dataclass(frozen=True)
class IgnoreRule:
    """``IGNORE q1, q2 ON Tick t WHEN t.size < 5``: what runs at these states pass over; ``type`` None: of any type.

    ``otherwise``: ``IGNORE q1, q2 OTHERWISE``, events that no arc of the state consumes; nothing else is asked then.
    """

    states: tuple[str, ...]
    type: str | None = None
    variable: str | None = None
    when: Expression | None = None
    span: Span = span_field()
    otherwise: bool = False


@dataclass(frozen=True)
class Machine:
    """An automaton written by hand: ``AUTOMATON (...)``. It starts where its first arc does.

    Source: Chandramouli, Goldstein and Maier, PVLDB 3(1) 2010, Definition 1.
    """

    registers: tuple[MachineRegister, ...]
    arcs: tuple[MachineArc, ...]
    ignores: tuple[IgnoreRule, ...]
    finals: tuple[str, ...]
    span: Span = span_field()

    @property
    def start(self) -> str:
        """The state in which runs begin."""
        return self.arcs[0].source

    @cached_property
    def leaving(self) -> dict[str, list[MachineArc]]:
        """Per state the arcs that leave it, in their order."""
        found: dict[str, list[MachineArc]] = {}
        for arc in self.arcs:
            found.setdefault(arc.source, []).append(arc)
        return found


Pattern = Atom | Sequence | Either | AllOf | Repeat | Spaced | Absent | OtherPattern | Machine


# --- expressions ------------------------------------------------------------------------------------------

Index = OneOf["first", "current", "previous", "last"] | int
"""Which event of a Kleene variable: ``a[1]``, ``a[i]``, ``a[i-1]``, ``a[a.LEN]``; from 2 on its number, ``a[2]``."""


class Moment(str):
    """A time as a text in ISO 8601, given to a template: unlike other texts it goes with times alone."""

    __slots__ = ()


@dataclass(frozen=True)
class Constant:
    """A number, a string, TRUE, FALSE or NULL; ``1``, ``1.0`` and ``TRUE`` are three, as they are computed with."""

    value: int | float | str | bool | None
    span: Span = span_field()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Constant) and (type(self.value), self.value) == (type(other.value), other.value)

    def __hash__(self) -> int:
        return hash((type(self.value), self.value))


@dataclass(frozen=True)
class Attribute:
    """``a.price``, ``a[i].price``; in DEFINE simply ``price`` (``variable`` is None: the current event)."""

    variable: str | None
    index: Index | None
    name: str
    span: Span = span_field()


@dataclass(frozen=True)
class Aggregate:
    """``avg(a[].price)`` over all events of a Kleene variable, or those before (``a[..i-1].price``: prior).

    ``function`` is one of count, sum, min, max, avg, first, last, stddev, and ``count distinct`` for
    ``count(DISTINCT a[].ip)``; ``name`` is None only for ``count(a[])``. ``upto``: over the first events up to that
    number, of which there must be as many, as in ``a[..3].price``.
    """

    function: str
    variable: str
    name: str | None
    prior: bool
    upto: int | None = field(default=None, kw_only=True)
    span: Span = span_field()


@dataclass(frozen=True)
class Unary:
    """``NOT x`` or ``-x``; ``op`` is ``"NOT"`` or ``"-"``."""

    op: str
    operand: Expression
    span: Span = span_field()


@dataclass(frozen=True)
class Binary:
    """``op`` is one of ``+ - * / % = != < <= > >= AND OR``."""

    op: str
    left: Expression
    right: Expression
    span: Span = span_field()


@dataclass(frozen=True)
class In:
    """``x IN (1, 2)``, ``x NOT IN (...)``."""

    operand: Expression
    values: tuple[Constant, ...]
    negated: bool
    span: Span = span_field()


@dataclass(frozen=True)
class Between:
    """``x BETWEEN low AND high`` (both inclusive), ``x NOT BETWEEN ...``."""

    operand: Expression
    low: Expression
    high: Expression
    negated: bool
    span: Span = span_field()


@dataclass(frozen=True)
class IsNull:
    """``x IS NULL``, ``x IS NOT NULL``."""

    operand: Expression
    negated: bool
    span: Span = span_field()


@dataclass(frozen=True)
class RegisterValue:
    """The value of a register of a machine, by its name alone: ``level``."""

    name: str
    span: Span = span_field()


@dataclass(frozen=True)
class FunctionCall:
    """``slope(t.price, level)``: a function of the user's, in the conditions and moves of a machine.

    ``function`` is None until the machine is compiled.
    """

    name: str
    arguments: tuple[Expression, ...]
    function: UserFunction | None = field(default=None, repr=False)
    span: Span = span_field()


@dataclass(frozen=True)
class Apply:
    """``lower(a.name)``, ``a.name LIKE 'x%'``: a function of the language, by its name in ``FUNCTIONS``."""

    name: str
    arguments: tuple[Expression, ...]
    span: Span = span_field()


@dataclass(frozen=True)
class Parameter:
    """``:limit``: a constant of a template, to which each of many queries gives a value of its own."""

    name: str
    span: Span = span_field()


@dataclass(frozen=True)
class Read:
    """``store.status[b.hcw].level``: what a table of rules held; ``EXISTS store.status[b.hcw]``: ``column`` is None.

    ``at`` is the event that says when, as written after AT: an attribute without a name (``""``). None: the one event
    that the key names. What the event itself and later ones caused is not seen.
    """

    table: str
    keys: tuple[Expression, ...]
    column: str | None
    at: Attribute | None = None
    span: Span = span_field()


MICROSECONDS = {
    "us": 1,
    "ms": 1_000,
    "s": 1_000_000,
    "min": 60_000_000,
    "h": 3_600_000_000,
    "d": 86_400_000_000,
    "week": 604_800_000_000,
}
"""How long the units of time are, those of ``Window`` and ``Lasting``."""


@dataclass(frozen=True)
class Lasting:
    """A length of time, ``10 min``: a duration; in CEL what ``DUR`` is compared with. ``unit`` as in ``Window``."""

    amount: int | float
    unit: str
    span: Span = span_field()

    @property
    def microseconds(self) -> int:
        """How long it is, to the nearest microsecond; of a unit of time."""
        return round(self.amount * MICROSECONDS[self.unit])


Expression = (
    Constant
    | Attribute
    | Aggregate
    | Unary
    | Binary
    | In
    | Between
    | IsNull
    | RegisterValue
    | FunctionCall
    | Apply
    | Lasting
    | Parameter
    | Read
)


# --- functions of the user's, over columns ---------------------------------------------------------------

KINDS: dict[type, str] = {
    int: "int",
    float: "float",
    bool: "truth",
    str: "text",
    datetime: "time",
    timedelta: "duration",
}
"""What a register or a function can hold, as a Python type and in the tree."""


class Unknown:
    """What stands for a value that is not known yet: a function that is called with one is not computed."""

    __slots__ = ()

    def _call_of(self, function: UserFunction, arguments: tuple[Any, ...], named: Mapping[str, Any]) -> Any:
        """What stands for the value of ``function``, one of whose arguments this is."""
        raise NotImplementedError

    def _node_in(self, trace: Any) -> Any:
        """Its tree, in the lambda that it was given to."""
        raise NotImplementedError


@dataclass(frozen=True)
class UserFunction:
    """A function over numpy columns, known by its name and version; mostly made by `acep_approx.afa_function`.

    Called with plain values it computes; called with the symbols of a traced lambda it gives a symbol. Pickled, it is
    its name in its module; only a function of a script, of a notebook or within another function is pickled as it is,
    for which ``cloudpickle`` is needed (Spark has it).

    Parameters
    ----------
    name : str
        A word; as it stands in queries.
    version : int
        To be raised whenever the function gives other values: states saved before are refused then.
    holds : {"int", "float", "truth", "text", "time", "duration"}
        What it gives.
    compute : callable
        Gets a numpy array per argument, gives one as long. It must be pure: the same values for the same arguments.

    Examples
    --------
    >>> double = UserFunction("double", 1, "int", lambda x: 2 * x)
    >>> double(21), double
    (42, UserFunction(name='double', version=1, holds='int'))
    """

    name: str
    version: int
    holds: str
    compute: Callable[..., Any] = field(compare=False, repr=False)

    def __post_init__(self) -> None:
        for name in ("__module__", "__name__", "__qualname__", "__doc__"):
            object.__setattr__(self, name, getattr(self.compute, name, None))
        object.__setattr__(self, "__wrapped__", self.compute)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """What the function computes; for symbols, the symbol of the call."""
        for value in (*arguments, *named.values()):
            if isinstance(value, Unknown):
                return value._call_of(self, arguments, named)
        return self.compute(*arguments, **named)

    def __reduce__(self) -> str | tuple[Any, ...]:
        module, name = getattr(self, "__module__", None), getattr(self, "__qualname__", None)
        if module in sys.modules and module != "__main__" and name:
            found: Any = sys.modules[module]
            for part in name.split("."):
                found = getattr(found, part, None)
            if found is self:
                return str(name)
        return UserFunction, (self.name, self.version, self.holds, self.compute)


# --- the query --------------------------------------------------------------------------------------------

@dataclass(frozen=True)
class Window:
    """``WITHIN amount unit``: ``t_last - t_first <= amount``.

    ``unit`` is ``"events"`` (count window), ``"ticks"`` (no unit was given: the integers of the time column)
    or one of ``us ms s min h d``. In a template a ``parameter`` can give the amount: ``WITHIN :w s``.
    """

    amount: int | float
    unit: str
    parameter: Parameter | None = field(default=None, kw_only=True, repr=False)
    span: Span = span_field()


SkipTo = OneOf["next row", "past last row", "first", "last"]


@dataclass(frozen=True)
class Skip:
    """``AFTER MATCH SKIP ...``: where the next match of the partition may start; ``NON OVERLAP`` is past the last row.

    ``variable`` is that of ``TO FIRST v`` and ``TO LAST v``.
    """

    to: SkipTo
    variable: str | None = None
    span: Span = span_field()

    @property
    def words(self) -> str:
        """The clause, as it is written."""
        if self.to == "past last row":
            return "NON OVERLAP"
        where = "TO NEXT ROW" if self.variable is None else f"TO {self.to.upper()} {self.variable}"
        return f"AFTER MATCH SKIP {where}"


@dataclass(frozen=True)
class Selection:
    """Which of the matches are listed; all of them where nothing is said.

    ``maximal``: those whose set of events is in no larger one of another match. Of these, in their order: ``first``,
    one for each first event; ``skip``, those that start late enough after the one listed before; ``consume``, those
    that share no event with one listed before; ``every``, those that end so long after the one listed before.
    """

    maximal: bool = False
    first: bool = False
    skip: Skip | None = None
    consume: bool = False
    every: Window | None = None

    @property
    def depends_on_order(self) -> bool:
        """Whether a match that is listed can keep one that comes after it from being listed."""
        return self.first or self.skip is not None or self.consume or self.every is not None

    @property
    def is_all(self) -> bool:
        """Whether all matches are listed."""
        return not self.maximal and not self.depends_on_order

    @property
    def clauses(self) -> tuple[str, ...]:
        """The names of the clauses that it is made of, in their order."""
        found = {"MAXIMAL": self.maximal, "FIRST MATCH": self.first, "CONSUME": self.consume}
        found |= {"EVERY": self.every is not None}
        skip = () if self.skip is None else (self.skip.words,)
        names = [name for name in ("MAXIMAL", "FIRST MATCH") if found[name]]
        return (*names, *skip, *(name for name in ("CONSUME", "EVERY") if found[name]))


LISTS_ALL = Selection()
NON_OVERLAP = Selection(skip=Skip("past last row"))


@dataclass(frozen=True)
class Equivalence:
    """``[attr]``: all events of a match have the same value of ``attr``."""

    name: str
    span: Span = span_field()


@dataclass(frozen=True)
class ReturnItem:
    """``expr AS name`` of a RETURN clause."""

    name: str
    value: Expression
    span: Span = span_field()


@dataclass(frozen=True)
class Definition:
    """``letter AS condition`` of a DEFINE clause (bare regular expressions only)."""

    letter: str
    condition: Expression
    span: Span = span_field()


@dataclass(frozen=True)
class QuerySyntax(Written):
    """A whole query.

    ``predicates`` are the conjuncts of WHERE (split at every top-level AND) without the equivalences.
    ``is_simultaneous``: events at one time cannot follow one another.
    ``weights`` are the costs of a missing variable where they are not 1. ``at_start``: the first event of
    a match is the first of its partition. ``selection`` says which
    of the matches are listed. ``is_regex`` marks a bare regular expression, in which letters are
    not variables: a match is then just its set of events. ``functions`` are those that a machine calls.
    ``publish`` names the stream that its results are.
    ``text`` is what the positions refer to; ``places`` are the positions of what is no node of its own
    (``"SIMULTANEOUS"``, ``"AT START"``, ``"ERRORS"``, ``"WEIGHTS b"``, ``"MAXIMAL"``, ``"DEFINE"``,
    ``"PUBLISH"``).
    """

    pattern: Pattern
    window: Window
    is_regex: bool = False
    strategy: Strategy = DEFAULT_STRATEGY
    equivalences: tuple[Equivalence, ...] = ()
    predicates: tuple[Expression, ...] = ()
    is_simultaneous: bool = False
    errors: int = 0
    weights: tuple[tuple[str, int], ...] = ()
    at_start: bool = False
    selection: Selection = LISTS_ALL
    outputs: tuple[ReturnItem, ...] = ()
    definitions: tuple[Definition, ...] = ()
    functions: tuple[UserFunction, ...] = ()
    publish: str | None = None
    text: str = field(default="", compare=False, repr=False)
    places: tuple[tuple[str, Span], ...] = field(default=(), compare=False, repr=False)

    def place(self, name: str) -> Span:
        """Where a piece without a node stands, by its name in ``places``; the beginning of the text if it does not."""
        return dict(self.places).get(name, NO_SPAN)

    @property
    def is_algebra(self) -> bool:
        """Whether it is in CEL: its results are events with attributes of their own, and name no events."""
        return isinstance(self.pattern, OtherPattern) and self.pattern.is_query

    @property
    def is_machine(self) -> bool:
        """Whether it is an automaton written by hand."""
        return isinstance(self.pattern, Machine)
