"""Automata written by hand, from Python: arcs by calls, with conditions and moves as lambdas, which are traced.

>>> falls = Afa(registers={"level": 0})
>>> falls.arc("q0", "q1", on="Tick", name="t", when=lambda e: e.change < -0.25).arc(
...     "q1", "q1", on="Tick", when=lambda e: e.change < 0, then=lambda e, r: {"level": r.level + 1}
... ).final("q1")
<Afa, arcs: 2>
>>> print(falls.within("2000 events").by("symbol").returning("level"))
PATTERN AUTOMATON (
  REGISTERS level = 0
  q0 -> q1 ON Tick t WHEN t.change < -0.25
  q1 -> q1 ON Tick WHEN change < 0 SET level = level + 1
  FINAL q1
)
WHERE [symbol]
WITHIN 2000 events
RETURN level
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

from acep_approx.arguments import checked
from acep_approx.diagrams.fragments import drawn, never_raises, plain, view
from acep_approx.diagrams.graph import Edge, Graph, Node
from acep_approx.errors import QueryError, UsageError, expect
from acep_approx.query.assemble import with_register_values
from acep_approx.query.clauses import QueryBuilder
from acep_approx.query.messages import FUNCTIONS
from acep_approx.query.parser import parse_expression
from acep_approx.query.printer import is_name, to_text
from acep_approx.query.symbols import Trace, condition_of, known_registers, moves_of, place_of, plain_value
from acep_approx.query.syntax import (
    KINDS,
    ArcKind,
    Assignment,
    Constant,
    Expression,
    IgnoreRule,
    Machine,
    MachineArc,
    MachineRegister,
    UserFunction,
)

_NEXT_WORDS = frozenset(("WHEN", "SET", "IGNORE", "FINAL"))
"""What can stand behind the type of an arc that has no variable."""


# --- what it is given: names, first values of registers, functions ----------------------------------------


@checked
def afa_function(
    *, version: int, returns: type, name: str | None = None
) -> Callable[[Callable[..., Any]], UserFunction]:
    """Let a function over numpy columns be called in the lambdas of an `Afa`.

    Parameters
    ----------
    version : int
        To be raised whenever the function gives other values: states saved before are refused then.
    returns : {int, float, bool, str, datetime}
        What it gives for each event.
    name : str, optional
        A word; as it stands in the text of the query. Default: the function's own.

    Returns
    -------
    callable
        Decorates a function that gets a numpy array per argument, and gives one as long; the same values for the same
        arguments. Called with a symbol it gives a symbol, with anything else it computes as before.

    Raises
    ------
    UsageError
        ACEP-U022: the name is not a word, or reserved; ACEP-U053: the version is not whole, or nothing is known of what
        it returns.

    Examples
    --------
    >>> @afa_function(version=1, returns=float)
    ... def slope(x, y):
    ...     return x / y
    >>> slope(1, 4)
    0.25
    >>> from acep_approx import Afa
    >>> afa = Afa(registers={"level": 1})
    >>> print(afa.arc("a", "b", on="Tick", when=lambda e, r: slope(e.price, r.level) > 2).final("b"))
    AUTOMATON (
      REGISTERS level = 1
      a -> b ON Tick WHEN slope(price, level) > 2
      FINAL b
    )
    """
    if not isinstance(version, int) or isinstance(version, bool):
        raise UsageError(f"version is {version!r:.80}", code="ACEP-U053", hint="give a whole number")
    if not isinstance(returns, type) or returns not in KINDS:
        hint = "give int, float, bool, str, datetime or timedelta: @afa.function(version=1, returns=float)"
        raise UsageError(f"returns is {returns!r:.80}", code="ACEP-U053", hint=hint)

    def decorate(compute: Callable[..., Any]) -> UserFunction:
        called = str(getattr(compute, "__name__", "")) if name is None else name
        if called.lower() in FUNCTIONS:
            raise _no_name(called, "function", "the language has this one; take another: @afa.function(name=..., ...)")
        return UserFunction(_word(called, "function"), version, KINDS[returns], compute)

    return decorate


def register_of(name: str, given: Any) -> MachineRegister:
    """A register, from what it begins with.

    Parameters
    ----------
    name : str
        A word.
    given : value, type or tuple
        A value, a type (NULL at first), or both.

    Returns
    -------
    MachineRegister
        With the kind that it holds.

    Raises
    ------
    UsageError
        ACEP-U022: the name is not a word, or reserved; ACEP-U053: a register cannot hold this.

    Examples
    --------
    >>> register_of("top", (float, 1)), register_of("name", str)  # doctest: +NORMALIZE_WHITESPACE
    (MachineRegister(name='top', holds='float', initial=Constant(value=1.0)),
     MachineRegister(name='name', holds='text', initial=Constant(value=None)))
    """
    _word(name, "register")
    kind, initial = given if isinstance(given, tuple) and len(given) == 2 else (None, given)
    if isinstance(initial, type):
        kind, initial = initial, None
    value = plain_value(initial)
    own = KINDS.get(type(value))
    if kind is None:
        holds = "time" if own == "text" and not isinstance(initial, str) else own
    else:
        holds = KINDS.get(kind) if isinstance(kind, type) else None
    if (own, holds) == ("int", "float"):
        own, value = holds, float(value)
    fits = value is None or own == holds or (own, holds) == ("text", "time")
    if holds is None or not fits or (own == "float" and not math.isfinite(value)):
        hint = f"write {name}=0 for what it begins with, {name}=float for NULL at first, or {name}=(float, 0) for both"
        raise UsageError(f"the register {name!r} cannot be {given!r:.80}", code="ACEP-U053", hint=hint)
    return MachineRegister(name, holds, Constant(value))


def constant_of(name: object, given: object) -> Constant:
    """What a register becomes, where it is neither text nor symbol.

    Parameters
    ----------
    name : str
        Of the register, for a message.
    given : bool, int, float, date, datetime, numpy scalar or None
        The value.

    Returns
    -------
    Constant
        Its tree.

    Raises
    ------
    UsageError
        ACEP-U053: it is something else.
    """
    value = plain_value(given)
    if (value is not None and type(value) not in KINDS) or (isinstance(value, float) and not math.isfinite(value)):
        hint = "give a number, or a text of the query language: then={'level': 'level + 1'}"
        raise UsageError(f"the register {name!r:.80} cannot become {given!r:.80}", code="ACEP-U053", hint=hint)
    return Constant(value)


def variable_of(name: str | None) -> str | None:
    """The name of an event, as it was given.

    Raises
    ------
    UsageError
        ACEP-U022: not a word, or reserved.
    """
    if name is not None and _word(name, "variable").upper() in _NEXT_WORDS:
        raise _no_name(name, "variable", f"{name} has a meaning of its own behind a type; take another word")
    return name


def type_of(on: str | None) -> str | None:
    """The type of an event, as it was given.

    Raises
    ------
    UsageError
        ACEP-U053: no text.
    """
    expect("on", on, (str, type(None)), "the type of the event, or None for any")
    return on


def states_of(method: str, names: tuple[str, ...]) -> tuple[str, ...]:
    """Names of states, as they were given.

    Raises
    ------
    UsageError
        ACEP-U022: one is not a word; ACEP-U024: there is none.
    """
    if not names:
        raise UsageError(f"{method}() needs at least one state", code="ACEP-U024", hint=f"afa.{method}('q1')")
    for name in names:
        if not isinstance(name, str) or not re.fullmatch(r"\w+", name):
            raise _no_name(name, "state", "it is a word of letters, digits and _")
    return names


def _word(name: object, what: str) -> str:
    if not isinstance(name, str) or not is_name(name):
        raise _no_name(name, what, "it is a word of letters, digits and _ that is not reserved")
    return name


def _no_name(name: object, what: str, hint: str) -> UsageError:
    return UsageError(f"{name!r:.80} is no name for a {what}", code="ACEP-U022", hint=hint)


When = str | Callable[..., Any]
"""A condition: text of the query language, or a lambda."""
Then = Mapping[str, Any] | Callable[..., Mapping[str, Any]]
"""What registers become: by name, texts of the query language and numbers; or a lambda that gives symbols by name."""


# --- the automaton ----------------------------------------------------------------------------------------


class Afa:
    """An automaton written by hand: states, and arcs between them with conditions and moves of registers.

    Each call of a method adds to the automaton itself and gives it back, so that calls can be chained. What `within`
    and the other clauses give is a query of the automaton as it is then: later calls do not change it.

    Conditions (``when``) and moves (``then``) are texts of the query language, or lambdas. A lambda is called once,
    when the method is called, with symbols of the event and of the registers; it takes both (``lambda e, r: ...``), or
    one: the event where there is one, the registers for `epsilon` and `timeout`. Parameters with a default are left to
    it. Attributes are ``e.price`` or ``e["dep time"]``, registers ``r.level``. Symbols have ``+ - * / %``, comparisons,
    ``& | ~`` for AND, OR, NOT, and ``is_null``, ``is_not_null``, ``between``, ``is_in``. Whatever else is to be
    computed is put into a function, by `Afa.function`.

    Parameters
    ----------
    registers : mapping of str to value, type or tuple, optional
        What each run remembers: by name the value that it begins with, which also says what the register holds. A type
        (``int``, ``float``, ``str``, ``bool``, ``datetime``) for NULL at first; ``(float, 0)`` for type and value.
    functions : iterable of UserFunction, optional
        Functions that are called in texts; those of lambdas are found.

    Raises
    ------
    UsageError
        ACEP-U022: a register's name is not a word, or reserved; ACEP-U053: a register cannot hold this, or what
        is given as a function is none.
    QueryError
        ACEP-Q073: two functions of one name.

    See Also
    --------
    acep_approx.compile_query : Takes what `within` gives.

    Examples
    --------
    >>> afa = Afa(registers={"low": float})
    >>> afa.arc("a", "b", on="Tick", name="t", then=lambda e: {"low": e.price})
    <Afa, arcs: 1>
    >>> afa.arc("b", "c", on="Tick", name="u", when=lambda e, r: e.price.between(r.low, 2 * r.low)).final("c")
    <Afa, arcs: 2>
    >>> print(afa)
    AUTOMATON (
      REGISTERS low FLOAT
      a -> b ON Tick t SET low = t.price
      b -> c ON Tick u WHEN u.price BETWEEN low AND 2 * low
      FINAL c
    )
    """

    function = staticmethod(afa_function)

    @checked
    def __init__(self, registers: Mapping[str, Any] | None = None, functions: Iterable[UserFunction] = ()) -> None:
        self._registers = tuple(register_of(name, given) for name, given in (registers or {}).items())
        self._names = tuple(register.name for register in self._registers)
        self._arcs: list[MachineArc] = []
        self._ignores: list[IgnoreRule] = []
        self._finals: list[str] = []
        self._functions: dict[str, UserFunction] = {}
        for function in functions:
            expect("a function", function, UserFunction, "what @afa.function makes")
            if self._functions.setdefault(function.name, function) is not function:
                hint = "give one of them another name: @afa.function(name=..., ...)"
                message = f"two functions have the name {function.name!r}"
                raise QueryError(message, code="ACEP-Q073", hint=hint)

    # --- the automaton ------------------------------------------------------------------------------------

    def arc(
        self,
        source: str,
        target: str,
        on: str | None = None,
        name: str | None = None,
        when: When | None = None,
        then: Then | None = None,
    ) -> Afa:
        """Add an arc that consumes an event: ``q0 -> q1 ON Tick t WHEN t.change < 0 SET level = level + 1``.

        Parameters
        ----------
        source, target : str
            States; words. Runs begin at the source of the arc that is added first.
        on : str, optional
            The type of the event; default any.
        name : str, optional
            The variable of the event, a column of the matches; default: it is not shown there.
        when : str or callable, optional
            What must hold of event and registers; default: nothing.
        then : mapping or callable, optional
            What registers become; those that it does not name stay.

        Returns
        -------
        Afa
            This automaton.

        Raises
        ------
        UsageError
            ACEP-U022: a name is not a word, or reserved; ACEP-U053: an argument is of a wrong type.
        QueryError
            ACEP-Q070: the lambda does what symbols cannot, or gives no condition, or no mapping; ACEP-Q071: no such
            register; ACEP-Q072: an attribute without a variable has the name of a register; ACEP-Q073: two functions
            of one name; or the text is no condition.

        Examples
        --------
        >>> print(Afa().arc("a", "b", "Tick", "t", when="t.price > 3").arc("b", "c").final("c"))
        AUTOMATON (
          a -> b ON Tick t WHEN t.price > 3
          b -> c ON ANY
          FINAL c
        )
        """
        return self._add_arc(source, target, "on", type_of(on), variable_of(name), when, then)

    def epsilon(self, source: str, target: str, when: When | None = None, then: Then | None = None) -> Afa:
        """Add an arc that consumes nothing: ``a -> b EPSILON WHEN n > 3``.

        Parameters
        ----------
        source, target : str
            States.
        when : str or callable, optional
            What must hold of the registers; default: nothing.
        then : mapping or callable, optional
            What registers become.

        Returns
        -------
        Afa
            This automaton.

        Raises
        ------
        UsageError, QueryError
            As `arc`.

        Examples
        --------
        >>> afa = Afa(registers={"n": 0}).arc("a", "a", then=lambda e, r: {"n": r.n + 1})
        >>> print(afa.epsilon("a", "b", when=lambda r: r.n > 3, then={"n": 0}).final("b"))
        AUTOMATON (
          REGISTERS n = 0
          a -> a ON ANY SET n = n + 1
          a -> b EPSILON WHEN n > 3 SET n = 0
          FINAL b
        )
        """
        return self._add_arc(source, target, "epsilon", None, None, when, then)

    def timeout(self, source: str, target: str, when: When | None = None, then: Then | None = None) -> Afa:
        """Add an arc that is taken when the window has closed: ``a -> b TIMEOUT``.

        Parameters
        ----------
        source, target : str
            States; the target must be final.
        when : str or callable, optional
            What must hold of the registers; default: nothing.
        then : mapping or callable, optional
            What registers become.

        Returns
        -------
        Afa
            This automaton.

        Raises
        ------
        UsageError, QueryError
            As `arc`.
        """
        return self._add_arc(source, target, "timeout", None, None, when, then)

    def ignore(
        self,
        *states: str,
        on: str | None = None,
        name: str | None = None,
        when: When | None = None,
        otherwise: bool = False,
    ) -> Afa:
        """Let runs pass over events: ``IGNORE q1, q2 ON Tick WHEN size < 5``. Several rules: any of them.

        Parameters
        ----------
        *states : str
            Where the runs are; at least one.
        on : str, optional
            The type of the events; default any.
        name : str, optional
            A variable for the condition.
        when : str or callable, optional
            What must hold of event and registers; default: nothing, every event is passed over.
        otherwise : bool, optional
            Pass over the events that no arc of the state consumes: ``IGNORE q1, q2 OTHERWISE``. Nothing else is asked.

        Returns
        -------
        Afa
            This automaton.

        Raises
        ------
        UsageError, QueryError
            As `arc`; ACEP-U024: no state is given, or ``otherwise`` with a type, name or condition.

        Examples
        --------
        >>> print(Afa().arc("a", "b").ignore("b", on="Tick", when=lambda e: (e.size < 5) | e.size.is_null()))
        AUTOMATON (
          a -> b ON ANY
          IGNORE b ON Tick WHEN size < 5 OR size IS NULL
        )
        """
        at = states_of("ignore", states)
        if otherwise and not (on is None and name is None and when is None):
            message = "ignore(otherwise=True) asks for events that no arc consumes, and for others, too"
            raise UsageError(message, code="ACEP-U024", hint="make two calls of ignore: any of the rules is enough")
        rule = IgnoreRule(at, type_of(on), variable_of(name), otherwise=otherwise)
        traced = self._traced(f"IGNORE {', '.join(at)}", "on", rule.variable)
        self._ignores.append(replace(rule, when=self._condition(when, traced)))
        self._functions = traced.functions
        return self

    def final(self, *states: str) -> Afa:
        """Say where matches end: ``FINAL done``.

        Parameters
        ----------
        *states : str
            At least one; added to those of earlier calls.

        Returns
        -------
        Afa
            This automaton.

        Raises
        ------
        UsageError
            ACEP-U022: a state is not a word; ACEP-U024: none is given.
        """
        self._finals += [state for state in dict.fromkeys(states_of("final", states)) if state not in self._finals]
        return self

    @property
    def machine(self) -> Machine:
        """The automaton as it is now, as a tree; equal to what the parser makes of ``str(afa)``."""
        return Machine(self._registers, tuple(self._arcs), tuple(self._ignores), tuple(self._finals))

    # --- clauses ------------------------------------------------------------------------------------------

    @checked
    def by(self, *keys: str) -> QueryBuilder:
        """See `QueryBuilder.by`."""
        return self._query().by(*keys)

    @checked
    def within(self, window: str | int | timedelta) -> QueryBuilder:
        """See `QueryBuilder.within`."""
        return self._query().within(window)

    @checked
    def errors(self, k: int, weights: Mapping[str, int] | None = None) -> QueryBuilder:
        """See `QueryBuilder.errors`."""
        return self._query().errors(k, weights)

    def non_overlap(self) -> QueryBuilder:
        """See `QueryBuilder.non_overlap`."""
        return self._query().non_overlap()

    def maximal(self) -> QueryBuilder:
        """See `QueryBuilder.maximal`."""
        return self._query().maximal()

    def first_match(self) -> QueryBuilder:
        """See `QueryBuilder.first_match`."""
        return self._query().first_match()

    @checked
    def skip_to(self, where: str) -> QueryBuilder:
        """See `QueryBuilder.skip_to`."""
        return self._query().skip_to(where)

    def consume(self) -> QueryBuilder:
        """See `QueryBuilder.consume`."""
        return self._query().consume()

    @checked
    def every(self, length: str | int | timedelta) -> QueryBuilder:
        """See `QueryBuilder.every`."""
        return self._query().every(length)

    @checked
    def returning(self, *registers: str, **outputs: str) -> QueryBuilder:
        """See `QueryBuilder.returning`."""
        return self._query().returning(*registers, **outputs)

    def __str__(self) -> str:
        return to_text(self.machine)

    @never_raises
    def _repr_html_(self) -> str:
        return view(plain(str(self)), drawn(machine_graph(self.machine)))

    def __repr__(self) -> str:
        return f"<Afa, arcs: {len(self._arcs)}>"

    # --- inside -------------------------------------------------------------------------------------------

    def _query(self) -> QueryBuilder:
        return QueryBuilder(self.machine, functions=tuple(self._functions.values()))

    def _add_arc(
        self,
        source: str,
        target: str,
        kind: ArcKind,
        type_: str | None,
        variable: str | None,
        when: When | None,
        then: Then | None,
    ) -> Afa:
        states_of("arc", (source, target))
        traced = self._traced(f"{source} -> {target}", kind, variable)
        condition, sets = self._condition(when, traced), self._moves(then, traced)
        self._arcs.append(MachineArc(source, target, kind, type_, variable, condition, sets))
        self._functions = traced.functions
        return self

    def _traced(self, part: str, kind: ArcKind, variable: str | None) -> Trace:
        return Trace(part, "", kind == "on", variable, self._names, dict(self._functions))

    def _condition(self, when: When | None, traced: Trace) -> Expression | None:
        if when is None:
            return None
        if isinstance(when, str):
            return self._parsed(when)
        if not callable(when):
            hint = "give a text, when='t.price > 3', or a lambda, when=lambda e: e.price > 3"
            raise UsageError(f"when is {when!r:.80}, of type {type(when).__name__}", code="ACEP-U053", hint=hint)
        return condition_of(when, traced.of(f"WHEN of {traced.what}", place_of(when)))

    def _moves(self, then: Then | None, traced: Trace) -> tuple[Assignment, ...]:
        if then is None:
            return ()
        place = f"SET of {traced.what}"
        if isinstance(then, Mapping):
            values = {
                name: self._parsed(given) if isinstance(given, str) else constant_of(name, given)
                for name, given in then.items()
            }
        elif callable(then):
            values = moves_of(then, traced.of(place, place_of(then)))
            place += f" ({place_of(then)})"
        else:
            hint = "give a mapping, then={'level': 'level + 1'}, or a lambda, then=lambda e, r: {'level': r.level + 1}"
            raise UsageError(f"then is {then!r:.80}, of type {type(then).__name__}", code="ACEP-U053", hint=hint)
        for name in values:
            if name not in self._names:
                hint = known_registers(name, self._names)
                raise QueryError(f"no register {name!r:.80}, in {place}", code="ACEP-Q071", hint=hint)
        return tuple(Assignment(name, value) for name, value in values.items())

    def _parsed(self, text: str) -> Expression:
        return with_register_values(parse_expression(text, calls=True), frozenset(self._names))


# --- as a picture -----------------------------------------------------------------------------------------


def machine_graph(machine: Machine) -> Graph:
    """States in the order in which arcs name them, arcs with their conditions, and what states pass over.

    Parameters
    ----------
    machine : Machine
        May have no arcs yet, and no final states.
    """
    states = [*dict.fromkeys(name for arc in machine.arcs for name in (arc.source, arc.target))]
    number = {name: f"s{i}" for i, name in enumerate(states)}
    passed: dict[str, list[str]] = {}
    for rule in machine.ignores:
        when = None if rule.when is None else to_text(rule.when)
        said = "OTHERWISE" if rule.otherwise else _asked_text(rule.type, when)
        for name in rule.states:
            passed.setdefault(name, []).append(said)
    nodes = [
        Node(
            number[name],
            name,
            "end" if name in machine.finals else "state",
            passes=" or ".join(passed.get(name, ())),
            is_start=name == machine.start,
        )
        for name in states
    ]
    return Graph(
        "automaton", nodes, [Edge(number[arc.source], number[arc.target], _arc_text(arc)) for arc in machine.arcs]
    )


def _arc_text(arc: MachineArc) -> str:
    what = {"on": arc.type or "ANY", "epsilon": "EPSILON", "timeout": "TIMEOUT"}[arc.kind]
    sets = ", ".join(f"{one.register} = {to_text(one.value)}" for one in arc.sets)
    return _asked_text(what, None if arc.when is None else to_text(arc.when)) + (f" / {sets}" if sets else "")


def _asked_text(what: str | None, when: str | None) -> str:
    return f"{what or 'ANY'} and {when}" if when else what or "ANY"
