"""The runs engine gives what brute force gives, over the whole language: however it merges, in any split, restarted."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, note
from hypothesis import strategies as st

from acep_approx import Query, QueryError, compile_query
from acep_approx.errors import UnsupportedError
from acep_approx.query.parser import parse
from acep_approx.query.shape import atoms, negated_variables
from acep_approx.query.syntax import QuerySyntax
from tests.cases import examples
from tests.naive import Binding, match_points
from tests.naive_order import in_order
from tests.naive_overlap import reported_matches
from tests.rich_worlds import Dice, RichWorld, rich_worlds, stream
from tests.smaller_worlds import smallest
from tests.worlds import World, worlds

MERGES = ("equal,pareto,chain", "none", "equal", "equal,pareto", "equal,chain")



def holds_for(world: RichWorld, check: Callable[[RichWorld], None]) -> None:
    """Check a world; where the check fails, show the smallest world like it that fails too."""

    def fails(smaller: RichWorld) -> bool:
        try:
            check(smaller)
        except Exception:  # noqa: BLE001  whatever it is, a smaller world shows it better
            return True
        return False

    if fails(world):
        small = smallest(world, fails)
        note(f"{small.text}\n{small.rows}\nexpected {small.expected()}")
        check(small)
        check(world)  # the smaller one failed by chance


def compiled(world: RichWorld) -> Query | None:
    """The query for the runs engine; None where it is refused, as skip till next match may be, and nothing else."""
    try:
        return compile_query(world.text, engine="runs")
    except UnsupportedError as error:
        if error.code != "ACEP-Q900" or world.query.strategy != "skip_till_next_match":
            raise
        return None


def bindings(table: pa.Table, query: QuerySyntax) -> dict[Binding, int]:
    """The rows of a table of matches as the oracle writes them; asserts that no match is listed twice.

    Where no event came there may be no columns.
    """
    negated = negated_variables(query.pattern)
    variables = [atom.variable for atom in atoms(query.pattern) if atom.variable not in negated]
    found: dict[Binding, int] = {}
    for row in table.to_pylist():
        if query.is_regex:
            bound = tuple((event, "") for event in row["events"])
        else:
            pairs = []
            for variable in variables:
                events = row[variable]
                events = events if isinstance(events, list) else [] if events is None else [events]
                pairs += [(event, variable) for event in events]
            bound = tuple(sorted(pairs))
        assert bound not in found, f"{bound} was listed twice"
        found[bound] = row["errors"]
    return found


def least(points: pa.Table) -> dict[int, int]:
    """Per match point the least err. One row has several points where its matches are reported at several times."""
    found: dict[int, int] = {}
    for point in points.to_pylist():
        found[point["row"]] = min(point["errors"], found.get(point["row"], point["errors"]))
    return found


def counted(counts: pa.Table) -> dict[tuple[int, int], int]:
    """The number of matches per match point and err."""
    found: dict[tuple[int, int], int] = defaultdict(int)
    for row in counts.to_pylist():
        found[row["row"], row["errors"]] += row["matches"]
    return dict(found)


def per_point(matches: dict[Binding, int]) -> Counter[tuple[int, int]]:
    """What ``counted`` must give."""
    return Counter((bound[-1][0], err) for bound, err in matches.items())


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


@examples(3000, shrink=False)
@given(rich_worlds())
def test_listed_counted_and_detected_as_by_brute_force(world: RichWorld) -> None:
    """Matches with their least err, in order; counts by err; match points with their least err."""
    holds_for(world, agrees)


@examples(600, shrink=False)
@given(rich_worlds(), st.sampled_from(MERGES), st.randoms(use_true_random=True))
def test_any_split_and_any_restart_give_the_same(world: RichWorld, merge: str, random: Random) -> None:
    """Batches cut anywhere, and a state saved and restored between them, change nothing, nor does the order."""
    seed = random.random()

    def check(world: RichWorld) -> None:
        query = compiled(world)
        if query is None:
            return
        dice = Random(seed)
        output = dice.choice(("matches", "points", "counts"))
        table = world.table()
        whole = pushed(query, [table], output, merge, None)
        cuts = sorted(dice.randint(0, table.num_rows) for _ in range(dice.randrange(5)))
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

    holds_for(world, check)


@pytest.mark.parametrize("output", ["matches", "points", "counts"])
def test_windows_of_events_close_in_the_order_of_the_stream(output: Any) -> None:
    """Each with an event of its own partition, whose numbers say nothing of other partitions; then the stream ends."""
    rows = [{"ts": i, "g": g, "type": type_} for i, (g, type_) in enumerate(["pA", "qA", "qC", "pC", "rA", "sA"])]
    query = compile_query("PATTERN SEQ(A a, ~(B b)) WHERE [g] WITHIN 1 events")
    table = pa.Table.from_pylist(rows)
    whole = pushed(query, [table], output, "equal", None)
    assert whole["g"].to_pylist() == ["q", "p", "r", "s"]
    for size in (1, 2, 3):
        batches = [table.slice(first, size) for first in range(0, len(rows), size)]
        assert pushed(query, batches, output, "equal", None).equals(whole)


def pushed(query: Query, batches: list[pa.Table], output: Any, merge: str, dice: Random | None) -> pa.Table:
    """What a matcher gives for some batches and the end; with dice its state is now and then saved and restored."""
    matcher = query.matcher(output=output, merge=merge)
    parts = []
    for batch in batches:
        parts.append(matcher.push(batch))
        if dice and dice.randrange(2):
            matcher = query.from_state(matcher.state_bytes())
    return pa.concat_tables([*parts, matcher.finish()])


@examples(1000, shrink=False)
@given(rich_worlds())
def test_missing_names_what_the_least_err_pays_for(world: RichWorld) -> None:
    """The weights of the missing variables add up to the errors of the match."""

    def check(world: RichWorld) -> None:
        query, weights = compiled(world), dict(world.query.weights)
        for match in query.match(world.table()) if query else ():
            assert sum(weights.get(variable, 1) for variable in match.missing) == match.errors

    if not world.query.is_regex:
        holds_for(world, check)


@examples(600, shrink=False)
@given(rich_worlds(non_overlap=True), st.sampled_from(MERGES))
def test_non_overlapping_matches(world: RichWorld, merge: str) -> None:
    """Reported is what the order of report leaves, with its least err, in that order; however runs are merged."""

    def check(world: RichWorld) -> None:
        query = compiled(world)
        if query is None:
            return
        expected = reported_matches(world.query, world.rows, world.expected())
        reported = bindings(query.match(world.table(), merge=merge).to_arrow(), world.query)
        assert list(reported.items()) == list(expected.items())

    holds_for(world, check)


READ_IN_TWO_WAYS = (
    "SEQ(ANY a, ~(B n), A* b[])",
    "SEQ(A a, (B b | ~(C n), A* c[]))",
    "SEQ(A a, B? b, ~(C n), ANY* c[])",
    "SEQ(ANY a, (ANY b[], ~(B n)){2})",
    "SEQ(ANY a, ANY? b, ~(B n), A{0,2} c[]) WHERE n.x > a.x",
    "SEQ(ANY a, ~(B n | C m), A* b[]) WHERE skip_till_next_match",
)
"""Some matches of these can be read with a negation at the end, and without, with more errors or as few."""


@pytest.mark.parametrize("pattern", READ_IN_TWO_WAYS)
def test_matches_read_in_two_ways_wait_only_for_fewer_errors(pattern: str) -> None:
    """Where no two may overlap; also in any split, and restarted."""
    for seed in range(20):
        dice = Random(seed)
        window, errors = dice.choice(("2", "3", "5", "2 events", "4 events")), dice.choice((1, 2))
        text = f"PATTERN {pattern} WITHIN {window} ERRORS {errors} WEIGHTS (a = 3) NON OVERLAP"
        world = RichWorld(parse(text), text, stream(Dice(dice)))
        query, table = compile_query(text, engine="runs"), world.table()
        merge = dice.choice(MERGES)
        listed = pushed(query, [table], "matches", merge, None)
        expected = reported_matches(world.query, world.rows, world.expected())
        assert list(bindings(listed, world.query).items()) == list(expected.items()), (text, world.rows)
        batches = [table.slice(i, 1) for i in range(table.num_rows)]
        assert pushed(query, batches, "matches", merge, dice).to_pylist() == listed.to_pylist(), (text, world.rows)


@examples(300)
@given(worlds())
def test_cells_and_runs_agree(world: World) -> None:
    """On what the cells engine can run: the same matches in the same order, counts and points, also their starts."""
    try:
        cells = compile_query(world.text, engine="cells")
    except QueryError as error:
        assert error.code == "ACEP-Q900", error
        return
    runs = compile_query(world.text, engine="runs")
    table = world.table()
    expected = cells.match(table).to_arrow().to_pylist()
    for merge in MERGES[:2]:
        matches = runs.match(table, merge=merge)
        assert matches.to_arrow().to_pylist() == expected
        assert matches.counts().to_pylist() == cells.match(table).counts().to_pylist()
        assert matches.points().to_pylist() == cells.match(table).points().to_pylist()


@pytest.mark.parametrize("merge", MERGES)
def test_work_is_counted(merge: str) -> None:
    """Merging changes the work, never the answer; what is counted adds up."""
    rows = [{"ts": i, "type": "AB"[i % 3 == 2], "x": i % 4} for i in range(60)]
    query = compile_query("PATTERN SEQ(A+ a[], B b) WHERE b.x >= a[i].x WITHIN 9", engine="runs")
    matches = query.match(rows, merge=merge)
    total = matches.to_arrow().num_rows
    assert total == query.match(rows).to_arrow().num_rows > 0
    work = matches.work
    assert work.made > 0
    assert work.steps > 0
    assert 0 < work.peak <= work.made
    assert (work.merged == 0) if merge == "none" else (work.merged <= work.made)
