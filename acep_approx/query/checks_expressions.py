"""Structural mistakes in WHERE, RETURN and DEFINE: which variables may be named there, and how."""

from __future__ import annotations

from dataclasses import replace

from acep_approx.errors import QueryError
from acep_approx.query.assemble import did_you_mean
from acep_approx.query.messages import strategy_meant
from acep_approx.query.predicates import is_static, naming, variables
from acep_approx.query.printer import clauses
from acep_approx.query.shape import atoms, kleene_variables, negated_variables, walk
from acep_approx.query.syntax import (
    NO_SPAN,
    Aggregate,
    Attribute,
    Constant,
    Equivalence,
    Expression,
    QuerySyntax,
    Span,
)

_SHOWN = {"first": "[1]", "current": "[i]", "previous": "[i-1]", "last": "[LEN]"}


def fault(query: QuerySyntax, code: str, message: str, span: Span, hint: str | None = None) -> QueryError:
    """An error that points at a piece of a query.

    Parameters
    ----------
    query : QuerySyntax
        Its text is shown, if it has one.
    code, message : str
        See `QueryError`.
    span : Span
        The piece.
    hint : str, optional
        What to do.

    Returns
    -------
    QueryError
        To be raised.
    """
    # A tree that was not parsed has no text to point at.
    start, end = span if query.text else NO_SPAN
    return QueryError(message, code=code, hint=hint, text=query.text, start=start, end=end)


def place(query: QuerySyntax, name: str) -> Span:
    """Where a piece without a node stands.

    Parameters
    ----------
    query : QuerySyntax
        A query.
    name : str
        As in ``QuerySyntax.places``.

    Returns
    -------
    Span
        The last piece of that name; the beginning of the text when there is none.
    """
    return dict(query.places).get(name, NO_SPAN)


def check_predicates(query: QuerySyntax) -> None:
    """Check the conditions of WHERE.

    Parameters
    ----------
    query : QuerySyntax
        Its pattern must have passed the checks.

    Raises
    ------
    QueryError
        ACEP-Q013, Q030, Q033, Q034, Q041, Q043, Q046, Q048, Q052.
    """
    negated, kleene = negated_variables(query.pattern), kleene_variables(query.pattern)
    known = {atom.variable for atom in atoms(query.pattern)}
    for predicate in query.predicates:
        check_names(query, predicate, known, kleene)
        if not variables(predicate):
            hint = "a condition is about the event of a variable: a.price > 10"
            raise fault(query, "ACEP-Q043", "the condition is about no variable", predicate.span, hint)
        if query.is_regex:
            _check_letters(query, predicate)
        _check_prior(query, predicate)
        _check_negated(query, predicate, negated)


def check_outputs(query: QuerySyntax) -> None:
    """Check the clause RETURN.

    Parameters
    ----------
    query : QuerySyntax
        Its pattern must have passed the checks.

    Raises
    ------
    QueryError
        ACEP-Q030, Q032, Q033, Q034, Q041, Q044, Q048, Q049.
    """
    kleene, negated = kleene_variables(query.pattern), negated_variables(query.pattern)
    known = {atom.variable for atom in atoms(query.pattern)}
    seen: set[str] = set()
    for output in query.outputs:
        if output.name in seen:
            hint = "give each output its own name"
            raise fault(query, "ACEP-Q044", f"two outputs are named {output.name!r}", output.span, hint)
        seen.add(output.name)
        check_names(query, output.value, known, kleene)
        for node in walk(output.value):
            if isinstance(node, (Attribute, Aggregate)) and node.variable in negated:
                hint = "an event that must not happen has no attributes to return"
                raise fault(query, "ACEP-Q032", f"{node.variable!r} is negated", node.span, hint)
            if (
                isinstance(node, Attribute)
                and node.variable in kleene
                and node.index not in ("first", "last")
            ):
                name, variable = node.name, node.variable
                hint = f"write first({variable}[].{name}), {variable}[{variable}.LEN].{name} or an aggregate"
                message = f"{variable!r} stands for several events, RETURN needs one value"
                raise fault(query, "ACEP-Q049", message, node.span, hint)
            if isinstance(node, Aggregate) and node.prior:
                hint = f"write {node.function}({node.variable}[]...) for all events"
                raise fault(query, "ACEP-Q041", "there is no i in RETURN", node.span, hint)


def check_definitions(query: QuerySyntax) -> None:
    """Check the clause DEFINE.

    Parameters
    ----------
    query : QuerySyntax
        Its pattern must have passed the checks.

    Raises
    ------
    QueryError
        ACEP-Q047, Q048.
    """
    known = {atom.variable for atom in atoms(query.pattern)}
    seen: set[str] = set()
    for definition in query.definitions:
        letter = definition.letter
        if letter not in known:
            hint = f"its letters are {', '.join(sorted(known))}"
            message = f"the letter {letter!r} is not in the regular expression"
            raise fault(query, "ACEP-Q047", message, definition.span, hint)
        if letter in seen:
            hint = "join the conditions by AND or OR"
            raise fault(query, "ACEP-Q047", f"the letter {letter!r} is defined twice", definition.span, hint)
        seen.add(letter)
        for node in walk(definition.condition):
            if isinstance(node, (Attribute, Aggregate)) and node.variable is not None:
                hint = "in DEFINE attributes of the event stand alone: a AS price > 10"
                raise fault(
                    query, "ACEP-Q048", f"DEFINE knows no variable {node.variable!r}", node.span, hint
                )


def _with_strategy(query: QuerySyntax, word: Attribute) -> str | None:
    """The clause WHERE as it must be, where a word among conditions is meant as a strategy."""
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
                hint = _with_strategy(query, node) or f"say whose: {min(known)}.{name}"
                raise fault(query, "ACEP-Q048", f"{name!r} is of no variable", node.span, hint)
            case Attribute(variable=str(variable)) | Aggregate(variable=variable) if variable not in known:
                hint = did_you_mean(variable, known) + f"variables are {', '.join(sorted(known))}"
                raise fault(query, "ACEP-Q030", f"no variable {variable!r} in the pattern", node.span, hint)
            case Attribute(variable=variable, index=str(index)) if (
                not query.is_regex and variable not in kleene
            ):
                message = f"{variable!r} is one event and takes no index {_SHOWN[index]}"
                raise fault(query, "ACEP-Q033", message, node.span, f"write {variable}.{node.name}")
            case Aggregate(variable=variable) if not query.is_regex and variable not in kleene:
                hint = f"write {variable}.{node.name or 'price'}, or repeat the event: Shelf+ {variable}[]"
                message = f"{variable!r} is one event, there is nothing to aggregate"
                raise fault(query, "ACEP-Q034", message, node.span, hint)
            case Constant(value=int(value)) if not -(2**63) <= value < 2**63:
                raise fault(
                    query, "ACEP-Q008", "the number is too large", node.span, "whole numbers have 64 bits"
                )
            case Equivalence(name=name):
                message = f"[{name}] is no value: it can only be joined to other conditions by AND"
                raise fault(query, "ACEP-Q013", message, node.span)
            case _:
                pass


def _check_letters(query: QuerySyntax, predicate: Expression) -> None:
    indexed = any(isinstance(node, Attribute) and node.index is not None for node in walk(predicate))
    if indexed or not is_static(predicate):
        hint = (
            "conditions of a bare regular expression are about one letter: a.price > 3; use PATTERN for more"
        )
        message = "letters are not variables: they cannot be compared, indexed or aggregated"
        raise fault(query, "ACEP-Q046", message, predicate.span, hint)


def _check_prior(query: QuerySyntax, predicate: Expression) -> None:
    """``a[..i-1]`` is about the events before some ``a[i]``, which the same condition must name."""
    current = {
        node.variable
        for node in naming(predicate)
        if isinstance(node, Attribute) and node.index in (None, "current", "previous")
    }
    for node in walk(predicate):
        if isinstance(node, Aggregate) and node.prior and node.variable not in current:
            variable = node.variable
            hint = f"compare it with {variable}[i], or write {variable}[] for all events"
            message = f"{variable}[..i-1] are the events before {variable}[i], and no {variable}[i] is named"
            raise fault(query, "ACEP-Q041", message, node.span, hint)


def _check_negated(query: QuerySyntax, predicate: Expression, negated: frozenset[str]) -> None:
    """A negation asks about one event at a time: there is no pair of events that must not happen."""
    first: str | None = None
    for node in naming(predicate):
        if node.variable not in negated:
            continue
        if first not in (None, node.variable):
            hint = "compare each with events that are found: write one condition for each, joined by AND"
            message = f"one condition names two negated variables, {first!r} and {node.variable!r}"
            raise fault(query, "ACEP-Q052", message, node.span, hint)
        first = node.variable
