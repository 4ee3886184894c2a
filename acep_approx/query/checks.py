"""Structural mistakes that the grammar lets pass: unknown variables, empty patterns, wrong bounds.

`check` is the only entry. Patterns are checked first, then the clauses; expressions are checked in
`checks_expressions`. Nothing here needs a schema: types are checked in `types`.
"""

from __future__ import annotations

import re

from acep_approx.errors import LimitError
from acep_approx.query.assemble import UNITS, did_you_mean
from acep_approx.query.checks_expressions import (
    check_definitions,
    check_outputs,
    check_predicates,
    fault,
    place,
)
from acep_approx.query.checks_machine import check_machine, check_machine_outputs, repeated_variables
from acep_approx.query.limits import MAX_POSITIONS, refuse_deep_tree, refuse_long_text, refuse_many_nodes
from acep_approx.query.printer import is_name
from acep_approx.query.shape import atoms, expressions_of, negated_variables, walk
from acep_approx.query.syntax import (
    NO_SPAN,
    Absent,
    Atom,
    Either,
    Machine,
    OtherPattern,
    Pattern,
    QuerySyntax,
    Repeat,
    Sequence,
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
    expressions = (
        *query.predicates,
        *(output.value for output in query.outputs),
        *(definition.condition for definition in query.definitions),
    )
    inside = tuple(expressions_of(query.pattern)) if isinstance(query.pattern, Machine) else ()
    refuse_many_nodes((query.pattern, *expressions, *inside), query.text)
    for tree in (query.pattern, *expressions, *inside):
        refuse_deep_tree(tree, query.text)
    if isinstance(query.pattern, Machine):
        _check_definitions_fit(query)
        check_machine(query)
        check_machine_outputs(query, query.pattern, repeated_variables(query.pattern))
        _check_window(query)
        return
    _check_variables(query)
    _check_repeats(query)
    _check_negations(query)
    _check_size(query)
    _check_definitions_fit(query)
    check_predicates(query)
    check_outputs(query)
    check_definitions(query)
    _check_window(query)
    _check_simultaneous(query)
    _check_errors(query)


# --- patterns ---------------------------------------------------------------------------------------------


def _check_variables(query: QuerySyntax) -> None:
    seen: set[str] = set()
    for atom in atoms(query.pattern):
        if query.is_regex:
            if not re.fullmatch("[A-Za-z0-9_]", atom.variable):
                raise fault(query, "ACEP-Q051", f"{atom.variable!r} is no letter", atom.span, _LETTERS)
            continue
        if not is_name(atom.variable):
            hint = "a variable is a word of letters, digits and _ that is not reserved"
            raise fault(query, "ACEP-Q051", f"{atom.variable!r} is no name for a variable", atom.span, hint)
        if atom.variable in seen:
            hint = "give each component its own variable"
            raise fault(query, "ACEP-Q031", f"the variable {atom.variable!r} stands twice", atom.span, hint)
        seen.add(atom.variable)


_LETTERS = "letters of a bare regular expression are A-Z, a-z, 0-9 and _"


def _check_repeats(query: QuerySyntax) -> None:
    for node in walk(query.pattern):
        if not isinstance(node, Repeat):
            continue
        written = f"{{{node.least},{'' if node.most is None else node.most}}}"
        if node.least < 0:
            raise fault(
                query, "ACEP-Q042", f"{written} begins below 0", node.span, "bounds are whole numbers from 0"
            )
        if node.most == 0:
            raise fault(
                query, "ACEP-Q042", "a repetition of 0 times is nothing", node.span, "leave this part out"
            )
        if node.most is not None and node.most < node.least:
            hint = f"write {{{node.most},{node.least}}}"
            raise fault(query, "ACEP-Q042", f"{written} ends before it begins", node.span, hint)


def _check_negations(query: QuerySyntax) -> None:
    """Negations must be parts of a sequence that has something to stand between, before or after."""
    hint = "put it into a sequence, as in SEQ(A a, ~(B b), C c)"
    if isinstance(query.pattern, Absent):
        raise fault(
            query,
            "ACEP-Q035",
            "the pattern has only negations, and nothing to find",
            query.pattern.span,
            hint,
        )
    for node in walk(query.pattern):
        if isinstance(node, Sequence) and all(isinstance(part, Absent) for part in node.parts):
            raise fault(
                query, "ACEP-Q035", "a sequence of negations only has nothing to find", node.span, hint
            )
        below = node.options if isinstance(node, Either) else (node.part,) if isinstance(node, Repeat) else ()
        for part in below:
            if isinstance(part, Absent):
                where = "an alternative" if isinstance(node, Either) else "repeated"
                raise fault(query, "ACEP-Q037", f"a negation cannot be {where} on its own", part.span, hint)


def _check_size(query: QuerySyntax) -> None:
    size = positions(query.pattern)
    if size > MAX_POSITIONS:
        span = query.pattern.span
        shown = f"{size:,}" if size < 10**12 else "more than 10^12"
        raise LimitError(
            f"written out, the repetitions make {shown} positions, the limit is {MAX_POSITIONS:,}",
            code="ACEP-Q022",
            given=size,
            limit=MAX_POSITIONS,
            hint="bounds multiply when repetitions are nested; + and * cost nothing extra",
            text=query.text,
            start=span[0],
            end=span[1],
        )


def positions(pattern: Pattern) -> int:
    """How many positions a pattern has when its bounded repeats are written out (this writes nothing out).

    Parameters
    ----------
    pattern : Pattern
        Not nested deeper than the limit.

    Returns
    -------
    int
        Atoms, those of negations included, each times the repeats around it.

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
        case Repeat(part=part, least=least, most=most):
            return positions(part) * (max(least, 1) if most is None else most)
        case OtherPattern() | Machine():
            return 1


def lightest(pattern: Pattern, weights: dict[str, int]) -> int:
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
        case Sequence(parts=parts):
            return sum(lightest(part, weights) for part in parts)
        case Repeat(part=part, least=least):
            return lightest(part, weights) * least
        case OtherPattern() | Machine():
            return 1


# --- clauses ----------------------------------------------------------------------------------------------


def _check_definitions_fit(query: QuerySyntax) -> None:
    if query.definitions and not query.is_regex:
        hint = "write conditions into WHERE: WHERE a.price > 10"
        message = "DEFINE is for bare regular expressions, not for PATTERN"
        raise fault(query, "ACEP-Q015", message, place(query, "DEFINE"), hint)
    if query.outputs and query.is_regex:
        hint = "a match of a bare regular expression is a set of events; use PATTERN to name them"
        raise fault(query, "ACEP-Q050", "RETURN needs variables", query.outputs[0].span, hint)


def _check_window(query: QuerySyntax) -> None:
    window = query.window
    if window.unit not in UNITS.values():
        raise fault(
            query,
            "ACEP-Q007",
            f"no such unit {window.unit!r}",
            window.span,
            "units are us ms s min h d events",
        )
    if not window.amount >= 0 or window.amount == float("inf"):
        hint = "a window is 0 or longer: WITHIN 10 s"
        raise fault(query, "ACEP-Q045", f"a window of {window.amount} {window.unit}", window.span, hint)
    if window.unit in ("events", "ticks") and window.amount != int(window.amount):
        hint = "events and ticks are whole numbers; for time write a unit: WITHIN 1.5 s"
        raise fault(query, "ACEP-Q045", f"a window of {window.amount} {window.unit}", window.span, hint)


def _check_simultaneous(query: QuerySyntax) -> None:
    """Events at one time have no order among them: what would need one cannot be asked for."""
    if not query.is_simultaneous:
        return
    if query.window.unit == "events":
        hint = "a window that counts events needs their order: give it as a time, as in WITHIN 10 s"
        message = f"WITHIN {query.window.amount} events and SIMULTANEOUS exclude one another"
        raise fault(query, "ACEP-Q053", message, query.window.span, hint)
    if query.non_overlap:
        hint = "of matches that end at one time, which comes first depends on the order of events: leave one out"
        message = "NON OVERLAP and SIMULTANEOUS exclude one another"
        raise fault(query, "ACEP-Q053", message, place(query, "NON OVERLAP"), hint)


def _check_errors(query: QuerySyntax) -> None:
    if query.errors < 0:
        hint = "ERRORS k is the number of events that may be missing, from 0"
        raise fault(query, "ACEP-Q039", f"ERRORS {query.errors} is below 0", place(query, "ERRORS"), hint)
    _check_weights(query)
    least = lightest(query.pattern, dict(query.weights))
    if least == 0:
        hint = "make at least one part necessary: write + instead of *, or add a component"
        raise fault(query, "ACEP-Q036", "the pattern matches without any event", query.pattern.span, hint)
    if query.errors >= least:
        message = (
            f"ERRORS {query.errors} is not below {least}, the weight of the lightest word of the pattern"
        )
        hint = f"with so many events missing nothing is left to find; use at most ERRORS {least - 1}"
        raise fault(query, "ACEP-Q040", message, place(query, "ERRORS"), hint)


def _check_weights(query: QuerySyntax) -> None:
    known = {atom.variable for atom in atoms(query.pattern)}
    negated = negated_variables(query.pattern)
    seen: set[str] = set()
    places = dict(query.places)
    for name, weight in query.weights:
        span = places.get(f"WEIGHTS {name}", NO_SPAN)
        if name not in known:
            hint = did_you_mean(name, known) + f"variables are {', '.join(sorted(known))}"
            raise fault(query, "ACEP-Q030", f"no variable {name!r} in the pattern", span, hint)
        if name in negated:
            hint = "an event that must not happen cannot be missing"
            raise fault(query, "ACEP-Q032", f"{name!r} is negated and has no weight", span, hint)
        if name in seen:
            raise fault(
                query, "ACEP-Q038", f"two weights for {name!r}", span, "give one weight for each variable"
            )
        if not isinstance(weight, int) or weight < 1:
            hint = "a weight is a whole number from 1: the cost of missing that event"
            raise fault(query, "ACEP-Q038", f"the weight of {name} is {weight}", span, hint)
        seen.add(name)
