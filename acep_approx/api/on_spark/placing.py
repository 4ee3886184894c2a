"""The driver's side of queries that come and go: which version a micro-batch runs, and where its queries are matched.

The parts of a job, and the keys of each, are fixed when it begins. A query that comes later is matched where the
queries are that it reads or feeds; else in the first part whose keys are among its own; else in one without keys.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

from acep_approx.api.budgeted_set import check_budget
from acep_approx.api.on_spark.bringing import Adding, bring_to, log, say_left_out
from acep_approx.api.on_spark.pinned import Began, PinnedVersions, PlacedQuery
from acep_approx.errors import AcepError
from acep_approx.spark.worker.program import Setting
from acep_approx.subscriptions.apart import families_of, keys_of, streams_of
from acep_approx.subscriptions.graph import Entry, Graph
from acep_approx.subscriptions.running import Running
from acep_approx.subscriptions.versions import Version, newest_number, read_version

NAMED = 5
"""Queries that a line names."""
Placed = tuple[PlacedQuery, ...]


class PlacingPart(NamedTuple):
    """A part of a job: its keys, and the ids of the queries that it begins with."""

    keys: tuple[str, ...]
    ids: tuple[str, ...]


@dataclass
class Placing:
    """Notes the version of each micro-batch, before anything of it is done.

    Parameters
    ----------
    home : Path
        The folder of queries.
    began : Began
        Its identity, and the version that the job begins with.
    output : {"matches", "points", "counts"}
    parts : sequence of PlacingPart
        Of the job.
    empty : callable
        Makes a set with the options of the job, and without queries.
    setting : Setting
    pinned : PinnedVersions
    """

    home: Path
    began: Began
    output: str
    parts: Sequence[PlacingPart]
    empty: Callable[[], Running]
    setting: Setting
    pinned: PinnedVersions
    _told: set[tuple[str, int]] = field(default_factory=set, init=False)
    _complaint: str = field(default="", init=False)

    def __call__(self, batch: int) -> None:
        """Note the version of a micro-batch, unless that was done before: then what was noted stands."""
        notes = self.pinned.notes
        if batch in notes:
            return
        at = notes[max(notes)] if notes else self._begin()
        newest = self._newest(at)
        if newest.number != at:
            before = self.pinned.queries(at)
            if not self.pinned.has(newest.number):  # else a driver that was killed had come to here
                self.pinned.keep(newest.number, self._after(before, newest))
            _say_changed(batch, newest.number, before, self.pinned.queries(newest.number))
        self.pinned.note(batch, newest.number)

    def _begin(self) -> int:
        """Keep the queries of the version that the job begins with; gives its number."""
        version = read_version(self.home, self.began.version)
        part_of = {id_: number for number, part in enumerate(self.parts) for id_ in part.ids}
        self.pinned.keep(version.number, _placed(version, part_of))
        return version.number

    def _newest(self, at: int) -> Version:
        """Return the newest version; where it cannot be read, that which runs, by its number alone."""
        stays, complaint = Version(self.began.folder, at), ""
        try:
            number = newest_number(self.home)
            version = stays if number == at else read_version(self.home, number)
        except AcepError as error:
            version, complaint = stays, str(error)
        if version.folder != self.began.folder:
            version, complaint = stays, f"{str(self.home)!r} is another folder than when the job began"
        if complaint and complaint != self._complaint:
            log.warning("the job goes on with version %d of its queries: %s", at, complaint)
        self._complaint = complaint
        return version

    # --- another version ----------------------------------------------------------------------------------------------

    def _after(self, before: Placed, version: Version) -> list[PlacedQuery]:
        """Return the queries of a version that can run, each with its part; the others are told, with the reason."""
        whole, wrong = self._whole(before), dict[str, str]()
        adding = Adding(self.output)

        def add(id_: str, text: str) -> None:
            try:
                adding.add(whole, id_, text)
                check_budget(whole, _entries(whole.graph, [id_]))
            except AcepError as error:
                wrong[id_] = f"cannot run with the others: {error.code}: {error.message}"
                if id_ in whole.graph.ids:
                    whole.remove(id_, cascade=True)

        wanted = [(one.id, one.since, one.text) for one in version.queries]
        bring_to(whole, {one.id: one.since for one in before}, wanted, add)
        whole.on_misfit = lambda id_, error: wrong.update(
            {id_: f"does not fit the events: {error.code}: {error.message}"}
        )
        whole.begin(self.setting.schema)
        there = {(one.id, one.since) for one in version.queries if one.id in whole.graph.ids}
        part_of = {one.id: one.part for one in before if (one.id, one.since) in there}
        self._place(whole.graph, part_of, wrong)
        for id_ in wrong.keys() & whole.graph.ids.keys():
            if id_ in whole.graph.ids:  # it may have gone with another one
                whole.remove(id_, cascade=True)
        part_of = {id_: part for id_, part in part_of.items() if id_ in whole.graph.ids}
        self._say_wrong(version, part_of, wrong)
        return _placed(version, part_of)

    def _whole(self, placed: Placed) -> Running:
        """Return the queries that run, as one set that gets no events."""
        whole, adding = self.empty(), Adding(self.output)
        for one in placed:
            adding.add(whole, one.id, one.text)
        whole.begin(self.setting.schema)
        for _ in whole.settle():
            pass
        return whole

    def _place(self, graph: Graph, part_of: dict[str, int], wrong: dict[str, str]) -> None:
        """Give each query that has come a part, or say why there is none."""
        new = {id_ for id_ in graph.ids if id_ not in part_of}
        for family in (ids for one in families_of(graph, new) for ids in one.ids):
            entries = _entries(graph, family)
            streams = {name for one in entries for name in streams_of(graph, one)}
            linked = {id_: part_of[id_] for id_ in _touching(graph, streams) if id_ in part_of}
            part = self._part_for(graph, family, entries, linked)
            if isinstance(part, str):
                wrong.update(dict.fromkeys(family, part))
            else:
                part_of.update(dict.fromkeys(family, part))

    def _part_for(self, graph: Graph, family: list[str], entries: list[Entry], linked: dict[str, int]) -> int | str:
        """Return the part for queries that feed one another, given those that run already and feed or read them."""
        homes = sorted({*linked.values()})
        if len(homes) > 1:
            names = ", ".join(sorted(linked)[:NAMED])
            return f"shares streams with queries that are matched apart by other keys ({names}); {RESTART}"
        keys = {*keys_of([*entries, *_entries(graph, linked)], self.setting.roles)}
        fitting = [part for part in homes or range(len(self.parts)) if {*self.parts[part].keys} <= keys]
        keyed = [part for part in fitting if self.parts[part].keys]
        if keyed or fitting:
            return keyed[0] if keyed else fitting[crc32(min(family).encode()) % len(fitting)]
        has = " or ".join(", ".join(self.parts[part].keys) for part in homes or range(len(self.parts)))
        return f"cannot be matched apart by {has}, as the queries are that run already; {RESTART}"

    def _say_wrong(self, version: Version, part_of: dict[str, int], wrong: dict[str, str]) -> None:
        """Say of each query that is not run why, once."""
        for one in version.queries:
            if one.id not in part_of and (one.id, one.since) not in self._told:
                self._told.add((one.id, one.since))
                say_left_out(one.id, wrong.get(one.id, "reads what another one would publish that is not run"))


RESTART = "start the job with a new checkpoint to run it"
"""What to do where a query needs other keys than the parts of a job have."""


def _placed(version: Version, part_of: dict[str, int]) -> list[PlacedQuery]:
    return [
        PlacedQuery(one.id, one.since, one.text, part_of[one.id]) for one in version.queries if one.id in part_of
    ]


def _entries(graph: Graph, ids: Iterable[str]) -> list[Entry]:
    """Return the parts of some queries."""
    return [graph.numbered.owner(number) for id_ in ids for number in graph.known(id_)]


def _touching(graph: Graph, streams: set[str]) -> Iterator[str]:
    """Yield the ids of the queries that publish or read some streams."""
    for name in sorted(streams):
        yield from graph.ids_of(graph.publishers.get(name, ()))
        yield from graph.ids_of(graph.readers.get(name, ()))


def _say_changed(batch: int, version: int, before: Placed, after: Placed) -> None:
    """Say from which micro-batch on which queries run."""
    had, has = ({(one.id, one.since) for one in some} for some in (before, after))
    came = [one.id for one in after if (one.id, one.since) not in had]
    gone = [one.id for one in before if (one.id, one.since) not in has]
    what = [_named("+", came, "query" if len(came) == 1 else "queries")] if came else []
    what += [_named("-", gone, "query" if len(gone) == 1 else "queries")] if gone else []
    log.warning("version %d from micro-batch %d on: %s", version, batch, ", ".join(what) or "the same queries")


def _named(sign: str, ids: Sequence[str], thing: str) -> str:
    more = f" and {len(ids) - NAMED:,} more" if len(ids) > NAMED else ""
    return f"{sign}{len(ids):,} {thing} ({', '.join(ids[:NAMED])}{more})"
