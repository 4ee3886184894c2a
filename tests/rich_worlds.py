"""Small worlds over the whole language: a random query, as tree and text, and a random stream.

New constructs of the language are added here (what the cells engine runs also in ``worlds``). Plain functions make a
world of one seed that hypothesis draws: where it draws every choice itself, it makes half of the worlds twice, and
strategies built anew for each pattern take most of the time. ``smaller_worlds`` shrinks what fails.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, TypeVar

import pyarrow as pa
from hypothesis import strategies as st

from acep_approx.query.checks import check, lightest_match
from acep_approx.query.parser import parse
from acep_approx.query.printer import to_text
from acep_approx.query.shape import (
    atoms,
    choice_of,
    kleene_variables,
    most_events,
    negated_variables,
    sequence_of,
    walk,
)
from acep_approx.query.syntax import (
    LISTS_ALL,
    NON_OVERLAP,
    Absent,
    Aggregate,
    AllOf,
    Atom,
    Attribute,
    Definition,
    Equivalence,
    Expression,
    Pattern,
    QuerySyntax,
    Repeat,
    Selection,
    Skip,
    Strategy,
    Window,
)
from tests.naive import Binding, expected_matches
from tests.naive_selection import is_optional
from tests.rich_conditions import Names, condition
from tests.worlds import renamed

STRATEGIES: tuple[Strategy, ...] = (
    *("skip_till_any_match",) * 3,
    *("skip_till_next_match",) * 4,
    "partition_contiguity",
    "strict_contiguity",
)
BOUNDS = ((1, None), (1, None), (0, None), (0, 1), (2, 3), (1, 2), (2, None), (0, 2), (2, 2), (1, 1))
NUMBERS = {"ts": pa.int64(), "x": pa.int64(), "y": pa.float64()}
COLUMNS = NUMBERS | dict.fromkeys(("type", "s", "g"), pa.string())
KEYS = ((), (), (), (), ("g",), ("g",), ("g",), ("s",), ("g", "x"))
MOST_ATOMS = 5

Some = TypeVar("Some")
Row = dict[str, Any]


@dataclass
class Dice:
    """Random choices, and how many letters a pattern may still get.

    With ``calls`` conditions may call functions and name events by their numbers; a pattern may have ALL, or be without
    any event. Without it a seed stands for the world that it stood for before there were these.
    """

    random: Random
    leaves: int = 4
    calls: bool = False

    def pick(self, options: Sequence[Some]) -> Some:
        """One of some options."""
        return self.random.choice(options)

    def chance(self, one_in: int) -> bool:
        """True once in so many times."""
        return self.random.randrange(one_in) == 0


@dataclass(frozen=True)
class RichWorld:
    """A query, its text, and a stream: rows with the attributes ``COLUMNS``."""

    query: QuerySyntax
    text: str
    rows: tuple[Row, ...]

    def table(self) -> pa.Table:
        """The stream as columns."""
        return pa.table({name: pa.array([row[name] for row in self.rows], kind) for name, kind in COLUMNS.items()})

    def expected(self) -> dict[Binding, int]:
        """Every match by brute force, with its least err, whether it is listed or not."""
        return expected_matches(self.query, self.rows)


def rich_worlds(*, chooses: bool = False) -> st.SearchStrategy[RichWorld]:
    """Any query that passes the checks, and a stream.

    Parameters
    ----------
    chooses : bool, default False
        Whether the query has clauses that say which matches are listed.
    """
    return st.randoms(use_true_random=True).map(lambda random: rich_world(random, chooses, calls=True))


def rich_world(random: Random, chooses: bool, *, calls: bool = False) -> RichWorld:
    """The world that comes of a seed; ``calls`` as in ``Dice``."""
    make = regex_query if random.randrange(7) == 0 else pattern_query
    query = make(Dice(random, calls=calls), chooses)
    while query is None:
        query = make(Dice(random, calls=calls), chooses)
    return world_of(query, stream(Dice(random)))


def world_of(query: QuerySyntax, rows: Sequence[Row]) -> RichWorld:
    """A query that passes the checks, with its text, and a stream."""
    check(query)
    text = to_text(query)
    assert parse(text) == query, text
    return RichWorld(query, text, tuple(rows))


# --- streams ----------------------------------------------------------------------------------------------------------


def stream(dice: Dice) -> tuple[Row, ...]:
    """Up to eight events with ties in time, missing values, and two keys or none."""
    tick = dice.pick((0, 1, -3))
    rows = []
    for _ in range(dice.pick((6, 7, 8, 5, 8, 7, 8, 6, 4, 2, 0))):
        tick += dice.pick((1, 1, 0, 2))
        values = (
            dice.pick((1, 2, 3, 0, None)),
            dice.pick((1.0, 0.5, 2.0, 2.5, -1.0, None, float("nan"))),
            dice.pick(("A", "B", "A", "B", "A", "B", "C")),
            dice.pick(("u", "v", "uv", "", None)),
            dice.pick(("p", "p", "p", "p", "p", "q", None)),
        )
        rows.append(dict(zip(COLUMNS, (tick, *values), strict=True)))
    return tuple(rows)


# --- patterns ---------------------------------------------------------------------------------------------------------


def part(dice: Dice, types: Sequence[str | None], depth: int, *, negation: bool) -> Pattern:
    """A pattern with at most four letters, and negations between, before and after them."""

    def atom() -> Atom:
        dice.leaves -= 1
        return Atom(kind := dice.pick(types), kind or "")

    def inner() -> Pattern:
        return part(dice, types, depth - 1, negation=negation)

    kind = dice.pick((*["sequence"] * 4, "repeat", "repeat", "choice", "letter", *["all"] * (negation and dice.calls)))
    if dice.leaves <= 1 or depth == 0 or (kind == "letter" and depth < 3):
        return atom()
    if kind == "repeat":
        return Repeat(inner(), *dice.pick(BOUNDS))
    if kind == "choice":
        return choice_of([inner(), inner()])
    if kind == "all":
        return AllOf(tuple(inner() for _ in range(dice.pick((2, 2, 3)))))
    parts: list[Pattern] = []
    for i in range(dice.pick((2, 2, 3))):
        if negation and dice.chance(4 if i else 7):
            parts.append(absent(dice, types))
        parts.append(inner())
    if negation and dice.chance(7):
        parts.append(absent(dice, types))
    return sequence_of(parts)


def absent(dice: Dice, types: Sequence[str | None]) -> Absent:
    """A negation of one type, or of two."""
    return Absent(tuple(Atom(dice.pick(types), "") for _ in range(dice.pick((1, 1, 1, 2)))))


# --- queries ----------------------------------------------------------------------------------------------------------


def pattern_query(dice: Dice, chooses: bool) -> QuerySyntax | None:
    """PATTERN with all that can stand beside it, the variables v0, v1, ...; None: it would be too large or empty."""
    pattern: Pattern = renamed(part(dice, ("A", "B", "A", "B", "A", "B", None, None, "C"), depth=3, negation=True), [])
    if len(atoms(pattern)) > MOST_ATOMS or (is_optional(pattern) and not dice.calls):
        return None
    negated = sorted(negated_variables(pattern))
    known = [atom.variable for atom in atoms(pattern) if atom.variable not in negated]
    kleene = kleene_variables(pattern) - set(negated)
    predicates = []
    for _ in range(dice.pick((1, 2, 1, 2, 1, 3, 0))):
        chosen = {dice.pick(known) for _ in range(dice.pick((1, 2, 2, 3)))}
        if negated and dice.chance(2):
            chosen = {*sorted(chosen)[: dice.pick((1, 1, 2, 0))], dice.pick(negated)}
        names = Names(tuple(sorted(chosen - kleene)), tuple(sorted(chosen & kleene)), dice.calls)
        found = condition(dice.pick, names)
        predicates += [found] if names_events_there_can_be(found, pattern) else []
    return finished(dice, pattern, known, chooses, predicates=tuple(predicates))


def with_conditions(query: QuerySyntax, dice: Dice, make: Callable[[Names], Expression]) -> tuple[Expression, ...]:
    """Conditions for a query: seldom its own, and one or two that are made of some of its variables."""
    negated = negated_variables(query.pattern)
    kleene = frozenset() if query.is_regex else kleene_variables(query.pattern) - negated
    known = sorted({atom.variable for atom in atoms(query.pattern)})
    predicates = query.predicates if dice.chance(3) else ()
    for _ in range(dice.pick((1, 2))):
        chosen = {dice.pick(known) for _ in range(1 if query.is_regex else dice.pick((1, 2, 2, 3)))}
        chosen -= set(sorted(chosen & negated)[1:])
        predicates = (*predicates, make(Names(tuple(sorted(chosen - kleene)), tuple(sorted(chosen & kleene)))))
    return predicates


def names_events_there_can_be(condition: Expression, pattern: Pattern) -> bool:
    """Whether the events that a condition names by their numbers are not more than the pattern lets there be."""
    most = most_events(pattern)
    named = [node for node in walk(condition) if isinstance(node, Attribute | Aggregate)]
    numbers = [(node.variable, node.upto if isinstance(node, Aggregate) else node.index) for node in named]
    return all(number <= (most[str(name)] or number) for name, number in numbers if isinstance(number, int))


def regex_query(dice: Dice, chooses: bool) -> QuerySyntax | None:
    """A bare regular expression over A, B, C: some are types, some are defined, some have conditions; None: empty."""
    pattern = part(dice, "ABABABC", depth=3, negation=False)
    if is_optional(pattern) and not dice.calls:
        return None
    letters = sorted({atom.variable for atom in atoms(pattern)})
    predicates = [condition(dice.pick, Names((letter,), (), dice.calls)) for letter in letters if dice.chance(4)]
    defined = [letter for letter in letters if dice.chance(4)]
    own = Names((None,), (), dice.calls)
    return finished(
        dice,
        without_types(pattern, defined),
        letters,
        chooses,
        is_regex=True,
        predicates=tuple(predicates),
        definitions=tuple(Definition(letter, condition(dice.pick, own)) for letter in defined),
    )


def without_types(pattern: Pattern, defined: Sequence[str]) -> Pattern:
    """A regular expression in which defined letters stand for no type."""
    if isinstance(pattern, Atom):
        return Atom(None, pattern.variable) if pattern.variable in defined else pattern
    if isinstance(pattern, Repeat):
        return Repeat(without_types(pattern.part, defined), pattern.least, pattern.most)
    assert not isinstance(pattern, Absent)
    inner = pattern.options if hasattr(pattern, "options") else pattern.parts
    return type(pattern)(tuple(without_types(one, defined) for one in inner))


def finished(dice: Dice, pattern: Pattern, letters: list[str], chooses: bool, **clauses: Any) -> QuerySyntax:
    """A query with the clauses that every query has."""
    weights = {dice.pick(letters): dice.pick((2, 3)) for _ in range(dice.pick((0, 0, 0, 1, 2)))}
    unit = dice.pick(("ticks", "ticks", "events"))
    return QuerySyntax(
        pattern=pattern,
        window=Window(dice.pick((5, 8, 20, 8, 4, 6, 3, 2, 1, 0)), unit),
        strategy=dice.pick(STRATEGIES),
        equivalences=tuple(map(Equivalence, dice.pick(KEYS))),
        errors=min(dice.pick((0, 1, 1, 2)), lightest_match(pattern, weights) - 1),
        weights=tuple(sorted(weights.items())),
        selection=selection(dice, [] if clauses.get("is_regex") else letters) if chooses else LISTS_ALL,
        **clauses,
    )


def selection(dice: Dice, variables: Sequence[str]) -> Selection:
    """Clauses that say which matches are listed, at least one; ``variables`` can bind events."""
    if dice.chance(4):
        return NON_OVERLAP
    named = tuple(Skip(to, dice.pick(variables)) for to in dice.pick((("first", "last"), ())) if variables)
    found = Selection(
        maximal=dice.chance(2),
        first=dice.chance(5),
        skip=dice.pick((None, None, Skip("next row"), Skip("past last row"), *named)),
        consume=dice.chance(5),
        every=Window(dice.pick((0, 1, 2, 3, 9)), "ticks") if dice.chance(4) else None,
    )
    return selection(dice, variables) if found.is_all else found


def constructs(query: QuerySyntax) -> set[str]:
    """The constructs that a query uses, by name: to see that these worlds hold them all."""
    nodes = [node for tree in (query.pattern, *query.predicates) for node in walk(tree)]
    found = {type(node).__name__ for node in nodes} | {query.strategy, query.window.unit}
    found |= {f"[{node.index}]" for node in nodes if isinstance(node, Attribute) and node.index}
    found |= {("prior " if node.prior else "") + node.function for node in nodes if isinstance(node, Aggregate)}
    return found | {f"{len(query.equivalences)} keys", f"k = {query.errors}", "regex" if query.is_regex else "pattern"}
