"""A topic of Kafka: its messages as they come, and how far they were read; what brokers say of it in the meantime."""

from __future__ import annotations

import logging
import time
from concurrent.futures import Future
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Any

from acep_approx.errors import DataError, UsageError
from acep_approx.events.live.kafka_address import PARTITION, KafkaAddress
from acep_approx.masks import without

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from confluent_kafka import Message, TopicPartition

# --- what brokers say of a topic while it is read -------------------------------------------------------------

EVERY = 0.5
"""Seconds between two questions."""
GIVEN_UP = 5.0
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
        return self._answer(GIVEN_UP)

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
        asked = self._client.describe_topics(TopicCollection([self._topic]), request_timeout=GIVEN_UP)
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
    first_ends : dict of int to int
        The next message of each partition when it was opened.
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
        self._kafka = client_library()
        self._consumer = self._connected()
        self._watch: TopicWatch | None = None
        self._heard = time.monotonic()
        self._gone_since: float | None = None
        self.first_ends: dict[int, int] = {}
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
        behind = 0
        if self._is_closed:
            return None
        for number, offset in self.offsets.items():
            where = self._kafka.TopicPartition(self.address.topic, number)
            known = self._consumer.get_watermark_offsets(where, cached=True)
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
        self._commits = time.monotonic()
        if self.address.group is None or self._committed == self.offsets or self._is_lost:
            return
        given = self._places(self.offsets)
        try:
            self._consumer.commit(offsets=given, asynchronous=not waits)
        except self._kafka.KafkaException as error:
            said = without(str(error), self._settings)
            LOG.warning("the offsets of group %s could not be committed: %s", self.address.group, said)
        self._committed = dict(self.offsets)

    def close(self) -> None:
        """Let go of the broker."""
        if not self._is_closed:
            self._is_closed = True
            self.commit(waits=True)
            self._consumer.close()

    def _connected(self) -> Any:
        ours = {
            "group.id": self.address.group or "acep",  # without a group nothing is committed under it
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "auto.offset.reset": "error",  # nothing is left out unseen
            "enable.partition.eof": True,
            "error_cb": self._on_error,
        }
        try:
            return self._kafka.Consumer({**ours, **connection(self.address, self._settings)})
        except self._kafka.KafkaException as error:
            raise UsageError(
                f"the client of Kafka refuses its settings: {self._said(error.args[0])}",
                code="ACEP-U137",
                hint="see the list of librdkafka's settings for what there is",
            ) from error

    # --- where to begin ---------------------------------------------------------------------------------------

    def _open(self, place: TopicPlace | None) -> None:
        there = self._partitions()
        if self._watch is not None:
            self._take_description(self._watch.first())
        self._check_order(there, () if place is None else place.offsets)
        try:
            self.offsets = {number: self._first(number, place) for number in there}
        except self._kafka.KafkaException as error:
            raise self._unreadable(error.args[0]) from error
        for number in () if place is None else self.offsets.keys() - place.offsets.keys():
            self._say_added(number)
        self._consumer.assign(self._places(self.offsets))

    def _partitions(self) -> list[int]:
        topic = self.address.topic
        try:
            cluster = self._consumer.list_topics(topic, timeout=ANSWER)
        except self._kafka.KafkaException as error:
            for _ in range(HEARD):  # what the client has to say comes only when it is asked
                self._consumer.poll(0)
            why = self._reason or self._said(error.args[0])
            raise no_broker(self.address, why, passes=self._passes(error.args[0])) from error
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
            self._watch = TopicWatch(topic, connection(self.address, self._settings))
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
        where = self._kafka.TopicPartition(self.address.topic, number)
        low, high = self._consumer.get_watermark_offsets(where, timeout=ANSWER)
        self.first_ends[number] = high
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
        return [self._kafka.TopicPartition(self.address.topic, number, offset) for number, offset in offsets.items()]

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
            raise other_topic(self.address.topic)
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
        if not numbers:
            return
        self._check_order([*self.offsets, *numbers], self.offsets)
        try:
            self._consumer.list_topics(self.address.topic, timeout=ANSWER)  # the client gets to know them
            new = {number: self._first(number, TopicPlace({})) for number in numbers}
        except self._kafka.KafkaException:  # they are not quite there yet: the next look finds them again
            return
        for number in numbers:
            self._say_added(number)
        self.offsets |= new
        self._consumer.incremental_assign(self._places(new))

    def _say_added(self, number: int) -> None:
        LOG.warning("Kafka: partition %d was added to the topic %r; it is read, too", number, self.address.topic)

    # --- errors -----------------------------------------------------------------------------------------------

    def _said(self, error: Any) -> str:
        return without(error.str(), self._settings)

    def _on_error(self, error: Any) -> None:
        """The client tells of something, and goes on trying."""
        if error.name() == "_ALL_BROKERS_DOWN":
            self._outages.lost(time.monotonic())
            return
        self._reason, self._is_refused = self._said(error), error.name() in REFUSED
        self._outages.failed(error.name(), self._reason)

    def _take_error(self, message: Message) -> None:
        error, number = message.error(), message.partition()
        assert error is not None
        if error.code() == self._kafka.KafkaError._PARTITION_EOF:
            assert number is not None
            self._at_end.add(number)
            self.ends[number] = message.offset() or 0
        elif error.code() in (self._kafka.KafkaError._AUTO_OFFSET_RESET, self._kafka.KafkaError.OFFSET_OUT_OF_RANGE):
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
        return unreadable(self.address.topic, why, passes=error is not None and self._passes(error))

    def _gone(self, number: int | None, why: str, offset: int) -> DataError:
        return DataError(
            f"messages of {self.address.topic}, partition {number}, from {offset:,} on are not there: {why}",
            code="ACEP-D057",
            hint="they were deleted before they were read: begin with another folder for checkpoints, or another group",
        )


def no_broker(address: KafkaAddress, why: str, *, passes: bool) -> DataError:
    """Return the error that no broker answers (``ACEP-D058``)."""
    return DataError(
        f"no broker of {address.brokers} answers: {why}",
        code="ACEP-D058",
        hint="check the address, and what the broker asks for: --kafka-option security.protocol=...",
        passes=passes,
    )


def unreadable(topic: str, why: str, done: str = "read", *, passes: bool) -> DataError:
    """Return the error that a topic cannot be read, or what else is ``done`` (``ACEP-D058``)."""
    return DataError(
        f"the topic {topic!r} cannot be {done}: {why}",
        code="ACEP-D058",
        hint="check its name, the broker, and your rights",
        passes=passes,
    )


def other_topic(name: str) -> DataError:
    """Return the error that a topic is not the one that was read before (``ACEP-D171``)."""
    return DataError(
        f"the topic {name!r} is another one than it was: it was deleted and created again, or is on other brokers; "
        "offsets of the one mean nothing in the other",
        code="ACEP-D171",
        hint="begin with another folder for checkpoints, or another group, to read the new topic from its beginning; "
        "messages that were deleted unread are lost",
    )


def connection(address: KafkaAddress, settings: dict[str, str]) -> dict[str, str]:
    """Return the settings of any client: ours, and before them those that were given."""
    ours = {
        "bootstrap.servers": address.brokers,
        "client.id": "acep",
        "log_level": "0",  # what it says comes through the callback
    }
    if "reconnect.backoff.ms" not in settings:
        ours["reconnect.backoff.max.ms"] = "1000"  # an outage is over soon after the broker is there
    return {**ours, **settings}


def client_library() -> Any:
    """Return the package of the client.

    Raises
    ------
    UsageError
        ``ACEP-U135``: it is not installed.
    """
    try:
        import confluent_kafka
    except ImportError as error:
        raise UsageError(
            "Kafka needs the package confluent-kafka, which is not installed",
            code="ACEP-U135",
            hint="pip install 'acep-approx[kafka]'",
        ) from error
    return confluent_kafka
