"""The plan of a query in CEL: without data to explain and check it, and again for the columns of a stream; its key.

What one automaton cannot run of a query becomes a query of its own that publishes a stream. Source: Demers et al., CIDR
2007, section 3: "any left-associated Cayuga algebra expression can be implemented" by one automaton, others "can be
broken up into a set of left-associated ones".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING

from acep_approx.automaton.algebra import Shows, compile_algebra
from acep_approx.automaton.automaton import START
from acep_approx.automaton.registers import RegisterAutomaton
from acep_approx.automaton.resolve import Held, Own, Register, Resolved, equality
from acep_approx.errors import QueryError, UnsupportedError
from acep_approx.planning.planner import UNBOUNDED, Plan, check_engine, window_ticks
from acep_approx.query.cel.names import completed, resolved
from acep_approx.query.cel.printer import to_algebra, to_cel
from acep_approx.query.cel.syntax import (
    DURATION,
    INTERNAL,
    Algebra,
    CelQuery,
    Filter,
    Fold,
    Next,
    Select,
    Star,
    Stream,
    expressions,
    nodes,
    parameters_in,
    streams,
)
from acep_approx.query.parameters import refuse_those
from acep_approx.query.printer import to_text
from acep_approx.query.shape import conjuncts, operands, walk
from acep_approx.query.syntax import (
    MICROSECONDS,
    Attribute,
    Binary,
    Constant,
    Expression,
    Lasting,
    OtherPattern,
    QuerySyntax,
    ReturnItem,
    Window,
)

if TYPE_CHECKING:
    from acep_approx.events.roles import Roles


def implied_key(automaton: RegisterAutomaton) -> str | None:
    """The key that a query in CEL has without saying so: an attribute that all events of each result agree in.

    Where every operator asks ``$2.g = $1.g``, an event of one ``g`` is nothing to the runs of another: it takes none of
    them forward, and none away. So the stream can be split by ``g``, as ``[g]`` splits it in PATTERN SEQ(..).

    Source: ours. Demers et al., CIDR 2007, section 4.3.2, index what waits for an event by such equalities.

    Parameters
    ----------
    automaton : RegisterAutomaton
        All that its runs hold is said by the moves of its steps, as ``compile_algebra`` makes it.

    Complexity: O(attributes asked x moves x depth), mostly O(attributes asked x moves).
    """
    asked = [
        [
            (found[1].name, found[0])
            for check in step.checks
            if (found := equality(check)) is not None and isinstance(found[1], Attribute)
        ]
        for step in automaton.steps
        if step.source != START
    ]
    for name in dict.fromkeys(name for equalities in asked[:1] for name, _ in equalities):
        holding = _holding(automaton, name)
        if all(any(one == name and register in holding for one, register in equalities) for equalities in asked):
            return name
    return None


def _holding(automaton: RegisterAutomaton, name: str) -> set[Register]:
    moves = [move for step in automaton.steps for move in step.moves.items()]
    holding = {register for register, _ in moves}
    while True:
        kept = holding - {register for register, value in moves if not _is_of(value, name, holding)}
        if kept == holding:
            return holding
        holding = kept


def _is_of(value: Resolved, name: str, holding: set[Register]) -> bool:
    match value:
        case Own(value=Attribute(name=own)):
            return own == name
        case Held(register=register, updated=False):
            return register in holding
    return False


OF_ATTRIBUTES = frozenset(("ACEP-Q103", "ACEP-Q104", "ACEP-Q106", "ACEP-Q107"))
"""What can be wrong with a query that is right for other attributes of its streams."""


def plan_cel(query: CelQuery, engine: str = "auto", *, allows_parameters: bool = False) -> Plan:
    """Check a query in CEL, and plan it for events of which nothing is known yet.

    Parameters
    ----------
    query : CelQuery
        As parsed.
    engine : {"auto", "cells", "runs"}, default "auto"
        Only the runs can answer it.
    allows_parameters : bool, default False
        Whether it may be a template.

    Raises
    ------
    QueryError
        Names that make no sense (``query.cel.names.resolved``), parameters.
    UnsupportedError
        ``ACEP-Q900``: the cells were asked for. ``ACEP-Q118``: several automata are needed.
    LimitError
        See ``automaton.algebra.compile_algebra``.
    """
    check_engine(engine)
    if engine == "cells":
        hint = "leave the choice of the engine open, or ask for the runs engine"
        message = "the cells engine cannot answer queries in CEL"
        raise query.fault("ACEP-Q900", message, hint=hint, kind=UnsupportedError)
    if not allows_parameters:
        refuse_those(parameters_in(query), query)
    known = _likely_schemas(query)
    _refuse_several(query)
    syntax = _syntax(query, _window(query))
    registers = compile_algebra(resolved(query, known), known, syntax, ticks_of)
    return Plan(syntax, registers.automaton, "runs", registers, ("CEL",), query, implied_key(registers))


def plan_unbound(query: CelQuery, *, allows_parameters: bool = False) -> Plan:
    """The plan of a query in CEL that may read streams of which nothing is known yet; or of a template.

    Where names make no sense for the attributes that these are taken to have, the query is checked once they are known:
    see ``plan_for``.

    Raises
    ------
    QueryError, UnsupportedError, LimitError
        It is wrong whatever attributes there are; see ``plan_cel``.
    """
    try:
        return plan_cel(query, allows_parameters=allows_parameters)
    except QueryError as error:
        if error.code not in OF_ATTRIBUTES:
            raise
    nothing = plan_cel(CelQuery(Select((Star(),), Stream("any"))))
    return replace(nothing, query=_syntax(query, _window(query)), cel=query)


def plans_of_parts(query: CelQuery, mark: str) -> list[Plan]:
    """The plans of the automata that a query in CEL needs, its own last.

    Parameters
    ----------
    query : CelQuery
        As parsed.
    mark : str
        Ends the names of hidden streams, so that those of several queries differ.

    Raises
    ------
    QueryError, UnsupportedError, LimitError
        As ``plan_unbound``.
    """
    parts = left_associated(query, mark)
    if len(parts) > 1:  # no part knows the names of the others
        try:
            completed(query, {})
        except QueryError as error:
            if error.code not in OF_ATTRIBUTES:
                raise
    return [plan_unbound(part) for part in parts]


def plan_for(plan: Plan, columns: Mapping[str, tuple[str, ...]], roles: Roles, *, is_time: bool, shows: Shows) -> Plan:
    """The plan of a query in CEL for the events of a stream; of any other query its plan.

    Parameters
    ----------
    plan : Plan
        As ``plan_cel`` gives it. A key that it has stays, unless the query implies one.
    columns : mapping of str to tuple of str
        Of the events of each stream that it reads. Those that play a role are no attributes, but for the key.
    roles : Roles
    is_time : bool
        Whether ticks are microseconds.
    shows : {"all", "start", "nothing"}
        What is asked of results.

    Raises
    ------
    QueryError
        A query names attributes that are not there; ``ACEP-Q907``, ``ACEP-Q908``: a time without unit, or with one.
    """
    query = plan.cel
    if query is None:
        return plan
    taken = {roles.time, roles.type, roles.start}
    schemas = {
        stream: tuple(name for name in names if name not in taken and roles.means_column(name))
        for stream, names in columns.items()
    }
    unit = "us" if is_time else None
    windows = [window_ticks(_syntax(query, window), unit) for window in (query.window,) if window is not None]
    windows += [_ticks(one, unit, query) for one in _longest(query.select)]
    window = Window(min(windows), unit or "ticks") if windows else Window(0, UNBOUNDED)
    syntax = replace(_syntax(query, window), equivalences=plan.query.equivalences)
    registers = compile_algebra(
        resolved(query, schemas),
        schemas,
        syntax,
        lambda one: _ticks(one, unit, query),
        has_intervals=roles.start is not None,
        longest=_longest_alone(query, windows, is_time=is_time),
        shows=shows,
    )
    bound = replace(plan, query=registers.query, automaton=registers.automaton, registers=registers)
    return replace(bound, implied_key=implied_key(registers) or plan.implied_key)


def _longest_alone(query: CelQuery, windows: list[int], *, is_time: bool) -> Expression | None:
    window = query.window
    if window is None or window.parameter is None:
        return Constant(min(windows)) if windows else None
    factor = MICROSECONDS[window.unit] if is_time else 1
    return Binary("*", window.parameter, Constant(factor))


def _likely_schemas(query: CelQuery) -> dict[str, tuple[str, ...]]:
    """The attributes that its streams are taken to have while no data is known.

    Each stream has what is asked of it. Where that makes no sense, as one name can be meant for several streams, each
    has all names that are not those of other attributes, renamed or computed.
    """
    try:
        return completed(query, {})
    except QueryError:
        every = list(nodes(query.select))
        named = [node for one in every for part in expressions(one) for node in walk(part)]
        read = [node.name for node in named if isinstance(node, Attribute)]
        items = [one for node in every for one in operands(node) if isinstance(one, ReturnItem)]
        made = {one.name for one in items if one.value != Attribute(None, None, one.name)}
        names = tuple(name for name in dict.fromkeys(read) if not name.endswith("_1") and name not in {*made, DURATION})
        try:
            return completed(query, dict.fromkeys(streams(query.select), names))
        except QueryError:
            pass
        raise


def ticks_of(lasting: Lasting) -> int:
    """The ticks of a length of time, where they are microseconds or have no unit."""
    return round(lasting.amount * MICROSECONDS.get(lasting.unit, 1))


def _syntax(query: CelQuery, window: Window) -> QuerySyntax:
    """A query in CEL as whoever knows nothing of it knows it."""
    return QuerySyntax(
        OtherPattern(to_cel(query), is_query=True),
        window,
        strategy="skip_till_next_match",
        is_simultaneous=True,
        publish=query.select.publish,
        text=query.text,
    )


def _window(query: CelQuery) -> Window:
    if query.window is not None:
        return query.window
    longest = list(_longest(query.select))
    if not longest:
        return Window(0, UNBOUNDED)
    least = min(longest, key=lambda one: ticks_of(one) if isinstance(one, Lasting) else int(one.value or 0))
    if isinstance(least, Lasting):
        return Window(least.amount, least.unit, span=least.span)
    return Window(int(least.value or 0), "ticks", span=least.span)


def _longest(node: Algebra) -> Iterator[Lasting | Constant]:
    """How long results can last at most: what FILTERs above the last operator say."""
    while isinstance(node, Filter | Select):
        for test in conjuncts(node.condition) if isinstance(node, Filter) else ():
            match test:
                case Binary(op="<" | "<=", left=Attribute(name=name), right=Lasting() | Constant() as most):
                    if name == DURATION and (isinstance(most, Lasting) or type(most.value) is int):
                        yield most
        node = node.source


def _ticks(lasting: Lasting | Constant, unit: str | None, query: CelQuery) -> int:
    if isinstance(lasting, Constant):
        return max(int(lasting.value or 0), 0)
    window = Window(lasting.amount, lasting.unit, span=lasting.span)
    return window_ticks(_syntax(query, window), unit)


def _refuse_several(query: CelQuery) -> None:
    parts = left_associated(query)
    if len(parts) > 1:
        message = (
            "a part of this query is a stream of its own: a subquery with PUBLISH, or a right operand with operators"
        )
        hint = "write it as a chain from the left to the right, or add it to a QuerySet, which runs them all"
        raise query.fault("ACEP-Q118", message, parts[0].select.span, hint, UnsupportedError)


def left_associated(query: CelQuery, mark: str = "") -> tuple[CelQuery, ...]:
    r"""The queries that must run for one query, each of them one automaton.

    Composite right operands of NEXT and FOLD, and subqueries with PUBLISH, become queries of their own; a `Stream`
    stands in their place. A right operand of nothing but FILTERs and SELECTs over a stream stays.

    Parameters
    ----------
    query : CelQuery
        Parsed or resolved.
    mark : str, optional
        Ends the names of hidden streams, so that those of several queries differ.

    Returns
    -------
    tuple of CelQuery
        Those whose streams others read come first; the last one is the query itself. What the text gives no name is
        published under one that no text can say, which is the same for equal parts, and is
        ``SELECT *``: resolve it before it is compiled. The window of the query is also the window of these parts, as
        what lasts too long is in no result; what is published by name has none.

    Examples
    --------
    >>> from acep_approx.query import parse_cel, to_cel
    >>> inner, outer = left_associated(parse_cel("FROM A NEXT (FROM B NEXT C PUBLISH D)"))
    >>> print(to_cel(inner), to_cel(outer), sep="\n")
    SELECT *
    FROM B NEXT C
    PUBLISH D
    SELECT *
    FROM A NEXT D
    """
    parts = _Parts(query, mark)
    select = replace(query.select, source=parts.left(query.select.source))
    return (*parts.found.values(), replace(query, select=select))


class _Parts:
    """The queries that were found in one query, by the names of their streams."""

    def __init__(self, query: CelQuery, mark: str) -> None:
        self.query = query
        self.mark = mark
        self.found: dict[str, CelQuery] = {}

    def left(self, node: Algebra) -> Algebra:
        """What stays where it is: the part of an automaton that reads from the left."""
        match node:
            case Stream():
                return node
            case Filter():
                return replace(node, source=self.left(node.source))
            case Next() | Fold():
                left = self.left(node.left)
                return replace(node, left=left, right=self.right(node.right))
            case Select():
                made = replace(node, source=self.left(node.source))
                if node.publish is None:
                    return made
                self._publish(node.publish, made)
                return Stream(node.publish, node.span)

    def right(self, node: Algebra) -> Algebra:
        """A right operand: the events of one stream, or one of their own."""
        made = self.left(node)
        inside = made
        while isinstance(inside, Filter | Select):
            inside = inside.source
        if isinstance(inside, Stream):
            return made
        window = "" if self.query.window is None else to_text(self.query.window)
        name = INTERNAL + sha256(f"{to_algebra(made)} WITHIN {window}".encode()).hexdigest()[:16] + self.mark
        self._publish(name, Select((Star(),), made, name, node.span), internal=True)
        return Stream(name, node.span)

    def _publish(self, name: str, select: Select, *, internal: bool = False) -> None:
        window = self.query.window if internal else None
        self.found.setdefault(name, CelQuery(select, window, 0, self.query.text))
