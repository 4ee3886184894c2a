"""Why was a run shed at some moment? The runs that were shed around it, with the terms of their scores, in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from acep_approx.budget.ledger import PathStep
from acep_approx.engines.runs.worth import REASONS, Worth
from acep_approx.shedding.metrics import LEFT_OPEN
from acep_approx.shedding.purse import LoggedShed
from acep_approx.shedding.shedder import Shedder
from history.vectors import Scheme


class ShedBy(Protocol):
    """What has shed a run: matches inside a budget, or an engine of a set or of a rule."""

    @property
    def shedder(self) -> Shedder | None:
        """Chose what to shed."""

    @property
    def window(self) -> int:
        """Of the query of the run, in ticks."""

    @property
    def weight(self) -> float:
        """What a match point of the engine counts for, beside those of others that share its budget."""


SENTENCES = {
    REASONS[0]: "when it was born its score was below the price, the least that the budget had room for",
    REASONS[1]: "its score fell below the price, the least that the budget had room for",
    REASONS[2]: "the budget for this event was used up, and it was among those that were worth least",
    REASONS[3]: "there were as many runs as the budget allows, and it was among those that were worth least",
    REASONS[4]: "a run that had just been made reaches nearly all that it could, and stands for it",
    REASONS[5]: "another run had come as far, started no earlier, and what it remembers is at least as good",
}
"""Why a run was shed, by its reason."""
SHOWN, MOST_DIGITS = ".4g", 18
"""How scores are shown; all digits that a number may have."""


def nearest(
    shed: pa.Table, at: int, *, by: str = "at", key: str | None = None, state: str | None = None, limit: int = 5
) -> list[dict[str, Any]]:
    """The runs that were shed around a moment, the nearest first, then in order of the stream.

    Parameters
    ----------
    shed : pyarrow.Table
        See ``metrics.shed_table``.
    at : int
        A tick, or a row number.
    by : {"at", "row"}
        Which of the two.
    key, state : str, optional
        Only those of this key, and of states of this name.
    limit : int, default 5

    Returns
    -------
    list of dict
        Rows of the table.

    Complexity: O(n log n) for n rows.
    """
    if not shed.num_rows:
        return []
    is_asked = np.ones(shed.num_rows, np.bool_)
    for name, wanted in (("key", key), ("state", state)):
        if wanted is not None:
            mine = shed.column(name).to_numpy(zero_copy_only=False) if name in shed.column_names else np.array([None])
            is_asked &= mine == wanted
    rows = np.flatnonzero(is_asked)
    column = shed.column(by)
    ticks = (column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column).to_numpy()
    away = np.abs(ticks[rows] - at)
    found: list[dict[str, Any]] = shed.take(pa.array(rows[np.argsort(away, kind="stable")[:limit]])).to_pylist()
    return found


@dataclass(frozen=True)
class ShedByEngine:
    """An engine of a set, or of a rule, that has shed a run; see ``ShedBy``. ``window`` is that of the run's query."""

    shedder: Shedder
    window: int
    weight: float


def nearest_of(logged: Sequence[LoggedShed], at: int, **asked: Any) -> list[tuple[dict[str, Any], ShedBy]]:
    """The same of the runs that engines with a common budget have shed for one query, each with what has shed it.

    ``asked`` are the other arguments of ``nearest``.
    """
    if not logged:
        return []
    of, window = ".engine", ".window"
    tables = [
        one.table.append_column(of, pa.array(np.full(len(one.windows), number))).append_column(
            window, pa.array(one.windows)
        )
        for number, one in enumerate(logged)
    ]
    found = nearest(pa.concat_tables(tables, promote_options="permissive"), at, **asked)
    engines = [logged[run[of]] for run in found]
    by = [ShedByEngine(one.shedder, run[window], one.weight) for one, run in zip(engines, found, strict=True)]
    return [*zip(found, by, strict=True)]


def in_words(run: dict[str, Any], by: ShedBy) -> list[tuple[str, str]]:
    """What a run was that was shed, and why it was: names and texts.

    Parameters
    ----------
    run : dict
        A row of the table of runs that were shed.
    by : ShedBy
        What has shed it.

    Returns
    -------
    list of (str, str)
        Its match vector; the terms of its score (a run that was shed for the bound alone has none); why. Of an end that
        was left open why alone.
    """
    if run["reason"] == LEFT_OPEN:
        return [("why", "no run-steps were left to search for a match that ends there")]
    worth: Worth | None = None  # of that time; None: all runs were alike
    if by.shedder is not None:
        arena = by.shedder.arena
        worth = (*arena.earlier, arena.worth)[run["rescored"]]
    scheme = None if worth is None else worth.scheme
    why = ("why", SENTENCES[run["reason"]])
    return [*_vector(run, by.window, scheme), *_score(run, scheme, by.weight), why, *_kept(run, by, worth)]


def _vector(run: dict[str, Any], window: int, scheme: Scheme | None) -> Iterator[tuple[str, str]]:
    """State, errors, and what the history knows it by."""
    start, last, at = (_tick(run[name]) for name in ("start", "last", "at"))
    is_time = not isinstance(run["at"], int)
    left = start + window - at
    share = f"{max(left, 0) / window:.0%}" if window else "0%"
    yield "state", f"{run['state']}, {run['errors']} error{'' if run['errors'] == 1 else 's'}"
    yield "window", f"{_span(left, is_time=is_time)} left ({share})"
    yield "last event", f"{_span(at - last, is_time=is_time)} before"
    if run["remembers"]:
        yield "remembers", run["remembers"]
    if scheme is not None:
        step = PathStep.of(scheme.describe(run["vertex"]), scheme.window)
        yield "known as", f"match vector {run['vertex']}: {step.details}"


def _score(run: dict[str, Any], scheme: Scheme | None, weight: float) -> Iterator[tuple[str, str]]:
    if run["score"] is None:
        return
    power = 1.0 if scheme is None else scheme.cost_power
    if not power:
        to_come = ": by this history the run-steps to come play no role"
    else:
        to_come = " run-steps to come" if power == 1 else f", the run-steps to come to the power of {power:g}"
    gain, covered, cost, coin, own = terms = _terms(run)
    yield "gain", f"{gain} match points that it may still lead to"
    yield "covered", f"{covered} of them a run that is kept reaches as well"
    yield "cost", f"{cost}{to_come}"
    yield "coin", f"{coin}, which breaks ties"
    if run["beside"] < 1:
        yield "beside", f"1/{1 / run['beside']:g} of its score is left: another run can do all that it can"
    if run["weight"] != 1:
        yield "weight", f"{own} times what a match point of its template counts for on average"
    yield "score", f"{_product(terms, run)} = {run['score']:{SHOWN}}"
    yield "price", f"{run['price']:{SHOWN}}"
    if weight != 1:
        yield "counts", f"{weight:g} times, so the budget is shared towards a price that is as many times lower"


def _terms(run: dict[str, Any]) -> list[str]:
    """The terms of a score, with as many digits as their product needs to be the score as it is shown."""
    for digits in range(4, MOST_DIGITS):
        terms = [f"{run[name]:.{digits}g}" for name in ("gain", "covered", "cost", "coin", "weight")]
        gain, covered, cost, coin, weight = map(float, terms)
        if f"{(gain - covered) / cost * coin * weight * run['beside']:{SHOWN}}" == f"{run['score']:{SHOWN}}":
            break
    return terms


def _product(terms: list[str], run: dict[str, Any]) -> str:
    gain, covered, cost, coin, weight = terms
    counts = f" * {weight}" if run["weight"] != 1 else ""
    beside = f" / {1 / run['beside']:g}" if run["beside"] < 1 else ""
    return f"({gain} - {covered}) / {cost} * {coin}{counts}{beside}"


def _kept(run: dict[str, Any], by: ShedBy, worth: Worth | None) -> Iterator[tuple[str, str]]:
    """What runs of this state were kept at this price, as far as the past tells."""
    known, scheme = None if by.shedder is None else by.shedder.load.history, None if worth is None else worth.scheme
    if run["price"] is None or known is None or worth is None or scheme is None or scheme != known.graph_.scheme:
        return
    visits = known.graph_.counts.visits
    place = int(scheme.place_of_group[run["vertex"] // scheme.cells])
    mine = scheme.place_of_group[np.arange(scheme.vertices) // scheme.cells] == place
    scores = np.where(mine, worth.gain / worth.cost * run["weight"], -1.0)
    is_kept = (scores >= run["price"]) & (visits > 0)
    share = visits[is_kept].sum() / max(visits[mine].sum(), 1)
    said = f"of the past's runs of this state {share:.0%} scored that much"
    if is_kept.any():
        said += f", {scores[is_kept].min():.4g} to {scores[is_kept].max():.4g} (before what others cover)"
    yield "kept", said


def _tick(moment: Any) -> int:
    if isinstance(moment, int):
        return moment
    return int(pa.scalar(moment, pa.timestamp("us", tz="UTC")).cast(pa.int64()).as_py())


def _span(ticks: int, *, is_time: bool) -> str:
    return str(timedelta(microseconds=ticks)) if is_time else f"{ticks:,}"
