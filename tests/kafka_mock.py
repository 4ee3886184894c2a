"""A cluster of Kafka in this process: the mock of the client itself. It listens on TCP, so other processes see it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from confluent_kafka import Producer


class Cluster:
    """The mock cluster of librdkafka; topics are made when they are asked for, with four partitions.

    Attributes
    ----------
    brokers : str
        As in an address.
    """

    def __init__(self) -> None:
        self._producer = Producer({"test.mock.num.brokers": 1, "bootstrap.servers": "mock", "log_level": 0})
        found = self._producer.list_topics(timeout=10).brokers.values()
        self.brokers = ",".join(f"{broker.host}:{broker.port}" for broker in found)

    def topic(self, name: str) -> None:
        """Make a topic."""
        self._producer.list_topics(name, timeout=10)

    def address(self, topic: str, **settings: Any) -> str:
        """The address of a topic."""
        said = "&".join(f"{name}={value}" for name, value in settings.items())
        return f"kafka://{self.brokers}/{topic}" + (f"?{said}" if said else "")

    def send(self, topic: str, values: Iterable[bytes | None], partition: int = 0, **more: Any) -> None:
        """Send messages."""
        for value in values:
            self._producer.produce(topic, value, partition=partition, **more)
        assert self._producer.flush(10) == 0
