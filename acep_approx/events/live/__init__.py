"""Events that are still being written: files that grow, folders in which files appear, topics of Kafka."""

from __future__ import annotations
