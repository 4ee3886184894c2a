"""Small worlds for the runs engine, all of them: a family of patterns, every strategy, some conditions, short streams.

All streams are keys of one input, so one run of the engine covers them; the oracle sees each stream alone. By default
each query sees all streams of up to two events, and a fifth of the longer ones, another fifth than the query before it,
and its runs are merged or not.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from itertools import product

import pyarrow as pa
import pytest

from acep_approx import compile_query
from acep_approx.errors import QueryError
from acep_approx.query.parser import parse
from tests.cases import FULL
from tests.match_tables import least
from tests.naive import Binding, expected_matches, match_points

LONGEST = 4
LETTERS = [("A", 1), ("A", 2), ("B", 1), ("B", 2)]
STREAMS = [letters for n in range(1, LONGEST + 1) for letters in product(LETTERS, repeat=n)]
MERGES = ("equal,pareto,chain", "none")
SHARES = 1 if FULL else 5
Stream = tuple[tuple[str, int], ...]
STRATEGIES = ("skip_till_any_match", "skip_till_next_match", "partition_contiguity", "strict_contiguity")

CONDITIONS = {
    "ab": ("", "b.x > a.x", "(a.x = 1 OR b.x = 2)"),
    "Ab": ("", "b.x > a[i].x", "a[i].x > a[i-1].x", "count(a[]) > 1", "b.x = a[1].x", "sum(a[].x) = b.x + 1"),
    "aB": ("", "b[i].x > a.x", "b[i].x >= b[i-1].x", "b[i].x != count(b[..i-1])", "b[b.LEN].x < a.x"),
    "AB": ("", "a[a.LEN].x < b[1].x", "a[i].x != a[i-1].x", "min(b[].x) > avg(a[].x)"),
    "an": ("", "n.x > a.x", "n.x != b.x"),
    "An": ("", "n.x = a[a.LEN].x"),
}
"""Per kind of pattern the conditions that apply: capitals are Kleene variables, ``n`` is negated."""

PATTERNS = [
    ("ab", "SEQ(A a, B b)"),
    ("ab", "SEQ(A a, A b)"),
    ("ab", "SEQ(ANY a, B b)"),
    ("ab", "SEQ(A a, B? b, A c)"),
    ("ab", "(A a | ANY b)"),
    ("ab", "SEQ(A a, (A c | B b))"),
    ("ab", "SEQ((A a | B c), A b)"),
    ("Ab", "SEQ(A+ a[], B b)"),
    ("Ab", "SEQ(A+ a[], ANY b)"),
    ("Ab", "SEQ(ANY* a[], B b)"),
    ("Ab", "SEQ(A{2,3} a[], B b)"),
    ("aB", "SEQ(A a, B+ b[])"),
    ("aB", "SEQ(A a, ANY* b[], A c)"),
    ("aB", "SEQ(ANY a, B{0,2} b[])"),
    ("AB", "SEQ(A+ a[], B+ b[])"),
    ("AB", "SEQ(A a, B b)+"),
    ("AB", "SEQ((A a, B b)+, A c)"),
    ("AB", "SEQ((A a | B b)+, A c)"),
    ("an", "SEQ(A a, ~(B n), A b)"),
    ("an", "SEQ(~(B n), A a, ANY b)"),
    ("an", "SEQ(A a, ANY b, ~(B n))"),
    ("An", "SEQ(A+ a[], ~(B n), A b)"),
    ("An", "SEQ(ANY+ a[], ~(B n))"),
]


def cases(pattern: str, kind: str, window: str) -> Iterator[str]:
    """Every query of one pattern that passes the checks, without its equivalence."""
    for strategy, condition, errors in product(STRATEGIES, CONDITIONS[kind], (0, 1)):
        if errors and condition and strategy == "strict_contiguity":
            continue  # within one partition these are the queries of partition contiguity
        where = " AND ".join(part for part in ("[g]", condition) if part)
        yield f"PATTERN {pattern} WHERE {strategy} {{ {where} }} WITHIN {window} ERRORS {errors}"


@cache
def share(number: int) -> list[Stream]:
    """The streams that the queries of this number see."""
    return [letters for s, letters in enumerate(STREAMS) if len(letters) <= 2 or s % SHARES == number]


@cache
def stream_table(number: int, one_after_the_other: bool) -> tuple[pa.Table, list[tuple[int, int]]]:
    """A share of the streams as one, and per row its stream and its place in it; each stream has a key of its own."""
    streams = share(number)
    places = [(s, i) for s, stream in enumerate(streams) for i in range(len(stream))]
    if not one_after_the_other:
        places.sort(key=lambda place: place[1])
    ticks = [100 * s + i if one_after_the_other else i for s, i in places]
    letters = [streams[s][i] for s, i in places]
    columns = {"ts": ticks, "type": [kind for kind, _ in letters], "x": [x for _, x in letters]}
    return pa.table({**columns, "g": [s for s, _ in places]}), places


def listed(found: pa.Table, places: list[tuple[int, int]]) -> list[dict[Binding, int]]:
    """Per stream every match that was listed, with its err."""
    variables = found.column_names[found.column_names.index("missing") + 1 :]
    matches: list[dict[Binding, int]] = [{} for _ in range(1 + max(s for s, _ in places))]
    for row in found.to_pylist():
        pairs = []
        for variable in variables:
            events = row[variable] if isinstance(row[variable], list) else [row[variable]]
            pairs += [(places[event][1], variable) for event in events if event is not None]
        bound = tuple(sorted(pairs))
        assert bound not in matches[row["g"]], f"{bound} was listed twice"
        matches[row["g"]][bound] = row["errors"]
    return matches


def points(found: pa.Table, places: list[tuple[int, int]]) -> list[dict[int, int]]:
    """Per stream the match points with their least err."""
    per_stream: list[dict[int, int]] = [{} for _ in range(1 + max(s for s, _ in places))]
    for row, err in least(found).items():
        stream, place = places[row]
        per_stream[stream][place] = err
    return per_stream


def expected(text: str, streams: list[Stream]) -> list[dict[Binding, int]]:
    """Per stream what brute force finds."""
    query = parse(text)
    rows = [[{"ts": i, "type": kind, "x": x, "g": 0} for i, (kind, x) in enumerate(stream)] for stream in streams]
    return [expected_matches(query, stream) for stream in rows]


QUICK = {"SEQ(A a, B b)", "SEQ(A+ a[], B b)", "SEQ(A a, ~(B n), A b)", "SEQ(ANY+ a[], ~(B n))", "SEQ((A a, B b)+, A c)"}


@pytest.mark.parametrize(
    ("kind", "pattern", "window"),
    [
        pytest.param(*case, window, marks=() if case[1] in QUICK else pytest.mark.slow, id=f"{case[1]} {window}")
        for case in PATTERNS
        for window in (("2", "3 events") if case[1] in QUICK else ("2",))
    ],
)
def test_every_stream(kind: str, pattern: str, window: str) -> None:
    """Listed and detected as by brute force, merged or not, on all streams at once."""
    checked: dict[str, int] = defaultdict(int)
    for number, text in enumerate(cases(pattern, kind, window)):
        try:
            query = compile_query(text, engine="runs")
        except QueryError as error:  # nothing to find, or what skip till next match cannot answer
            assert error.code in ("ACEP-Q036", "ACEP-Q040", "ACEP-Q900"), text
            checked[error.code] += 1
            continue
        events, places = stream_table(number % SHARES, "strict" in text)
        wanted = expected(text, share(number % SHARES))
        for merge in MERGES if FULL else (MERGES[number // 3 % 2],):
            matches = query.match(events, merge=merge)
            assert listed(matches.to_arrow(), places) == wanted, f"{text} merge={merge}"
            assert points(matches.points(), places) == [match_points(found) for found in wanted], text
        checked["queries"] += 1
    assert checked["queries"] > sum(checked.values()) / 2
