"""A streaming job among faults, simulated: a seed says what befalls it, and its promises hold all the same.

A schedule that fails says which command repeats it. ``ACEP_CASES=full`` runs ten thousand of them.
"""

from __future__ import annotations

import logging
import os
from collections import Counter

import pytest

from tests.cases import FULL
from tests.spark_schedules import EXACT, LEARNING, RANDOM, STREAMS, local, run_schedule, unbroken

SCHEDULES = {sort: number * 10 if FULL else number for sort, number in ((EXACT, 500), (LEARNING, 350), (RANDOM, 150))}
ONE = os.environ.get("ACEP_SCHEDULE")
REPEAT = "repeat it: ACEP_SCHEDULE={} pytest tests/test_spark_faults.py -k 'faults and {}'"


def run_schedules(sort: str, caplog: pytest.LogCaptureFixture) -> Counter[str]:
    """Run all schedules of a sort, or the one that was asked for."""
    counts: Counter[str] = Counter()
    for seed in range(SCHEDULES[sort]) if ONE is None else [int(ONE)]:
        try:
            run_schedule(seed, counts, sort)
            assert "could not be refreshed" not in caplog.text, "learning has come to an end"
        except Exception as error:
            error.add_note(REPEAT.format(seed, sort))
            raise
        caplog.clear()
    print({what: counts[what] for what in sorted(counts)})
    return counts


def test_an_unbroken_simulation_finds_what_a_local_run_does() -> None:
    left_out = 0
    for seed in range(STREAMS):
        found, late = unbroken(EXACT, seed)
        assert found == local(seed)[0]
        assert late.total() == len(local(seed)[1])
        left_out += late.total()
    assert left_out > STREAMS


@pytest.mark.slow
@pytest.mark.parametrize("sort", SCHEDULES)
def test_promises_hold_among_faults(sort: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        counts = run_schedules(sort, caplog)
    if ONE is None:
        happened = {what for what, number in counts.items() if number}
        assert not EXPECTED[sort] - happened
        assert counts["killed"] >= SCHEDULES[sort] // 2
        assert counts["matches"] > SCHEDULES[sort] // 2


KILLED = {
    f"killed before {where}"
    for where in (
        "Spark logs the offsets", "Spark commits", "a worker keeps its state", "os.mkdir _temporary",
        "open part-#", "os.rename part-#", "open _SUCCESS", "os.mkdir batch=#",
    )
}  # fmt: skip
MANY = KILLED | {"torn while written", "done twice", "cut otherwise", "task done twice", "rows lost and made again"}
EXPECTED = {
    EXACT: MANY,
    RANDOM: MANY,
    LEARNING: MANY
    | {f"killed before os.rename {name}" for name in ("weights.json", "shares.json", "learner.bin", "v#", "LATEST")}
    | {f"killed before open .{name}-#" for name in ("weights.json", "shares.json", "learner.bin", "LATEST")}
    | {f"killed before open {name}" for name in ("maps.npz", "learned.npz", "manifest.json")}
    | {f"{name} damaged" for name in ("weights.json", "shares.json", "learner.bin", "began.json")}
    | {f"stale {name}" for name in ("weights.json", "shares.json", "LATEST")}
    | {"late weights.json", "late shares.json", "a version that is late or torn", "a worker that outlived a driver"},
}
"""Faults that must have happened in a run of schedules, or it tells nothing of them."""
