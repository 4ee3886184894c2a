"""Names: the attributes of streams, which input one is of, what ``*`` stands for, and what makes no sense.

Source: Demers et al., CIDR 2007, section 2.2.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from acep_approx.errors import QueryError, UnsupportedError
from acep_approx.query.assemble import did_you_mean
from acep_approx.query.cel.syntax import (
    DURATION,
    FIRST,
    LAST,
    SECOND,
    Algebra,
    CelQuery,
    Filter,
    Fold,
    Next,
    Select,
    Star,
    Stream,
    streams,
)
from acep_approx.query.shape import replaced
from acep_approx.query.syntax import NO_SPAN, Attribute, Expression, Lasting, ReturnItem, Span, Written

Schema = tuple[str, ...]
Schemas = Mapping[str, Schema | None]
"""The attributes of each stream by its name; None where no data is known yet."""


def schema_of(node: Algebra, schemas: Schemas) -> Schema:
    """The attributes of the events of a stream, in their order.

    Parameters
    ----------
    node : Algebra
        Any part of a query, resolved or not.
    schemas : mapping of str to tuple of str or None
        The attributes of the streams it reads; of one that has none here nothing is known (`names.completed` fills
        them in).

    Returns
    -------
    tuple of str
        Without the times and ``DUR``, which every event has.

    Examples
    --------
    >>> from acep_approx.query import parse_cel
    >>> pair = parse_cel("SELECT * FROM Stock NEXT Stock").select
    >>> schema_of(pair, {"Stock": ("Name", "Price")})
    ('Name_1', 'Price_1', 'Name', 'Price')
    """
    match node:
        case Stream(name=name):
            return schemas.get(name) or ()
        case Filter(source=source):
            return schema_of(source, schemas)
        case Select(items=items, source=source):
            below = schema_of(source, schemas)
            return tuple(name for one in items for name in (below if isinstance(one, Star) else (one.name,)))
        case Next(left=left, right=right) | Fold(left=left, right=right):
            return output_schema(node, schema_of(left, schemas), schema_of(right, schemas))


def output_schema(node: Next | Fold, left: Schema, right: Schema) -> Schema:
    """The attributes of the outputs of NEXT and FOLD: those of the left, renamed, those of the right, aggregates."""
    new = [one.name for one in node.aggregates] if isinstance(node, Fold) else []
    return (*renaming(node, left, right).values(), *right, *new)


def renaming(node: Next | Fold, left: Schema, right: Schema) -> dict[str, str]:
    """How the attributes of the left input are called in the output.

    Parameters
    ----------
    node : Next or Fold
    left, right : tuple of str
        The attributes of its inputs.

    Returns
    -------
    dict of str to str
        NEXT renames all, ``a`` to ``a_1``, or none where no name is on both sides. FOLD renames those that are on
        both sides and those that its aggregates name.

    Examples
    --------
    >>> renaming(Next(Stream("A"), None, Stream("B")), ("x", "y"), ("y",))
    {'x': 'x_1', 'y': 'y_1'}
    >>> renaming(Fold(Stream("A"), None, None, (), Stream("B")), ("x", "y"), ("y",))
    {'x': 'x', 'y': 'y_1'}
    """
    common = set(left) & set(right)  # and what else is renamed with it
    if isinstance(node, Fold):
        common |= {one.name for one in node.aggregates}
    elif common:
        common = set(left)
    return {name: f"{name}_1" if name in common else name for name in left}


class Guessed(Exception):  # noqa: N818  no error: names are looked at again from the beginning
    """Another attribute is taken to be there, or one is not any more."""


class Guesses:
    """The attributes of streams of which nothing is known.

    An attribute without a decorator is of one input alone. Where both could have it, one is tried: a guess that is not
    *firm*. It is taken back once the other input turns out to have it, and not tried again. A decorator leaves no
    choice.

    Parameters
    ----------
    streams : iterable of str
        Those without data.
    """

    def __init__(self, streams: Iterable[str]) -> None:
        self._taken: dict[str, dict[str, bool]] = {name: {} for name in streams}
        self._denied: set[tuple[str, str]] = set()

    def schemas(self) -> dict[str, Schema]:
        """What each stream is taken to have, in the order in which it was asked."""
        return {stream: tuple(names) for stream, names in self._taken.items()}

    def ask(self, stream: str, name: str, *, firm: bool) -> None:
        """Take a stream to have an attribute, if it may.

        Raises
        ------
        Guessed
            It is taken to have it from now on.
        """
        names = self._taken.get(stream)
        if names is not None and name not in names and (firm or (stream, name) not in self._denied):
            names[name] = firm
            raise Guessed

    def take_back(self, stream: str, name: str) -> None:
        """Take back that a stream has an attribute, if that is a guess that is not firm.

        Raises
        ------
        Guessed
            It is taken back.
        """
        names = self._taken.get(stream, {})
        if not names.get(name, True):
            del names[name]
            self._denied.add((stream, name))
            raise Guessed


OWN_NAMES = ("query", "start", "end", "times", "errors")
"""Columns that results have themselves."""
_SHOWN = 12
_RENAMED = re.compile(r"(_1)+$")


def resolved(query: CelQuery, schemas: Schemas) -> CelQuery:
    """A query in which every attribute says which input it is of, and ``*`` is written out.

    Parameters
    ----------
    query : CelQuery
        As parsed; what is resolved already stays as it is.
    schemas : mapping of str to tuple of str or None
        The attributes of the streams it reads, by their names. A stream without one is taken to have the names that
        the query asks of it.

    Returns
    -------
    CelQuery
        The same query: each attribute is in the schema of its side. Subqueries stay where they are.

    Raises
    ------
    QueryError
        ACEP-Q102 to Q111, with the place.
    UnsupportedError
        ACEP-Q900: ERRORS.

    Examples
    --------
    >>> from acep_approx.query import parse_cel
    >>> query = resolved(parse_cel("SELECT * FROM A NEXT{x > y} B"), {"A": ("x",), "B": ("y",)})
    >>> query.select.source.condition.left.variable, [item.name for item in query.select.items]
    ('$1', ['x', 'y'])
    """
    return _resolve(query, schemas)[0]


def completed(query: CelQuery, schemas: Schemas) -> dict[str, Schema]:
    """The attributes of all streams that a query reads or publishes; where no data is known, those it asks for.

    Parameters
    ----------
    query : CelQuery
        As for `resolved`.
    schemas : mapping of str to tuple of str or None
        What is known.

    Returns
    -------
    dict of str to tuple of str

    Raises
    ------
    QueryError
        As `resolved`.

    Examples
    --------
    >>> from acep_approx.query import parse_cel
    >>> completed(parse_cel("SELECT Price AS p FROM FILTER{Name = 'IBM'}(Stock) PUBLISH Ibm"), {})
    {'Stock': ('Name', 'Price'), 'Ibm': ('p',)}
    """
    return _resolve(query, schemas)[1]


def _resolve(query: CelQuery, schemas: Schemas) -> tuple[CelQuery, dict[str, Schema]]:
    if query.errors:
        hint = "leave ERRORS out, or say the same with PATTERN SEQ(..)"
        raise query.fault("ACEP-Q900", "ERRORS in CEL cannot be run yet", hint=hint, kind=UnsupportedError)
    guesses = Guesses(name for name in streams(query.select) if schemas.get(name) is None)
    while True:
        names = _Names(query.text, {**schemas, **guesses.schemas()}, guesses)
        try:
            select = names.whole(query.select)
        except Guessed:
            continue
        read = (*streams(query.select), *names.published)
        return replace(query, select=select), {name: names.schemas[name] or () for name in read}


@dataclass(frozen=True)
class _Scope:
    where: str
    sides: dict[str, Schema]
    inputs: dict[str, Algebra]
    new: frozenset[str] = frozenset()


class _Names(Written):
    """One pass over a query.

    Parameters
    ----------
    text : str
        What spans refer to.
    schemas : dict
        Of streams; what subqueries publish is added.
    guesses : Guesses
        What those have of which nothing is known.
    """

    def __init__(self, text: str, schemas: dict[str, Schema | None], guesses: Guesses) -> None:
        self.text = text
        self.schemas = schemas
        self.guesses = guesses
        self.published: list[str] = []
        self._all: list[Select] = []  # those that say `*`

    def whole(self, select: Select) -> Select:
        found = self._select(select)
        self._refuse_own_names(found)
        return found

    # --- nodes ----------------------------------------------------------------------------------------------

    def _node(self, node: Algebra) -> Algebra:
        match node:
            case Stream():
                if DURATION in self._schema(node):
                    hint = "DUR is how long an event lasts: rename the column"
                    raise self.fault("ACEP-Q108", f"{node.name} has an attribute {DURATION}", node.span, hint)
                return node
            case Filter():
                source = self._node(node.source)
                scope = _Scope("FILTER", {FIRST: self._schema(source)}, {FIRST: source})
                return replace(node, condition=self._expression(node.condition, scope), source=source)
            case Next():
                return self._next(node)
            case Fold():
                return self._fold(node)
            case Select():
                return self._select(node)

    def _next(self, node: Next) -> Next:
        left, right = self._node(node.left), self._node(node.right)
        sides = {FIRST: self._schema(left), SECOND: self._schema(right)}
        scope = _Scope("NEXT", sides, {FIRST: left, SECOND: right})
        condition = None if node.condition is None else self._expression(node.condition, scope)
        for name in set(renaming(node, *sides.values()).values()) & set(sides[SECOND]):
            self._take_back([right], name)
        self._refuse_twice(output_schema(node, *sides.values()), node.span, "what NEXT puts together")
        return replace(node, left=left, condition=condition, right=right)

    def _fold(self, node: Fold) -> Fold:
        left, right = self._node(node.left), self._node(node.right)
        of_left, of_right = self._schema(left), self._schema(right)
        for name in of_right:
            if name not in of_left:
                self._ask(left, name, firm=True)
                self._take_back([right], name)
                hint = "write what it begins with: (SELECT *, 0 AS name FROM ..) FOLD"
                hint += ", or leave it out: FOLD{..} (SELECT .. FROM ..)"
                message = f"FOLD needs all attributes of its second input in its first, which has no {name!r}"
                raise self.fault("ACEP-Q107", message, node.right.span, hint)
        new = frozenset(one.name for one in node.aggregates)
        inputs = {FIRST: left, SECOND: right, LAST: left}
        scope = _Scope("FOLD", {FIRST: of_left, SECOND: of_right, LAST: of_left}, inputs, new)
        found = [None if one is None else self._expression(one, scope) for one in (node.filter, node.rebind)]
        aggregates = tuple(self._item(one, scope) for one in node.aggregates)
        self._refuse_twice(output_schema(node, of_left, of_right), node.span, "what FOLD puts together")
        return Fold(left, found[0], found[1], aggregates, right, node.span)

    def _select(self, node: Select) -> Select:
        if node.publish is not None:
            self._publish(node, node.publish)
        source = self._node(node.source)
        below = self._schema(source)
        scope = _Scope("SELECT", {FIRST: below}, {FIRST: source})
        items: list[ReturnItem | Star] = []
        for one in node.items:
            if isinstance(one, Star):
                items += [ReturnItem(name, Attribute(FIRST, None, name, one.span), one.span) for name in below]
            else:
                items.append(self._item(one, scope))
        found = replace(node, items=tuple(items), source=source)
        if any(isinstance(one, Star) for one in node.items):
            self._all.append(found)
        self._refuse_twice(self._schema(found), node.span, "SELECT", node.items)
        if node.publish is not None:
            self._refuse_own_names(found)
            self.schemas[node.publish] = self._schema(found)
        return found

    def _publish(self, node: Select, name: str) -> None:
        if name in self.published:
            raise self.fault("ACEP-Q111", f"two parts of the query publish {name}", node.span, "take two names")
        if name in streams(node.source):
            hint = "publish under another name"
            raise self.fault("ACEP-Q111", f"{name} is published and read by the same query", node.span, hint)
        self.published.append(name)

    def _item(self, item: ReturnItem, scope: _Scope) -> ReturnItem:
        if item.name == DURATION:
            hint = "DUR is how long an event lasts: take another name"
            raise self.fault("ACEP-Q108", f"no attribute can have the name {DURATION}", item.span, hint)
        return replace(item, value=self._expression(item.value, scope))

    # --- attributes -----------------------------------------------------------------------------------------

    def _expression(self, expression: Expression, scope: _Scope) -> Expression:
        def change(node: Expression) -> Expression | None:
            if isinstance(node, Lasting) and scope.where != "FILTER":
                hint = "time is limited by FILTER{DUR <= 10 min}(..) or WITHIN 10 min"
                raise self.fault("ACEP-Q109", f"a length of time in {scope.where}", node.span, hint)
            return self._attribute(node, scope) if isinstance(node, Attribute) else None

        return replaced(expression, change)

    def _attribute(self, node: Attribute, scope: _Scope) -> Attribute:
        if node.name == DURATION:
            if scope.where == "FILTER" and node.variable in (None, FIRST):
                return replace(node, variable=FIRST)
            hint = "how long it all lasts is known to a FILTER around it: FILTER{DUR <= 10 min}(A NEXT B)"
            raise self.fault("ACEP-Q105", f"DUR cannot stand in {scope.where}", node.span, hint)
        if node.variable is None:
            return replace(node, variable=self._side(node, scope))
        if node.variable not in scope.sides:
            only = "$ stands in FOLD" if node.variable == LAST else "$2 stands in NEXT and FOLD"
            message = f"{node.variable} cannot stand in {scope.where}"
            raise self.fault("ACEP-Q102", message, node.span, f"{only}, which have two inputs")
        if node.name not in scope.sides[node.variable]:
            self._ask(scope.inputs[node.variable], node.name, firm=True)
            raise self._unknown(node, scope, [node.variable])
        return node

    def _side(self, node: Attribute, scope: _Scope) -> str:
        asked = [side for side in (FIRST, SECOND) if side in scope.sides]
        owners = [side for side in asked if node.name in scope.sides[side]]
        if not owners:
            for side in asked if scope.where == "FOLD" or node.name.endswith("_1") else reversed(asked):
                self._ask(scope.inputs[side], node.name)
            raise self._unknown(node, scope, asked)
        if node.name in scope.new:
            owners.append(LAST)
        if len(owners) > 1:
            self._take_back([scope.inputs[side] for side in (SECOND, FIRST)], node.name)
            several = " or ".join(f"{side}.{node.name}" for side in owners)
            hint = "$1 is the first input, $2 the second" + (", $ the last iteration" if LAST in scope.sides else "")
            raise self.fault("ACEP-Q104", f"{node.name!r} can be {several}", node.span, f"write which: {hint}")
        return owners[0]

    def _ask(self, node: Algebra, name: str, *, firm: bool = False) -> None:
        """Take a stream of which nothing is known to have what gives a node this attribute, if there is one."""
        match node:
            case Stream(name=stream):
                if name != DURATION and stream not in self.published:
                    self.guesses.ask(stream, name, firm=firm)
            case Filter(source=source):
                self._ask(source, name, firm=firm)
            case Select(source=source):
                if any(one is node for one in self._all):
                    self._ask(source, name, firm=firm)
            case Next(left=left, right=right) | Fold(left=left, right=right):
                if name.endswith("_1"):  # the left's, where both have it; NEXT renames all as soon as both have one
                    plain = _RENAMED.sub("", name) if isinstance(node, Next) else name[:-2]
                    for side, wanted in ((left, name[:-2]), (right, plain)):
                        if wanted not in self._schema(side):
                            self._ask(side, wanted, firm=firm)
                if isinstance(node, Next):
                    self._ask(right, name, firm=firm)
                if name not in renaming(node, (*self._schema(left), name), self._schema(right)).values():
                    return
                self._ask(left, name, firm=firm)

    def _take_back(self, inputs: list[Algebra], name: str) -> None:
        """Let one of the inputs not have an attribute, if it was only taken to have it."""
        givers = [self._giver(one, name) for one in inputs]
        for giver in givers:
            if giver is not None and givers.count(giver) == 1:
                self.guesses.take_back(giver, name)

    def _giver(self, node: Algebra, name: str) -> str | None:
        match node:
            case Stream(name=stream):
                return stream
            case Filter(source=source):
                return self._giver(source, name)
            case Select(source=source):
                return self._giver(source, name) if any(one is node for one in self._all) else None
            case Next(left=left, right=right) | Fold(left=left, right=right):
                side = right if name in self._schema(right) else left
                return self._giver(side, name) if name in self._schema(side) else None

    def _unknown(self, node: Attribute, scope: _Scope, sides: list[str]) -> QueryError:
        known = list(dict.fromkeys(name for side in sides for name in scope.sides[side]))
        shown = ", ".join(known[:_SHOWN]) + (", ..." if len(known) > _SHOWN else "")
        renamed = f"{node.name}_1"
        near = f"did you mean `{renamed}`? " if renamed in known else did_you_mean(node.name, known)
        if node.name in scope.new:
            near = "say what it begins with: (SELECT *, 0 AS name FROM ..) FOLD; "
        whose = f" in {sides[0]}" if len(scope.sides) > 1 and len(sides) == 1 else ""
        hint = f"{near}attributes are {shown}" if known else "there are no attributes"
        return self.fault("ACEP-Q103", f"no attribute {node.name!r}{whose}", node.span, hint)

    # --- names of outputs -----------------------------------------------------------------------------------

    def _refuse_twice(self, names: Schema, span: Span, what: str, items: tuple[ReturnItem | Star, ...] = ()) -> None:
        for place, name in enumerate(names):
            if name in names[:place]:
                own = [one.span for one in items if isinstance(one, ReturnItem) and one.name == name]
                hint = "rename one: SELECT price AS first_price"
                raise self.fault("ACEP-Q106", f"{what} has two attributes {name!r}", own[-1] if own else span, hint)

    def _refuse_own_names(self, select: Select) -> None:
        for item in select.items:
            if isinstance(item, ReturnItem) and item.name in OWN_NAMES:
                hint = f"give it another name: {item.name} AS {item.name}_of_event"
                message = f"results have a column {item.name!r} of their own"
                raise self.fault("ACEP-Q108", message, select.span if item.span == NO_SPAN else item.span, hint)

    def _schema(self, node: Algebra) -> Schema:
        return schema_of(node, self.schemas)
