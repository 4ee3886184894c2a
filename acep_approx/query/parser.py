"""From text to the tree of a query: `parse`, and the pieces of it that the builder needs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Any, cast

from acep_approx.arguments import checked
from acep_approx.errors import QueryError
from acep_approx.query.assemble import Assembler, check_length, did_you_mean, no_variable, span_of, with_register_values
from acep_approx.query.functions import CALLED
from acep_approx.query.kept import parsed
from acep_approx.query.limits import (
    refuse_deep_text,
    refuse_deep_tree,
    refuse_large_text,
    refuse_long_text,
    refuse_many_words,
)
from acep_approx.query.messages import CLAUSES, explain, functions_hint
from acep_approx.query.shape import all_expressions, atoms, conjuncts, kleene_variables, negated_variables, walk
from acep_approx.query.syntax import (
    DEFAULT_STRATEGY,
    Attribute,
    Binary,
    Constant,
    Equivalence,
    Expression,
    Lasting,
    Machine,
    Pattern,
    QuerySyntax,
    UserFunction,
    Window,
    Written,
)

_FILE = re.compile(r"\S*\w\.[A-Za-z]{2,5}")
"""A text that is rather a file than a query."""

LEADING = re.compile(r"(?:\s+|--[^\n]*)*")
"""Blanks and comments before the first word of a text."""
_FIRST_WORD = re.compile(r"(?:(?!--)\S)+")
_PATTERN = re.compile(r"PATTERN\b", re.IGNORECASE)
MOST_KEPT = 2_000
"""Characters of a text whose tree is kept: some hundred trees of such texts are a few megabytes."""


@checked
def parse(text: str, functions: tuple[UserFunction, ...] = ()) -> QuerySyntax:
    """Read a query.

    The structure is not checked beyond the grammar: `acep_approx.query.checks.check` does that.

    Parameters
    ----------
    text : str
        A query that starts with PATTERN, or a bare regular expression with clauses.
    functions : tuple of UserFunction, optional
        What an automaton written by hand may call.

    Returns
    -------
    QuerySyntax
        The tree, with positions in ``text``.

    Raises
    ------
    QueryError
        The text is not a query (ACEP-Q001 to Q018).
    LimitError
        It is too long (ACEP-Q020, Q023) or nested too deep (ACEP-Q021).

    Examples
    --------
    >>> query = parse("PATTERN SEQ(Shelf a, ~(Register b), Exit c) WHERE [tag_id] AND a.x > 3 WITHIN 12 h")
    >>> query.window.amount, query.window.unit, query.equivalences[0].name, len(query.predicates)
    (12, 'h', 'tag_id', 1)
    >>> parse("a(b|c)db WITHIN 5 ERRORS 2").is_regex
    True
    """
    found = _kept(text) if len(text) <= MOST_KEPT else _parsed(text)
    return replace(found, functions=tuple(functions)) if functions and not found.is_regex else found


def _parsed(text: str) -> QuerySyntax:
    refuse_long_text(text)
    begin = cast("re.Match[str]", LEADING.match(text)).end()
    if begin == len(text):
        hint = "for example PATTERN SEQ(Shelf a, Exit b) WITHIN 12 h"
        raise QueryError("the query is empty", code="ACEP-Q017", hint=hint, text=text.strip() and text)
    refuse_deep_text(text)
    assembler = Assembler(text)
    if _PATTERN.match(text, begin):
        refuse_many_words(text)
        tree = _tree(text, "pattern_query")
        assembler.calls = _has_machine(tree)
        pattern = assembler.assemble(tree)
        return finish_query(assembler, pattern, is_regex=False)
    end = cast("re.Match[str]", _FIRST_WORD.match(text, begin)).end()
    refuse_many_words(text, begin, end)
    trees = [_regex_tree(text, begin, end), _clauses_tree(text, begin, end)]
    assembler.assemble(trees[1])  # first, because a letter's type depends on DEFINE
    return finish_query(assembler, assembler.assemble(trees[0]), is_regex=True)


_kept = lru_cache(maxsize=256)(_parsed)
"""Trees never change. States, sets and workers of Spark read the same text again and again."""


def parse_window(text: str) -> Window:
    """Read what stands after WITHIN: ``"10 s"``, ``"5 events"``, ``"5"``.

    Parameters
    ----------
    text : str
        A number and a unit.

    Returns
    -------
    Window
        With the unit in its short form.

    Raises
    ------
    QueryError
        No such unit (ACEP-Q007) or not a window at all.

    Examples
    --------
    >>> parse_window("10 seconds")
    Window(amount=10, unit='s')
    """
    found: Window = (_kept_piece if len(text) <= MOST_KEPT else _piece)(text, "window")
    return found


def parse_condition(text: str) -> tuple[tuple[Equivalence, ...], tuple[Expression, ...]]:
    """Read conditions as they stand in WHERE: ``"[id] AND a.price > 10"``.

    Parameters
    ----------
    text : str
        Conditions joined by AND, without a strategy.

    Returns
    -------
    equivalences : tuple of Equivalence
        The attributes in square brackets.
    predicates : tuple of Expression
        All other conditions.

    Raises
    ------
    QueryError
        The text is no condition.
    """
    condition = cast("Expression", _piece(text, "expression"))
    return _split(Assembler(text), condition)


def parse_expression(text: str, *, calls: bool = False) -> Expression:
    """Read one expression as it stands in RETURN: ``"avg(b[].price)"``.

    Parameters
    ----------
    text : str
        An expression.
    calls : bool, optional
        Whether it may call functions of the user's, as on the arcs of an automaton written by hand.

    Returns
    -------
    Expression
        Its tree, with positions in ``text``.

    Raises
    ------
    QueryError
        The text is no expression.
    """
    value = cast("Expression", _piece(text, "expression", calls=calls))
    refuse_equivalences(Assembler(text), value)
    return value


def _tree(text: str, start: str, first: int = 0, end: int | None = None, *, calls: bool = False) -> Any:
    """Parse ``text[first:end]``; blanks before it keep the positions those of the whole text."""
    from lark import Token, Tree

    tree = parsed("query", " " * first + text[first:end], start, lambda error: explain(text, error, end))
    if not calls and not isinstance(tree, Token) and not _has_machine(tree):
        refuse_calls(tree, text, CALLED)
    # A rule that stands for its only token gives the bare token.
    return Tree(start, [tree]) if isinstance(tree, Token) else tree


def _has_machine(tree: Any) -> bool:
    return any(tree.find_data("machine"))


def refuse_calls(tree: Any, text: str, known: tuple[str, ...]) -> None:
    """Refuse functions that are not ``known``; only automata written by hand call others.

    Parameters
    ----------
    tree : lark.Tree
    text : str
        What it was read from.
    known : tuple of str
        Names, in small letters.

    Raises
    ------
    QueryError
        ``ACEP-Q011``.
    """
    for call in tree.find_data("call"):
        token = call.children[0]
        if token.lower() not in known:
            hint = functions_hint(token, known)
            if token.lower() == "stddev":
                hint = "write stddev(a[].price), over the events of a variable"
                raise Assembler(text).fault("ACEP-Q010", "this is no aggregate over events", span_of(token), hint)
            raise Assembler(text).fault("ACEP-Q011", f"no function {str(token)!r}", span_of(token), hint)


def refuse_like(tree: Any, text: str) -> None:
    """Refuse LIKE and CASE where the language has no functions.

    Raises
    ------
    QueryError
        ``ACEP-Q175``.
    """
    for case in tree.find_data("case"):
        span = case.meta.start_pos, case.meta.end_pos
        hint = "write a rule for each case"
        raise Assembler(text).fault("ACEP-Q175", "there is no CASE in rules and in CEL", span, hint)
    for like in tree.find_data("like"):
        token = like.children[-2]
        hint = "compare with =, or list the values with IN"
        message = f"there is no {token.upper()} in rules and in CEL"
        raise Assembler(text).fault("ACEP-Q175", message, span_of(token), hint)


def _piece(text: str, start: str, *, calls: bool = False) -> Any:
    refuse_large_text(text)
    made = Assembler(text, calls=calls).assemble(_tree(text, start, calls=calls))
    if start == "expression":
        for condition in conjuncts(made):
            refuse_deep_tree(condition, text)
    return made


_kept_piece = lru_cache(maxsize=256)(_piece)


def _regex_tree(text: str, begin: int, end: int) -> Any:
    try:
        return _tree(text, "regex", begin, end)
    except QueryError as error:
        if _FILE.fullmatch(text.strip()):
            error.hint = f"if it is the name of a file, give what is in it: Path({text.strip()!r}).read_text()"
        else:
            _add_start_hint(error, text[begin:end])
        raise


def _clauses_tree(text: str, begin: int, end: int) -> Any:
    try:
        return _tree(text, "clauses", end)
    except QueryError as error:
        if not _add_start_hint(error, text[begin:end]) and not text[end : error.start].strip():
            error.hint = error.hint or "a bare regular expression ends at the first space: write a(b|c)d, not a (b|c) d"
        raise


def _add_start_hint(error: QueryError, word: str) -> bool:
    near = did_you_mean(word.upper(), CLAUSES[:1])
    if near:
        error.hint = near.strip()
    elif word.upper().startswith("SEQ("):
        error.hint = "a query with types starts with PATTERN: PATTERN SEQ(A a, B b) WITHIN 10 s"
    elif word.upper() in ("TABLE", "RULE"):
        error.hint = "this looks like a file of rules: give it to acep run, check or explain (compile_rules in Python)"
    elif word.upper() in CLAUSES:
        error.hint = "a query starts with PATTERN or a bare regular expression; its clauses follow"
    else:
        return False
    return True


def finish_query(assembler: Assembler, pattern: Pattern, *, is_regex: bool) -> QuerySyntax:
    """Put pattern and clauses together, and check what cannot be seen in the finished tree.

    Parameters
    ----------
    assembler : Assembler
        It has read the pattern and its clauses.
    pattern : Pattern
    is_regex : bool
        Whether it is a bare regular expression.

    Raises
    ------
    QueryError
        WITHIN is missing (ACEP-Q005), a mark without a repetition (Q014), a strategy that leaves out variables (Q016,
        Q030), ``[attr]`` where no condition can stand (Q013).
    """
    read = assembler.clauses_read
    window = _window(assembler, is_regex)
    _check_marks(assembler, pattern)
    _check_covered(assembler, pattern)
    equivalences, predicates = _split(assembler, read.condition)
    for part, length in assembler.lasting_parts:
        predicates = (*predicates, *_lasting_conditions(assembler, pattern, part, length))
    if isinstance(pattern, Machine):
        names = frozenset(register.name for register in pattern.registers)
        read.outputs = tuple(replace(one, value=with_register_values(one.value, names)) for one in read.outputs)
    query = QuerySyntax(
        pattern=pattern,
        window=window,
        is_regex=is_regex,
        strategy=read.strategy or DEFAULT_STRATEGY,
        equivalences=equivalences,
        predicates=predicates,
        is_simultaneous=read.is_simultaneous,
        errors=read.errors,
        weights=tuple(read.weights),
        at_start=read.at_start,
        selection=read.selection,
        outputs=read.outputs,
        definitions=read.definitions,
        publish=read.publish,
        text=assembler.text,
        places=tuple(read.places),
    )
    for tree in (pattern, *all_expressions(query)):
        refuse_deep_tree(tree, assembler.text)
    for value in all_expressions(query):
        refuse_equivalences(assembler, value)
    return query


def _lasting_conditions(query: Written, pattern: Pattern, part: Pattern, window: Window) -> Iterator[Expression]:
    """The conditions of a part of a pattern that has a window of its own, ``(A a, B b) WITHIN 5 min``.

    The events that it binds lie so close together if each of a variable lies so close to the first of each other one.

    Parameters
    ----------
    query : Written
        What errors point into.
    pattern, part : Pattern
    window : Window

    Yields
    ------
    Expression
        Such as ``b.ts - a.ts <= 5 min``; void, as all conditions, without an event of ``a`` or of ``b``.

    Raises
    ------
    QueryError
        ``ACEP-Q089``: the window is no length of time; ``ACEP-Q090``: the part is repeated.
    """
    check_length(query, window)
    kleene, negated = kleene_variables(part), negated_variables(part)
    names = [atom.variable for atom in atoms(part) if atom.variable not in negated]
    if not kleene_variables(pattern) & set(names) <= kleene:
        hint = "give the window to all rounds together, ((A a, B b)+) WITHIN 5 min, or to the query"
        raise query.fault("ACEP-Q090", "a part that is repeated has no window of its own", part.span, hint)
    length: Expression = Constant(window.amount, window.span)
    if window.unit != "ticks":
        length = Lasting(window.amount, window.unit, window.span)
    for i, first in enumerate(names):
        for j, last in enumerate(names):
            if i < j or {first, last} <= kleene:
                end = Attribute(last, "current" if last in kleene else None, "ts", window.span)
                start = Attribute(first, "first" if first in kleene else None, "ts", window.span)
                yield Binary("<=", Binary("-", end, start, window.span), length, window.span)


def _window(assembler: Assembler, is_regex: bool) -> Window:
    if assembler.clauses_read.window is not None:
        return assembler.clauses_read.window
    end = assembler.end
    where = "after the regular expression" if is_regex else "after PATTERN and WHERE"
    raise assembler.fault(
        "ACEP-Q005",
        "WITHIN is missing: without a window, what must be remembered grows for ever",
        (end, end),
        f"add it {where}: WITHIN 10 s, WITHIN 100 events, or WITHIN 5 in the units of the time column",
    )


def _check_marks(assembler: Assembler, pattern: Pattern) -> None:
    kleene = kleene_variables(pattern)
    for token in assembler.marked:
        if token not in kleene:
            raise assembler.fault(
                "ACEP-Q014",
                f"{token}[] names several events, but nothing repeats it",
                span_of(token),
                f"add a quantifier after the type, as in `Shelf+ {token}[]`, or write {token} without []",
            )


def _check_covered(assembler: Assembler, pattern: Pattern) -> None:
    """Refuse a list after the strategy that leaves a variable out: a tree holds one strategy for all."""
    covered = assembler.clauses_read.covered
    if not covered:
        return
    known = {atom.variable for atom in atoms(pattern)}
    for token in covered:
        if token not in known:
            raise no_variable(assembler, token, known, span_of(token))
    missing = known - negated_variables(pattern) - set(covered)
    if missing:
        raise assembler.fault(
            "ACEP-Q016",
            f"the strategy leaves out {', '.join(sorted(missing))}",
            (covered[0].start_pos, covered[-1].end_pos),
            "a strategy holds for the whole pattern: name every variable, or leave the list out",
        )


def _split(
    assembler: Assembler, condition: Expression | None
) -> tuple[tuple[Equivalence, ...], tuple[Expression, ...]]:
    parts = conjuncts(condition)
    equivalences = tuple(part for part in parts if isinstance(part, Equivalence))
    predicates = tuple(part for part in parts if not isinstance(part, Equivalence))
    for predicate in predicates:
        refuse_equivalences(assembler, predicate)
    return equivalences, predicates


def refuse_equivalences(assembler: Assembler, expression: Expression) -> None:
    """Refuse ``[attr]`` within an expression: it is no value.

    Raises
    ------
    QueryError
        ``ACEP-Q013``.
    """
    for node in walk(expression):
        if isinstance(node, Equivalence):
            raise assembler.fault(
                "ACEP-Q013",
                f"[{node.name}] is no value: it can only be joined to other conditions by AND",
                node.span,
                f"write WHERE [{node.name}] AND ..., outside OR, NOT and arithmetic",
            )
