"""Queries of a folder with versions in a job on Spark: they come and go from one micro-batch to the next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from acep_approx.api.budgeted_set import new_purse
from acep_approx.api.on_spark.bringing import Adding, bring_to, say_left_out
from acep_approx.api.on_spark.options import spending_in
from acep_approx.api.on_spark.pinned import Began, PinnedVersions
from acep_approx.api.on_spark.placing import Placing, PlacingPart
from acep_approx.api.on_spark.queries import SetProgram, SetWork, opened, with_roles, without_load
from acep_approx.errors import DataError, UsageError
from acep_approx.events.time import shown_type, tick_unit
from acep_approx.matching.outputs.bind import Bind, Wide, as_plain
from acep_approx.spark.worker.program import MATCHES, Named, Program, Setting, Turn
from acep_approx.subscriptions.state import pack
from acep_approx.subscriptions.versions import Version, read_version
from history.places import place_of

if TYPE_CHECKING:
    from acep_approx.archive import Head
    from acep_approx.errors import AcepError
    from acep_approx.events.roles import Roles
    from acep_approx.planning.compiled import CompiledQuery
    from acep_approx.spark.worker.program import Pin
    from acep_approx.subscriptions.running import Running


@dataclass(frozen=True)
class ChangingProgram(SetProgram):
    """The queries of a folder with versions, or those of one part of a job.

    Parameters
    ----------
    bare : bytes
        The state of a set with the same options and without queries.
    output : str
        Of all queries.
    home : str
        The folder.
    began : Began
        Its identity, and the version that the job begins with.
    control : str, optional
        Folder in which the driver says which version each micro-batch runs. Default: all run the one it began with.
    part : int
        Number of the part of the job.
    """

    bare: bytes = b""
    output: str = "matches"
    home: str = ""
    began: Began = field(default=Began("", 0))
    control: str | None = None
    part: int = 0
    is_changing = True
    in_stages = False

    @classmethod
    def reading(cls, options: Running, output: str, home: Path) -> Self:
        """Return the queries of the newest version of a folder, with the options of a set that has none.

        Raises
        ------
        UsageError
            ``ACEP-U231``: it has no versions.
        DataError
            ``ACEP-D210``: it is damaged.
        """
        version = read_version(home)
        bare = without_load(options)
        return cls(bare, bare=bare, output=output, home=str(home.absolute()))._at(version)

    def _at(self, version: Version) -> Self:
        """Return the same with the queries of a version."""
        running, adding = opened(self.bare)[0], Adding(self.output)
        for one in version.queries:
            adding.add(running, one.id, one.text)
        return replace(self, state=without_load(running), began=Began(version.folder, version.number))

    def controlled(self, control: Path) -> Self:
        """Return the same with the version that the job began with, which stands in its checkpoint.

        Raises
        ------
        DataError
            ``ACEP-S012``: the checkpoint is of another folder of queries.
        """
        pinned = PinnedVersions(str(control))
        began, made = pinned.began, replace(self, control=str(control))
        if began is None:
            pinned.begin(self.began)
            return made
        if began.folder != self.began.folder:
            raise DataError(
                f"the checkpoint is of another folder of queries than {self.home!r}",
                code="ACEP-S012",
                hint="start this one with a checkpoint directory of its own",
            )
        return made if began == self.began else made._at(read_version(place_of(self.home), began.version))

    @property
    def pinned(self) -> PinnedVersions | None:
        """Which version each micro-batch runs; None: all run the same."""
        return None if self.control is None else PinnedVersions(self.control)

    @property
    def identity(self) -> dict[str, str]:
        """What must be the same for a checkpoint to be taken up again: not the queries, which change."""
        options = sha256(self.bare).hexdigest()[:16]
        return {"queries": f"folder {self.began.folder} from version {self.began.version} on", "options": options}

    def decided(self, id: str | None, bind: Bind, schema: pa.Schema, roles: Roles) -> Self:  # noqa: A002
        """Take what was asked for, else the id, else all columns; leave out queries that do not fit the events.

        Raises
        ------
        UsageError
            ``ACEP-S090``: none is left.
        """
        running, bare = self.running.fresh(), opened(self.bare)[0]
        shown = replace(bind, id=id) if isinstance(bind, Wide) else bind or id or tuple(schema.names)
        running.graph.bind = bare.graph.bind = shown
        wrong: dict[str, AcepError] = {}
        replace(self, state=without_load(running))._begun(schema, roles, wrong.__setitem__)
        for one, error in wrong.items():
            say_left_out(one, f"does not fit the events: {error.code}: {error.message}")
            if one in running.graph.ids:
                running.remove(one, cascade=True)
        if not running.graph.ids:
            raise UsageError(
                f"version {self.began.version} of {self.home!r} has no query that fits the events, so the job cannot "
                "know by which keys to match them apart",
                code="ACEP-S090",
                hint=f"add a query first: acep queries add {self.home} FILE.acep",
            )
        columns = _columns(schema.field(roles.time).type, roles)
        return replace(self, state=without_load(running), bare=without_load(bare), columns=columns)

    def engines(self, schema: pa.Schema, roles: Roles) -> dict[str, CompiledQuery]:  # noqa: ARG002
        """None: queries that come and go learn in their states."""
        return {}

    def _observers(self, setting: Setting, turn: Turn) -> None:
        """None, likewise."""

    def needs(self, schema: pa.Schema, roles: Roles) -> tuple[str, ...]:  # noqa: ARG002  (whatever plays a role)
        """Ask for all columns, as later queries may read any of them."""
        return tuple(schema.names)

    def divided(self, roles: Roles, shards: int) -> Sequence[SetProgram]:
        """Return the parts of the first version; later queries come to these."""
        parts = super().divided(roles, shards)
        return [replace(self, state=one.state, part=number) for number, one in enumerate(parts)]

    def begin(self, setting: Setting, turn: Turn, state: bytes | None = None) -> ChangingWork:
        """Begin in a shard, or go on from a state."""
        program = self if self.control is None else replace(self, state=self.bare)  # which gets its queries then
        running, kept = program._started(setting, turn, state)
        return ChangingWork(running, self, setting, kept)

    def _empty(self, setting: Setting) -> Running:
        """Return a set with the options of this one, and no queries so far."""
        spending = {} if setting.spending is None else spending_in(setting.spending, Turn())
        return with_roles(opened(self.bare)[0].fresh(new_purse(spending)), setting.roles)

    def pinning(self, parts: Sequence[Program], setting: Setting) -> Pin | None:
        """Return what notes the version of each micro-batch."""
        if self.pinned is None:
            return None
        mine = [one for one in parts if isinstance(one, ChangingProgram)]
        keys = [one.split(setting.roles).keys for one in mine]
        placed = [PlacingPart(key, tuple(one.running.graph.ids)) for one, key in zip(mine, keys, strict=True)]
        empty = partial(self._empty, setting)
        return Placing(place_of(self.home), self.began, self.output, placed, empty, setting, self.pinned)


def _columns(time: pa.DataType, roles: Roles) -> pa.Schema:
    """Return the columns of the results: those of ``Found.to_arrow``, whatever the queries."""
    when = pa.int64() if tick_unit(time, roles.unit) is None else shown_type(time)
    types = {"query": pa.string(), "start": when, "end": when, "errors": pa.int64(), "times": pa.int64()}
    return pa.schema([*types.items(), ("values", pa.string())])


class ChangingWork(SetWork):
    """The queries of one part of a job, at work in a shard.

    Parameters
    ----------
    running : Running
    program : ChangingProgram
    setting : Setting
    kept : dict
        What the state says of the version that the shard is at.
    """

    def __init__(self, running: Running, program: ChangingProgram, setting: Setting, kept: Head) -> None:
        assert program.columns is not None, "the columns of the events are known"
        super().__init__(running, program.columns)
        self._program, self._schema = program, setting.schema
        self._version: int | None = kept.get("version")
        self._since: dict[str, int] = dict(kept.get("since", {}))

    def ready(self, batch: int | None) -> Iterator[Named]:
        """Run the queries of the version that the driver has noted for a micro-batch.

        All events before the watermark of the micro-batch before have been run, here or in another shard: one that was
        not called since had none. So queries come and go at the same time in all shards.
        """
        pinned = self._program.pinned
        if pinned is None or (version := pinned.version_of(batch)) == self._version:
            return
        adding, part = Adding(self._program.output), self._program.part
        wanted = [(one.id, one.since, one.text) for one in pinned.queries(version) if one.part == part]
        self._since = bring_to(
            self.running, self._since, wanted, lambda id_, text: adding.add(self.running, id_, text)
        )
        self._version = version
        self.running.begin(self._schema)
        yield from self._shown(self.running.settle())

    def _shown(self, results: Iterator[Any]) -> Iterator[Named]:
        found = self.running.found(results)
        if found.rows:
            yield MATCHES, found.to_arrow().cast(self._columns)

    def state_bytes(self) -> bytes:
        """Return all that is needed to go on elsewhere."""
        options = {"bind": as_plain(self.running.graph.bind), "version": self._version, "since": self._since}
        return pack(self.running, options)
