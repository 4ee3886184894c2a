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


def tell_query(source: Source, progress: Callable[[], RunProgress]) -> None:
    """Tell what is done for one query over some events."""
    for numbers in _SERVED:
        from acep_approx.live.prometheus import EVENTS, LIVE, STEPS

        numbers.tell(EVENTS, lambda: progress().relevant, "matched")
        numbers.tell(EVENTS, lambda: progress().events - progress().relevant, "ignored")
        numbers.tell(EVENTS, lambda: progress().without_key, "without_key")
        numbers.tell(STEPS, lambda: progress().steps)
        numbers.tell(LIVE, lambda: progress().live)
        _tell_left_out(numbers, source)


def tell_events(source: Source, events: Callable[[], int], late: Callable[[], int] | None = None) -> None:
    """Tell how many events were read, where several queries, or none, are about them."""
    for numbers in _SERVED:
        from acep_approx.live.prometheus import EVENTS

        numbers.tell(EVENTS, events, "read")
        _tell_left_out(numbers, source)
        if late is not None:
            numbers.tell(EVENTS, late, "late")


def _tell_left_out(numbers: RunNumbers, source: Source) -> None:
    from acep_approx.live.prometheus import EVENTS

    numbers.tell(EVENTS, lambda: source.malformed.count, "malformed")
    numbers.tell(EVENTS, lambda: source.late.count, "late")


def tell_results(results: Results, *, are_matches: bool) -> None:
    """Tell how many rows of results are put out."""
    for numbers in _SERVED:
        from acep_approx.live.prometheus import MATCHES, RESULTS

        numbers.tell(RESULTS, lambda: results.rows)
        if are_matches:
            numbers.tell(MATCHES, lambda: results.rows)


def tell_found(matches: Callable[[], int]) -> None:
    """Tell how many matches were found, where each rule has its own."""
    for numbers in _SERVED:
        from acep_approx.live.prometheus import MATCHES

        numbers.tell(MATCHES, matches)


def tell_behind(behind: Callable[[], int | None]) -> None:
    """Tell how much of a live input is there and not read yet."""
    for numbers in _SERVED:
        from acep_approx.live.prometheus import BEHIND

        numbers.tell(BEHIND, behind)


def freeze() -> None:
    """What is told now stays: what comes is not the run any more."""
    for numbers in _SERVED:
        numbers.freeze()
