"""From the tree of a query back to text: canonical, with as few brackets as its meaning allows."""

from __future__ import annotations

import re
from collections.abc import Iterator

from acep_approx.query.messages import RESERVED
from acep_approx.query.syntax import (
    DEFAULT_STRATEGY,
    HOLDS,
    KINDS,
    WORD_FOR,
    Absent,
    Aggregate,
    AllOf,
    Apply,
    Atom,
    Attribute,
    Between,
    Binary,
    Constant,
    Either,
    Expression,
    FunctionCall,
    IgnoreRule,
    In,
    IsNull,
    Lasting,
    Machine,
    MachineArc,
    MachineRegister,
    OtherPattern,
    Parameter,
    Pattern,
    QuerySyntax,
    Read,
    RegisterValue,
    Repeat,
    ReturnItem,
    Sequence,
    Spaced,
    Unary,
    Window,
)

_WORD = re.compile(r"[^\W\d]\w*")
_STRENGTH = {
    "OR": 1,
    "AND": 2,
    **dict.fromkeys(("=", "!=", "<", "<=", ">", ">="), 4),
    **dict.fromkeys("+-", 5),
    **dict.fromkeys("*/%", 6),
}
_NOT, _COMPARISON, _SUM, _SIGN, _ALONE = 3, 4, 5, 7, 8
_INDEXES = {"None": "", "first": "[1]", "current": "[i]", "previous": "[i-1]"}


def to_text(node: QuerySyntax | Pattern | Expression | Window) -> str:
    """Write a tree as text.

    Parameters
    ----------
    node : QuerySyntax, Pattern, Expression or Window
        A tree in normal form, as the parser and the builder make it. A pattern on its own is written with
        types and variables, as after PATTERN.

    Returns
    -------
    str
        For a query one line for each clause; ``parse(to_text(query)) == query``.

    Examples
    --------
    >>> from acep_approx.query import parse
    >>> print(to_text(parse("pattern ( Shelf a , Exit+ b ) where a.x==1 and ([id]) within 5 minutes")))
    PATTERN SEQ(Shelf a, Exit+ b[])
    WHERE [id] AND a.x = 1
    WITHIN 5 min
    """
    match node:
        case QuerySyntax():
            return "\n".join(clauses(node))
        case Window():
            amount = repr(node.amount) if node.parameter is None else to_text(node.parameter)
            return amount if node.unit == "ticks" else f"{amount} {node.unit}"
        case Sequence():
            return f"SEQ({_pattern(node)})"
        case Either():
            return f"({_pattern(node)})"
        case Atom() | AllOf() | Repeat() | Absent() | Spaced() | OtherPattern() | Machine():
            return _pattern(node)
    return _expression(node)[0]


def is_name(word: str) -> bool:
    """Whether a word can stand for a variable as it is: a letter or ``_`` first, and not a reserved word.

    Parameters
    ----------
    word : str
        Any text.

    Returns
    -------
    bool
        False for words that would have to be quoted.

    Examples
    --------
    >>> is_name("price"), is_name("Within"), is_name("start trip")
    (True, False, False)
    """
    return bool(_WORD.fullmatch(word)) and word.upper() not in RESERVED


# --- clauses ----------------------------------------------------------------------------------------------


def clauses(query: QuerySyntax) -> list[str]:
    """The pattern and the clauses of a query, each as text.

    Parameters
    ----------
    query : QuerySyntax
    """
    if isinstance(query.pattern, OtherPattern) and query.pattern.is_query:
        return [query.pattern.text]
    lines = [_regex(query.pattern) if query.is_regex else f"PATTERN {to_text(query.pattern)}"]
    where = _where(query)
    if where:
        lines.append(f"WHERE {where}")
    lines.append(f"WITHIN {to_text(query.window)}")
    if query.is_simultaneous:
        lines.append("SIMULTANEOUS")
    if query.errors or query.weights:
        weights = ", ".join(f"{name} = {weight}" for name, weight in query.weights)
        lines.append(f"ERRORS {query.errors}" + (f" WEIGHTS ({weights})" if weights else ""))
    if query.at_start:
        lines.append("AT START")
    every = query.selection.every
    lines += [f"EVERY {to_text(every)}" if every and name == "EVERY" else name for name in query.selection.clauses]
    if query.outputs:
        lines.append("RETURN " + ", ".join(map(_output, query.outputs)))
    if query.definitions:
        found = (f"{definition.letter} AS {to_text(definition.condition)}" for definition in query.definitions)
        lines.append("DEFINE " + ", ".join(found))
    if query.publish is not None:
        lines.append(f"PUBLISH {_type(query.publish)}")
    return lines


def _where(query: QuerySyntax) -> str:
    conditions = [f"[{field_name(equivalence.name)}]" for equivalence in query.equivalences]
    conditions += [_within(predicate, _NOT) for predicate in query.predicates]
    text = " AND ".join(conditions)
    if query.strategy == DEFAULT_STRATEGY:
        return text
    return f"{query.strategy} {{ {text} }}" if text else query.strategy


# --- patterns ---------------------------------------------------------------------------------------------


def _pattern(node: Pattern) -> str:  # noqa: PLR0911  one for each kind of node
    """A pattern as it stands within brackets, where a sequence and a choice need none of their own."""
    match node:
        case Atom():
            return f"{_type(node.type)} {node.variable}"
        case Sequence(parts=parts):
            return ", ".join(f"({_pattern(part)})" if isinstance(part, Either) else _pattern(part) for part in parts)
        case Either(options=options):
            return " | ".join(_pattern(option) for option in options)
        case AllOf(parts=parts):
            return f"ALL({', '.join(map(to_text, parts))})"
        case Absent():
            return _absent(node)
        case Repeat(part=Atom() as atom):
            several = "" if node.most is not None and node.most <= 1 else "[]"
            return f"{_type(atom.type)}{_bounds(node)} {atom.variable}{several}"
        case Repeat(part=AllOf() as part):
            return f"{_pattern(part)}{_bounds(node)}"
        case Repeat(part=part):
            return f"({_pattern(part)}){_bounds(node)}"
        case Spaced(strategy=strategy, part=Atom() | AllOf() | Repeat() as part):
            return f"{WORD_FOR[strategy]} {_pattern(part)}"
        case Spaced(strategy=strategy, part=part):
            return f"{WORD_FOR[strategy]} ({_pattern(part)})"
        case OtherPattern(text=text):
            return text
        case Machine():
            return "\n".join(["AUTOMATON (", *(f"  {line}" for line in _statements(node)), ")"])


def _statements(machine: Machine) -> Iterator[str]:
    if machine.registers:
        yield "REGISTERS " + ", ".join(map(_register, machine.registers))
    yield from map(_arc, machine.arcs)
    yield from map(_ignored, machine.ignores)
    if machine.finals:
        yield "FINAL " + ", ".join(machine.finals)


_KIND_WORDS = {kind: word for word, kind in HOLDS.items()}


def _register(register: MachineRegister) -> str:
    value, kind = register.initial.value, _KIND_WORDS[register.holds]
    if value is None:
        return f"{register.name} {kind}"
    own = KINDS.get(type(value)) == register.holds
    return f"{register.name} {'' if own else kind + ' '}= {_constant(register.initial)}"


def _arc(arc: MachineArc) -> str:
    words = [f"{arc.source} -> {arc.target}", _asked(arc) if arc.kind == "on" else arc.kind.upper()]
    if arc.when is not None:
        words.append(f"WHEN {to_text(arc.when)}")
    if arc.sets:
        words.append("SET " + ", ".join(f"{one.register} = {to_text(one.value)}" for one in arc.sets))
    return " ".join(words)


def _asked(part: MachineArc | IgnoreRule) -> str:
    asked = f"ON {_type(part.type)}"
    return asked if part.variable is None else f"{asked} {part.variable}"


def _ignored(rule: IgnoreRule) -> str:
    words = [f"IGNORE {', '.join(rule.states)}"]
    if rule.type is not None or rule.variable is not None:
        words.append(_asked(rule))
    if rule.when is not None:
        words.append(f"WHEN {to_text(rule.when)}")
    if rule.otherwise:
        words.append("OTHERWISE")
    return " ".join(words)


def _absent(node: Absent) -> str:
    found = (", " if node.in_order else " | ").join(map(_pattern, node.options))
    if node.directly:
        found = f"{WORD_FOR[node.directly]} " + (f"({found})" if len(node.options) > 1 else found)
    since = " SINCE START" if node.since_start else ""
    since += f" WITHIN {to_text(node.within)}" if node.within is not None else ""
    return f"~({found}){since}"


def _regex(node: Pattern) -> str:
    match node:
        case Atom(variable=letter):
            return letter
        case Sequence(parts=parts):
            return "".join(f"({_regex(part)})" if isinstance(part, Either) else _regex(part) for part in parts)
        case Either(options=options):
            return "|".join(_regex(option) for option in options)
        case Repeat(part=part):
            inner = _regex(part)
            return f"{inner if isinstance(part, Atom) else f'({inner})'}{_bounds(node)}"
        case AllOf() | Absent() | Spaced() | OtherPattern() | Machine():
            raise ValueError("a bare regular expression has no negation and no ALL")


def _type(name: str | None) -> str:
    if name is None:
        return "ANY"
    return name if is_name(name) else quoted(name, "'")


def _bounds(node: Repeat) -> str:
    signs = {(0, None): "*", (1, None): "+", (0, 1): "?"}
    if (node.least, node.most) in signs:
        written = signs[node.least, node.most]
    elif node.most == node.least:
        written = f"{{{node.least}}}"
    else:
        written = f"{{{node.least},{'' if node.most is None else node.most}}}"
    words = [written]
    words += [WORD_FOR[node.between]] if node.between else []
    words += [node.prefers] if node.prefers else []
    words += [f"UNTIL ({' | '.join(map(_pattern, node.until.options))})"] if node.until else []
    return " ".join(words)


# --- expressions ------------------------------------------------------------------------------------------


def _expression(node: Expression) -> tuple[str, int]:  # noqa: PLR0911, PLR0912  one for each kind of node
    """The text of an expression, and how strongly its outermost operator binds."""
    match node:
        case Constant():
            return _constant(node), _ALONE
        case Attribute(variable=None, name=name):
            return name if is_name(name) else quoted(name, "`"), _ALONE
        case Attribute(name=name):
            return f"{event_name(node)}.{field_name(name)}", _ALONE
        case Aggregate():
            some = f"..{node.upto}" if node.upto else "..i-1" if node.prior else ""
            events = f"{node.variable}[{some}]"
            name = "" if node.name is None else f".{field_name(node.name)}"
            if node.function == "count distinct":
                return f"count(DISTINCT {events}{name})", _ALONE
            return f"{node.function}({events}{name})", _ALONE
        case RegisterValue(name=name):
            return name, _ALONE
        case Parameter(name=name):
            return f":{name}", _ALONE
        case Lasting(amount=amount, unit=unit):
            return f"{amount!r} {unit}", _ALONE
        case FunctionCall(name=name, arguments=arguments):
            return f"{name}({', '.join(map(to_text, arguments))})", _ALONE
        case Apply(name=("LIKE" | "ILIKE" | "IN") as name, arguments=(text, pattern)):
            return f"{_within(text, _SUM)} {name} {_within(pattern, _SUM)}", _COMPARISON
        case Apply(name="CASE", arguments=arguments):
            *values, last = map(to_text, arguments)
            parts = (f"WHEN {when} THEN {then}" for when, then in zip(values[::2], values[1::2], strict=True))
            return f"CASE {' '.join(parts)} ELSE {last} END", _ALONE
        case Apply(name=name, arguments=arguments):
            return f"{name}({', '.join(map(to_text, arguments))})", _ALONE
        case Read(keys=keys, column=column):
            at = "" if node.at is None else f" AT {event_name(node.at)}"
            row = f"store.{node.table}[{', '.join(map(to_text, keys))}{at}]"
            return f"EXISTS {row}" if column is None else f"{row}.{field_name(column)}", _ALONE
        case Unary(op="NOT"):
            return f"NOT {_within(node.operand, _NOT)}", _NOT
        case Unary():
            inner = _within(node.operand, _SIGN)
            # `--` would begin a comment, and `-5` would be read as one number.
            return (f"-({inner})" if inner[0] in "-.0123456789" else f"-{inner}"), _SIGN
        case Binary(op=op, left=left, right=right):
            own = _STRENGTH[op]
            # Operators group to the left, and comparisons not at all.
            return f"{_within(left, own + (own == _COMPARISON))} {op} {_within(right, own + 1)}", own
        case In(values=values):
            test = f"IN ({', '.join(map(_constant, values))})"
        case Between(low=low, high=high):
            test = f"BETWEEN {_within(low, _SUM)} AND {_within(high, _SUM)}"
        case IsNull(negated=negated):
            return f"{_within(node.operand, _SUM)} IS {'NOT ' if negated else ''}NULL", _COMPARISON
    return f"{_within(node.operand, _SUM)} {'NOT ' if node.negated else ''}{test}", _COMPARISON


def _within(node: Expression, least: int) -> str:
    text, strength = _expression(node)
    return text if strength >= least else f"({text})"


def _constant(node: Constant) -> str:
    match node.value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if node.value else "FALSE"
        case str():
            return quoted(node.value, "'")
    return repr(node.value)


def event_name(node: Attribute) -> str:
    """The event that an attribute is of, as text: ``b``, ``c[1]``.

    Parameters
    ----------
    node : Attribute
    """
    index = f"[{node.variable}.LEN]" if node.index == "last" else _INDEXES.get(str(node.index), f"[{node.index}]")
    return f"{node.variable}{index}"


def field_name(name: str) -> str:
    """The name of an attribute or a column behind a dot: in backticks if it is no word.

    Parameters
    ----------
    name : str
    """
    return name if _WORD.fullmatch(name) else quoted(name, "`")


def _output(output: ReturnItem) -> str:
    if output.value == RegisterValue(output.name):
        return output.name
    return f"{to_text(output.value)} AS {output_name(output.name)}"


def output_name(name: str) -> str:
    """A name behind AS: in backticks if it is no word."""
    return name if re.fullmatch(r"\w+", name) else quoted(name, "`")


def quoted(text: str, quote: str) -> str:
    """A text between quotes, which are doubled in it."""
    return f"{quote}{text.replace(quote, quote * 2)}{quote}"
