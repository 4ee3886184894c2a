"""Learning while the stream runs: samples tests for a learner, matches a cohort beside the run, scores runs anew."""

from __future__ import annotations

import time
from base64 import b64decode, b64encode
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from acep_approx.budget.ledger import Rescoring
from acep_approx.learning.learner import Learner
from acep_approx.learning.learner_state import learner_of, learner_to_bytes
from acep_approx.learning.sampling import Sampler
from acep_approx.ranges import COUNT, finite, number_in
from acep_approx.training.pricing import LEAST_PRICE, first_price

if TYPE_CHECKING:
    from acep_approx.budget.ledger import Piece
    from acep_approx.engines.batches import RunEvents
    from acep_approx.engines.runs.shedding import Shedding
    from acep_approx.engines.runs.worth import Worth
    from acep_approx.events.stream import EventBatch
    from acep_approx.learning.cohort import Beside, Outcomes
    from acep_approx.learning.training_sample import TrainingSample


class OnlineLearning:
    """Learns what runs are worth from the run that sheds them.

    Parameters
    ----------
    arena : Shedding
        Of the engine; bound.
    learner : Learner
    beside : Beside
        What is matched exactly beside the run.
    counts_runs : bool, default False
        Whether the budget is a number of runs: then places are taken until there are none.

    Attributes
    ----------
    rescored : list of Rescoring
        When what is learned has changed what runs are worth.
    seconds : float
        How long learning took.
    """

    def __init__(
        self,
        arena: Shedding,
        learner: Learner,
        beside: Beside,
        *,
        counts_runs: bool = False,
    ) -> None:
        self.arena = arena
        self.learner = learner
        self.beside = beside
        self.counts_runs = counts_runs
        self.rescored: list[Rescoring] = []
        self.seconds = 0.0
        self.sampler = Sampler(arena, learner.reader)
        self.sampler.sample(learner.sample_size.shares)
        self._latest: RunEvents
        self._waiting = self._found = 0  # events since it last did, and match points by then

    def count(self, events: RunEvents) -> None:
        """These events come, that runs are tested with."""
        self.sampler.count(events)
        self._latest = events

    def end_piece(self, batch: EventBatch, rate: float, spare: float, found: int, *, is_relevant: bool) -> None:
        """A piece of the stream is done: let the learner process what was sampled, if it is worth it.

        Parameters
        ----------
        batch : EventBatch
        rate : float
            Run-steps that are granted per event.
        spare : float
            See ``Shedding.spare``: as it was before the piece was paid for.
        found : int
            Match points so far.
        is_relevant : bool
            Whether any of its events has a letter.
        """
        self._waiting += len(batch)
        if not is_relevant:
            return
        begun = time.perf_counter()
        self.beside.push(batch, self._latest, rate)
        learner, tick = self.learner, int(batch.ticks[-1])
        held_until = learner.check_promise(self._waiting, found, tick)
        has_many = self.arena.tables.scalars.columns.texts.has_many
        if held_until is not None or has_many or self._waiting >= learner.most_events:
            self._learn(tick, rate, spare, found, held_until)
        if held_until is not None:
            worth = learner.worth()  # runs are kept at random from here on
            self._take_up(worth, first_price(worth, learner.share))
        self.seconds += time.perf_counter() - begun

    def _learn(self, tick: int, rate: float, spare: float, found: int, held_until: int | None) -> None:
        """Have the learner process what was sampled, and ask it for what runs are worth if enough is new."""
        learner, arena = self.learner, self.arena
        sample, outcomes = self._take(tick, found)
        learner.process(sample, outcomes, held_until)
        learner.sample_size.adapt(sample, learner.relevant_ahead)
        if learner.is_due():
            rescored = learner.rescore(arena.allowance.price * arena.factor, rate, spare)
            if rescored is not None:
                self._take_up(*rescored)
        self.sampler.sample(learner.sample_size.shares)

    def _take(self, tick: int, found: int) -> tuple[TrainingSample, Outcomes]:
        """What was seen since the last call: of the run, and of the cohort."""
        sample = self.sampler.take(self._waiting, tick, found - self._found)
        self._waiting, self._found = 0, found
        return sample, self.beside.outcomes()

    def _take_up(self, worth: Worth, price: float) -> None:
        """From here on runs are worth something else, and kept from a score of ``price`` on."""
        arena = self.arena
        if self.counts_runs:
            price = LEAST_PRICE
        arena.allow(replace(arena.allowance, price=price / arena.factor, elasticity=1.0))
        arena.rescore(worth)

    def note(self, piece: Piece) -> None:
        """Write down where the run stands, if runs have just been scored anew."""
        if len(self.learner.refreshes) > len(self.rescored):
            self.rescored.append(
                Rescoring(
                    tick=piece.tick,
                    events=piece.events,
                    points=piece.points,
                    tests=self.learner.sample_size.rows,
                    work=piece.work,
                    explored=self.beside.steps,
                    alarms=len(self.learner.alarms),
                )
            )

    def finish(self) -> None:
        """The stream has ended: what became of the rest of the cohort."""
        self.beside.finish()
        self.learner.add_outcomes(self.beside.outcomes())

    def full_work(self, events: int) -> float | None:
        """Run-steps per event of the exact run, after so many events: by the cohort, else by the learner if it can."""
        known = self.beside.full_work(events)
        if known is not None or self.learner.ranking is None:
            return known
        return float(self.learner.demand()[1].sum())

    # --- state ----------------------------------------------------------------------------------------------

    def snapshot(self) -> dict[str, Any]:
        """What must be kept to go on elsewhere, as JSON.

        Complexity: O(tests that are kept + history graph + open windows of the cohort).
        """
        parts = {
            "sampled": self.sampler.to_bytes(),  # before the learner: it may know new texts then
        }
        header = {
            "rescored": [asdict(one) for one in self.rescored],
            "waiting": self._waiting,
            "found": self._found,
            "price": self.arena.allowance.price,
            "elasticity": self.arena.allowance.elasticity,
        }
        parts["learner"] = learner_to_bytes(self.learner, header)
        return {name: b64encode(part).decode() for name, part in parts.items()}

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from what ``snapshot`` gave, by one that has just been made for the same query and columns.

        Call it before the arena is restored: runs are worth what they were.

        Raises
        ------
        ValueError
            It was another query, or other features.
        """
        parts = {name: b64decode(part) for name, part in saved.items()}
        header = learner_of(parts["learner"], self.learner)
        self.sampler.restore(parts["sampled"])
        self._waiting, self._found = (number_in(name, header[name], 0, COUNT) for name in ("waiting", "found"))
        self.rescored = [Rescoring(**one) for one in header["rescored"]]
        for one in self.rescored:
            finite("rescored", *vars(one).values())
        finite("price", header["price"], header["elasticity"])
        if self.learner.refreshes:
            self.arena.rescore(self.learner.worth())
            price, elasticity = header["price"], header["elasticity"]
            self.arena.allow(replace(self.arena.allowance, price=price, elasticity=elasticity))
