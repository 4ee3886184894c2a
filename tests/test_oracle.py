"""Whatever the query and the stream: the engines give what brute force gives, in any split, after any restart."""

from __future__ import annotations

from collections import Counter
from unittest import mock

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from acep_approx import Query, QueryError, compile_query
from acep_approx.automaton import determinize
from acep_approx.automaton.compile import compile_automaton
from tests.cases import cases, examples
from tests.match_tables import bindings
from tests.naive import match_points
from tests.worlds import World, walk_absent, worlds

NEEDS_RUNS = "ACEP-Q900"


def compiled(world: World) -> Query | None:
    """The compiled query; None where a negation can be the first or the last part, which the cells cannot answer."""
    try:
        return compile_query(world.text, engine="cells")
    except QueryError as error:
        assert error.code == NEEDS_RUNS, error
        assert walk_absent(world.query.pattern)
        return None


@settings(examples(2000), max_examples=cases(2000, 70))
@given(worlds())
def test_listed_counted_and_detected_as_by_brute_force(world: World) -> None:
    """Matches with their least err; counts by err; match points with their least err."""
    query = compiled(world)
    if query is None:
        return
    expected = world.expected()
    matches = query.match(world.table())
    assert bindings(matches.to_arrow(), world.query) == expected
    by_errors = Counter(expected.values())
    assert matches.count_by_errors() == {e: by_errors[e] for e in range(world.query.errors + 1)}
    points = matches.points()
    assert dict(zip(points["row"].to_pylist(), points["errors"].to_pylist(), strict=True)) == match_points(expected)


@settings(examples(600), max_examples=cases(600, 25))
@given(worlds(), st.data())
def test_any_split_and_any_restart_give_the_same(world: World, data: st.DataObject) -> None:
    """Batches cut anywhere, and a state saved and restored between them, change nothing."""
    query = compiled(world)
    if query is None:
        return
    table = world.table()
    output = data.draw(st.sampled_from(["matches", "points", "counts"]))
    whole = query.matcher(output=output).push(table)
    ahead = data.draw(st.sampled_from([determinize.AHEAD, 3]))
    cuts = data.draw(st.lists(st.integers(0, table.num_rows), max_size=4).map(sorted))
    matcher = query.matcher(output=output)
    parts = []
    with mock.patch.object(determinize, "AHEAD", ahead):  # few states made ahead: they are made in another order
        for start, end in zip([0, *cuts], [*cuts, table.num_rows], strict=True):
            parts.append(matcher.push(table.slice(start, end - start)))
            if data.draw(st.booleans()):
                matcher = query.from_state(matcher.state_bytes())
    assert pa.concat_tables(parts).to_pylist() == whole.to_pylist()


@settings(examples(2000), max_examples=cases(2000, 60))
@given(worlds())
def test_missing_names_what_the_least_err_pays_for(world: World) -> None:
    """The weights of the missing variables add up to the errors of the match."""
    query = compiled(world)
    if query is None or query.syntax.is_regex:
        return
    weights = dict(world.query.weights)
    for match in query.match(world.table()):
        assert sum(weights.get(variable, 1) for variable in match.missing) == match.errors


@settings(examples(200), max_examples=cases(200, 10))
@given(worlds())
def test_equal_queries_compile_to_equal_automata(world: World) -> None:
    """Compilation is a function of the text: same fingerprint, same hash."""
    if compiled(world) is None:
        return
    one, other = compile_query(world.text), compile_query(world.text)
    assert one == other
    assert hash(one) == hash(other)
    assert one.automaton == compile_automaton(other.syntax)
    assert one.automaton.fingerprint() == other.automaton.fingerprint()
