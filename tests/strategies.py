"""Random trees for hypothesis: patterns, expressions and whole queries in normal form."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

from hypothesis import strategies as st

from acep_approx.query.functions import CALLED
from acep_approx.query.shape import all_of, choice_of, sequence_of
from acep_approx.query.syntax import (
    CONTIGUITY,
    GAP_WORDS,
    LISTS_ALL,
    PREFERENCES,
    Absent,
    Aggregate,
    AllOf,
    Apply,
    Atom,
    Attribute,
    Between,
    Binary,
    Constant,
    Definition,
    Either,
    Equivalence,
    Expression,
    In,
    IsNull,
    Pattern,
    Preference,
    QuerySyntax,
    Repeat,
    ReturnItem,
    Selection,
    Sequence,
    Skip,
    Spaced,
    Strategy,
    Unary,
    Window,
)

VARIABLES = st.sampled_from(["a", "b", "c", "x1", "_y", "größe", "count", "i"])
FIELDS = st.sampled_from(["price", "type", "ts", "key", "and", "WITHIN", "i", "count"]) | st.text(
    min_size=1, max_size=4
)
UNQUALIFIED = st.sampled_from(["price", "type", "seq", "count"]) | st.text(min_size=1, max_size=4)
TYPES = (
    st.none()
    | st.sampled_from(["Shelf", "Exit", "ANY", "start trip", "it's", "within"])
    | st.text(max_size=4)
)
GAPS = st.sampled_from([None, None, *GAP_WORDS.values()])
BOUNDS = st.tuples(st.integers(0, 5), st.none() | st.integers(0, 5))

NUMBERS = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
CONSTANTS = st.builds(
    Constant, NUMBERS | st.integers(-9, 9) | st.booleans() | st.none() | st.text(max_size=5)
)
ATTRIBUTES = st.builds(
    Attribute, VARIABLES, st.sampled_from([None, "first", "current", "previous", "last"]), FIELDS
)
AGGREGATES = st.builds(
    Aggregate,
    st.sampled_from(["count", "sum", "min", "max", "avg", "first", "last"]),
    VARIABLES,
    FIELDS,
    st.booleans(),
) | st.builds(Aggregate, st.just("count"), VARIABLES, st.none(), st.booleans())
UNQUALIFIED_ATTRIBUTES = st.builds(Attribute, st.none(), st.none(), UNQUALIFIED)


def expressions(
    leaves: st.SearchStrategy[Expression], *, functions: bool = False
) -> st.SearchStrategy[Expression]:
    """Any expression over some leaves, well typed or not; with ``functions`` those of the language, too."""

    def deeper(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
        operators = st.sampled_from(["+", "-", "*", "/", "%", "=", "!=", "<", "<=", ">", ">=", "AND", "OR"])
        calls = st.builds(Apply, st.sampled_from(CALLED), st.lists(inner, max_size=3).map(tuple))
        like = st.builds(Apply, st.sampled_from(["LIKE", "ILIKE"]), st.tuples(inner, inner))
        case = st.builds(Apply, st.just("CASE"), st.tuples(inner, inner, inner) | st.tuples(*[inner] * 5))
        return st.one_of(
            *((calls, like, case) if functions else ()),
            st.builds(Binary, operators, inner, inner),
            st.builds(Unary, st.sampled_from(["NOT", "-"]), inner),
            st.builds(In, inner, st.lists(CONSTANTS, min_size=1, max_size=3).map(tuple), st.booleans()),
            st.builds(Between, inner, inner, inner, st.booleans()),
            st.builds(IsNull, inner, st.booleans()),
        )

    return st.recursive(leaves, deeper, max_leaves=8)


EXPRESSIONS = expressions(CONSTANTS | ATTRIBUTES | AGGREGATES)
WITH_FUNCTIONS = expressions(CONSTANTS | ATTRIBUTES | AGGREGATES, functions=True)


def _repeat(
    part: Pattern,
    bounds: tuple[int, int | None],
    gap: Strategy | None,
    prefers: Preference | None,
    until: Absent | None,
) -> Repeat:
    return Repeat(part, *bounds, between=gap, prefers=prefers, until=until)


def patterns(
    atoms: st.SearchStrategy[Atom], *, negation: bool = True, words: bool = True
) -> st.SearchStrategy[Pattern]:
    """Any pattern over some atoms in normal form; variables may occur more than once."""

    options = st.lists(atoms, min_size=1, max_size=2).map(tuple)
    absent = st.builds(Absent, options)
    directly = st.builds(Absent, options, directly=st.sampled_from([None, *CONTIGUITY.values()]))

    def deeper(inner: st.SearchStrategy[Pattern]) -> st.SearchStrategy[Pattern]:
        several = st.lists(inner, min_size=2, max_size=3)
        gaps = GAPS if words else st.none()
        prefers = st.sampled_from([None, None, *PREFERENCES] if words else [None])
        until = st.none() | absent if words else st.none()
        repeats = st.builds(_repeat, inner, BOUNDS, gaps, prefers, until)
        spaced = (st.builds(Spaced, GAPS.filter(bool), inner),) if words else ()
        orders = several.map(all_of) if negation else st.nothing()
        return st.one_of(several.map(sequence_of), several.map(choice_of), orders, repeats, *spaced)

    return st.recursive(atoms | (directly if words else absent) if negation else atoms, deeper, max_leaves=8)


def renamed(pattern: Pattern) -> Pattern:
    """The same pattern with variables v0, v1, ... from left to right, each once."""
    numbers = count()

    def walk(node: Pattern) -> Pattern:
        match node:
            case Atom(type=kind):
                return Atom(kind, f"v{next(numbers)}")
            case Sequence(parts=parts):
                return Sequence(tuple(walk(part) for part in parts))
            case AllOf(parts=parts):
                return AllOf(tuple(walk(part) for part in parts))
            case Either(options=options):
                return Either(tuple(walk(option) for option in options))
            case Absent(options=options):
                return replace(node, options=tuple(walk(option) for option in options))
            case Repeat(part=part, until=until):
                return replace(node, part=walk(part), until=until and walk(until))
            case Spaced(strategy=strategy, part=part):
                return Spaced(strategy, walk(part))

    return walk(pattern)


WINDOWS = st.builds(
    Window, st.integers(0, 10**9), st.sampled_from(["us", "ms", "s", "min", "h", "d", "events", "ticks"])
) | st.builds(Window, st.floats(0, 1e9), st.sampled_from(["s", "h"]))
STRATEGIES = st.sampled_from(
    ["skip_till_any_match", "skip_till_next_match", "partition_contiguity", "strict_contiguity"]
)
EQUIVALENCES = st.lists(st.builds(Equivalence, FIELDS), max_size=2).map(tuple)
WEIGHTS = st.lists(st.tuples(VARIABLES, st.integers(-2, 9)), max_size=2).map(tuple)


def _conditions(values: st.SearchStrategy[Expression]) -> st.SearchStrategy[tuple[Expression, ...]]:
    """Conjuncts, none of which is an AND itself."""
    single = values.filter(lambda node: not (isinstance(node, Binary) and node.op == "AND"))
    return st.lists(single, max_size=3).map(tuple)


SKIPS = st.builds(Skip, st.sampled_from(("next row", "past last row")))
SELECTIONS = st.just(LISTS_ALL) | st.builds(
    Selection,
    maximal=st.booleans(),
    first=st.booleans(),
    skip=st.none() | SKIPS | st.builds(Skip, st.sampled_from(("first", "last")), VARIABLES),
    consume=st.booleans(),
    every=st.none() | WINDOWS,
)
PATTERN_QUERIES = st.builds(
    QuerySyntax,
    pattern=patterns(st.builds(Atom, TYPES, VARIABLES)),
    window=WINDOWS,
    strategy=STRATEGIES,
    equivalences=EQUIVALENCES,
    predicates=_conditions(EXPRESSIONS),
    is_simultaneous=st.booleans(),
    errors=st.integers(-1, 5),
    weights=WEIGHTS,
    selection=SELECTIONS,
    outputs=st.lists(st.builds(ReturnItem, FIELDS, EXPRESSIONS), max_size=2).map(tuple),
)

LETTERS = st.sampled_from("abcXY09_")


@st.composite
def regex_queries(draw: st.DrawFn) -> QuerySyntax:
    """A bare regular expression with clauses; letters that are defined have no type."""
    names = draw(st.lists(LETTERS, max_size=2, unique=True))
    letters = LETTERS.map(lambda letter: Atom(None if letter in names else letter, letter))
    conditions = expressions(CONSTANTS | UNQUALIFIED_ATTRIBUTES)
    return QuerySyntax(
        pattern=draw(patterns(letters, negation=False, words=False)),
        window=draw(WINDOWS),
        is_regex=True,
        strategy=draw(STRATEGIES),
        equivalences=draw(EQUIVALENCES),
        predicates=draw(_conditions(EXPRESSIONS)),
        is_simultaneous=draw(st.booleans()),
        errors=draw(st.integers(0, 5)),
        weights=draw(st.lists(st.tuples(LETTERS, st.integers(1, 9)), max_size=2).map(tuple)),
        selection=draw(SELECTIONS),
        definitions=tuple(Definition(name, draw(conditions)) for name in names),
    )


QUERIES = PATTERN_QUERIES | regex_queries()
