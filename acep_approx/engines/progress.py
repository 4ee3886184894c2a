"""What a run has seen and done so far."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class RunProgress:
    """What has been seen and done so far.

    ``events`` in all, ``relevant`` to a letter, ``without_key`` (an equivalence attribute is NULL), the ``keys`` that
    have state, and ``keys_dropped`` since they had no event for too long: each time counts. Of the runs engine:
    ``steps`` (a run tested against an event), runs ``made``, of these ``merged`` with others, the most that lived at
    once (``peak``), those that ``live`` now, and those ``shed``. Of a search: the events
    that are ``kept`` now, and the most at once (``most_kept``).
    """

    events: int = 0
    relevant: int = 0
    without_key: int = 0
    keys: int = 0
    keys_dropped: int = 0
    steps: int = 0
    made: int = 0
    merged: int = 0
    peak: int = 0
    live: int = 0
    shed: int = 0
    kept: int = 0
    most_kept: int = 0

    def take(self, work: tuple[int, ...]) -> None:
        """Take over the numbers of ``Runs.work``."""
        self.steps, self.made, self.merged, self.peak, self.live, self.shed = work
