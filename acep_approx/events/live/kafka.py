"""A topic of Kafka: its messages as they come, and how far they were read."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any

from acep_approx.errors import DataError, UsageError
from acep_approx.events.live.kafka_address import KafkaAddress
from acep_approx.masks import without

if TYPE_CHECKING:
    from confluent_kafka import Message

LOG = logging.getLogger("acep_approx.live")
ANSWER = 10.0
"""Seconds in which a broker must answer at first."""
TOGETHER = 20_000
"""Messages of a batch at most."""
COMMIT = 5.0
"""Seconds between two commits for a group."""


class Topic:
    """The partitions of a topic, read together.

    Parameters
    ----------
    address : KafkaAddress
    settings : dict of str to str
        Of the client, beside those that the address says.
    offsets : dict of int to int, optional
        Where an earlier run has ended, by partition.

    Attributes
    ----------
    offsets : dict of int to int
        The next message of each partition: those before have been taken in.
    unread : list of int
        Partitions that had messages to be read when it was opened.

    Raises
    ------
    UsageError
        ``ACEP-U135``: the client is not installed; ``ACEP-U137``: it refuses a setting.
    DataError
        ``ACEP-D058``: no broker answers, or there is no such topic or partition; ``ACEP-D057``: messages that were not
        read yet are gone.
    """

    def __init__(
        self, address: KafkaAddress, settings: dict[str, str], offsets: dict[int, int] | None = None
    ) -> None:
        self.address = address
        self._reported: set[str] = set()
        self._last_error = ""
        self._is_closed = False
        self._settings = settings
        self._consumer = _consumer(address, settings, self._on_error)
        self._ends: set[int] = set()
        try:
            there = self._partitions()
            self.unread: list[int] = []
            self.offsets = {number: self._first(number, offsets) for number in there}
            self._assign()
        except BaseException:
            self._consumer.close()
            raise
        self._committed = dict(self.offsets)
        self._commits = time.monotonic()

    def more(self, wait: float) -> list[Message]:
        """Messages that are there now; waits so long for the first one.

        Raises
        ------
        DataError
            ``ACEP-D057``, ``ACEP-D058``: the broker refuses.
        """
        first = self._consumer.poll(wait)
        if first is None:
            return []
        found: list[Message] = []
        for message in [first, *self._consumer.consume(TOGETHER - 1, 0)]:
            if message.error() is not None:
                self._take_error(message)
            else:
                self._ends.discard(message.partition())
                found.append(message)
        return found

    @property
    def is_at_end(self) -> bool:
        """Whether all messages of all partitions were read that were there when the broker said so last."""
        return len(self._ends) == len(self.offsets)

    @property
    def lag(self) -> int | None:
        """Messages that are there and were not read yet, as far as the client knows."""
        from confluent_kafka import TopicPartition

        behind = 0
        if self._is_closed:
            return None
        for number, offset in self.offsets.items():
            known = self._consumer.get_watermark_offsets(TopicPartition(self.address.topic, number), cached=True)
            if known is None or known[1] < 0:
                return None
            behind += max(0, known[1] - offset)
        return behind

    def taken(self, offsets: dict[int, int]) -> None:
        """Messages up to these offsets have been run; a group is told of it now and then."""
        self.offsets |= offsets
        if time.monotonic() - self._commits >= COMMIT:
            self.commit(waits=False)

    def commit(self, *, waits: bool) -> None:
        """Tell the group how far messages have been run."""
        from confluent_kafka import KafkaException, TopicPartition

        self._commits = time.monotonic()
        if self.address.group is None or self._committed == self.offsets:
            return
        given = [TopicPartition(self.address.topic, number, offset) for number, offset in self.offsets.items()]
        try:
            if waits:
                self._consumer.commit(offsets=given, asynchronous=False)
            else:
                self._consumer.commit(offsets=given, asynchronous=True)
        except KafkaException as error:
            said = without(str(error), self._settings)
            LOG.warning("the offsets of group %s could not be committed: %s", self.address.group, said)
        self._committed = dict(self.offsets)

    def close(self) -> None:
        """Let go of the broker."""
        if not self._is_closed:
            self._is_closed = True
            self.commit(waits=True)
            self._consumer.close()

    # --- where to begin ---------------------------------------------------------------------------------------

    def _partitions(self) -> list[int]:
        from confluent_kafka import KafkaException

        topic = self.address.topic
        try:
            found = self._consumer.list_topics(topic, timeout=ANSWER).topics[topic]
        except KafkaException as error:
            why = self._last_error or self._said(error.args[0])
            raise DataError(
                f"no broker of {self.address.brokers} answers: {why}",
                code="ACEP-D058",
                hint="check the address, and what the broker asks for: --kafka-option security.protocol=...",
            ) from error
        if found.error is not None or not found.partitions:
            why = "it has no partitions" if found.error is None else self._said(found.error)
            raise DataError(
                f"the topic {topic!r} cannot be read: {why}",
                code="ACEP-D058",
                hint="check its name, and whether you may read it",
            )
        missing = [number for number in self.address.partitions if number not in found.partitions]
        if missing:
            raise DataError(
                f"the topic {topic!r} has no partition {missing[0]}; it has {len(found.partitions)}, from 0 on",
                code="ACEP-D058",
                hint="name others: ?partition=0,1",
            )
        return list(self.address.partitions) or sorted(found.partitions)

    def _first(self, number: int, known: dict[int, int] | None) -> int:
        """The offset to begin with: where a run has ended, as a group says, or the beginning or the end."""
        from confluent_kafka import TopicPartition

        where = TopicPartition(self.address.topic, number)
        low, high = self._consumer.get_watermark_offsets(where, timeout=ANSWER)
        offset: int | None = None if known is None else known.get(number, low)  # a partition that is new is read whole
        if offset is None and self.address.group is not None:
            (committed,) = self._consumer.committed([where], timeout=ANSWER)
            offset = committed.offset if committed.offset >= 0 else None
        if offset is None:
            offset = int(low if self.address.start == "beginning" else high)
        if offset < high:
            self.unread.append(number)
        if not low <= offset <= high:
            raise self._gone(number, f"they begin at {low:,} and end before {high:,}", offset)
        return offset

    def _assign(self) -> None:
        from confluent_kafka import TopicPartition

        self._consumer.assign([TopicPartition(self.address.topic, n, offset) for n, offset in self.offsets.items()])

    # --- errors -----------------------------------------------------------------------------------------------

    def _said(self, error: Any) -> str:
        """The words of an error of the client, without the secrets that it was given."""
        return without(error.str(), self._settings)

    def _on_error(self, error: Any) -> None:
        """The client tells of something, and goes on trying."""
        self._last_error = self._said(error)
        if error.name() not in self._reported:
            self._reported.add(error.name())
            LOG.warning("Kafka: %s; trying again", self._last_error)

    def _take_error(self, message: Message) -> None:
        from confluent_kafka import KafkaError

        error, number = message.error(), message.partition()
        assert error is not None
        if error.code() == KafkaError._PARTITION_EOF:
            assert number is not None
            self._ends.add(number)
        elif error.code() in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE):
            raise self._gone(number, self._said(error), self.offsets.get(number or 0, 0))
        elif error.fatal() or not error.retriable():
            raise DataError(
                f"the topic {self.address.topic!r} cannot be read on: {self._said(error)}",
                code="ACEP-D058",
                hint="check the broker, and whether you may read the topic",
            )
        else:
            self._on_error(error)

    def _gone(self, number: int | None, why: str, offset: int) -> DataError:
        return DataError(
            f"messages of {self.address.topic}, partition {number}, from {offset:,} on are not there: {why}",
            code="ACEP-D057",
            hint="they were deleted before they were read, or the topic was made anew: begin anew, with another "
            "checkpoint or group",
        )


def _consumer(address: KafkaAddress, settings: dict[str, str], on_error: Any) -> Any:
    try:
        from confluent_kafka import Consumer, KafkaException
    except ImportError as error:
        raise UsageError(
            "Kafka needs the package confluent-kafka, which is not installed",
            code="ACEP-U135",
            hint="pip install 'acep-approx[kafka]'",
        ) from error
    ours = {
        "bootstrap.servers": address.brokers,
        "group.id": address.group or "acep",  # without a group nothing is committed under it
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "auto.offset.reset": "error",  # nothing is left out unseen
        "enable.partition.eof": True,
        "client.id": "acep",
        "log_level": 0,  # what it says comes through the callback
        "error_cb": on_error,
    }
    try:
        return Consumer({**ours, **settings})
    except KafkaException as error:
        raise UsageError(
            f"the client of Kafka refuses its settings: {without(error.args[0].str(), settings)}",
            code="ACEP-U137",
            hint="see the list of librdkafka's settings for what there is",
        ) from error
