"""How long a client of Spark Connect tries again where the server does not answer: seconds, not ten minutes.

A job that is started again goes on from its checkpoint, so whoever started it should soon know that it has stopped.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql.connect.client.retries import DefaultPolicy, RetryPolicyState

RETRIES, LONGEST_WAIT = 6, 5_000
"""How often, and after how many milliseconds at most: 15 s in all. Spark asks in up to three ways in turn."""


class ShortPatience(DefaultPolicy):
    """What Spark does by default, for a shorter time."""

    def __init__(self) -> None:
        super().__init__(max_retries=RETRIES, max_backoff=LONGEST_WAIT)

    def to_state(self) -> RetryPolicyState:
        """Begin to count."""
        return _Count(self)


class _Count(RetryPolicyState):
    """Says that there is nothing more to try, before Spark warns of that: the error follows at once."""

    tried = 0

    def can_retry(self, exception: BaseException) -> bool:
        return self.tried < RETRIES and super().can_retry(exception)

    def next_attempt(self, *given: Any) -> int | None:
        self.tried += 1
        return super().next_attempt(*given)
