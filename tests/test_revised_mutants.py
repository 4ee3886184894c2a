"""Variants of revisions that are known to be wrong: the net law must notice each of them on a fixed set of schedules.

Segments are short, and there is little room between events, so that schedules of some dozen events reach all paths.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import pytest

from acep_approx import compile_query
from acep_approx.engines.runs.runs import RunsSnapshot
from acep_approx.events.keys import KeyCodes
from acep_approx.matching.pipeline import Pipeline
from acep_approx.matching.snapshots import QuerySnapshot
from acep_approx.revisions import final, replay
from acep_approx.revisions.replay import Replay
from acep_approx.revisions.segments import Tail
from tests.cases import cases
from tests.revised_model import Ledger
from tests.revised_mutants import MUTANTS, SHOWN_BY, noticed
from tests.revised_small import ONCE_WRONG, RARE, check, small, told

SEEDS = (*range(-cases(400, 18), cases(1000, 20)), *dict.fromkeys((*RARE, *ONCE_WRONG, *SHOWN_BY.values())))
"""Each schedule that shows a mutant is among them."""
MOST = 100
"""Schedules that a mutant may show itself in, should the known one not do it any more."""
CHUNKS = 10


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_the_package_itself_is_right(chunk: int) -> None:
    """Without a change nothing is noticed, so what is noticed below is the mutant's."""
    for seed in SEEDS[chunk::CHUNKS]:
        try:
            check(seed)
        except Exception as error:
            error.add_note(f"{told(seed).asked}\nrepeat it: tests.revised_small.check({seed})")
            raise


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_mutant_is_noticed(mutant: str) -> None:
    """What was put out is not the plain answer, or the variant crashes."""
    assert noticed(mutant, MOST) >= 0


def test_what_waits_is_known_after_a_restart_without_events() -> None:
    """A match waits for the next event of its key, all that may still change was taken back: it is not put out anew."""
    query = compile_query("PATTERN SEQ(A a, B b, ~(C c)) WHERE [g] WITHIN 4 events")
    ledger = Ledger()
    with small():
        matcher: Any = query.matcher(emit="early", id="id", op="op")
        for ts, kind, key, op in [(0, "A", "p", "+I"), (1, "B", "p", "+I"), (2, "B", "q", "+I"), (2, "B", "q", "-D")]:
            ledger.take(matcher.push([{"ts": ts, "type": kind, "g": key, "id": ts, "op": op}]))
        ledger.take(matcher.punctuate(2))
        matcher = query.from_state(matcher.state_bytes())
        ledger.take(matcher.push([{"ts": 9, "type": "B", "g": "q", "id": 9, "op": "+I"}]))
    assert list(ledger.net.values()) == [1]


def test_match_ids_do_not_change_with_what_else_is_put_out() -> None:
    """Other events without an id play no role."""
    query = compile_query("PATTERN SEQ(A a, B b) WHERE [g] WITHIN 5")
    found = []
    for other in (3, None):
        rows = [{"ts": i, "type": "AB"[i % 2], "g": "ppqq"[i], "id": i} for i in range(4)]
        table = query.matcher(emit="early", id="id", op=False).push([*rows[:3], {**rows[3], "id": other}])
        found.append(next(row["match_id"] for row in table.to_pylist() if row["g"] == "p"))
    assert found[0] == found[1]


PATHS: dict[str, tuple[Any, str]] = {
    "places made anew": (Replay, "_place_anew"),
    "segments begun": (Replay, "_begin_segment"),
    "changes": (Replay, "_run_again"),
    "segments run again": (Replay, "_run_active"),
    "snapshots renewed": (QuerySnapshot, "renew"),
    "links renumbered": (RunsSnapshot, "renumber"),
    "segments let go": (Tail, "pass_segments"),
    "windows of events cleared": (Pipeline, "forget_all_but"),
    "keys released": (KeyCodes, "release"),
    "restarts": (Replay, "take_up"),
}


def test_all_keys_may_run_again_together() -> None:
    """Whatever changes, where that is made to pay; long pushes are cut, too."""
    seen: Counter[str] = Counter()
    again = counting(seen, "again", Replay._append_again)
    with ExitStack() as stack:
        stack.enter_context(patch.object(Replay, "_append_again", again))
        for module, name, value in ((replay, "MORE", 0), (replay, "PER_KEY", 0), (replay, "BATCH_ROWS", 8)):
            stack.enter_context(patch.object(module, name, value))
        stack.enter_context(patch.object(final, "BATCH_ROWS", 8))
        for seed in (48, *SEEDS[::4]):  # 48: all events of a segment go
            check(seed)
    assert seen["again"] > 60


@contextmanager
def counted(seen: Counter[str]) -> Iterator[None]:
    """Count how often each path is taken."""
    with ExitStack() as stack:
        for path, (owner, name) in PATHS.items():
            stack.enter_context(patch.object(owner, name, counting(seen, path, getattr(owner, name))))
        yield


def counting(seen: Counter[str], path: str, real: Any) -> Any:
    """A function that says that it was called with something to do."""

    def call(*args: Any, **options: Any) -> Any:
        seen[path] += path != "keys released" or len(args[1]) > 0
        return real(*args, **options)

    return call


def test_schedules_reach_all_paths() -> None:
    """Each of them many times, though there are only some dozen events."""
    seen: Counter[str] = Counter()
    rows = 0
    with counted(seen):
        for seed in SEEDS:
            check(seed)
            rows += sum(told(seed).answers[-1][1].values())
    assert not {path: seen[path] for path in PATHS if seen[path] < 10}
    assert rows > 200
