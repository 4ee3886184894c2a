"""Rows of results as messages of a topic of Kafka: none is lost unseen, some may come twice."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from acep_approx.errors import DataError, UsageError
from acep_approx.events.live.kafka import (
    ANSWER,
    PASSING,
    REFUSED,
    Outages,
    client_library,
    connection,
    no_broker,
    unreadable,
)
from acep_approx.events.live.kafka_address import KafkaAddress
from acep_approx.events.live.kafka_rows import MATCH, keys_of, match_id
from acep_approx.events.writing.tables import ROWS, json_lines
from acep_approx.masks import without

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message

ROOM = 0.1
"""Seconds to wait for room in the client's queue before the next try."""
PAUSE = 0.5
"""Seconds after which it is looked again whether all messages were sent."""


class TopicWriter:
    """Sends rows to a topic, each as a JSON object with the header ``acep_match``, a hash of it.

    Parameters
    ----------
    address : KafkaAddress
    settings : dict of str to str
        Of the client.
    keys : sequence of str
        Columns whose values are the key of messages.

    Raises
    ------
    UsageError
        ``ACEP-U135``: the client is not installed; ``ACEP-U137``: it refuses a setting.
    DataError
        ``ACEP-D058``: no broker answers, or there is no such topic.
    """

    def __init__(self, address: KafkaAddress, settings: dict[str, str], keys: Sequence[str] = ()) -> None:
        kafka = client_library()
        self._address, self._settings, self._keys = address, settings, keys
        self._outages = Outages(address.brokers)
        self._failed: KafkaError | None = None
        self._reason: KafkaError | None = None
        ours = {"enable.idempotence": True, "error_cb": self._on_error}
        try:
            self._producer = kafka.Producer({**ours, **connection(address, settings)})
        except kafka.KafkaException as error:
            raise UsageError(
                f"the client of Kafka refuses its settings: {self._said(error.args[0])}",
                code="ACEP-U137",
                hint="see the list of librdkafka's settings for what there is",
            ) from error
        self._check_topic(kafka)

    def write(self, table: pa.Table, keys: Sequence[str] | None = None) -> None:
        """Send the rows of a table, and wait until the brokers have them all.

        Parameters
        ----------
        table : pyarrow.Table
        keys : sequence of str, optional
            Columns whose values are the key of its messages. Default: those of the writer.

        Raises
        ------
        DataError
            ``ACEP-D173``: a message could not be sent.
        """
        for start in range(0, table.num_rows, ROWS):
            part = table.slice(start, ROWS)
            values = bytes(json_lines(part)).splitlines()
            found = keys_of(part, self._keys if keys is None else keys)
            for key, value in zip(found.to_pylist(), values, strict=True):
                self._send(key, value)
        while self._producer.flush(PAUSE):  # signals are heard in between
            self._outages.goes_on()
            self._check()
        self._check()
        self._outages.answered(time.monotonic())

    def close(self) -> None:
        """Let go of the brokers; what was not sent is given up, and whoever wrote it knows."""
        self._producer.purge()
        self._producer.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- steps ----------------------------------------------------------------------------------------------------

    def _check_topic(self, kafka: Any) -> None:
        topic = self._address.topic
        try:
            found = self._producer.list_topics(topic, timeout=ANSWER).topics[topic]
        except kafka.KafkaException as error:
            self._producer.poll(0)  # what the client has to say comes only when it is asked
            why = self._reason or error.args[0]
            raise no_broker(self._address, self._said(why), passes=_passes(why)) from error
        if found.error is not None:
            raise unreadable(topic, self._said(found.error), "written", passes=_passes(found.error))

    def _send(self, key: str | None, value: bytes) -> None:
        headers = [(MATCH, match_id(value).encode())]
        while True:
            try:
                self._producer.produce(self._address.topic, value, key, headers=headers, on_delivery=self._on_delivery)
            except BufferError:
                self._producer.poll(ROOM)
            else:
                break
        self._producer.poll(0)
        self._check()

    def _check(self) -> None:
        if self._failed is None:
            return
        raise DataError(
            f"results cannot be sent to the topic {self._address.topic!r}: {self._said(self._failed)}",
            code="ACEP-D173",
            hint="see what the broker asks for, and run it again: with --checkpoint it goes on from the last one, and "
            "messages may come twice",
            passes=_passes(self._failed),
        )

    def _on_delivery(self, error: KafkaError | None, _message: Message) -> None:
        self._failed = self._failed or error

    def _on_error(self, error: KafkaError) -> None:
        """The client tells of something, and goes on trying."""
        if error.name() == "_ALL_BROKERS_DOWN":
            self._outages.lost(time.monotonic())
            return
        self._reason = error
        self._outages.failed(error.name(), self._said(error))

    def _said(self, error: KafkaError) -> str:
        return without(error.str(), self._settings)


def _passes(error: KafkaError) -> bool:
    return error.name() not in REFUSED and (error.name() in PASSING or error.name() == "_MSG_TIMED_OUT")
