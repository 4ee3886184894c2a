"""Says when the brokers of a topic are lost, that they still are, and when they answer again."""

from __future__ import annotations

import logging
import time
from math import inf

LOG = logging.getLogger("acep_approx.live")
AGAIN = 30.0
"""Seconds between two lines about the same outage."""
FORGOTTEN = 60.0
"""Seconds after which an error that has not come in the meantime is said again."""


class Outages:
    """Says when brokers are lost, and found again; each outage for itself.

    Parameters
    ----------
    brokers : str
        For messages.

    Attributes
    ----------
    since : float or None
        When the outage has begun, by ``time.monotonic``. None: brokers answer.
    last_error : str
        What the client has said last.
    """

    def __init__(self, brokers: str) -> None:
        self.since: float | None = None
        self.last_error = ""
        self._brokers = brokers
        self._said = 0.0
        self._seen: dict[str, float] = {}

    def failed(self, name: str, words: str, *, is_outage: bool) -> None:
        """Something is wrong, and the client goes on trying.

        Parameters
        ----------
        name : str
            Of the error: it is said once, and once more for each outage.
        words : str
        is_outage : bool
            Whether no broker can be reached.
        """
        now = time.monotonic()
        self.last_error = words
        is_new = is_outage and self.since is None
        if is_new:
            self.since = self._said = now
        if is_new or now - self._seen.get(name, -inf) >= FORGOTTEN:
            LOG.warning("Kafka: %s; trying again", words)
        self._seen[name] = now

    def goes_on(self) -> None:
        """Time passes."""
        now = time.monotonic()
        if self.since is not None and now - self._said >= AGAIN:
            self._said = now
            LOG.warning("Kafka: no answer from %s for %.0f s; trying again", self._brokers, now - self.since)

    def answered(self, asked: float) -> None:
        """A broker has answered what it was asked at a time."""
        if self.since is not None and asked > self.since:
            LOG.warning("Kafka: connected again after %.0f s", time.monotonic() - self.since)
            self.since = None
