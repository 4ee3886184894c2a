"""The runs engine on a world: compiled for it, fed in batches, and held against brute force."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pyarrow as pa

from acep_approx import Query, compile_query
from acep_approx.errors import UnsupportedError
from acep_approx.query.shape import gap_words, walk
from acep_approx.query.syntax import Repeat
from tests.match_tables import bindings, counted, least, per_point
from tests.naive import match_points
from tests.naive_order import in_order
from tests.naive_selection import reported_matches
from tests.rich_worlds import RichWorld

MERGES = ("equal,pareto,chain", "none", "equal", "equal,pareto", "equal,chain")


def compiled(world: RichWorld) -> Query | None:
    """The query for the runs engine; None where it is refused, as skip till next match may be, and nothing else.

    But for gaps some of which count the events of the stream, and others those of a key, and for repetitions that
    prefer something, where nothing follows them or a negation stands at their border.
    """
    try:
        return compile_query(world.text, engine="runs")
    except UnsupportedError as error:
        gaps = {world.query.strategy, *(gap for gap, _ in gap_words(world.query.pattern))}
        both = gaps >= {"strict_contiguity", "partition_contiguity"} and bool(world.query.equivalences)
        prefers = any(isinstance(node, Repeat) and node.prefers for node in walk(world.query.pattern))
        known = {"ACEP-Q900": prefers or "skip_till_next_match" in gaps, "ACEP-Q920": both}
        if error.code == "ACEP-Q095":
            return None
        if (known | {"ACEP-Q921": prefers, "ACEP-Q922": prefers}).get(error.code):
            return None
        raise


def agrees(world: RichWorld) -> None:
    """Listed in order, counted and detected as by brute force, however runs are merged."""
    query = compiled(world)
    if query is None:
        return
    expected = world.expected()
    waiting = expected if query.plan.registers.has_late_ends else ()
    ordered = [(bound, expected[bound]) for bound in in_order(world.query, world.rows, expected, waiting)]
    table = world.table()
    for merge in MERGES[:3]:
        matches = query.match(table, merge=merge)
        assert list(bindings(matches.to_arrow(), world.query).items()) == ordered, merge
        assert least(matches.points()) == match_points(expected), merge
    matches = query.match(table)
    by_errors = Counter(expected.values())
    assert matches.count_by_errors() == {e: by_errors[e] for e in range(world.query.errors + 1)}
    assert counted(matches.counts()) == per_point(expected)


def pushed(query: Query, batches: list[pa.Table], output: Any, merge: str, dice: Random | None) -> pa.Table:
    """What a matcher gives for some batches and the end; with dice its state is now and then saved and restored."""
    matcher = query.matcher(output=output, merge=merge)
    parts = []
    for batch in batches:
        parts.append(matcher.push(batch))
        if dice and dice.randrange(2):
            matcher = query.from_state(matcher.state_bytes())
    return pa.concat_tables([*parts, matcher.finish()])


def agrees_in_any_split(world: RichWorld, merge: str, dice: Random) -> None:
    """One output of batches that are cut anywhere, with restarts between them, is that of brute force."""
    query = compiled(world)
    if query is None:
        return
    output = dice.choice(("matches", "points", "counts"))
    table = world.table()
    whole = pushed(query, [table], output, merge, None)
    cuts = sorted(dice.randint(0, table.num_rows) for _ in range(dice.randrange(7)))
    batches = [table.slice(i, j - i) for i, j in zip([0, *cuts], [*cuts, table.num_rows], strict=True)]
    parts = pushed(query, batches, output, merge, dice)
    assert parts.to_pylist() == whole.to_pylist()
    expected = world.expected()
    if output == "matches":
        assert bindings(parts, world.query) == expected
    elif output == "counts":
        assert counted(parts) == per_point(expected)
    else:
        assert least(parts) == match_points(expected)


def chooses_as_brute_force(world: RichWorld, merge: str, dice: Random, *, is_ordered: bool = True) -> None:
    """Hold listed matches, their points and counts against brute force, in any split and over restarts.

    With ``is_ordered`` the order of the matches, too.
    """
    query = compiled(world)
    if query is None:
        return
    expected = reported_matches(world.query, world.rows, world.expected())
    table = world.table()
    matches = query.match(table, merge=merge)
    found = bindings(matches.to_arrow(), world.query)
    assert found == expected
    assert list(found) == list(expected) or not is_ordered
    assert least(matches.points()) == match_points(expected)
    assert matches.points().num_rows == len(match_points(expected))
    assert counted(matches.counts()) == per_point(expected)
    output = dice.choice(("matches", "points", "counts"))
    cuts = sorted(dice.randint(0, table.num_rows) for _ in range(dice.randrange(7)))
    batches = [table.slice(i, j - i) for i, j in zip([0, *cuts], [*cuts, table.num_rows], strict=True)]
    whole = pushed(query, [table], output, merge, None)
    assert pushed(query, batches, output, merge, dice).to_pylist() == whole.to_pylist()
