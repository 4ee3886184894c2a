"""Where the tables of a job go: its results, and of rules what they write to tables, the tables, and calls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from acep_approx.errors import UsageError
from acep_approx.events.live.kafka_address import is_address, parse_target, settings
from acep_approx.events.writing.outfile import JDBC
from acep_approx.results.rules import CALL_KEYS
from acep_approx.spark.setup.java_client import java_settings
from acep_approx.spark.streaming.databases import Database, tables_of
from acep_approx.spark.streaming.sinks import Folder, Sink, TopicSink, folder_of
from acep_approx.spark.worker.program import CALLS, CHANGES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from acep_approx.spark.plan.flow import Flow

Place = str | Path
OF_RULES = {"changes": CHANGES, "calls": CALLS, "mirror": CHANGES}
"""Arguments that name places for tables that only rules have, and how these begin."""


def result_sink(to: Place | Sink, flow: Flow, kafka: Mapping[str, object] | Sequence[str]) -> Sink:
    """Return the place of the results of a stream."""
    if not isinstance(to, str | Path):
        return to
    if str(to).startswith(JDBC):
        return _ready(Database.of(str(to)), flow)
    return topic_sink(str(to), flow, kafka) if is_address(str(to)) else folder_of(to)


def topic_sink(
    to: str, flow: Flow, kafka: Mapping[str, object] | Sequence[str], keys: tuple[str, ...] | None = None
) -> TopicSink:
    """Return the topic of an address, for rows with these keys, by default those of matches; adds the connector."""
    from acep_approx.spark.setup.connectors import add_kafka

    address, (_, theirs) = parse_target(to), java_settings(settings(kafka))
    add_kafka(flow.events.sparkSession)
    return TopicSink(address, flow.job.key_names if keys is None else keys, theirs)


def check_topic(to: str, kafka: Mapping[str, object] | Sequence[str]) -> None:
    """Ask the broker for the topic that results go to, before Spark starts.

    Raises
    ------
    UsageError, DataError
        As ``parse_target``, ``settings``, ``java_settings`` and ``TopicWriter`` have it.
    """
    from acep_approx.events.live.kafka_writer import TopicWriter

    ours, _ = java_settings(settings(kafka))
    TopicWriter(parse_target(to), ours).close()


def rule_sinks(
    flow: Flow, asked: Mapping[str, Place | None], kafka: Mapping[str, object] | Sequence[str] = ()
) -> Iterator[tuple[str, Sink]]:
    """Yield the places of the other tables of a stream, each with the name of its table.

    Parameters
    ----------
    flow : Flow
    asked : mapping of str to path, str or None
        By the arguments of ``OF_RULES``.
    kafka : mapping or sequence of str
        Settings of the client where calls go to a topic.

    Raises
    ------
    UsageError
        ``ACEP-S076``: the program has no such tables; ``ACEP-S086``: no table is named.
    """
    for argument, place, names in _wanted(flow.job.tables, asked):
        short = [name.removeprefix(CHANGES) for name in names]
        found: Iterable[Sink]
        if argument == "mirror":
            found = tables_of(str(place), short, mirrors=flow.job.parts[0].program.kept_tables)
        elif argument == "calls" and is_address(str(place)):
            found = [topic_sink(str(place), flow, kafka, CALL_KEYS)]
        elif not str(place).startswith(JDBC):
            found = [_folder(argument, place, name) for name in names]
        elif argument == "changes":
            found = tables_of(str(place), short)
        else:
            found = [Database.of(str(place))]
        for name, sink in zip(names, found, strict=True):
            yield name, _ready(sink, flow)


def places_of(tables: Iterable[str], asked: Mapping[str, Place | None]) -> dict[str, str]:
    """Return the folders of the other tables of a batch, or the topic of calls, by the names of these.

    Raises
    ------
    UsageError
        ``ACEP-S076``: the program has no such tables.
    """
    wanted = _wanted(tables, asked)
    return {name: _folder(argument, place, name).place for argument, place, names in wanted for name in names}


def _folder(argument: str, place: Place, table: str) -> Folder:
    home = folder_of(place)
    return Folder(f"{home.place}/{table.removeprefix(CHANGES)}") if argument == "changes" else home


def check_database(argument: str, address: str) -> None:
    """Check the address of a database before anything starts (``ACEP-S086``)."""
    Database.of(address, "" if argument == "mirror" else None)


def _wanted(
    tables: Iterable[str], asked: Mapping[str, Place | None]
) -> Iterator[tuple[str, Place, list[str]]]:
    for argument, place in asked.items():
        mine = [table for table in tables if table.startswith(OF_RULES[argument])]
        if place is not None and not mine:
            raise UsageError(
                f"{argument}= is about rules, and here is none that could have "
                f"{'tables' if argument == 'mirror' else argument}",
                code="ACEP-S076",
                hint="leave it out",
            )
        if place is not None:
            yield argument, place, mine


def _ready(sink: Sink, flow: Flow) -> Sink:
    """A place, with the driver of its database."""
    if isinstance(sink, Database):
        sink.prepare(flow.events.sparkSession)
    return sink
