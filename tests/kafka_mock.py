"""A cluster of Kafka in this process: the mock of the client itself. It listens on TCP, so other processes see it."""

from __future__ import annotations

from typing import Any

from confluent_kafka import Producer

from tests.kafka_topics import Topics


class Cluster(Topics):
    """The mock cluster of librdkafka; topics are made when they are asked for, with four partitions.

    Attributes
    ----------
    brokers : str
        As in an address.
    """

    def __init__(self) -> None:
        self._producer = Producer({"test.mock.num.brokers": 1, "bootstrap.servers": "mock", "log_level": 0})
        found = self._producer.list_topics(timeout=10).brokers.values()
        super().__init__(",".join(f"{broker.host}:{broker.port}" for broker in found))

    def topic(self, name: str) -> None:
        """Make a topic."""
        self._producer.list_topics(name, timeout=10)

    def producer(self, **_: Any) -> Producer:
        """The client to which the cluster belongs."""
        return self._producer
