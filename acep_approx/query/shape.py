"""The normal form of patterns; walks over trees and changes of them; what a condition is about.

What only looks at a tree does not recurse: no tree is too deep for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields, replace
from operator import is_
from typing import Any, TypeVar

from acep_approx.query.syntax import (
    DEFAULT_STRATEGY,
    NO_SPAN,
    WORD_FOR,
    Absent,
    Aggregate,
    AllOf,
    Apply,
    Atom,
    Attribute,
    Between,
    Binary,
    Either,
    Expression,
    FunctionCall,
    In,
    IsNull,
    Machine,
    Pattern,
    QuerySyntax,
    Read,
    Repeat,
    Sequence,
    Spaced,
    Span,
    Strategy,
    Unary,
    Window,
)

Node = Pattern | Expression
SomeNode = TypeVar("SomeNode")


def sequence_of(parts: Iterable[Pattern], span: Span = NO_SPAN) -> Pattern:
    """Join parts into a sequence; a sequence within it is flattened, one part alone is itself.

    Parameters
    ----------
    parts : iterable of Pattern
        At least one.
    span : Span, optional
        Where the sequence stands in the text.

    Returns
    -------
    Pattern
        The normal form: no sequence directly within a sequence, none with one part.

    Examples
    --------
    >>> a, b = Atom("A", "a"), Atom("B", "b")
    >>> sequence_of([a]) == a, len(sequence_of([Sequence((a, b)), Atom("C", "c")]).parts)
    (True, 3)
    """
    flat: list[Pattern] = []
    for part in parts:
        flat.extend(part.parts if isinstance(part, Sequence) else (part,))
    return flat[0] if len(flat) == 1 else Sequence(tuple(flat), span)


def choice_of(options: Iterable[Pattern], span: Span = NO_SPAN) -> Pattern:
    """Join options into a choice, with the same normal form as `sequence_of`.

    Parameters
    ----------
    options : iterable of Pattern
        At least one.
    span : Span, optional
        Where the choice stands in the text.

    Returns
    -------
    Pattern
        The normal form: no choice directly within a choice, none with one option.
    """
    flat: list[Pattern] = []
    for option in options:
        flat.extend(option.options if isinstance(option, Either) else (option,))
    return flat[0] if len(flat) == 1 else Either(tuple(flat), span)


def all_of(parts: Iterable[Pattern], span: Span = NO_SPAN) -> Pattern:
    """Join parts that may come in any order; one part alone is itself.

    Parameters
    ----------
    parts : iterable of Pattern
        At least one.
    span : Span, optional
        Where they stand in the text.

    Returns
    -------
    Pattern
        The normal form. An ``ALL`` within another one stays: its parts follow one another without those of the other.
    """
    found = tuple(parts)
    return found[0] if len(found) == 1 else AllOf(found, span)


# --- walks, and changes -----------------------------------------------------------------------------------

_BELOW: dict[type, Callable[[Any], tuple[Node, ...]]] = {
    Sequence: lambda node: node.parts,
    Either: lambda node: node.options,
    AllOf: lambda node: node.parts,
    Absent: lambda node: node.options,
    Repeat: lambda node: (node.part,) if node.until is None else (node.part, node.until),
    Spaced: lambda node: (node.part,),
    Unary: lambda node: (node.operand,),
    IsNull: lambda node: (node.operand,),
    Binary: lambda node: (node.left, node.right),
    In: lambda node: (node.operand, *node.values),
    Between: lambda node: (node.operand, node.low, node.high),
    FunctionCall: lambda node: node.arguments,
    Apply: lambda node: node.arguments,
    Read: lambda node: node.keys,
}
"""What is below a node of each class; below others there is nothing."""


def children(node: Node) -> tuple[Node, ...]:
    """The nodes directly below a node, in the order of the text.

    Parameters
    ----------
    node : Pattern or Expression
        Any node.

    Returns
    -------
    tuple of nodes
        Empty for a leaf.
    """
    below = _BELOW.get(type(node))
    return below(node) if below else ()


class _Parts(dict[type, tuple[str, ...]]):
    def __missing__(self, kind: type) -> tuple[str, ...]:
        self[kind] = found = tuple(field.name for field in fields(kind) if field.name != "span")
        return found


PARTS = _Parts()
"""The fields of a class of nodes in which other nodes can be; its place in the text is none."""


def is_node(value: object) -> bool:
    """Whether what a field holds is a node, resolved or not."""
    return hasattr(value, "__dataclass_fields__")


def operands(node: Any) -> list[Any]:
    """The nodes in the fields of a node, resolved or not, those in tuples too."""
    found: list[Any] = []
    for name in PARTS[type(node)]:
        value = getattr(node, name)
        found += filter(is_node, value if isinstance(value, tuple) else (value,))
    return found


def with_operands(node: SomeNode, change: Callable[[Any], Any]) -> SomeNode:
    """A node with other nodes in its fields; the node itself where each of them stays what it is."""
    changed: dict[str, Any] = {}
    for name in PARTS[type(node)]:
        value = getattr(node, name)
        if isinstance(value, tuple):
            parts = tuple(change(one) if is_node(one) else one for one in value)
            if not all(map(is_, parts, value)):
                changed[name] = parts
        elif is_node(value) and (part := change(value)) is not value:
            changed[name] = part
    return replace(node, **changed) if changed else node  # type: ignore[type-var]


def replaced(
    expression: Expression,
    change: Callable[[Expression], Expression | None],
    finish: Callable[[Expression], Expression] | None = None,
) -> Expression:
    """An expression with some of its parts changed.

    Parameters
    ----------
    expression : Expression
        Not nested deeper than the limit.
    change : callable
        Gives for a node what comes in its place; None: the node stays, and its parts are asked.
    finish : callable, optional
        Gives for a node that stays, with its parts as they are now, what comes in its place.

    Examples
    --------
    >>> from acep_approx.query import syntax
    >>> total = Binary("+", syntax.Attribute(None, None, "x"), syntax.Constant(1))
    >>> replaced(total, lambda node: syntax.Constant(2) if isinstance(node, syntax.Attribute) else None)
    Binary(op='+', left=Constant(value=2), right=Constant(value=1))
    """
    found = change(expression)
    if found is None:
        found = with_operands(expression, lambda part: replaced(part, change, finish))
        found = finish(found) if finish else found
    return found


def expressions_of(machine: Machine) -> Iterator[Expression]:
    """All expressions of an automaton written by hand, in the order of its arcs and rules."""
    conditions = [arc.when for arc in machine.arcs] + [rule.when for rule in machine.ignores]
    yield from (condition for condition in conditions if condition is not None)
    for arc in machine.arcs:
        yield from (one.value for one in arc.sets)


def all_expressions(query: QuerySyntax) -> Iterator[Expression]:
    """All expressions of a query: of WHERE, of an automaton's arcs, of RETURN and of DEFINE."""
    yield from query.predicates
    if isinstance(query.pattern, Machine):
        yield from expressions_of(query.pattern)
    yield from (output.value for output in query.outputs)
    yield from (definition.condition for definition in query.definitions)


def with_expressions(machine: Machine, change: Callable[[Expression], Expression]) -> Machine:
    """An automaton written by hand with each of its conditions and values changed."""
    arcs = [
        replace(
            arc,
            when=arc.when and change(arc.when),
            sets=tuple(replace(one, value=change(one.value)) for one in arc.sets),
        )
        for arc in machine.arcs
    ]
    ignores = [replace(rule, when=rule.when and change(rule.when)) for rule in machine.ignores]
    return replace(machine, arcs=tuple(arcs), ignores=tuple(ignores))


def of_expressions(query: QuerySyntax, change: Callable[[Expression], Expression]) -> QuerySyntax:
    """A query with each of its expressions changed, those of ``all_expressions``."""
    pattern = query.pattern
    return replace(
        query,
        pattern=with_expressions(pattern, change) if isinstance(pattern, Machine) else pattern,
        predicates=tuple(map(change, query.predicates)),
        outputs=tuple(replace(one, value=change(one.value)) for one in query.outputs),
        definitions=tuple(replace(one, condition=change(one.condition)) for one in query.definitions),
    )


def walk(node: Node) -> Iterator[Node]:
    """Every node of a tree, each before what is below it, in the order of the text.

    Parameters
    ----------
    node : Pattern or Expression
        The root.

    Yields
    ------
    node
        The root first.
    """
    waiting = [node]
    while waiting:
        found = waiting.pop()
        yield found
        below = _BELOW.get(type(found))
        if below:
            waiting.extend(reversed(below(found)))


def walk_with_depth(node: Node) -> Iterator[tuple[Node, int]]:
    """Like `walk`, with the depth of each node; the root has depth 1.

    Parameters
    ----------
    node : Pattern or Expression
        The root.

    Yields
    ------
    tuple of node and int
        The root first.
    """
    waiting: list[tuple[Node, int]] = [(node, 1)]
    while waiting:
        found, depth = waiting.pop()
        yield found, depth
        waiting.extend((child, depth + 1) for child in reversed(children(found)))


def atoms(pattern: Pattern) -> list[Atom]:
    """All atoms of a pattern, in the order of the text, those of negations included.

    Parameters
    ----------
    pattern : Pattern
        Any pattern.

    Returns
    -------
    list of Atom
        In a bare regular expression a letter may occur several times.
    """
    return [node for node in walk(pattern) if isinstance(node, Atom)]


def kleene_variables(pattern: Pattern) -> frozenset[str]:
    """The variables that can bind several events: those below any repeat that is not ``?`` or ``{1}``.

    Parameters
    ----------
    pattern : Pattern
        Any pattern.

    Returns
    -------
    frozenset of str
        Names of variables.

    Examples
    --------
    >>> sorted(kleene_variables(Sequence((Repeat(Atom("A", "a"), 1, None), Repeat(Atom("B", "b"), 0, 1)))))
    ['a']
    """
    loops = [node for node in walk(pattern) if isinstance(node, Repeat) and node.most != 1]
    return frozenset(atom.variable for loop in loops for atom in atoms(loop))


def gap_words(pattern: Pattern) -> list[tuple[Strategy, Span]]:
    """The strategies that gaps of a pattern have of their own, and where they stand, in the order of the text.

    Those of negations that only the next event can break, too.

    Parameters
    ----------
    pattern : Pattern
        Any pattern.

    Examples
    --------
    >>> gap_words(Sequence((Atom("A", "a"), Spaced("strict_contiguity", Atom("B", "b")))))
    [('strict_contiguity', (0, 0))]
    """
    found: list[tuple[Strategy, Span]] = []
    for node in walk(pattern):
        if isinstance(node, Spaced):
            found.append((node.strategy, node.span))
        elif isinstance(node, Repeat) and node.between is not None:
            found.append((node.between, node.span))
        elif isinstance(node, Absent) and node.directly is not None:
            found.append((node.directly, node.span))
    return found


def passing_less(query: QuerySyntax) -> tuple[str, Span] | None:
    """The strategy or the word for a gap by which not every event may be passed over, and where it stands.

    Parameters
    ----------
    query : QuerySyntax

    Examples
    --------
    >>> from acep_approx.query import parse
    >>> passing_less(parse("PATTERN SEQ(A a, NEXT B b) WITHIN 5"))
    ('NEXT', (17, 25))
    >>> passing_less(parse("PATTERN SEQ(A a, ANY B b) WITHIN 5")) is None
    True
    """
    if query.strategy != DEFAULT_STRATEGY:
        return query.strategy, NO_SPAN
    found = [(WORD_FOR[gap], span) for gap, span in gap_words(query.pattern) if gap != DEFAULT_STRATEGY]
    found += [(node.prefers, node.span) for node in walk(query.pattern) if isinstance(node, Repeat) and node.prefers]
    return next(iter(found), None)


def without_gap_words(pattern: Pattern) -> Pattern:
    """A pattern in which every gap has the strategy of the query, and no repetition prefers anything.

    Parameters
    ----------
    pattern : Pattern
        Not nested deeper than the limit.
    """
    match pattern:
        case Spaced(part=part):
            return without_gap_words(part)
        case Repeat(part=part):
            return replace(pattern, part=without_gap_words(part), between=None, prefers=None)
        case AllOf(parts=parts):
            return all_of(map(without_gap_words, parts), pattern.span)
        case Sequence(parts=parts):
            return sequence_of(map(without_gap_words, parts), pattern.span)
        case Either(options=options):
            return choice_of(map(without_gap_words, options), pattern.span)
    return pattern


def negated_variables(pattern: Pattern) -> frozenset[str]:
    """The variables that only name what must not happen: those of ``~(T x)``.

    Parameters
    ----------
    pattern : Pattern
        Any pattern.

    Returns
    -------
    frozenset of str
        Names of variables.
    """
    absent = [node for node in walk(pattern) if isinstance(node, Absent)]
    return frozenset(atom.variable for node in absent for atom in node.options)


def negated_sequences(pattern: Pattern) -> list[tuple[str, ...]]:
    """The variables of each negation of a sequence, ``~(B b, C c)``, in its order.

    Parameters
    ----------
    pattern : Pattern
        Any pattern.
    """
    found = [node for node in walk(pattern) if isinstance(node, Absent) and node.in_order]
    return [tuple(atom.variable for atom in node.options) for node in found]


def negation_windows(pattern: Pattern) -> dict[str, Window]:
    """The windows of negations that have one of their own, by their variables.

    Parameters
    ----------
    pattern : Pattern
        Any pattern.
    """
    absent = [node for node in walk(pattern) if isinstance(node, Absent)]
    return {atom.variable: node.within for node in absent if node.within is not None for atom in node.options}


# --- what a condition is about: its variables, whether one event decides it, its parts --------------------


def naming(expr: Expression) -> Iterator[Attribute | Aggregate]:
    """What names events in an expression: attributes, aggregates, and the events behind AT in reads of tables.

    Parameters
    ----------
    expr : Expression
        Any expression.

    Yields
    ------
    Attribute or Aggregate
        In the order of the text; an event behind AT is an attribute without a name.
    """
    for node in walk(expr):
        if isinstance(node, Attribute | Aggregate):
            yield node
        elif isinstance(node, Read) and node.at is not None:
            yield node.at


def is_of_each(node: Attribute) -> bool:
    """Whether an attribute of a Kleene variable is about each of its events: ``a.x``, ``a[i].x``, ``a[i-1].x``."""
    return node.index in (None, "current", "previous")


def most_events(pattern: Pattern) -> dict[str, int | None]:
    """How many events each variable can have at most; None: any number.

    Examples
    --------
    >>> most_events(Repeat(Sequence((Atom("A", "a"), Repeat(Atom("B", "b"), 2, 3))), 1, 2))
    {'a': 2, 'b': 6}
    """
    if isinstance(pattern, Atom):
        return {pattern.variable: 1}
    found: dict[str, int | None] = {}
    for part in children(pattern):
        found |= most_events(part)  # type: ignore[arg-type]
    if isinstance(pattern, Repeat):
        times = pattern.most
        return {name: None if times is None or most is None else most * times for name, most in found.items()}
    return found


MIRRORED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
"""What comparisons are with their sides changed."""


def variables(expr: Expression) -> frozenset[str]:
    """The variables an expression names.

    Parameters
    ----------
    expr : Expression
        Any expression.

    Returns
    -------
    frozenset of str
        Unqualified attributes (in DEFINE) add nothing.

    Examples
    --------
    >>> variables(Binary(">", Attribute("a", None, "x"), Attribute("b", None, "x"))) == {"a", "b"}
    True
    """
    return frozenset(node.variable for node in naming(expr) if node.variable is not None)


def is_static(expr: Expression) -> bool:
    """Whether one event alone decides the expression, so that it is evaluated once for each event of a batch.

    Parameters
    ----------
    expr : Expression
        Any expression.

    Returns
    -------
    bool
        True when all attributes are of one variable, without index or with ``[i]``, and there is no
        aggregate. An unqualified attribute (in DEFINE) is of the current event.

    Examples
    --------
    >>> is_static(Attribute("a", "current", "x")), is_static(Attribute("a", "previous", "x"))
    (True, False)
    """
    named = set()
    for node in naming(expr):
        if isinstance(node, Aggregate) or node.index not in (None, "current"):
            return False
        named.add(node.variable)
    return len(named) == 1


def conjuncts(expr: Expression | None) -> tuple[Expression, ...]:
    """The conditions that all must hold: the parts of an expression between its outermost ANDs.

    Parameters
    ----------
    expr : Expression or None
        Any expression, however many ANDs it has; None: no condition.

    Returns
    -------
    tuple of Expression
        In the order of the text; none of them is an AND.

    Examples
    --------
    >>> a, b, c = (Attribute("a", None, name) for name in "xyz")
    >>> conjuncts(Binary("AND", Binary("AND", a, b), c)) == (a, b, c)
    True
    """
    found: list[Expression] = []
    waiting = [] if expr is None else [expr]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Binary) and node.op == "AND":
            waiting += (node.right, node.left)
        else:
            found.append(node)
    return tuple(found)
