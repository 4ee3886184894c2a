"""Topics of a cluster of Kafka in tests, whether it is a real broker or the mock of the client."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from confluent_kafka import Consumer, Message, Producer, TopicPartition


class Topics:
    """What tests do with the topics of a cluster.

    Parameters
    ----------
    brokers : str
        As in an address.
    """

    def __init__(self, brokers: str) -> None:
        self.brokers = brokers

    def address(self, topic: str, **settings: Any) -> str:
        """The address of a topic."""
        said = "&".join(f"{name}={value}" for name, value in settings.items())
        return f"kafka://{self.brokers}/{topic}" + (f"?{said}" if said else "")

    def send(self, topic: str, values: Iterable[bytes | None], partition: int = 0, **more: Any) -> None:
        """Send messages, and wait until the cluster has them."""
        producer = self.producer()
        for value in values:
            producer.produce(topic, value, partition=partition, **more)
        assert producer.flush(60) == 0

    def read(self, topic: str) -> list[Message]:
        """All messages of a topic with one partition."""
        settings = {"bootstrap.servers": self.brokers, "group.id": "test", "enable.partition.eof": True}
        consumer, found = Consumer(settings), []
        consumer.assign([TopicPartition(topic, 0, 0)])
        while (message := consumer.poll(60)) is not None and message.error() is None:
            found.append(message)
        consumer.close()
        return found

    def producer(self, **settings: Any) -> Producer:
        """A client that sends messages."""
        return Producer({"bootstrap.servers": self.brokers, "log_level": 0, "error_cb": lambda _: None, **settings})
