"""Small worlds, all of them: patterns of up to 3 operators over {a, b} x streams of up to 6 events x k = 0..2.

The oracle is brute force over languages: the words of a pattern as strings, and for each subsequence of a stream the
least number of letters that must be inserted to make it a word. Of the patterns of 3 operators each has its turn with
one k and one window by default.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, lru_cache
from itertools import combinations, product

import pytest

from acep_approx.automaton.automaton import Automaton
from acep_approx.automaton.compile import compile_automaton
from acep_approx.query.syntax import AllOf, Atom, Either, Pattern, QuerySyntax, Repeat, Sequence, Window
from tests.cases import FULL
from tests.engines import detected, enumerated
from tests.naive import Binding, match_points

LONGEST = 6
MOST_ERRORS = 2
STREAMS = ["".join(letters) for n in range(1, LONGEST + 1) for letters in product("ab", repeat=n)]
UNARY = ((0, None), (1, None), (0, 1))
MASK = {"a": 1, "b": 2}


@lru_cache
def patterns(operators: int) -> tuple[Pattern, ...]:
    """All patterns with exactly so many operators: star, plus, optional, sequence, choice, and ALL of two letters."""
    if operators == 0:
        return (Atom("a", "a"), Atom("b", "b"))
    unary = [Repeat(part, *bounds) for part in patterns(operators - 1) for bounds in UNARY]
    pairs = [
        pair for left in range(operators) for pair in product(patterns(left), patterns(operators - 1 - left))
    ]
    kinds = (Sequence, Either, AllOf) if FULL or operators < 2 else (Sequence, Either)
    return (*unary, *(kind(pair) for kind in kinds for pair in pairs))


def words(pattern: Pattern) -> frozenset[str]:
    """All words of the language up to the length that can matter."""
    longest = LONGEST + MOST_ERRORS
    if isinstance(pattern, Atom):
        return frozenset(pattern.variable)
    if isinstance(pattern, Either):
        return frozenset().union(*(words(option) for option in pattern.options))
    if isinstance(pattern, Sequence):
        left, right = (words(part) for part in pattern.parts)
        return frozenset(x + y for x in left for y in right if len(x + y) <= longest)
    if isinstance(pattern, AllOf):
        left, right = (words(part) for part in pattern.parts)
        return frozenset(word for x in left for y in right for word in (x + y, y + x) if len(word) <= longest)
    assert isinstance(pattern, Repeat)
    inner = words(pattern.part)
    reached = {""} if pattern.least == 0 else set(inner)
    while pattern.most is None:
        more = {x + y for x in reached for y in inner if len(x + y) <= longest} - reached
        if not more:
            break
        reached |= more
    return frozenset(reached | inner)


@cache  # many patterns have the same language
def insertions(language: frozenset[str]) -> dict[str, int]:
    """For each string the least number of letters to insert to make it a word; only those up to MOST_ERRORS."""
    least: dict[str, int] = {}
    for word in language:
        for missing in range(min(MOST_ERRORS, len(word)) + 1):
            for gone in combinations(range(len(word)), missing):
                rest = "".join(letter for i, letter in enumerate(word) if i not in gone)
                least[rest] = min(missing, least.get(rest, missing))
    return least


@lru_cache
def spelled(window: int) -> dict[str, list[tuple[int, Binding]]]:
    """Per string every non-empty choice of events within the window that spells it, with the number of its stream."""
    found: dict[str, list[tuple[int, Binding]]] = {}
    for number, stream in enumerate(STREAMS):
        for chosen in (c for n in range(1, len(stream) + 1) for c in combinations(range(len(stream)), n)):
            if chosen[-1] - chosen[0] <= window:
                text = "".join(stream[i] for i in chosen)
                found.setdefault(text, []).append((number, tuple((i, "") for i in chosen)))
    return found


def matches(least: dict[str, int], errors: int, window: int) -> list[dict[Binding, int]]:
    """Per stream every match, with its least errors."""
    found: list[dict[Binding, int]] = [{} for _ in STREAMS]
    for text, missing in least.items():
        if missing <= errors:
            for number, bound in spelled(window).get(text, ()):
                found[number][bound] = missing
    return found


def share_of(operators: int) -> int:
    """Which share of the patterns has its turn: all, or a sixth."""
    return 6 if operators == 3 and not FULL else 1


def cases(operators: int, window: int) -> Iterator[tuple[Pattern, int, Automaton]]:
    """Every pattern with every k that it allows, compiled; by default each of 3 operators in one window with one k."""
    for number, pattern in enumerate(patterns(operators)):
        for errors in range(MOST_ERRORS + 1):
            if share_of(operators) == 6 and number % 6 != errors + (3 if window == LONGEST else 0):
                continue
            query = QuerySyntax(pattern, Window(0, "ticks"), is_regex=True, errors=errors)
            yield pattern, errors, compile_automaton(query)


@pytest.mark.parametrize("window", [2, LONGEST])
@pytest.mark.parametrize("operators", [0, 1, 2, pytest.param(3, marks=pytest.mark.slow)])
def test_every_pattern_on_every_stream(operators: int, window: int) -> None:
    """Both engines against the language, for all streams at once: each is a key of its own."""
    streams = [[(tick, MASK[letter]) for tick, letter in enumerate(stream)] for stream in STREAMS]
    checked = 0
    for pattern, errors, automaton in cases(operators, window):
        least = insertions(words(pattern))
        if any(0 < len(word) <= errors for word in words(pattern)):
            continue  # any event would match: such a query is refused
        masks = {name: bit for bit, name in enumerate(letter.type for letter in automaton.letters)}
        recode = {MASK[x]: 1 << masks[x] if x in masks else 0 for x in "ab"}
        recoded = [[(t, recode[m]) for t, m in s] for s in streams]
        classes = sorted({mask for stream in recoded for _, mask in stream} | {0})
        expected, where = matches(least, errors, window), (pattern, errors)
        assert enumerated(automaton, window, recoded, classes) == expected, where
        assert detected(automaton, window, recoded, classes) == [match_points(e) for e in expected], where
        checked += 1
    assert checked > len(patterns(operators)) / 2 / share_of(operators)
