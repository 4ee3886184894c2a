"""The option ``--metrics-port``: what a run tells of itself while it lasts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from acep_approx.cli.terminal import say

if TYPE_CHECKING:
    from acep_approx.cli.write import Results
    from acep_approx.engines.progress import RunProgress
    from acep_approx.events.source import Source
    from acep_approx.live.prometheus import RunNumbers, Served

_SERVED: list[RunNumbers] = []
"""Those of the run, if somebody may ask for them: at most one."""


@contextmanager
def served(port: int | None, query: str, text: str, *, quiet: bool) -> Iterator[None]:
    """Serve the numbers of a run on a port; None: on none.

    Parameters
    ----------
    port : int or None
    query : str
        As it was given: a query, or the name of what holds it.
    text : str
        Of the query.
    quiet : bool
        Whether nothing is said.
    """
    if port is None:
        yield
        return
    from acep_approx.live.prometheus import RunNumbers

    pattern = " ".join(query.split()) if query == text else Path(query.removeprefix("@")).name
    with RunNumbers(port, pattern) as numbers:
        if not quiet:
            say_where(numbers)
        _SERVED.append(numbers)
        try:
            yield
        finally:
            _SERVED.remove(numbers)


def is_served() -> bool:
    """Whether somebody may ask for numbers."""
    return bool(_SERVED)


def say_where(numbers: Served) -> None:
    """Say where numbers are served."""
    say(f"numbers for Prometheus: http://127.0.0.1:{numbers.port}/metrics")


def tell(number: str, value: Callable[[], int | None], *labels: str) -> None:
    """Tell a number, by its name in ``live.prometheus``, to those who ask."""
    for numbers in _SERVED:
        from acep_approx.live import prometheus

        numbers.tell(getattr(prometheus, number), value, *labels)


def tell_query(source: Source, progress: Callable[[], RunProgress]) -> None:
    """Tell what is done for one query over some events."""
    tell("EVENTS", lambda: progress().relevant, "matched")
    tell("EVENTS", lambda: progress().events - progress().relevant, "ignored")
    tell("EVENTS", lambda: progress().without_key, "without_key")
    tell("STEPS", lambda: progress().steps)
    tell("LIVE", lambda: progress().live)
    _tell_left_out(source)


def tell_events(source: Source, events: Callable[[], int], late: Callable[[], int] | None = None) -> None:
    """Tell how many events were read, where several queries, or none, are about them."""
    tell("EVENTS", events, "read")
    _tell_left_out(source)
    if late is not None:
        tell("EVENTS", late, "late")


def _tell_left_out(source: Source) -> None:
    tell("EVENTS", lambda: source.malformed.count, "malformed")
    tell("EVENTS", lambda: source.late.count, "late")


def tell_results(results: Results, *, are_matches: bool) -> None:
    """Tell how many rows of results are put out."""
    tell("RESULTS", lambda: results.rows)
    if are_matches:
        tell("MATCHES", lambda: results.rows)


def freeze() -> None:
    """What is told now stays: what comes is not the run any more."""
    for numbers in _SERVED:
        numbers.freeze()
