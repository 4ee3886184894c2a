"""What is in topics before a job reads them elsewhere: their partitions, and a sample of their messages."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from acep_approx.events.live.kafka import Topic
from acep_approx.events.live.kafka_address import KafkaAddress
from acep_approx.events.live.kafka_messages import as_line

MOST_MESSAGES = 10_000
"""Messages of all topics together that tell the types of columns."""
MOST_BYTES = 1 << 20
"""The same in bytes."""
PATIENCE = 30.0
"""Seconds for which messages of a topic are waited for that are there."""
POLL = 0.1


@dataclass(frozen=True)
class TopicSample:
    """What a broker says of topics.

    Parameters
    ----------
    ids : dict of str to (str or None)
        Of the topics, by name; None: the broker gives none.
    ends : dict of str to dict of int to int
        The next message of each partition that is read, when the broker was asked.
    lines : bytes
        Their first messages, one on a line, as ``as_line`` writes them.
    """

    ids: dict[str, str | None]
    ends: dict[str, dict[int, int]]
    lines: bytes


def sample_topics(addresses: Sequence[KafkaAddress], settings: dict[str, str]) -> TopicSample:
    """Read the first messages of topics; no consumer group gets to know of it.

    Parameters
    ----------
    addresses : sequence of KafkaAddress
    settings : dict of str to str
        Of the client.

    Raises
    ------
    UsageError, DataError
        As ``kafka.Topic``: no client, a wrong setting, no broker, no such topic or partition.
    """
    ids: dict[str, str | None] = {}
    ends: dict[str, dict[int, int]] = {}
    lines: list[bytes] = []
    for address in addresses:
        topic = Topic(replace(address, start="beginning", group=None), settings)
        try:
            ids[address.topic], ends[address.topic] = topic.id, topic.first_ends
            lines += _first_lines(topic, MOST_MESSAGES // len(addresses), MOST_BYTES // len(addresses))
        finally:
            topic.close()
    return TopicSample(ids, ends, b"".join(lines))


def _first_lines(topic: Topic, most: int, size: int) -> list[bytes]:
    found: list[bytes] = []
    begun = time.monotonic()
    while not topic.is_at_end and time.monotonic() - begun < PATIENCE:
        for message in topic.more(POLL):
            line = as_line(len(found), message.value())
            size -= len(line)
            if len(found) == most or size < 0:
                return found or [line]
            found.append(line)
    return found
