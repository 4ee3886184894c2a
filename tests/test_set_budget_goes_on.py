"""Sets of queries inside a load budget that are killed, and go on: as if nothing had happened."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from acep_approx import DataError, Histories, QuerySet
from acep_approx.shedding.purse import Account, Purse
from acep_approx.subscriptions.templates.member import TemplateMember
from acep_approx.training.histories import digest
from tests.budgeted_sets import Rows, stream
from tests.cases import cases
from tests.command_line import acep

WIDE = "PATTERN SEQ(A a, A b, B c) WHERE b.x > a.x AND c.x > b.x WITHIN 40"
KEYED = "PATTERN SEQ(A a, A b, C c) WHERE [k] AND b.x <> a.x AND c.x >= b.x WITHIN 50"
MANY = "PATTERN SEQ(A a, A b, B c) WHERE a.x > :p AND b.x <> a.x AND c.x <> a.x + b.x WITHIN 40"
BUDGETS = ("10%", "30%", "4 steps/event", "25 runs")
HEADER = "ts,type,k,x\n"
pytestmark = [
    pytest.mark.filterwarnings("ignore::acep_approx.errors.FewPointsWarning"),
    pytest.mark.usefixtures("one_reading"),
]


def filled(desk: QuerySet) -> QuerySet:
    desk.add(WIDE, id="wide", weight=3)
    desk.add(KEYED, id="keyed")
    desk.add_many(MANY, [{"p": p} for p in range(4)], id="many")
    return desk


@pytest.fixture(scope="module")
def known() -> Histories:
    return filled(QuerySet(output="points")).train(stream(1, 300))


def pushes(desk: QuerySet, parts: list[Rows], kill: Any = lambda desk: desk) -> Iterator[Any]:
    """What comes of each part, and then of the end; between any two of them it may be killed."""
    for part in parts:
        desk = kill(desk)
        yield desk.push(part).to_arrow().to_pylist()
    desk = kill(desk)
    yield desk.finish().to_arrow().to_pylist()
    yield replace(desk.record(), seconds=0)


def in_parts(dice: Random, events: Rows) -> list[Rows]:
    cuts = sorted([0, 0, len(events), *(dice.randrange(len(events)) for _ in range(8))])
    return [events[first:last] for first, last in pairwise(cuts)]


@pytest.mark.parametrize("seed", range(cases(120, 4)))
def test_killed_between_any_two_pushes_is_as_if_never_killed(seed: int, known: Histories, tmp_path: Path) -> None:
    dice = Random(seed)
    how: dict[str, Any] = {"budget": dice.choice(BUDGETS), "audit": dice.choice((0, 0.05, 0.2)), "seed": seed}
    how["history"] = known if how["budget"].endswith("%") or dice.randrange(2) else None
    parts = in_parts(dice, stream(seed, dice.choice((200, 900))))
    saved = None if how["history"] is None else known.save(tmp_path / "known")

    def made() -> QuerySet:
        return filled(QuerySet(output="points", **how))

    def killed(desk: QuerySet) -> QuerySet:
        state = desk.state_bytes()
        if dice.randrange(2):
            return QuerySet.from_state(state, history=saved)
        return made().take_up(state)

    assert [*pushes(made(), parts, killed)] == [*pushes(made(), parts)]


def test_what_a_state_leaves_out_is_noticed(known: Histories, monkeypatch: pytest.MonkeyPatch) -> None:
    def made() -> QuerySet:
        return filled(QuerySet(output="points", budget="10%", history=known))

    parts = in_parts(Random(2), stream(2, 600))
    restored = Purse.restored

    def without_parts(purse: Purse) -> None:
        restored(purse)
        for one in purse.accounts.values():
            one.part = one.shedder.part = 1.0

    monkeypatch.setattr(Purse, "restored", without_parts)
    wrong = [*pushes(made(), parts, lambda desk: made().take_up(desk.state_bytes()))]
    assert wrong != [*pushes(made(), parts)]


def test_another_history_is_refused_by_name(known: Histories, tmp_path: Path) -> None:
    desk = filled(QuerySet(output="points", budget="10%", history=known))
    desk.push(stream(3, 60))
    state, whole = desk.state_bytes(), known.save(tmp_path / "known")
    other = filled(QuerySet(output="points")).train(stream(9, 120))
    names = list(known)
    refused = (
        (None, "with a history, which is not in it"),
        (other, r"a history of .* .never saved, learned from [\d,]+ events., and another one is given"),
        (Histories({name: known.of(plan_of(desk, name), name) for name in names[1:]}), "which is not in it"),
    )
    for given, words in refused:
        with pytest.raises(DataError, match=words) as error:
            QuerySet.from_state(state, history=given)
        assert error.value.code == "ACEP-D048"
    desk = QuerySet(output="points", budget="9 runs")
    desk.add(WIDE, id="wide")
    desk.push(stream(3, 60))
    again = QuerySet(output="points", budget="9 runs", history=whole)
    again.add(WIDE, id="wide")
    with pytest.raises(DataError, match="without a history of 'wide', and one is given"):
        again.take_up(desk.state_bytes())


def plan_of(desk: QuerySet, name: str) -> Any:
    return next(one.shedder.plan for one in purse(desk).accounts.values() if one.shedder.known_as == name)


def purse(desk: QuerySet) -> Purse:
    load = desk._running.load
    assert isinstance(load, Purse)
    return load


def test_a_history_is_known_by_what_it_has_learned(known: Histories, tmp_path: Path) -> None:
    desk = filled(QuerySet(output="points", budget="10%", history=known))
    desk.push(stream(3, 60))
    saved = Histories.load(known.save(tmp_path / "known"))
    accounts: list[Account] = [*purse(desk).accounts.values()]
    mine = [one.shedder.load.history for one in accounts]
    theirs = [saved.of(one.shedder.plan, one.shedder.known_as) for one in accounts]
    assert [digest(one) for one in mine if one] == [digest(one) for one in theirs if one]
    assert len({digest(one) for one in mine if one}) == len(known) == 3


def test_an_order_of_slots_that_is_none_is_refused() -> None:
    desk = filled(QuerySet(output="points", budget="9 steps/event"))
    desk.push(stream(3, 120))
    levels = desk._running.levels
    assert levels is not None
    pairing = next(one.side.runs.pairing for one in levels.members.values() if isinstance(one, TemplateMember))
    after, free = pairing.order().values()
    pairing.take_order(after, free)
    live = pairing.live()
    assert (after[live] >= 0).any()
    first, circle, twice = live[after[live] >= 0][0], after.copy(), after.copy()
    circle[first] = first
    twice[live[-1]] = after[first]
    for wrong in ((circle, free), (twice, free), (after, np.append(free, live[0])), (np.full(len(after), -1), free)):
        with pytest.raises(DataError, match="ACEP-D040"):
            pairing.take_order(*wrong)
    assert pairing.order()["slot_next"].tolist() == after.tolist()


# --- the command ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of queries by themselves, which shed the same in any split; what was learned of the past, and events."""
    made = tmp_path_factory.mktemp("home")
    (made / "queries").mkdir()
    (made / "queries" / "wide.acep").write_text(f"-- weight: 3\n{WIDE}")
    (made / "queries" / "keyed.acep").write_text(KEYED)
    for name, seed, rows in (("past", 1, 300), ("other", 9, 120), ("now", 2, 900)):
        (made / f"{name}.csv").write_text(HEADER + lines(stream(seed, rows)))
    for past, known in (("past", "known"), ("other", "others")):
        acep("train", "--queries", str(made / "queries"), str(made / f"{past}.csv"), "-o", str(made / known), "-q")
    return made


@pytest.fixture
def folder(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One like it."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(home, tmp_path, dirs_exist_ok=True)
    return tmp_path


def lines(events: Rows) -> str:
    return "".join(",".join(map(str, event.values())) + "\n" for event in events)


LIVE = ("run", "--queries", "queries", "now.csv", "--output", "points", "--follow", "--until-idle", "0 s")
WITHIN = ("--budget", "10%", "--history", "known")
KEPT = ("--checkpoint", "cp", "--checkpoint-every", "1 ms", "-o", "found.jsonl")


def said_of_budget(stderr: str) -> list[str]:
    """What is said of the budget; not how long it took, and how many events this process has read."""
    text = stderr[stderr.index("budget of 10%") :]
    return [line.split(";")[0] if " s" in line else line for line in text.splitlines()]


def test_a_run_that_fails_anywhere_goes_on_as_if_it_had_not(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from acep_approx.events.writing.outfile import GrowingFile
    from acep_approx.live.checkpoint import CheckpointFolder

    class Killed(BaseException):
        """As if the process was gone."""

    dice, left, times = Random(4), [0], 0

    def step() -> None:
        left[0] -= 1
        if left[0] == 0:
            raise Killed

    write, length = CheckpointFolder.write, GrowingFile.length
    monkeypatch.setattr("acep_approx.events.live.growing.BLOCK_BYTES", 300)
    wanted = acep(*LIVE, *WITHIN, "-o", "whole.jsonl").stderr
    monkeypatch.setattr(CheckpointFolder, "write", lambda *given: (step(), write(*given), step()))
    monkeypatch.setattr(GrowingFile, "length", lambda self: (step(), length(self), step())[1])
    while True:
        left[0] = dice.randrange(3, 12) if times < 5 else 0
        try:
            done = acep(*LIVE, *WITHIN, *KEPT, "--finish")
            break
        except Killed:
            times += 1
    assert times == 5
    assert (folder / "found.jsonl").read_bytes() == (folder / "whole.jsonl").read_bytes()
    assert said_of_budget(done.stderr) == said_of_budget(wanted)


def test_a_run_goes_on_with_the_same_histories_and_budget_only(folder: Path) -> None:
    acep(*LIVE, *WITHIN, *KEPT)
    with (folder / "now.csv").open("a") as file:
        file.write("9999,A,u,1\n")
    for more, code, words in (
        (("--budget", "10%", "--history", "others"), "ACEP-D048", "and another one is given (version 1"),
        (("--budget", "10%", "--full-work", "9"), "ACEP-D064", "full_work was None, and is 9.0"),
        (("--budget", "20%", "--history", "known"), "ACEP-D064", "budget was '10%', and is '20%'"),
        ((), "ACEP-D064", "budget was '10%', and is None"),
    ):
        stderr = " ".join(acep(*LIVE, *more, *KEPT, code=4).stderr.split())
        assert code in stderr
        assert words in stderr
    (folder / "known").rename(folder / "moved")
    acep(*LIVE, "--budget", "10%", "--history", "moved", *KEPT, "--finish")
    stderr = acep(*LIVE, *WITHIN, "--checkpoint", "new", "--shed", "shed.csv", code=2).stderr
    assert "--shed does not go with --checkpoint" in " ".join(stderr.split())
