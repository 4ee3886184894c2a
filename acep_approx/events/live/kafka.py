"""A topic of Kafka: its messages as they come, and how far they were read."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from acep_approx.errors import DataError, UsageError
from acep_approx.events.live.kafka_address import PARTITION, KafkaAddress
from acep_approx.events.live.kafka_watch import Description, Outages, TopicWatch
from acep_approx.masks import without

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from confluent_kafka import Message, TopicPartition

LOG = logging.getLogger("acep_approx.live")
ANSWER = 10.0
"""Seconds in which a broker must answer at first; later it counts as lost if it says nothing for so long."""
GONE = 10.0
"""Seconds after which a topic that is not there is taken to be deleted."""
QUIET = 0.2
"""Seconds without a message in which the topic may have become another one."""
NEW, OLD = 0.05, 1.0
"""Seconds: how old may be what is known of the topic, when messages come after such a time, and otherwise."""
TOGETHER = 20_000
"""Messages of a batch at most."""
PASSING = frozenset(
    (
        *("_TRANSPORT", "_ALL_BROKERS_DOWN", "_RESOLVE", "_TIMED_OUT", "REQUEST_TIMED_OUT", "NETWORK_EXCEPTION"),
        *("BROKER_NOT_AVAILABLE", "LEADER_NOT_AVAILABLE", "NOT_LEADER_FOR_PARTITION", "REPLICA_NOT_AVAILABLE"),
        *("COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR", "KAFKA_STORAGE_ERROR"),
    )
)
"""Errors of the client after which all may go well later, with nothing changed."""
REFUSED = frozenset(("_AUTHENTICATION", "_SSL"))
"""Errors after which no broker can be reached, as it does not take who asks."""
HEARD = 20
"""Things that the client tells before it is said that no broker answers."""
COMMIT = 5.0
"""Seconds between two commits for a group."""


@dataclass(frozen=True)
class TopicPlace:
    """How far a topic was read.

    Parameters
    ----------
    offsets : dict of int to int
        The next message of each partition.
    id : str or None
        Which topic it was: another one may have the same name later. None: that is not known.
    """

    offsets: dict[int, int]
    id: str | None = None


class Topic:
    """The partitions of a topic, read together.

    Parameters
    ----------
    address : KafkaAddress
    settings : dict of str to str
        Of the client, beside those that the address says.
    place : TopicPlace, optional
        Where an earlier run has ended.
    is_in_order : bool
        Whether messages must come in order, as those of one partition do.

    Attributes
    ----------
    offsets : dict of int to int
        The next message of each partition: those before have been taken in.
    id : str or None
        Which topic it is, where the broker says that.
    ends : dict of int to int
        The next message of partitions of which all messages have been given that are there. Whoever takes it in empties
        it.

    Raises
    ------
    UsageError
        ``ACEP-U135``: the client is not installed; ``ACEP-U137``: it refuses a setting; ``ACEP-U141``: there are
        several partitions, and messages must come in order.
    DataError
        ``ACEP-D058``: no broker answers, or there is no such topic or partition; ``ACEP-D057``: messages that were not
        read yet are gone; ``ACEP-D171``: it is another topic than it was.
    """

    def __init__(
        self,
        address: KafkaAddress,
        settings: dict[str, str],
        place: TopicPlace | None = None,
        *,
        is_in_order: bool = False,
    ) -> None:
        self.address = address
        self._is_in_order = is_in_order
        self._is_closed = self._is_lost = self._is_refused = False
        self._reason = ""
        self._settings = settings
        self._outages = Outages(address.brokers)
        self._consumer = _consumer(address, settings, self._on_error)
        self._watch: TopicWatch | None = None
        self._heard = time.monotonic()
        self._gone_since: float | None = None
        self.ends: dict[int, int] = {}
        self._at_end: set[int] = set()
        self.id = None if place is None else place.id
        self.offsets: dict[int, int] = {}
        self._begun: set[int] = set()  # partitions of which there are messages, as far as is known
        self._told: set[int] = set()  # of these those that were told
        try:
            self._open(place)
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
            ``ACEP-D057``, ``ACEP-D058``: the broker refuses; ``ACEP-D171``, ``ACEP-D172``: the topic was deleted.
        UsageError
            ``ACEP-U141``: a partition was added, and messages must come in order.
        """
        first = self._consumer.poll(wait)
        found: list[Message] = []
        come = [] if first is None else [first, *self._consumer.consume(TOGETHER - 1, 0)]
        for message in come:
            if message.error() is not None:
                self._take_error(message)
            else:
                self._at_end.discard(message.partition())
                found.append(message)
        self._begun.update(message.partition() or 0 for message in found)
        self._look(found)
        if come:
            self._heard = time.monotonic()
        return found

    @property
    def is_at_end(self) -> bool:
        """Whether all messages of all partitions were read that were there when the broker said so last."""
        is_well = self._outages.since is None and self._gone_since is None
        return is_well and len(self._at_end) == len(self.offsets)

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

    def taken_news(self) -> set[int]:
        """The partitions that have messages, and had none when it was asked last."""
        news = self._begun - self._told
        self._told |= news
        return news

    def commit(self, *, waits: bool) -> None:
        """Tell the group how far messages have been run."""
        from confluent_kafka import KafkaException

        self._commits = time.monotonic()
        if self.address.group is None or self._committed == self.offsets or self._is_lost:
            return
        given = self._places(self.offsets)
        try:
            self._consumer.commit(offsets=given, asynchronous=not waits)
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

    def _open(self, place: TopicPlace | None) -> None:
        from confluent_kafka import KafkaException

        there = self._partitions()
        if self._watch is not None:
            self._take_description(self._watch.first())
        self._check_order(there, () if place is None else place.offsets)
        try:
            self.offsets = {number: self._first(number, place) for number in there}
        except KafkaException as error:
            raise self._unreadable(error.args[0]) from error
        for number in () if place is None else self.offsets.keys() - place.offsets.keys():
            self._say_added(number)
        self._consumer.assign(self._places(self.offsets))

    def _partitions(self) -> list[int]:
        from confluent_kafka import KafkaException

        topic = self.address.topic
        try:
            cluster = self._consumer.list_topics(topic, timeout=ANSWER)
        except KafkaException as error:
            for _ in range(HEARD):  # what the client has to say comes only when it is asked
                self._consumer.poll(0)
            why = self._reason or self._said(error.args[0])
            raise DataError(
                f"no broker of {self.address.brokers} answers: {why}",
                code="ACEP-D058",
                hint="check the address, and what the broker asks for: --kafka-option security.protocol=...",
                passes=self._passes(error.args[0]),
            ) from error
        found = cluster.topics[topic]
        if found.error is not None or not found.partitions:
            raise self._unreadable(found.error)
        missing = [number for number in self.address.partitions if number not in found.partitions]
        if missing:
            raise DataError(
                f"the topic {topic!r} has no partition {missing[0]}; it has {len(found.partitions)}, from 0 on",
                code="ACEP-D058",
                hint="name others: ?partition=0,1",
            )
        if cluster.controller_id in cluster.brokers:  # who describes topics
            self._watch = TopicWatch(topic, _connection(self.address, self._settings))
        return list(self.address.partitions) or sorted(found.partitions)

    def _check_order(self, partitions: Sequence[int], read: Iterable[int]) -> None:
        """Refuse several partitions where messages must come in order; some may have been read before."""
        if not self._is_in_order or len(partitions) <= 1:
            return
        said = f"--watermark '10 s', which says how late they may come (--source {PARTITION} is then the default)"
        repair = f"give {said}; or read one of them: ?partition=0"
        if before := [*read]:
            repair = f"go on without the others: ?partition={before[0]}; or begin in another folder for checkpoints "
            repair += f"with {said}"
        raise UsageError(
            f"the topic {self.address.topic!r} has {len(partitions)} partitions, and messages of different partitions "
            "come in no order",
            code="ACEP-U141",
            hint=repair,
        )

    def _first(self, number: int, place: TopicPlace | None) -> int:
        from confluent_kafka import TopicPartition

        where = TopicPartition(self.address.topic, number)
        low, high = self._consumer.get_watermark_offsets(where, timeout=ANSWER)
        offset = None if place is None else place.offsets.get(number, low)  # a partition that is new is read whole
        if offset is None and self.address.group is not None:
            (committed,) = self._consumer.committed([where], timeout=ANSWER)
            offset = committed.offset if committed.offset >= 0 else None
        if offset is None:
            offset = int(low if self.address.start == "beginning" else high)
        if offset < high:
            self._begun.add(number)
        if not low <= offset <= high:
            raise self._gone(number, f"they begin at {low:,} and end before {high:,}", offset)
        return offset

    def _places(self, offsets: dict[int, int]) -> list[TopicPartition]:
        from confluent_kafka import TopicPartition

        return [TopicPartition(self.address.topic, number, offset) for number, offset in offsets.items()]

    # --- what changes while it is read ------------------------------------------------------------------------

    def _look(self, messages: list[Message]) -> None:
        """Find out whether the broker is there, and the topic is what it was when these messages came.

        Where a topic is deleted and created again, nothing comes for a while before messages of the new one do.
        """
        self._outages.goes_on()
        if self._watch is None:
            self._outages.answered(self._heard)
            return
        is_first = time.monotonic() - self._heard > QUIET
        found = self._watch.look((NEW if is_first else OLD) if messages else None)
        if found is not None:
            self._outages.answered(found.asked)
            self._take_description(found)
        elif (asked := self._watch.unanswered_since) is not None:
            since = max(asked, self._heard)
            if time.monotonic() - since > ANSWER:
                self._outages.lost(since)

    def _take_description(self, found: Description | None) -> None:
        if found is None:
            return
        if not found.partitions:
            self._miss()
            return
        self._gone_since = None
        if self.id is not None and found.id is not None and found.id != self.id:
            self._is_lost = True
            raise DataError(
                f"the topic {self.address.topic!r} is another one than it was: it was deleted and created again, or is "
                "on other brokers; offsets of the one mean nothing in the other",
                code="ACEP-D171",
                hint="begin with another folder for checkpoints, or another group, to read the new topic from its "
                "beginning; messages that were deleted unread are lost",
            )
        self.id = found.id or self.id
        if self.offsets and not self.address.partitions:
            self._add([number for number in found.partitions if number not in self.offsets])

    def _miss(self) -> None:
        now = time.monotonic()
        if self._gone_since is None:
            self._gone_since = now
            LOG.warning("Kafka: the topic %r is not there", self.address.topic)
        elif now - self._gone_since >= GONE:
            self._is_lost = True
            raise DataError(
                f"the topic {self.address.topic!r} was deleted while it was read",
                code="ACEP-D172",
                hint="create it again, and begin with another folder for checkpoints, or another group",
            )

    def _add(self, numbers: list[int]) -> None:
        from confluent_kafka import KafkaException

        if not numbers:
            return
        self._check_order([*self.offsets, *numbers], self.offsets)
        try:
            self._consumer.list_topics(self.address.topic, timeout=ANSWER)  # the client gets to know them
            new = {number: self._first(number, TopicPlace({})) for number in numbers}
        except KafkaException:  # they are not quite there yet: the next look finds them again
            return
        for number in numbers:
            self._say_added(number)
        self.offsets |= new
        self._consumer.incremental_assign(self._places(new))

    def _say_added(self, number: int) -> None:
        LOG.warning("Kafka: partition %d was added to the topic %r; it is read, too", number, self.address.topic)

    # --- errors -----------------------------------------------------------------------------------------------

    def _said(self, error: Any) -> str:
        """The words of an error of the client, without the secrets that it was given."""
        return without(error.str(), self._settings)

    def _on_error(self, error: Any) -> None:
        """The client tells of something, and goes on trying."""
        if error.name() == "_ALL_BROKERS_DOWN":
            self._outages.lost(time.monotonic())
            return
        self._reason, self._is_refused = self._said(error), error.name() in REFUSED
        self._outages.failed(error.name(), self._reason)

    def _take_error(self, message: Message) -> None:
        from confluent_kafka import KafkaError

        error, number = message.error(), message.partition()
        assert error is not None
        if error.code() == KafkaError._PARTITION_EOF:
            assert number is not None
            self._at_end.add(number)
            self.ends[number] = message.offset() or 0
        elif error.code() in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE):
            if self._watch is not None:
                self._take_description(self._watch.first())  # it may be another topic by now
            raise self._gone(number, self._said(error), self.offsets.get(number or 0, 0))
        elif error.fatal() or not error.retriable():
            raise self._unreadable(error)
        else:
            self._on_error(error)

    def _passes(self, error: Any) -> bool:
        return not self._is_refused and (error.name() in PASSING or error.retriable())

    def _unreadable(self, error: Any) -> DataError:
        why = "it has no partitions" if error is None else self._said(error)
        return DataError(
            f"the topic {self.address.topic!r} cannot be read: {why}",
            code="ACEP-D058",
            hint="check its name, the broker, and whether you may read it",
            passes=error is not None and self._passes(error),
        )

    def _gone(self, number: int | None, why: str, offset: int) -> DataError:
        return DataError(
            f"messages of {self.address.topic}, partition {number}, from {offset:,} on are not there: {why}",
            code="ACEP-D057",
            hint="they were deleted before they were read: begin with another folder for checkpoints, or another group",
        )


def _connection(address: KafkaAddress, settings: dict[str, str]) -> dict[str, str]:
    ours = {
        "bootstrap.servers": address.brokers,
        "client.id": "acep",
        "log_level": "0",  # what it says comes through the callback
    }
    if "reconnect.backoff.ms" not in settings:
        ours["reconnect.backoff.max.ms"] = "1000"  # an outage is over soon after the broker is there
    return {**ours, **settings}


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
        "group.id": address.group or "acep",  # without a group nothing is committed under it
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "auto.offset.reset": "error",  # nothing is left out unseen
        "enable.partition.eof": True,
        "error_cb": on_error,
    }
    try:
        return Consumer({**ours, **_connection(address, settings)})
    except KafkaException as error:
        raise UsageError(
            f"the client of Kafka refuses its settings: {without(error.args[0].str(), settings)}",
            code="ACEP-U137",
            hint="see the list of librdkafka's settings for what there is",
        ) from error
