"""From resolved conditions to programs of the block machine, once per query and schema; no code is generated.

What runs hold is put into other words where columns get wider types.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import NamedTuple, get_args

import numpy as np
import pyarrow as pa

from acep_approx.arrays import Ints
from acep_approx.automaton.resolve import Call, Held, Own, Register, Resolved
from acep_approx.automaton.states import PLACE, Began, Here, Neighbour, Now, Running
from acep_approx.engines.runs import membership
from acep_approx.engines.runs.event_columns import EventColumns, Kind, float_word
from acep_approx.engines.runs.hidden import NO_OPTIONS, NOW, START_NOW, RunOptions
from acep_approx.errors import LimitError, QueryError
from acep_approx.events.columns import to_arrow, to_numpy
from acep_approx.kernels.runs import vm
from acep_approx.kernels.runs.vm import NULL
from acep_approx.query.functions import branches
from acep_approx.query.syntax import Apply, Attribute, Between, Binary, Constant, Expression, In, IsNull, Lasting, Unary

COMPARISONS = {
    "<": vm.LESS,
    "<=": vm.LESS | vm.EQUAL,
    "=": vm.EQUAL,
    "!=": vm.LESS | vm.GREATER,
    ">": vm.GREATER,
    ">=": vm.GREATER | vm.EQUAL,
}
MAX_TEMPORARIES = 64
ANY_LETTER = (1 << 64) - 1
OF_EVENT = 1 << 41
"""From here on they are of the current event, whatever its columns are: ``hidden.NOW``, ``hidden.START_NOW``."""
ARITHMETIC = {
    "+": (vm.ADD_INT, vm.ADD_FLOAT),
    "-": (vm.SUB_INT, vm.SUB_FLOAT),
    "*": (vm.MUL_INT, vm.MUL_FLOAT),
    "%": (vm.MOD_INT, vm.MOD_FLOAT),
}
AGGREGATES = {
    "count": (vm.COUNT_ALL, vm.COUNT_ALL, vm.COUNT_ALL),
    "counted": (vm.COUNT_INT, vm.COUNT_FLOAT, vm.COUNT_INT),
    "sum": (vm.SUM_INT, vm.SUM_FLOAT, vm.SUM_INT),
    "min": (vm.MIN_INT, vm.MIN_FLOAT, vm.MIN_TEXT),
    "max": (vm.MAX_INT, vm.MAX_FLOAT, vm.MAX_TEXT),
    "least": (vm.LEAST_INT, vm.LEAST_FLOAT, vm.LEAST_TEXT),
    "greatest": (vm.GREATEST_INT, vm.GREATEST_FLOAT, vm.GREATEST_TEXT),
}

MANY = {
    "least": AGGREGATES["least"],
    "greatest": AGGREGATES["greatest"],
    "coalesce": (vm.ELSE_INT, vm.ELSE_FLOAT, vm.ELSE_INT),
}
"""Functions of any number of values, on whole numbers, floats and texts."""

KINDS: dict[str, Kind] = {kind: kind for kind in get_args(Kind)}


class Operand(NamedTuple):
    """Where a value stands: a register column, a scalar, or a temporary column; and what it is."""

    place: int
    number: int
    kind: Kind


class Called(NamedTuple):
    """A function that is called, and where its arguments stand."""

    name: str
    arguments: tuple[Operand, ...]


@dataclass
class Scalars:
    """Values that are the same for all runs: of the current event, and constants.

    Until all programs are made their numbers say what they are: 0 the place of the event, odd numbers its columns, even
    numbers constants, and below 0 the last places of letters that negations ask for; from ``OF_EVENT`` on the times of
    the event. ``address`` gives the final ones. ``calls`` are the functions
    that are called, in order of their columns; ``asks_time`` says whether something reads the times of events.
    ``readers`` says which letters an event has, any of them, whose value of an expression is read: ``letters`` are
    those for which programs are made now.
    """

    columns: EventColumns
    guards: int
    options: RunOptions = NO_OPTIONS
    constants: list[int] = field(default_factory=list)
    calls: list[Called] = field(default_factory=list)
    asks_time: bool = False
    letters: int = ANY_LETTER
    readers: dict[Expression, int] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """How many there are."""
        return 1 + self.guards + len(self.columns.expressions) + len(self.constants)

    def address(self, number: int) -> int:
        """Where a scalar stands once no more are added: place, guards, columns, constants."""
        if number <= 0:
            return -number
        if number >= OF_EVENT:
            return self.size + number - OF_EVENT
        if number % 2:
            return 1 + self.guards + number // 2
        return 1 + self.guards + len(self.columns.expressions) + number // 2 - 1

    def own(self, value: Own) -> Operand:
        """A value of the current event."""
        self.readers[value.value] = self.readers.get(value.value, 0) | self.letters
        return Operand(vm.SCALAR, self.columns.place(value.value) * 2 + 1, self.columns.kind(value.value))

    def time(self, which: int) -> Operand:
        """The tick of the current event, or that at which it began."""
        self.asks_time = True
        return Operand(vm.SCALAR, OF_EVENT + which, "int")

    def word(self, word: int, kind: Kind) -> Operand:
        """A constant."""
        if word not in self.constants:
            self.constants.append(word)
        return Operand(vm.SCALAR, self.constants.index(word) * 2 + 2, kind)


class Lowering:
    """Makes the programs of one step, or of the end of a match.

    Temporary columns are shared between the programs of a step.

    Parameters
    ----------
    scalars : Scalars
    live : sequence of Register
        Registers in order of the columns of the pool that the runs come from.
    becomes : callable
        What a register becomes once the current event is bound, as ``Step.after`` says it; default: nothing is bound.
    """

    def __init__(
        self, scalars: Scalars, live: Sequence[Register], becomes: Callable[[Register], Resolved] = Held
    ) -> None:
        self.scalars = scalars
        self.live = {register: place for place, register in enumerate(live)}
        self.becomes = becomes
        self.code: list[tuple[int, ...]] = []
        self.calls: set[int] = set()
        self._temporaries = 0
        self._known: dict[object, Operand] = {}

    def take(self) -> list[tuple[int, ...]]:
        """The program made since the last call."""
        code, self.code = self.code, []
        return code

    # --- tests ----------------------------------------------------------------------------------------------

    def test(self, check: Resolved) -> None:
        """Narrow the mask to the runs of which ``check`` is TRUE."""
        match check:
            case Binary(op="AND", left=left, right=right):
                self.test(left)
                self.test(right)
                return
            case Binary(op=op, left=left, right=right) if op in COMPARISONS:
                a, b = self._pair(left, right)
                if "text" not in (a.kind, b.kind) or op in ("=", "!="):
                    self._test_comparison(COMPARISONS[op], a, b)
                    return
        self._emit(vm.TEST_TRUTH, self._column(self.value(check)))

    def _test_comparison(self, flags: int, a: Operand, b: Operand) -> None:
        if a.place == vm.SCALAR:
            a, b = b, a
            swapped = vm.LESS if flags & vm.GREATER else 0, vm.GREATER if flags & vm.LESS else 0
            flags = (flags & vm.EQUAL) | swapped[0] | swapped[1]
        self._emit(vm.TEST_FLOAT if a.kind == "float" else vm.TEST_INT, self._column(a), b, flags=flags)

    def test_guard(self, guard: int) -> None:
        """Narrow the mask to the runs whose last event is not before the last one of a negation."""
        last = Operand(vm.SCALAR, -1 - guard, "int")
        self._emit(vm.TEST_INT, Operand(vm.REGISTER, self.live[PLACE], "int"), last, flags=vm.GREATER | vm.EQUAL)

    # --- values ---------------------------------------------------------------------------------------------

    def value(self, node: Resolved, like: Kind = "int") -> Operand:  # noqa: PLR0911
        """Where the value of a resolved expression stands once the program has run."""
        match node:
            case Own():
                return self.scalars.own(node)
            case Held():
                return self._held(node)
            case Here():
                return Operand(vm.SCALAR, PLACE_SCALAR, "int")
            case Neighbour(last=last):
                return self._compared("=", Here(), Binary("+", last, Constant(1)))  # type: ignore[arg-type]
            case Now():
                return self.scalars.time(NOW)
            case Began():
                return self.scalars.time(START_NOW)
            case Call():
                return self._called(node)
            case Constant(value=value):
                kind = _kind_of_constant(value, like)
                return self.scalars.word(self.scalars.columns.constant(node, kind), kind)
            case Lasting():
                return self.scalars.word(self.scalars.columns.lasting(node), "duration")
        known = self._known.get(node)
        if known is None:
            known = self._known[node] = self._computed(node)
        return known

    def _computed(self, node: Resolved) -> Operand:  # noqa: PLR0911
        match node:
            case Running():
                return self._running(node)
            case Unary(op="NOT", operand=operand):
                return self._new("truth", vm.NOT, self.value(operand))
            case Unary(operand=operand):
                a = self.value(operand)
                return self._new(a.kind, vm.NEG_FLOAT if a.kind == "float" else vm.NEG_INT, a, a)
            case Apply(name=name, arguments=arguments):
                return self._applied(name, arguments)
            case IsNull(operand=operand, negated=negated):
                a = self.value(operand)
                found = self._new("truth", vm.NULL_FLOAT if a.kind == "float" else vm.NULL_INT, a)
                return self._new("truth", vm.NOT, found) if negated else found
            case Binary(op=("AND" | "OR") as op, left=left, right=right):
                return self._new("truth", vm.AND if op == "AND" else vm.OR, self.value(left), self.value(right))
            case Binary(op=op, left=left, right=right) if op in COMPARISONS:
                return self._compared(op, left, right)
            case Binary(op=op, left=left, right=right):
                return self._calculated(op, left, right)
            case Between(operand=operand, low=low, high=high, negated=negated):
                above = self._compared(">=", operand, low)
                found = self._new("truth", vm.AND, above, self._compared("<=", operand, high))
                return self._new("truth", vm.NOT, found) if negated else found
            case In(operand=operand, values=values, negated=negated):
                tests = [self._compared("=", operand, value) for value in values]
                found = reduce(lambda a, b: self._new("truth", vm.OR, a, b), tests)
                return self._new("truth", vm.NOT, found) if negated else found
        raise AssertionError(node)

    def _compared(self, op: str, left: Resolved, right: Resolved) -> Operand:
        a, b = self._pair(left, right)
        code = vm.COMPARE_FLOAT if a.kind == "float" else vm.COMPARE_INT
        if "text" in (a.kind, b.kind) and op not in ("=", "!="):
            code = vm.COMPARE_TEXT
            self.scalars.columns.texts.is_ordered = True
        return self._new("truth", code, a, b, flags=COMPARISONS[op])

    def _calculated(self, op: str, left: Resolved, right: Resolved) -> Operand:
        a, b = self._values(left, right)
        kind = _of_times(op, a.kind, b.kind)
        a, b = self._paired(a, b, as_float=op == "/")
        is_float = a.kind == "float"
        code = vm.DIV_FLOAT if op == "/" else ARITHMETIC[op][is_float]
        found = self._new("float" if is_float else kind or "int", code, a, b)
        return self._new(kind, vm.WHOLE, found) if is_float and kind not in (None, "float") else found

    def _applied(self, name: str, arguments: tuple[Resolved, ...]) -> Operand:
        """A function of values of several events."""
        if name == "CASE":
            return self._chosen(arguments)
        if name in MANY:
            return self._of_many(name, arguments)
        a, *digits = arguments
        value = self.value(a, "float")
        if name == "abs":
            return self._new(value.kind, vm.ABS_FLOAT if value.kind == "float" else vm.ABS_INT, value)
        if value.kind != "float":
            return value
        if name != "round":
            return self._new("float", vm.FLOOR if name == "floor" else vm.CEIL, value)
        scale = float(10 ** (digits[0].value if digits else 0))
        return self._new("float", vm.ROUND, value, self.scalars.word(float_word(scale), "float"))

    def _of_many(self, name: str, arguments: tuple[Resolved, ...]) -> Operand:
        """One of some values."""
        like, values = self._alike(arguments)
        if like == "text" and name != "coalesce":
            self.scalars.columns.texts.is_ordered = True
        op = MANY[name][1 if like == "float" else 2 if like == "text" else 0]
        return reduce(lambda a, b: self._new(like, op, self._column(a), b), values)

    def _chosen(self, arguments: tuple[Resolved, ...]) -> Operand:
        """The value of the first condition that is TRUE: later ones are written first."""
        conditions, results = branches(arguments)
        like, values = self._alike(results)
        tests = [self._column(self.value(condition)) for condition in conditions]
        found = self._new(like, vm.COPY, values[-1])
        for test, value in reversed([*zip(tests, values, strict=False)]):
            self._emit(vm.WHEN, test, value, found.number)
        return found

    def _alike(self, arguments: Sequence[Resolved]) -> tuple[Kind, list[Operand]]:
        """Values of one kind, and this: all are made floats where one of them is."""
        found = {id(one): self.value(one) for one in arguments if not isinstance(one, Constant)}
        kinds = {one.kind for one in found.values()} - {"null"}
        kinds |= {"float" for one in arguments if isinstance(one, Constant) and isinstance(one.value, float)}
        like: Kind = "float" if "float" in kinds else next(iter(kinds), "int")
        values = [found.get(id(one)) or self.value(one, like) for one in arguments]
        values = [self._as_float(one) if like == "float" else one._replace(kind=like) for one in values]
        return like, values

    def _pair(self, left: Resolved, right: Resolved) -> tuple[Operand, Operand]:
        """Both values, made floats where one of them is."""
        return self._paired(*self._values(left, right))

    def _values(self, left: Resolved, right: Resolved) -> tuple[Operand, Operand]:
        if isinstance(left, Constant):
            b = self.value(right)
            return self.value(left, b.kind), b
        a = self.value(left)
        return a, self.value(right, a.kind)

    def _paired(self, a: Operand, b: Operand, *, as_float: bool = False) -> tuple[Operand, Operand]:
        if as_float or "float" in (a.kind, b.kind):
            return self._as_float(a), self._as_float(b)
        return a, b

    def _as_float(self, a: Operand) -> Operand:
        if a.kind == "float":
            return a
        known = self._known.get(("float", a))
        if known is None:
            known = self._known["float", a] = self._new("float", vm.TO_FLOAT, a)
        return known

    # --- functions ------------------------------------------------------------------------------------------

    def _called(self, call: Call) -> Operand:
        """The column that a function fills before the steps are tried."""
        arguments = tuple(self.value(argument) for argument in call.arguments)
        assert all(a.place != vm.TEMPORARY for a in arguments), "not computed by the program that needs the result"
        called = Called(call.name, arguments)
        if called not in self.scalars.calls:
            self.scalars.calls.append(called)
        number = self.scalars.calls.index(called)
        self.calls.add(number)
        is_member = call.name == membership.NAME
        kind = membership.HOLDS if is_member else KINDS[self.scalars.options.functions[call.name].holds]
        return Operand(vm.TEMPORARY, MAX_TEMPORARIES + 1 + number, kind)

    # --- registers ------------------------------------------------------------------------------------------

    def _held(self, value: Held) -> Operand:
        if value.updated:
            return self.after(value.register)
        return Operand(vm.REGISTER, self.live[value.register], self._kind(value.register))

    def _kind(self, register: Register) -> Kind:
        return register_kind(register, self.scalars.columns)

    def after(self, register: Register) -> Operand:
        """The value of a register once the current event is bound."""
        kind = self._kind(register)
        found = self.value(self.becomes(register), kind)
        goes = found.kind == kind or (found.kind, kind) == ("int", "float") or "null" in (found.kind, kind)
        if register.kind == "computed" and not goes:
            raise QueryError(
                f"the register {register.variable!r} holds values of kind {kind}, and a step gives it one of kind "
                f"{found.kind}",
                code="ACEP-Q913",
                hint="say what it holds by the values that steps give it; whole numbers may become floats",
            )
        return self._as_float(found) if kind == "float" else found._replace(kind=kind)

    def _running(self, node: Running) -> Operand:
        before, value = self.value(node.before), self.value(node.value)
        if "float" in (before.kind, value.kind) and node.function != "counted":
            before, value = self._as_float(before), self._as_float(value)
        place = 1 if value.kind == "float" else 2 if value.kind == "text" else 0
        if place == 2 and node.function != "counted":
            self.scalars.columns.texts.is_ordered = True
        return self._new(before.kind, AGGREGATES[node.function][place], self._column(before), value)

    # --- code -----------------------------------------------------------------------------------------------

    def _new(self, kind: Kind, op: int, a: Operand, b: Operand | None = None, flags: int = 0) -> Operand:
        if self._temporaries >= MAX_TEMPORARIES:
            raise LimitError(
                f"the conditions on one event take more than {MAX_TEMPORARIES} intermediate values",
                code="ACEP-Q910",
                given=self._temporaries + 1,
                limit=MAX_TEMPORARIES,
                hint="write fewer or simpler conditions across events",
            )
        target = Operand(vm.TEMPORARY, self._temporaries, kind)
        self._temporaries += 1
        self._emit(op, a, b, target.number, flags)
        return target

    def _column(self, a: Operand) -> Operand:
        """A scalar as a column."""
        return self._new(a.kind, vm.COPY, a) if a.place == vm.SCALAR else a

    def _emit(self, op: int, a: Operand, b: Operand | None = None, target: int = 0, flags: int = 0) -> None:
        b = b or a
        self.code.append((op, target, a.place, a.number, b.place, b.number, flags))


PLACE_SCALAR = 0
"""The scalar that holds the place of the current event."""


def _of_times(op: str, left: Kind, right: Kind) -> Kind | None:
    """What comes of an operator on times and durations; None where there are none of them."""
    if not {"time", "duration"} & {left, right}:
        return None
    if "null" in (left, right):
        return "null"
    if op in ("+", "-"):
        return "duration" if left == right else "time"
    return "float" if left == right else "duration"


def register_kind(register: Register, columns: EventColumns) -> Kind:
    """What a register holds."""
    if register.kind == "computed":
        return KINDS[register.holds] if register.holds else _kind_like(register, columns)
    if register.kind in ("place", "count", "counted"):
        return "int"
    assert register.of is not None
    return columns.kind(register.of)


def _kind_like(register: Register, columns: EventColumns) -> Kind:
    """The kind that can hold the values of some expressions; NULL goes with everything."""
    found: list[Kind] = list(dict.fromkeys(columns.kind(one) for one in register.like))
    found = found[:1] if len(found) == 1 else [kind for kind in found if kind != "null"]
    others = {str(type_): None for type_ in types_like(register, columns) if "other" in found}
    if len(others) > 1 or (len(found) > 1 and set(found) != {"int", "float"}):
        name = register.variable.rpartition(".")[2]
        several = " and ".join([*(kind for kind in found if kind != "other"), *others])
        raise QueryError(
            f"{name!r} holds values of several kinds: {several}",
            code="ACEP-Q913",
            hint="give it values of one kind; whole numbers may become fractions",
        )
    return found[0] if len(found) == 1 else "float"


def types_like(register: Register, columns: EventColumns) -> list[pa.DataType]:
    """The types of the columns that a register takes its values of, where it only takes them; each once."""
    found = {columns.type_of(one.name): None for one in register.like if isinstance(one, Attribute)}
    return [type_ for type_ in found if not pa.types.is_null(type_)]


def _kind_of_constant(value: object, like: Kind) -> Kind:
    if value is None:
        return like
    if isinstance(value, bool):
        return "truth"
    if isinstance(value, str):
        return "time" if like == "time" else "text"
    return "int" if isinstance(value, int) else "float"


_PER_UNIT = {"us": 1, "ns": 1000}


class Rewording:
    """From the words of some columns to those of the same columns with wider types.

    Parameters
    ----------
    before, after : EventColumns
        Of one stream: the codes of texts stay what they are.
    """

    def __init__(self, before: EventColumns, after: EventColumns) -> None:
        self._before, self._after = before, after
        self._finer = _PER_UNIT[after.unit] // _PER_UNIT[before.unit]

    def words(self, words: Ints, register: Register) -> Ints:
        """The words of a register; only null, and whole numbers as floats, change their kind.

        Raises
        ------
        pyarrow.ArrowInvalid
            A whole number cannot be held exactly as a float, or a time in the finer unit.
        """
        before, after = register_kind(register, self._before), register_kind(register, self._after)
        if before == after == "other":
            return self._carried(words, register)
        if before == after and after not in ("time", "duration"):
            return words
        is_null = words == NULL
        known = np.where(is_null, 0, words)
        if after == "float":
            floats = to_numpy(to_arrow(known).cast(pa.float64()))
            return np.where(is_null, np.nan, floats).view(np.int64)
        if before == after and self._finer > 1:
            known = to_numpy(to_arrow(known).cast(pa.timestamp("us")).cast(pa.timestamp("ns")).cast(pa.int64()))
        return np.where(is_null, NULL, known)

    def _carried(self, words: Ints, register: Register) -> Ints:
        """Codes of values whose type has become wider, such as lists of which none had an item so far."""
        (before,), (after,) = types_like(register, self._before), types_like(register, self._after)
        if before.equals(after):
            return words
        return self._after.texts.encode(self._before.texts.carried(words, before).cast(after))
