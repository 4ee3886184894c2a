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
    """

    def __init__(self, brokers: str) -> None:
        self.since: float | None = None
        self._brokers = brokers
        self._said = 0.0
        self._seen: dict[str, float] = {}

    def failed(self, name: str, words: str) -> None:
        """Something is wrong, and the client goes on trying: it is said once.

        Parameters
        ----------
        name : str
            Of the error.
        words : str
        """
        now = time.monotonic()
        if now - self._seen.get(name, -inf) >= FORGOTTEN:
            LOG.warning("Kafka: %s; trying again", words)
        self._seen[name] = now

    def lost(self, since: float) -> None:
        """No broker can be reached since a time."""
        if self.since is None:
            self.since, self._said = since, time.monotonic()
            LOG.warning("Kafka: no broker of %s answers; trying again", self._brokers)

    def goes_on(self) -> None:
        """Time passes."""
        now = time.monotonic()
        if self.since is not None and now - self._said >= AGAIN:
            self._said = now
            LOG.warning("Kafka: no broker of %s has answered for %.0f s; trying again", self._brokers, now - self.since)

    def answered(self, asked: float) -> None:
        """A broker has answered what it was asked at a time."""
        if self.since is not None and asked > self.since:
            LOG.warning("Kafka: connected again after %.0f s", time.monotonic() - self.since)
            self.since = None
