"""Names of events are names: with any others, in any order, the same matches come, by these names.

What was first is told by the places of events within their keys, and by the rows in which they came.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acep_approx import Query, compile_query
from acep_approx.errors import AcepError
from acep_approx.events.source import open_source
from acep_approx.events.stream import read_events
from acep_approx.matching.renumber import renumbered, row_columns
from tests.cases import cases, examples
from tests.rich_worlds import RichWorld, rich_worlds
from tests.worlds import World, worlds

MOST = 2**44
OUTPUTS = ("matches", "points", "counts", "partial", "compressed")


def named_results(query: Query, output: str, table: pa.Table, ids: np.ndarray | None, dice: Random) -> list[pa.Table]:
    """What comes of a stream whose events have these names, in batches of a few events, some after a restart."""
    matcher = query.matcher(output=output)
    first, tables = 0, []
    while first < table.num_rows:
        part = table.slice(first, dice.randrange(1, 5))
        for batch in read_events(open_source(part), (matcher.pipeline or matcher.bind(part.schema)).roles):
            whole = replace(batch, first_row=first)
            tables += matcher.run(whole if ids is None else replace(whole, ids=ids[first : first + len(batch)]))
        first += part.num_rows
        if dice.randrange(3) == 0 and output != "compressed":
            matcher = query.from_state(matcher.state_bytes())
    if output == "compressed":
        return [matcher.pipeline.results.compressed(pa.concat_tables(tables)).expand()] if tables else []
    return [*tables, matcher.finish()] if table.num_rows else []


def with_names(world: World | RichWorld, engine: str, output: str, seed: int) -> None:
    """Hold the results by arbitrary names against those by rows."""
    dice = Random(seed)
    try:
        query = compile_query(world.text, engine=engine)
        query.matcher(output=output).bind(world.table().schema)
    except AcepError:  # another engine runs it, or another output
        return
    table = world.table()
    ids = np.array(dice.sample(range(MOST), table.num_rows), np.int64)
    order = np.argsort(ids)

    def row(names: np.ndarray) -> np.ndarray:
        return order[np.searchsorted(ids, names, sorter=order)]

    plain = named_results(query, output, table, None, Random(seed))
    named = named_results(query, output, table, ids, Random(seed))
    columns = row_columns(query.plan, "matches" if output == "compressed" else output)
    for one, other in zip(plain, named, strict=True):
        found, wanted = renumbered(other, columns, row).to_pylist(), one.to_pylist()
        if output == "compressed":  # of matches of one event, with as many errors, those of later names come first
            found, wanted = sorted(map(repr, found)), sorted(map(repr, wanted))
        assert found == wanted, (world.text, ids.tolist())


@pytest.mark.parametrize("output", OUTPUTS)
@settings(examples(400), max_examples=cases(400, 14))
@given(world=rich_worlds(), seed=st.integers(0, 2**32))
def test_runs_take_any_names(world: RichWorld, output: str, seed: int) -> None:
    with_names(world, "runs", output, seed)


@settings(examples(400), max_examples=cases(400, 14))
@given(world=rich_worlds(chooses=True), seed=st.integers(0, 2**32))
def test_matches_that_may_not_overlap_take_any_names(world: RichWorld, seed: int) -> None:
    with_names(world, "runs", "matches", seed)


@pytest.mark.parametrize("output", OUTPUTS[:3])
@settings(examples(400), max_examples=cases(400, 14))
@given(world=worlds(), seed=st.integers(0, 2**32))
def test_cells_take_any_names(world: World, output: str, seed: int) -> None:
    with_names(world, "cells", output, seed)
