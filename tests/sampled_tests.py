"""A stream, a query about sums, and the tests that an exact run of it writes down."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from acep_approx import Query
from acep_approx.api.matcher import Matcher
from acep_approx.engines.runs.load_shedder import FixedLoad
from acep_approx.engines.runs.runs import Runs
from acep_approx.engines.runs.shedding import Shedding
from acep_approx.engines.runs.worth import Allowance
from acep_approx.learning.sampling import SampleReader
from acep_approx.learning.training_sample import SampledTests

SUMS = "PATTERN SEQ(A a, B b, C c) WHERE a.id = b.id AND a.x + b.x < c.x WITHIN 60"


def stream(events: int, seed: int) -> pa.Table:
    """Three types in any order; x from 0 to 9, id from 0 to 3."""
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "ts": np.arange(events),
            "type": np.array(list("ABC"))[rng.integers(0, 3, events)],
            "id": rng.integers(0, 4, events),
            "x": rng.integers(0, 10, events),
        }
    )


def sampled(
    query: Query, table: pa.Table, share: float, *, seed: int = 0, merge: str = "none", pieces: int = 1
) -> tuple[SampleReader, SampledTests, Matcher]:
    """Tests of an exact run, and what reads them; passed ones at all events."""
    shedding = Shedding(None, Allowance(seed=seed))
    matcher = Matcher(query.plan, output="matches", merge=merge, shedding=FixedLoad(shedding))
    engine = matcher.bind(table.schema).engine
    assert isinstance(engine, Runs)
    passed = np.ones(len(engine.tables.pools))
    shedding.sample_tests(share, passed)
    size = max(-(-len(table) // pieces), 1)
    found = []
    reader = SampleReader(engine.tables)
    for first in range(0, max(len(table), 1), size):
        matcher.push(table.slice(first, size))
        found.append(reader.read(shedding.take_sample(), share, passed, shedding.keys_now()))
    return reader, SampledTests.joined(found), matcher
