"""Compressed output spells out to what is listed, and is smaller."""

from __future__ import annotations

from random import Random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acep_approx import CappedCountWarning, Query, compile_query
from acep_approx.errors import DataError, UsageError
from acep_approx.matching.tracing import compressed as compressing
from acep_approx.matching.tracing.compressed import Compressed
from acep_approx.query.shape import walk
from acep_approx.query.syntax import RegisterValue
from tests.cases import cases, examples
from tests.corpus_cases import NAMED, events_of
from tests.match_tables import bindings
from tests.rich_worlds import RichWorld, rich_worlds
from tests.runs_engine import MERGES, compiled
from tests.smaller_worlds import holds_for

KLEENE = "PATTERN SEQ(A+ a[], B b) WHERE b.x > a[1].x WITHIN 100"
ROWS = [{"ts": i, "type": "AB"[i % 4 == 3], "x": i, "g": "pq"[i % 2]} for i in range(24)]


def sorted_rows(table: pa.Table) -> list[str]:
    """Rows in some fixed order."""
    return sorted(map(str, table.to_pylist()))


def is_tested(query: Query) -> bool:
    """Whether complete matches are tested once more."""
    return query.plan.registers is not None and query.plan.registers.needs_filter


def shows_less_or_more(query: Query) -> bool:
    """Whether links do not spell the rows: automata written by hand hide events, and show registers."""
    shown = (node for output in query.syntax.outputs for node in walk(output.value))
    has_hidden = not query.syntax.is_regex and "" in query.automaton.variables
    return has_hidden or any(isinstance(node, RegisterValue) for node in shown)


@settings(examples(1500, shrink=False), max_examples=cases(1500, 50))
@given(rich_worlds(), st.sampled_from(MERGES), st.randoms(use_true_random=True))
def test_what_is_spelled_is_what_is_listed(world: RichWorld, merge: str, random: Random) -> None:
    """All hits give all matches; each match comes of one hit; counts are those of the hits."""
    seed = random.random()

    def check(world: RichWorld) -> None:
        query = compiled(world)
        if query is None:
            return
        matches = query.match(world.table(), merge=merge)
        if is_tested(query):
            with pytest.raises(UsageError, match="ACEP-U007"):
                matches.compressed()
            return
        compressed = matches.compressed()
        whole = compressed.expand()
        assert bindings(whole, world.query) == world.expected()
        listed = matches.to_arrow()
        assert whole.schema == listed.schema
        assert sorted_rows(whole) == sorted_rows(listed)
        dice = Random(seed)
        order = dice.sample(range(len(compressed)), len(compressed))
        cut = dice.randint(0, len(order))
        parts = [compressed.expand(part) for part in (order[:cut], order[cut:])]
        assert sorted_rows(pa.concat_tables(parts)) == sorted_rows(whole)
        assert compressed.expand(limit=3).to_pylist() == whole.to_pylist()[:3]
        if not compressed.is_ambiguous:
            assert compressed.counts().tolist() == [compressed.expand([hit]).num_rows for hit in range(len(compressed))]

    holds_for(world, check)


@pytest.mark.parametrize("name", NAMED)
def test_the_corpus_compressed(name: str) -> None:
    """Spelled is what is listed, with RETURN too; where that cannot be, it is refused."""
    case = NAMED[name]
    query = compile_query(case["query"])
    matches = query.match(events_of(case))
    if not query.syntax.selection.is_all or is_tested(query) or shows_less_or_more(query):
        with pytest.raises(UsageError, match="ACEP-U007"):
            matches.compressed()
    elif "matches" in case:
        assert sorted_rows(matches.compressed().expand()) == sorted_rows(matches.to_arrow())


@settings(examples(300, shrink=False), max_examples=cases(300, 12))
@given(rich_worlds(), st.integers(1, 3))
def test_pieces_share_links(world: RichWorld, piece: int) -> None:
    """However the stream is cut, links are given away once, and point to lower numbers."""

    def check(world: RichWorld) -> None:
        query = compiled(world)
        if query is None or is_tested(query):
            return
        whole = query.match(world.table()).compressed()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("acep_approx.matching.pieces.PIECE", piece)
            cut = query.match(world.table()).compressed()
        assert sorted_rows(cut.expand()) == sorted_rows(whole.expand())
        assert cut.links.num_rows <= whole.links.num_rows + 2
        for name in ("before", "other"):
            lower = cut.links.column(name).fill_null(-1).to_numpy()
            assert (lower < np.arange(len(lower))).all()

    holds_for(world, check)


@pytest.mark.parametrize("within", ["12", "6 events"])
def test_links_that_leave_the_window_are_spelled_all_the_same(within: str) -> None:
    """The engine drops them and numbers the others anew while the stream runs."""
    dice = Random(1)
    rows = [{"ts": i, "type": dice.choice("AAB"), "x": dice.randrange(9), "g": dice.choice("pq")} for i in range(4000)]
    query = compile_query("PATTERN SEQ(A+ a[], B b) WHERE [g] AND b.x > a[i].x WITHIN 12", within=within)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("acep_approx.matching.pieces.PIECE", 100)
        compressed = query.match(rows).compressed()
    # not as many: what is merged with a run that has left its window depends on when that run is swept out
    assert compressed.links.num_rows == pytest.approx(query.match(rows).compressed().links.num_rows, rel=0.05)
    assert sorted_rows(compressed.expand()) == sorted_rows(query.match(rows).to_arrow())


def by_rule(compressed: Compressed, hit: int) -> set[tuple[int, ...]]:
    """The events of the matches of a hit, spelled as the documentation says."""
    links = compressed.links.to_pylist()
    found: set[tuple[int, ...]] = set()
    since = compressed.hits.column("since")[hit].as_py()
    todo: list[tuple[int, tuple[int, ...]]] = [(compressed.hits.column("link")[hit].as_py(), ())]
    while todo:
        number, rows = todo.pop()
        link = links[number]
        if link["latest"] < since:
            continue
        if link["other"] is not None:
            todo.append((link["other"], rows))
        if link["row"] is None:
            if link["before"] is not None:
                todo.append((link["before"], rows))
        elif link["start"] >= since:
            if link["before"] is None:
                found.add((link["row"], *rows))
            else:
                todo.append((link["before"], (link["row"], *rows)))
    return found


@pytest.mark.parametrize("merge", MERGES)
@pytest.mark.parametrize("within", ["7", "5 events"])
def test_the_rule_in_the_documentation_is_enough(merge: str, within: str) -> None:
    """Two tables and five sentences."""
    query = compile_query("PATTERN SEQ(A+ a[], B b) WHERE [g] AND b.x > a[i].x WITHIN 7", within=within)
    matches = query.match(ROWS, merge=merge)
    compressed = matches.compressed()
    listed = {(*match["a"], match["b"]) for match in matches}
    assert {rows for hit in range(len(compressed)) for rows in by_rule(compressed, hit)} == listed
    assert listed


def test_links_are_far_fewer_than_events_of_matches() -> None:
    """2**18 - 1 matches end with the last event; events that differ in their first event share what follows."""
    matches = compile_query(KLEENE).match(ROWS)
    compressed = matches.compressed()
    counts = compressed.counts()
    assert counts.sum() == len(matches) > 200_000
    assert compressed.links.num_rows < 400
    last = int(compressed.hits.column("row").to_pylist().index(23))
    assert compressed.expand([last], limit=5).num_rows == 5
    assert repr(compressed) == f"<Compressed: 6 hits, {compressed.links.num_rows} links>"
    assert len(compressed) == 6
    long = compile_query(KLEENE).match([{"ts": i, "type": "AB"[i == 90], "x": i} for i in range(91)]).compressed()
    with pytest.warns(CappedCountWarning):
        assert long.counts().tolist() == [2**63 - 1]


def test_what_cells_could_run_is_compressed_too() -> None:
    """By the runs engine."""
    matches = compile_query("a(b|c)db WITHIN 50 ERRORS 2").match(
        [{"ts": i, "type": t} for i, t in enumerate("abcdbadb")]
    )
    compressed = matches.compressed()
    assert compressed.is_ambiguous
    assert sorted_rows(compressed.expand()) == sorted_rows(matches.to_arrow())
    with pytest.raises(UsageError, match="ACEP-U007"):
        compressed.counts()


@pytest.mark.parametrize("within", ["30", "9 events"])
def test_return_columns_are_those_of_listed_matches(within: str) -> None:
    """Also where the events have long left the window."""
    query = compile_query("PATTERN SEQ(A a, B b) WHERE [g] AND b.x > a.x WITHIN 9 RETURN b.x - a.x AS gain, a.g AS g2")
    matches = compile_query(str(query), within=within).match(ROWS)
    assert sorted_rows(matches.compressed().expand()) == sorted_rows(matches.to_arrow())


def test_times_are_times() -> None:
    """Starts and ends of hits and links are timestamps where the events have them."""
    rows = [{"ts": f"2024-05-01T08:00:{i:02}Z", "type": "AB"[i % 2], "x": i} for i in range(6)]
    matches = compile_query("PATTERN SEQ(A a, B b) WHERE b.x > a.x WITHIN 3 s").match(rows)
    compressed = matches.compressed()
    kinds = {compressed.hits.schema.field(name).type for name in ("end", "since", "start")}
    assert kinds == {compressed.links.schema.field("latest").type} == {pa.timestamp("us", tz="UTC")}
    assert sorted_rows(compressed.expand()) == sorted_rows(matches.to_arrow())


@pytest.mark.parametrize(
    "query",
    [
        "PATTERN SEQ(A a, B b) WITHIN 5 NON OVERLAP",
        "PATTERN SEQ(A a, B b, ~(C c)) WITHIN 5",
        "PATTERN SEQ(A+ a[], B+ b[]) WHERE a[i].x + b[i].x > 3 WITHIN 5",
    ],
)
def test_what_must_be_tested_is_refused(query: str) -> None:
    """The links would spell more than the matches."""
    with pytest.raises(UsageError, match="cannot be kept compressed") as caught:
        compile_query(query).match(ROWS).compressed()
    assert caught.value.code == "ACEP-U007"


def test_wrong_usage() -> None:
    """Hits that are not there, negative limits, key columns of the names of hits."""
    compressed = compile_query(KLEENE).match(ROWS).compressed()
    for hits, limit, code in (([6], None, "ACEP-U008"), ([-1], None, "ACEP-U008"), ([0], -1, "ACEP-U002")):
        with pytest.raises(UsageError) as caught:
            compressed.expand(hits, limit)
        assert caught.value.code == code
    assert compressed.expand([]).num_rows == compressed.expand([0], 0).num_rows == 0
    rows = [{**row, "link": 1} for row in ROWS]
    with pytest.raises(DataError, match="ACEP-D043"):
        compile_query("PATTERN SEQ(A a, B b) WHERE [link] WITHIN 5").match(rows).compressed()
    assert set(compressing.HIT_COLUMNS) == set(compressed.hits.column_names)


def test_nothing_at_all() -> None:
    """No columns, no events, no matches."""
    query = compile_query(KLEENE)
    empty = query.match([]).compressed()
    assert (len(empty), empty.counts().tolist(), empty.expand().num_rows) == (0, [], 0)
    none = query.match(ROWS[:2]).compressed()
    assert (len(none), none.links.num_rows) == (0, 0)
    assert none.expand().schema == query.match(ROWS).to_arrow().schema
