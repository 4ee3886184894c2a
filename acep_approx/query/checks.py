"""Structural mistakes that the grammar lets pass: unknown variables, empty patterns, wrong bounds.

`check` is the entry for queries. Patterns are checked first, then WHERE, RETURN and DEFINE, in which variables may be
named only as they stand in the pattern, then the other clauses. Nothing here needs a schema: types are checked in
`types`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from acep_approx.query.assemble import UNITS, did_you_mean, no_variable
from acep_approx.query.checks_functions import check_arguments, check_functions
from acep_approx.query.checks_machine import check_machine
from acep_approx.query.limits import MAX_POSITIONS, refuse_deep_tree, refuse_long_text, refuse_many_nodes
from acep_approx.query.messages import strategy_meant
from acep_approx.query.parts import check_length
from acep_approx.query.printer import clauses, event_name, is_name
from acep_approx.query.shape import (
    Node,
    all_expressions,
    atoms,
    is_of_each,
    is_static,
    kleene_variables,
    most_events,
    naming,
    negated_sequences,
    negated_variables,
    variables,
    walk,
)
from acep_approx.query.syntax import (
    WORD_FOR,
    Absent,
    Aggregate,
    AllOf,
    Atom,
    Attribute,
    Constant,
    Either,
    Equivalence,
    Expression,
    FunctionCall,
    Machine,
    OtherPattern,
    Pattern,
    QuerySyntax,
    Repeat,
    Sequence,
    Spaced,
    Window,
)


def check(query: QuerySyntax) -> None:
    """Refuse a query whose parts do not fit together.

    Parameters
    ----------
    query : QuerySyntax
        From the parser or the builder.

    Raises
    ------
    QueryError
        With a code from ACEP-Q030 on; the table is in ``docs/reference/language.md``.
    LimitError
        Text (ACEP-Q020), nodes (ACEP-Q024), nesting (ACEP-Q021) or positions (ACEP-Q022) are over their limit.

    Examples
    --------
    >>> from acep_approx.query import parse
    >>> check(parse("PATTERN SEQ(A a, B b) WITHIN 5 ERRORS 1"))
    >>> check(parse("ab WITHIN 5 ERRORS 2"))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    acep_approx.errors.QueryError: ACEP-Q040: ERRORS 2 is not below 2, the weight of the lightest word ...
    """
    refuse_long_text(query.text)
    trees: tuple[Node, ...] = (query.pattern, *all_expressions(query))
    refuse_many_nodes(trees, query.text)
    for tree in trees:
        refuse_deep_tree(tree, query.text)
    outputs = {id(output.value) for output in query.outputs}
    for expression in all_expressions(query):
        check_functions(query, expression, is_condition=id(expression) not in outputs)
    if isinstance(query.pattern, Machine):
        _check_start_of_machine(query)
        _check_definitions_fit(query)
        check_machine(query)
        _check_window(query)
        _check_selection(query)
        return
    _check_calls(query)
    _check_variables(query)
    _check_repeats(query)
    _check_negations(query)
    _check_since_start(query)
    _check_spans(query)
    _check_gap_words(query)
    _check_until(query)
    _check_size(query)
    _check_definitions_fit(query)
    _check_predicates(query)
    _check_outputs(query)
    _check_definitions(query)
    _check_window(query)
    _check_simultaneous(query)
    _check_selection(query)
    _check_errors(query)


# --- patterns ---------------------------------------------------------------------------------------------


def _check_variables(query: QuerySyntax) -> None:
    seen: set[str] = set()
    for atom in atoms(query.pattern):
        if query.is_regex:
            if not re.fullmatch("[A-Za-z0-9_]", atom.variable):
                raise query.fault("ACEP-Q051", f"{atom.variable!r} is no letter", atom.span, _LETTERS)
            continue
        if not is_name(atom.variable):
            hint = "a variable is a word of letters, digits and _ that is not reserved"
            raise query.fault("ACEP-Q051", f"{atom.variable!r} is no name for a variable", atom.span, hint)
        if atom.variable in seen:
            hint = "give each component its own variable"
            raise query.fault("ACEP-Q031", f"the variable {atom.variable!r} stands twice", atom.span, hint)
        seen.add(atom.variable)


_LETTERS = "letters of a bare regular expression are A-Z, a-z, 0-9 and _"


def _check_repeats(query: QuerySyntax) -> None:
    for node in walk(query.pattern):
        if not isinstance(node, Repeat):
            continue
        written = f"{{{node.least},{'' if node.most is None else node.most}}}"
        if node.least < 0:
            raise query.fault("ACEP-Q042", f"{written} begins below 0", node.span, "bounds are whole numbers from 0")
        if node.most == 0:
            raise query.fault("ACEP-Q042", "a repetition of 0 times is nothing", node.span, "leave this part out")
        if node.most is not None and node.most < node.least:
            hint = f"write {{{node.most},{node.least}}}"
            raise query.fault("ACEP-Q042", f"{written} ends before it begins", node.span, hint)


def _check_negations(query: QuerySyntax) -> None:
    """Negations must be parts of a sequence that has something to stand between, before or after."""
    hint = "put it into a sequence, as in SEQ(A a, ~(B b), C c)"
    if isinstance(query.pattern, Absent):
        raise query.fault(
            "ACEP-Q035",
            "the pattern has only negations, and nothing to find",
            query.pattern.span,
            hint,
        )
    for node in walk(query.pattern):
        if isinstance(node, Sequence) and all(isinstance(part, Absent) for part in node.parts):
            raise query.fault("ACEP-Q035", "a sequence of negations only has nothing to find", node.span, hint)
        if isinstance(node, AllOf):
            _check_all_of(query, node)
        below = node.options if isinstance(node, Either) else (node.part,) if isinstance(node, Repeat) else ()
        for part in below:
            if isinstance(part, Absent):
                where = "an alternative" if isinstance(node, Either) else "repeated"
                raise query.fault("ACEP-Q037", f"a negation cannot be {where} on its own", part.span, hint)


def _check_since_start(query: QuerySyntax) -> None:
    """A negation since the start comes first, and its events are told by themselves: nothing else of them is kept."""
    first = query.pattern.parts[0] if isinstance(query.pattern, Sequence) else query.pattern
    absent = [part for part in walk(query.pattern) if isinstance(part, Absent) and part.since_start]
    for part in absent:
        if part.in_order:
            hint = "give it the window of the query: leave out SINCE START"
            raise query.fault("ACEP-Q012", "only single events can be negated since the start", part.span, hint)
        if part is not first:
            hint = "write it first: SEQ(~(B b) SINCE START, A a)"
            message = "SINCE START is for a negation that the pattern begins with"
            raise query.fault("ACEP-Q086", message, part.span, hint)
    names = {atom.variable for part in absent for atom in part.options}
    for predicate in query.predicates:
        if variables(predicate) & names and not is_static(predicate):
            hint = "a condition on it may name this event alone; to compare it leave out SINCE START, and take a window"
            message = "a negation since the start cannot be compared with other events"
            raise query.fault("ACEP-Q087", message, predicate.span, hint)


def _check_spans(query: QuerySyntax) -> None:
    """A negation with a window of its own: a length of time, in a window of time."""
    for part in walk(query.pattern):
        if not isinstance(part, Absent) or part.within is None:
            continue
        check_length(query, part.within)
        _check_length(query, part.within)
        if query.window.unit == "events" or part.since_start:
            what = "SINCE START" if part.since_start else "a window of the query that counts events"
            hint = "leave one out" if part.since_start else "give the query a window of time: WITHIN 10 min"
            message = f"{what} and a negation with a window of its own exclude one another"
            raise query.fault("ACEP-Q089", message, part.within.span, hint)


def _check_start_of_machine(query: QuerySyntax) -> None:
    if query.at_start:
        hint = "use a pattern, or count the events with a register"
        raise query.fault("ACEP-Q088", "AT START is for patterns, not for AUTOMATON", query.place("AT START"), hint)


def _check_gap_words(query: QuerySyntax) -> None:
    """A word for a gap needs a gap: an event before, an event after, and between rounds more than one round."""
    for node in _at_the_start(query.pattern):
        word = WORD_FOR[node.strategy]
        hint = f"leave {word} out: it is about the gap between an event and the one before it"
        raise query.fault("ACEP-Q091", f"no event comes before this part, so that {word} says nothing", node.span, hint)
    for part in walk(query.pattern):
        if isinstance(part, Spaced) and isinstance(part.part, Absent):
            hint = f"write it before the event that comes next: ~(N n), {WORD_FOR[part.strategy]} B b"
            raise query.fault("ACEP-Q092", "a negation binds no event, so that there is no gap", part.span, hint)
        if isinstance(part, Repeat) and part.most == 1 and (part.between or part.until):
            word = WORD_FOR[part.between] if part.between else "UNTIL"
            hint = f"a word before the part is about the gap there: {word} B? b" if part.between else "leave UNTIL out"
            raise query.fault("ACEP-Q093", f"a part that comes once at most has no rounds for {word}", part.span, hint)


def _check_until(query: QuerySyntax) -> None:
    """What ends a repetition, or may not come next, is one event, which is asked for by itself."""
    nodes = [*walk(query.pattern)]
    endings = [node.until for node in nodes if isinstance(node, Repeat) and node.until is not None]
    for one in endings:
        if one.in_order or one.directly:
            hint = "name the event that ends it: UNTIL (S s), or UNTIL (S s | T t) for several types"
            what = "not with a sequence" if one.in_order else "wherever that stands"
            raise query.fault("ACEP-Q012", f"a repetition ends with one event, {what}", one.span, hint)
    directly = [node for node in nodes if isinstance(node, Absent) and node.directly is not None]
    for one in directly:
        if one.in_order or one.since_start or one.within is not None:
            hint = "leave the word out, or what else is said of this negation"
            message = "a negation of the next event is of one event, and has no window of its own"
            raise query.fault("ACEP-Q012", message, one.span, hint)
    ending = {atom.variable for one in (*endings, *directly) for atom in one.options}
    for predicate in query.predicates:
        names = sorted(variables(predicate) & ending)
        if names and not is_static(predicate):
            message = f"{names[0]!r} of UNTIL, or of a negation of the next event, cannot be compared with other events"
            hint = "name it alone in a condition, or exclude the event with another negation: (B b, ~(S s))+"
            raise query.fault("ACEP-Q094", message, predicate.span, hint)


def _at_the_start(pattern: Pattern) -> Iterator[Spaced]:
    """The parts with a word for their gap before which no event can come, not even one of another round."""
    match pattern:
        case Spaced():
            yield pattern
        case Repeat(part=part, most=1):
            yield from _at_the_start(part)
        case Either(options=options):
            for option in options:
                yield from _at_the_start(option)
        case Sequence(parts=parts):
            first = next((part for part in parts if not isinstance(part, Absent)), None)
            yield from () if first is None else _at_the_start(first)
def _check_all_of(query: QuerySyntax, node: AllOf) -> None:
    for part in node.parts:
        if isinstance(part, Absent):
            hint = "put it before or behind: SEQ(~(B b), ALL(A a, C c)); or into a group: ALL((A a, ~(B b), C c), D d)"
            raise query.fault("ACEP-Q097", "a negation cannot be a part of ALL", part.span, hint)
    size = positions(node)
    if size > MAX_POSITIONS:
        message = f"ALL of {len(node.parts)} parts has {_shown(size)} positions, the limit is {MAX_POSITIONS:,}"
        hint = "each part stands once for each set of others that may come before it: ask for fewer, up to nine events"
        raise query.too_large("ACEP-Q096", message, size, MAX_POSITIONS, node.span, hint)


def _shown(size: int) -> str:
    return f"{size:,}" if size < 10**12 else "more than 10^12"


def _check_size(query: QuerySyntax) -> None:
    size = positions(query.pattern)
    if size > MAX_POSITIONS:
        message = f"written out, the repetitions make {_shown(size)} positions, the limit is {MAX_POSITIONS:,}"
        hint = "bounds multiply when repetitions are nested; + and * cost nothing extra"
        raise query.too_large("ACEP-Q022", message, size, MAX_POSITIONS, query.pattern.span, hint)


def positions(pattern: Pattern) -> int:  # noqa: PLR0911  one for each kind of node
    """How many positions a pattern has when its bounded repeats are written out (this writes nothing out).

    Parameters
    ----------
    pattern : Pattern
        Not nested deeper than the limit.

    Returns
    -------
    int
        Atoms, those of negations included, each times the repeats around it; in ``ALL`` one for each set of
        parts that are done, and what is within a part for each set of others before it.

    Examples
    --------
    >>> positions(Repeat(Sequence((Atom("A", "a"), Repeat(Atom("B", "b"), 1, None))), 3, 10))
    20
    """
    match pattern:
        case Atom():
            return 1
        case Absent(options=options) | Either(options=options):
            return sum(positions(option) for option in options)
        case Sequence(parts=parts):
            return sum(positions(part) for part in parts)
        case Spaced(part=part):
            return positions(part)
        case AllOf(parts=parts):
            sets: int = 2 ** len(parts)  # orders that did the same parts share the position after them
            return sum(positions(part) - 1 for part in parts) * sets // 2 + sets - 1
        case Repeat(part=part, least=least, most=most):
            return positions(part) * (max(least, 1) if most is None else most)
        case OtherPattern() | Machine():
            return 1


def lightest(pattern: Pattern, weights: dict[str, int]) -> int:  # noqa: PLR0911  one for each kind of node
    """The weight of the lightest word of a pattern: the least that must be inserted to make it from nothing.

    Parameters
    ----------
    pattern : Pattern
        Not nested deeper than the limit.
    weights : dict of str to int
        The cost of a missing variable, where it is not 1.

    Returns
    -------
    int
        0 when the empty word matches.

    Examples
    --------
    >>> lightest(Sequence((Atom("A", "a"), Repeat(Atom("B", "b"), 2, None))), {"b": 3})
    7
    """
    match pattern:
        case Atom(variable=variable):
            return weights.get(variable, 1)
        case Absent():
            return 0
        case Either(options=options):
            return min(lightest(option, weights) for option in options)
        case Sequence(parts=parts) | AllOf(parts=parts):
            return sum(lightest(part, weights) for part in parts)
        case Spaced(part=part):
            return lightest(part, weights)
        case Repeat(part=part, least=least):
            return lightest(part, weights) * least
        case OtherPattern() | Machine():
            return 1


def lightest_match(pattern: Pattern, weights: dict[str, int]) -> int:
    """The weight of the lightest word that has an event: no match is empty, even where the empty word is in a pattern.

    Parameters
    ----------
    pattern : Pattern
        It has a word with an event.
    weights : dict of str to int
        The cost of a missing variable, where it is not 1.

    Examples
    --------
    >>> lightest_match(Repeat(Sequence((Atom("A", "a"), Repeat(Atom("B", "b"), 2, None))), 0, 1), {"b": 3})
    7
    """
    match pattern:
        case Either(options=parts):
            return min(lightest_match(option, weights) for option in parts)
        case Sequence(parts=parts) | AllOf(parts=parts):
            least = sum(lightest(part, weights) for part in parts)
            some = [part for part in parts if not isinstance(part, Absent)]
            return min(least - lightest(part, weights) + lightest_match(part, weights) for part in some)
        case Spaced(part=part):
            return lightest_match(part, weights)
        case Repeat(part=part, least=least):
            return lightest(part, weights) * max(least - 1, 0) + lightest_match(part, weights)
    return lightest(pattern, weights)


# --- clauses ----------------------------------------------------------------------------------------------


def _check_definitions_fit(query: QuerySyntax) -> None:
    if query.definitions and not query.is_regex:
        hint = "write conditions into WHERE: WHERE a.price > 10"
        message = "DEFINE is for bare regular expressions, not for PATTERN"
        raise query.fault("ACEP-Q015", message, query.place("DEFINE"), hint)
    if query.outputs and query.is_regex:
        hint = "a match of a bare regular expression is a set of events; use PATTERN to name them"
        raise query.fault("ACEP-Q050", "RETURN needs variables", query.outputs[0].span, hint)


def _check_window(query: QuerySyntax) -> None:
    window = query.window
    _check_length(query, window)


def _check_length(query: QuerySyntax, window: Window) -> None:
    if window.unit not in UNITS.values():
        raise query.fault(
            "ACEP-Q007",
            f"no such unit {window.unit!r}",
            window.span,
            "units are us ms s min h d week events",
        )
    if not window.amount >= 0 or window.amount == float("inf"):
        hint = "a window is 0 or longer: WITHIN 10 s"
        raise query.fault("ACEP-Q045", f"a window of {window.amount} {window.unit}", window.span, hint)
    if window.unit in ("events", "ticks") and window.amount != int(window.amount):
        hint = "events and ticks are whole numbers; for time write a unit: WITHIN 1.5 s"
        raise query.fault("ACEP-Q045", f"a window of {window.amount} {window.unit}", window.span, hint)


def _check_simultaneous(query: QuerySyntax) -> None:
    """Events at one time have no order among them: what would need one cannot be asked for."""
    if not query.is_simultaneous:
        return
    if query.window.unit == "events":
        hint = "a window that counts events needs their order: give it as a time, as in WITHIN 10 s"
        message = f"WITHIN {query.window.amount} events and SIMULTANEOUS exclude one another"
        raise query.fault("ACEP-Q053", message, query.window.span, hint)
    starts = [part.span for part in walk(query.pattern) if isinstance(part, Absent) and part.since_start]
    if query.at_start or starts:
        clause, span = ("AT START", query.place("AT START")) if query.at_start else ("SINCE START", starts[0])
        hint = "of events at one time, which comes first depends on their order: leave one out"
        raise query.fault("ACEP-Q053", f"{clause} and SIMULTANEOUS exclude one another", span, hint)
    if query.selection.depends_on_order:
        clause = next(one for one in query.selection.clauses if one != "MAXIMAL")
        hint = "of matches that end at one time, which comes first depends on the order of events: leave one out"
        message = f"{clause} and SIMULTANEOUS exclude one another"
        raise query.fault("ACEP-Q053", message, query.place(_place_of(clause)), hint)


def _place_of(clause: str) -> str:
    return "AFTER MATCH SKIP" if clause.startswith("AFTER") else clause


def _check_selection(query: QuerySyntax) -> None:
    """The next match starts at an event that a variable binds; EVERY takes a length of time."""
    skip, every = query.selection.skip, query.selection.every
    if skip is not None and skip.variable is not None:
        known = {atom.variable for atom in atoms(query.pattern)} if not query.is_regex else set()
        if skip.variable not in known - negated_variables(query.pattern):
            near = did_you_mean(skip.variable, known)
            hint = near + "AFTER MATCH SKIP names a variable of the pattern that binds events, or PAST LAST ROW"
            raise query.fault("ACEP-Q030", f"no variable {skip.variable!r} that binds events", skip.span, hint)
    if every is not None:
        if every.unit == "events":
            hint = "write a length of time: EVERY 1 h, or EVERY 5 in the units of the time column"
            raise query.fault("ACEP-Q045", "EVERY counts time, not events", every.span, hint)
        _check_length(query, every)


def _check_errors(query: QuerySyntax) -> None:
    if query.errors < 0:
        hint = "ERRORS k is the number of events that may be missing, from 0"
        raise query.fault("ACEP-Q039", f"ERRORS {query.errors} is below 0", query.place("ERRORS"), hint)
    _check_weights(query)
    least = lightest_match(query.pattern, dict(query.weights))
    if query.errors >= least:
        message = f"ERRORS {query.errors} is not below {least}, the weight of the lightest word of the pattern"
        hint = f"with so many events missing nothing is left to find; use at most ERRORS {least - 1}"
        raise query.fault("ACEP-Q040", message, query.place("ERRORS"), hint)


def _check_weights(query: QuerySyntax) -> None:
    known = {atom.variable for atom in atoms(query.pattern)}
    negated = negated_variables(query.pattern)
    seen: set[str] = set()
    for name, weight in query.weights:
        span = query.place(f"WEIGHTS {name}")
        if name not in known:
            raise no_variable(query, name, known, span)
        if name in negated:
            hint = "an event that must not happen cannot be missing"
            raise query.fault("ACEP-Q032", f"{name!r} is negated and has no weight", span, hint)
        if name in seen:
            raise query.fault("ACEP-Q038", f"two weights for {name!r}", span, "give one weight for each variable")
        if not isinstance(weight, int) or weight < 1:
            hint = "a weight is a whole number from 1: the cost of missing that event"
            raise query.fault("ACEP-Q038", f"the weight of {name} is {weight}", span, hint)
        seen.add(name)


# --- WHERE, RETURN and DEFINE -----------------------------------------------------------------------------


def _check_calls(query: QuerySyntax) -> None:
    """Functions of the user's are known, and a condition calls them for one event at a time."""
    for expression in all_expressions(query):
        for node in walk(expression):
            if isinstance(node, FunctionCall) and node.function is None:
                hint = "functions need Python: give it to compile_query(..., functions=[...])"
                raise query.fault("ACEP-Q011", f"no function {node.name!r}", node.span, hint)
    for predicate in query.predicates:
        for node in walk(predicate):
            if isinstance(node, FunctionCall):
                check_arguments(query, node)


def _check_predicates(query: QuerySyntax) -> None:
    negated, kleene = negated_variables(query.pattern), kleene_variables(query.pattern)
    known = {atom.variable for atom in atoms(query.pattern)}
    for predicate in query.predicates:
        check_names(query, predicate, known, kleene)
        if not variables(predicate):
            hint = "a condition is about the event of a variable: a.price > 10"
            raise query.fault("ACEP-Q043", "the condition is about no variable", predicate.span, hint)
        if query.is_regex:
            _check_letters(query, predicate)
        _check_prior(query, predicate)
        _check_negated(query, predicate, negated)


def _check_outputs(query: QuerySyntax) -> None:
    kleene, negated = kleene_variables(query.pattern), negated_variables(query.pattern)
    known = {atom.variable for atom in atoms(query.pattern)}
    seen: set[str] = set()
    for output in query.outputs:
        if output.name in seen:
            hint = "give each output its own name"
            raise query.fault("ACEP-Q044", f"two outputs are named {output.name!r}", output.span, hint)
        seen.add(output.name)
        check_names(query, output.value, known, kleene)
        for node in walk(output.value):
            if isinstance(node, (Attribute, Aggregate)) and node.variable in negated:
                hint = "an event that must not happen has no attributes to return"
                raise query.fault("ACEP-Q032", f"{node.variable!r} is negated", node.span, hint)
            if isinstance(node, Attribute) and node.variable in kleene and is_of_each(node):
                name, variable = node.name, node.variable
                hint = f"write first({variable}[].{name}), {variable}[{variable}.LEN].{name} or an aggregate"
                message = f"{variable!r} stands for several events, RETURN needs one value"
                raise query.fault("ACEP-Q049", message, node.span, hint)
            if isinstance(node, Aggregate) and node.prior:
                hint = f"write {node.function}({node.variable}[]...) for all events"
                raise query.fault("ACEP-Q041", "there is no i in RETURN", node.span, hint)


def _check_definitions(query: QuerySyntax) -> None:
    known = {atom.variable for atom in atoms(query.pattern)}
    seen: set[str] = set()
    for definition in query.definitions:
        letter = definition.letter
        if letter not in known:
            hint = f"its letters are {', '.join(sorted(known))}"
            message = f"the letter {letter!r} is not in the regular expression"
            raise query.fault("ACEP-Q047", message, definition.span, hint)
        if letter in seen:
            hint = "join the conditions by AND or OR"
            raise query.fault("ACEP-Q047", f"the letter {letter!r} is defined twice", definition.span, hint)
        seen.add(letter)
        for node in walk(definition.condition):
            if isinstance(node, (Attribute, Aggregate)) and node.variable is not None:
                hint = "in DEFINE attributes of the event stand alone: a AS price > 10"
                raise query.fault("ACEP-Q048", f"DEFINE knows no variable {node.variable!r}", node.span, hint)


def _with_strategy(query: QuerySyntax, word: Attribute) -> str | None:
    strategy = strategy_meant(word.name)
    if strategy is None:
        return None
    others = tuple(predicate for predicate in query.predicates if predicate != word)
    where = f"WHERE {strategy} {{ CONDITIONS }}"
    if len(others) < len(query.predicates):
        where = clauses(replace(query, strategy=strategy, predicates=others))[1]
    return f"a strategy stands first, and the conditions in its braces: {where}"


def check_names(query: QuerySyntax, expression: Expression, known: set[str], kleene: frozenset[str]) -> None:
    """Check which variables an expression names, and that several events are not taken for one, nor one for several.

    Parameters
    ----------
    query : QuerySyntax
        The query it belongs to.
    expression : Expression
    known : set of str
        The variables of the pattern.
    kleene : frozenset of str
        Those that can bind several events.

    Raises
    ------
    QueryError
        ACEP-Q008, Q013, Q030, Q033, Q034, Q048.
    """
    for node in walk(expression):
        match node:
            case Attribute(variable=None, name=name):
                is_key = any(name == one.name for one in query.equivalences)
                whose = f"{min(known)}.{name}" + (" (a key is shown anyway)" if is_key else "")
                hint = _with_strategy(query, node) or f"say whose: {whose}"
                raise query.fault("ACEP-Q048", f"{name!r} is of no variable", node.span, hint)
            case Attribute(variable=str(variable)) | Aggregate(variable=variable) if variable not in known:
                raise no_variable(query, variable, known, node.span)
            case Attribute(variable=variable, index=str() | int()) if not query.is_regex and variable not in kleene:
                message = f"{variable!r} is one event and takes no index {event_name(node).removeprefix(str(variable))}"
                raise query.fault("ACEP-Q033", message, node.span, f"write {variable}.{node.name}")
            case Attribute(variable=str(variable), index=int(number)) if not query.is_regex:
                _check_number(query, node, variable, number)
            case Aggregate(variable=variable, upto=int(number)) if not query.is_regex and variable in kleene:
                _check_number(query, node, variable, number)
            case Aggregate(variable=variable) if not query.is_regex and variable not in kleene:
                hint = f"write {variable}.{node.name or 'price'}, or repeat the event: Shelf+ {variable}[]"
                message = f"{variable!r} is one event, there is nothing to aggregate"
                raise query.fault("ACEP-Q034", message, node.span, hint)
            case Constant(value=int(value)) if not -(2**63) <= value < 2**63:
                raise query.fault("ACEP-Q008", "the number is too large", node.span, "whole numbers have 64 bits")
            case Equivalence(name=name):
                message = f"[{name}] is no value: it can only be joined to other conditions by AND"
                raise query.fault("ACEP-Q013", message, node.span)
            case _:
                pass


def _check_number(query: QuerySyntax, node: Attribute | Aggregate, variable: str, number: int) -> None:
    most = most_events(query.pattern).get(variable)
    if most is not None and number > most:
        message = f"{variable!r} has at most {most} events, and there is no {variable}[{number}]"
        hint = f"write {variable}[{variable}.LEN].{node.name} for the last one, or let it repeat more often"
        raise query.fault("ACEP-Q098", message, node.span, hint)


def _check_letters(query: QuerySyntax, predicate: Expression) -> None:
    indexed = any(isinstance(node, Attribute) and node.index is not None for node in walk(predicate))
    if indexed or not is_static(predicate):
        hint = "conditions of a bare regular expression are about one letter: a.price > 3; use PATTERN for more"
        message = "letters are not variables: they cannot be compared, indexed or aggregated"
        raise query.fault("ACEP-Q046", message, predicate.span, hint)


def _check_prior(query: QuerySyntax, predicate: Expression) -> None:
    """``a[..i-1]`` is about the events before some ``a[i]``, which the same condition must name."""
    current = {
        node.variable
        for node in naming(predicate)
        if isinstance(node, Attribute) and is_of_each(node)
    }
    for node in walk(predicate):
        if isinstance(node, Aggregate) and node.prior and node.variable not in current:
            variable = node.variable
            hint = f"compare it with {variable}[i], or write {variable}[] for all events"
            message = f"{variable}[..i-1] are the events before {variable}[i], and no {variable}[i] is named"
            raise query.fault("ACEP-Q041", message, node.span, hint)


def _check_negated(query: QuerySyntax, predicate: Expression, negated: frozenset[str]) -> None:
    """Refuse a condition that names several negated variables, unless they are of one negated sequence."""
    first: str | None = None
    together = [set(names) for names in negated_sequences(query.pattern)]
    for node in naming(predicate):
        if node.variable not in negated:
            continue
        if first not in (None, node.variable) and not any({first, node.variable} <= names for names in together):
            hint = "compare each with events that are found: write one condition for each, joined by AND"
            message = f"one condition names two negated variables, {first!r} and {node.variable!r}"
            raise query.fault("ACEP-Q052", message, node.span, hint)
        first = node.variable
