"""What brokers say of a topic while it is read: which one it is, its partitions; when they are lost and found."""

from __future__ import annotations

import logging
import time
from concurrent.futures import Future
from dataclasses import dataclass
from math import inf
from typing import Any

EVERY = 0.5
"""Seconds between two questions."""
ANSWER = 5.0
"""Seconds after which a question is given up."""
PATIENCE = 1.0
"""Seconds for which messages wait for an answer that is due."""
NO_ID = "AAAAAAAAAAAAAAAAAAAAAA"
"""What brokers say that give topics no ids."""
LOG = logging.getLogger("acep_approx.live")
AGAIN = 30.0
"""Seconds between two lines about the same outage."""
FORGOTTEN = 60.0
"""Seconds after which an error that has not come in the meantime is said again."""


@dataclass(frozen=True)
class Description:
    """A topic as a broker describes it.

    Parameters
    ----------
    id : str or None
        No two topics have the same, not even two of one name, one after the other. None: the broker gives none.
    partitions : tuple of int
        Their numbers, ascending; none: there is no such topic.
    asked : float
        When the question was sent, by ``time.monotonic``.
    """

    id: str | None
    partitions: tuple[int, ...]
    asked: float


class TopicWatch:
    """Asks a broker what a topic is, twice a second, and does not wait for the answer.

    Parameters
    ----------
    topic : str
        Its name.
    settings : dict of str to str
        Of the client.

    Attributes
    ----------
    unanswered_since : float or None
        When the first question was sent that has no answer, by ``time.monotonic``. None: all have one.
    """

    def __init__(self, topic: str, settings: dict[str, str]) -> None:
        from confluent_kafka.admin import AdminClient

        self._topic = topic
        silent: dict[str, Any] = {**settings, "error_cb": lambda _: None}  # the client that reads says the same
        self._client = AdminClient(silent)
        self._question: Future[Any] | None = None
        self._asked = 0.0
        self._answered = 0.0  # when the question was sent that was answered last
        self._is_slow = False
        self.unanswered_since: float | None = None

    def first(self) -> Description | None:
        """The topic as it is now. None: it cannot be told."""
        self._ask()
        return self._answer(ANSWER)

    def look(self, max_age: float | None = None) -> Description | None:
        """What a broker has said since it was asked last. None: nothing.

        Parameters
        ----------
        max_age : float, optional
            Seconds: if what is known is older, an answer is waited for, though not for long.
        """
        now = time.monotonic()
        found = self._answer(0)
        is_old = max_age is not None and now - self._answered > max_age and not self._is_slow
        if self._question is None and (is_old or now - self._asked >= EVERY):
            self._ask()
        return self._answer(PATIENCE) or found if is_old else found

    def _ask(self) -> None:
        from confluent_kafka import TopicCollection

        self._asked = time.monotonic()
        self.unanswered_since = self.unanswered_since or self._asked
        asked = self._client.describe_topics(TopicCollection([self._topic]), request_timeout=ANSWER)
        self._question = asked[self._topic]

    def _answer(self, wait: float) -> Description | None:
        from confluent_kafka import KafkaError, KafkaException

        if self._question is None or not (wait or self._question.done()):
            return None
        try:
            found = self._question.result(wait)
        except TimeoutError:
            self._is_slow = True
            return None
        except KafkaException as error:
            self._question = None
            if error.args[0].code() not in (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.UNKNOWN_TOPIC_ID):
                return None
            described = Description(None, (), self._asked)
        else:
            self._question = None
            name = str(found.topic_id)
            numbers = tuple(sorted(one.id for one in found.partitions))
            described = Description(None if name == NO_ID else name, numbers, self._asked)
        self._is_slow, self._answered, self.unanswered_since = False, self._asked, None
        return described


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
