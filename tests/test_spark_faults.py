"""A streaming job among faults, simulated: a seed says what befalls it, and its promises hold all the same.

A schedule that fails says which command repeats it. A hundred are run by default, so chosen that all that can befall a
job does, and that each mutant is shown; ``ACEP_CASES=full`` runs ten thousand.
"""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest

from tests.cases import FULL
from tests.spark_faults import Faults, Killed
from tests.spark_mutants import MUTANTS, Mutant
from tests.spark_schedules import EXACT, LEARNING, PROGRAMS, RANDOM, SPLIT, STREAMS, local, run_schedule, unbroken

SCHEDULES = {EXACT: (4000, 40), LEARNING: (1300, 18), SPLIT: (1500, 20), RANDOM: (1200, 15)}
SCHEDULES |= dict.fromkeys(PROGRAMS, (500, 14))
"""How many there are of each sort, and how many of them are run by default."""
RARE = {EXACT: (53, 66, 71), LEARNING: (41, 53, 59, 62, 82, 95, 118), SPLIT: (20, 32, 39), RANDOM: (16, 20, 27, 39)}
"""Schedules in which there is what is seldom in others: they are run besides."""
ONE = os.environ.get("ACEP_SCHEDULE")
REPEAT = "repeat it: ACEP_SCHEDULE={} pytest tests/test_spark_faults.py -k 'faults and {}'"
MOST_SCHEDULES = 200
"""In which a mutant is noticed."""


# --- what must have happened, or a run of schedules tells nothing of it -----------------------------------------------

MANY = {"torn while written", "done twice", "cut otherwise", "task done twice"} | {
    f"killed before {where}"
    for where in (
        "Spark logs the offsets", "Spark commits", "a worker keeps its state", "os.mkdir _temporary",
        "open part-#", "os.rename part-#", "open _SUCCESS", "os.mkdir batch=#",
    )
}  # fmt: skip
WEIGHTS = {f"{what} weights.json" for what in ("killed before os.rename", "stale", "late")} | {
    "killed before open .weights.json-#",
    "weights.json damaged",
}
LEARNED = (
    {f"killed before os.rename {name}" for name in ("shares.json", "learner.bin", "began.json", "v#", "LATEST")}
    | {f"killed before open .{name}-#" for name in ("shares.json", "learner.bin", "LATEST")}
    | {f"killed before open {name}" for name in ("maps.npz", "learned.npz", "manifest.json")}
    | {f"{name} damaged" for name in ("shares.json", "learner.bin", "began.json")}
    | {f"{what} {name}" for what in ("stale", "late") for name in ("shares.json", "learner.bin")}
    | {"stale LATEST", "a version that is late or torn"}
    | {"a worker that outlived a driver", "killed before os.mkdir .draft"}
)
EXPECTED = {
    EXACT: MANY | {"rows lost and made again"},
    RANDOM: MANY | {"rows lost and made again"},
    SPLIT: MANY | WEIGHTS,
    LEARNING: MANY | WEIGHTS | LEARNED,
    **{sort: {"done twice", "cut otherwise"} for sort in PROGRAMS},
}


# --- promises ---------------------------------------------------------------------------------------------------------


def schedules(sort: str) -> Sequence[int]:
    """All, or some, among them those that show a mutant."""
    if ONE is not None:
        return [int(ONE)]
    every, some = SCHEDULES[sort]
    shown = {SHOWN_BY.get(mutant.__name__, 0) for mutant, its in MUTANTS.items() if its == sort}
    return range(every) if FULL else sorted({*range(some), *RARE.get(sort, ()), *shown})


@pytest.mark.slow
@pytest.mark.parametrize("sort", SCHEDULES)
def test_promises_hold_among_faults(sort: str, caplog: pytest.LogCaptureFixture) -> None:
    counts: Counter[str] = Counter()
    seeds = schedules(sort)
    for seed in seeds:
        try:
            with caplog.at_level(logging.WARNING):
                run_schedule(seed, counts, sort)
            assert "could not be refreshed" not in caplog.text, "learning has come to an end"
        except Exception as error:
            error.add_note(REPEAT.format(seed, sort))
            raise
        caplog.clear()
    print({what: counts[what] for what in sorted(counts)})
    if ONE is None:
        assert EXPECTED[sort] <= {what for what, number in counts.items() if number}
        assert counts["killed"] > len(seeds)
        assert counts["matches"] > len(seeds) // 2


def test_an_unbroken_simulation_finds_what_a_local_run_does() -> None:
    left_out = 0
    for seed in range(STREAMS):
        matches, late = local(seed)
        assert unbroken(EXACT, seed)[0] == matches
        assert unbroken(EXACT, seed)[1].total() == len(late)
        left_out += len(late)
    assert left_out > 2 * STREAMS


# --- the simulation can fail ------------------------------------------------------------------------------------------


SHOWN_BY = {
    "left_overs_stay": 1104,
    "every_time_is_learned_from": 121,
    "counts_are_not_kept": 4,
    "the_pointer_is_written_in_place": 95,
    "a_version_is_pointed_to_before_it_is_there": 3,
    "workers_want_what_is_pointed_to": 2,
    "a_surplus_is_for_anybody": 36,
}
"""The first schedule that showed a mutant, where it is not number 0: it is looked at first."""


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_mutant_is_noticed(mutant: Mutant) -> None:
    sort = MUTANTS[mutant]
    assert any(is_noticed(mutant, sort, seed) for seed in (SHOWN_BY.get(mutant.__name__, 0), *range(MOST_SCHEDULES)))


def is_noticed(mutant: Mutant, sort: str, seed: int) -> bool:
    """Whether a schedule fails that the real code passes."""
    run_schedule(seed, Counter(), sort)
    with mutant():
        try:
            run_schedule(seed, Counter(), sort)
        except Exception:  # noqa: BLE001
            return True
    return False


def test_a_schedule_can_be_repeated() -> None:
    for sort in (EXACT, LEARNING):
        first, second = Counter[str](), Counter[str]()
        for counts in (first, second):
            run_schedule(5, counts, sort)
        assert first == second


def test_a_process_that_is_killed_writes_nothing_any_more(tmp_path: Path) -> None:
    faults, place = Faults(tmp_path, Random(1)), tmp_path / "some"

    def write() -> None:
        with faults.watching(1):
            place.write_bytes(b"whole")
            try:
                place.replace(tmp_path / "other")
            finally:
                (tmp_path / "cleaned up").mkdir()

    with pytest.raises(Killed):
        write()
    assert [entry.name for entry in tmp_path.iterdir()] == ["some"]
    assert faults.counts["killed before os.rename other"] == 1
    place.write_bytes(b"by nobody who is watched")
