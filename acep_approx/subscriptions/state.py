"""The state of a set as bytes: its queries as texts, what waits, and where each level and each query stands.

Layout: see ``matching.blob``, which refuses bytes that have changed. Names of arrays begin with what they are of:
``l0`` is the first level, ``m3`` the fourth member, ``e`` the events that wait, ``w5`` the queries that wait of the
entry 5. ``FORMAT`` changes when the layout does, or that of ``matching.state``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from acep_approx.errors import DataError
from acep_approx.events.columns import encode_text
from acep_approx.events.reading.ipc import from_ipc
from acep_approx.events.stream import EventBatch
from acep_approx.matching.blob import joined, split
from acep_approx.matching.sealed import OlderBytesError
from acep_approx.matching.state import FORMAT as INNER_FORMAT
from acep_approx.matching.state import Arrays, Header, meaning, raw, save_stream, saved_stream, words_of
from acep_approx.matching.stream_side import StreamSide
from acep_approx.planning.planner import Plan
from acep_approx.ranges import COUNT, TICK, Range, check, check_arrays, number_in
from acep_approx.run.events import Events
from acep_approx.run.left_out import LATE
from acep_approx.run.order import Order, Wait
from acep_approx.run.watermarks import Watermarks
from acep_approx.subscriptions.damage import damaged
from acep_approx.subscriptions.graph import Entry
from acep_approx.subscriptions.levels import Level, Levels
from acep_approx.subscriptions.members import OneQuery
from acep_approx.subscriptions.running import Change, Running
from acep_approx.subscriptions.templates.member import TemplateMember
from acep_approx.subscriptions.templates.shared import Shared
from acep_approx.subscriptions.templates.template import Template

FORMAT = [5, INNER_FORMAT]
Compile = Callable[[Header], tuple[Plan, Template | None]]
"""Makes the plan of an entry again, of what was kept of it, and its template where it has one."""
OF_ENTRY = (
    *("number", "id", "text", "publish", "output", "is_shown", "level", "running", "feeders"),
    *("part", "columns_of", "until"),
)
OF_ORDER = ("arrived", "passed", "newest", "floor")


def pack(running: Running, options: Header) -> bytes:
    """Everything that is needed to go on in another process.

    Parameters
    ----------
    running : Running
    options : dict
        What the caller wants to keep, as JSON.

    Raises
    ------
    DataError
        ``ACEP-D045``: an error stopped it in the middle of a batch.
    """
    running.check_whole()
    graph, arrays = running.graph, Arrays()
    entries = {entry.number: entry for change in running.changes for entry in change.goes.values()} | graph.entries
    saved: Header = {
        "set": FORMAT,
        "options": options,
        "wanted": running.wanted,
        "key_idle": running.key_idle,
        "next": [graph.next_number, graph.ids_given],
        "entries": [_entry(entries[number], arrays) for number in sorted(entries)],
        "queries": [(number, id_, entry.number) for number, id_, entry in graph.numbered],
        "leaving": [*running.leaving.items()],
        "left": [*running.left.items()],
        "changes": [_change(change) for change in running.changes],
        "order": _save_order(running, arrays),
        "levels": None if running.levels is None else _save_levels(running.levels, arrays),
    }
    return joined(saved, arrays)


def unpack(state: bytes) -> tuple[Header, Arrays]:
    """What ``pack`` put together.

    Raises
    ------
    DataError
        ``ACEP-D040``: it is none, or not as it was written; ``ACEP-D041``: of another format.
    """
    try:
        saved, arrays = split(state)
        format_ = saved["set"]
    except (OlderBytesError, ValueError, LookupError, TypeError) as error:
        raise damaged_state() from error
    if format_ != FORMAT:
        shown = ".".join(map(str, format_)) if isinstance(format_, list) else format_
        is_older = isinstance(format_, list) and all(type(n) is int for n in format_) and format_ < FORMAT
        older = "the older format" if is_older else "format"
        raise DataError(
            f"the state has {older} {shown}, this version reads format {'.'.join(map(str, FORMAT))}",
            code="ACEP-D041",
            hint="go on with the version that wrote it, or start from the beginning",
        )
    return saved, arrays


def damaged_state() -> DataError:
    """The error that bytes are no state of a set, or not as they were written (``ACEP-D040``)."""
    return DataError(
        "these bytes are not the state of a set of queries, or not all as they were written",
        code="ACEP-D040",
        hint="take a copy that is whole, or start anew; the state of one query is for Query.from_state",
    )


def restored(saved: Header, arrays: Arrays, compiled: Compile) -> Running:
    """A set that goes on from a state.

    Raises
    ------
    DataError
        ``ACEP-D042``: a query means something else now; ``ACEP-D040``: its streams are not as they were written.
    """
    check("key_idle", good=isinstance(saved["key_idle"], str | int | None))
    running = Running(saved["wanted"], key_idle=saved["key_idle"])
    parts: dict[str, Arrays] = {}
    for name, array in arrays.items():
        whose, _, own = name.partition("_")
        parts.setdefault(whose, {})[own] = array
    everyone = {one["number"]: _entry_of(one, compiled, parts) for one in saved["entries"]}
    there = {owner for _, _, owner in saved["queries"]}  # of the others all queries are leaving
    for entry in everyone.values():
        if entry.number in there:
            running.graph.put(entry)
    for number, id_, owner in saved["queries"]:
        running.graph.name(everyone[owner], [number], [id_])
    running.leaving, running.left = dict(saved["leaving"]), dict(saved.get("left", ()))
    numbers = [*running.leaving, *(number for number, *_ in saved["queries"]), *saved["next"]]
    check("numbers", good=all(type(number) is int and 0 <= number < COUNT for number in numbers))
    running.graph.next_number, running.graph.ids_given = saved["next"]
    for after, comes, goes in saved["changes"]:
        check("changes", good=after is None or type(after) is int)
        change = Change(after)
        change.comes.update((number, everyone[number]) for number in comes)
        change.goes.update((number, everyone[owner]) for number, owner in goes)
        running.changes.append(change)
    _restore_order(running, saved["order"], parts)
    if saved["levels"] is not None:
        running.levels = _restored_levels(running, saved["levels"], parts, everyone)
    return running


def _change(change: Change) -> list[Any]:
    goes = [(number, entry.number) for number, entry in change.goes.items()]
    return [change.after, [*change.comes], goes]


def _entry(entry: Entry, arrays: Arrays) -> Header:
    kept = {name: getattr(entry, name) for name in OF_ENTRY}
    if entry.shared is not None and len(entry.shared):
        numbers, constants = entry.shared.waiting()
        arrays[f"w{entry.number}_numbers"], arrays[f"w{entry.number}_constants"] = numbers, raw(constants)
    kinds = None if entry.shared is None else entry.shared.kinds
    return kept | {"engine": entry.plan.engine, "meaning": meaning(entry.plan), "kinds": kinds}


def _entry_of(saved: Header, compiled: Compile, parts: dict[str, Arrays]) -> Entry:
    plan, template = compiled(saved)
    if meaning(plan) != saved["meaning"]:
        whose = f"the query {saved['id']!r}" if template is None else f"the template {template.text!r}"
        raise DataError(
            f"{whose} of this state means something else in this version",
            code="ACEP-D042",
            hint="go on with the version that wrote it, or start from the beginning",
        )
    for name in ("number", "level", "running", "feeders"):
        number_in(name, saved[name], 0, COUNT)
    check("until", good=saved["until"] is None or type(saved["until"]) is int)
    check("entries", good=isinstance(saved["id"], str) and isinstance(saved["publish"], str | None))
    entry = Entry(plan=plan, **{name: saved[name] for name in OF_ENTRY})
    if template is not None:
        entry.shared = Shared(template, saved["kinds"])
        if mine := parts.get(f"w{entry.number}"):
            entry.shared.add_table(mine["numbers"].tolist(), from_ipc(mine["constants"]))
    if entry.columns_of is not None:
        entry.columns_of = {name: tuple(columns) for name, columns in entry.columns_of.items()}
        if entry.columns_of.keys() != entry.reads:
            raise damaged(f"the streams that {entry.id!r} reads")
    return entry


def _member(side: StreamSide, entry: Entry) -> OneQuery | TemplateMember:
    if entry.shared is None:
        return OneQuery(side, entry)
    return TemplateMember(side, entry.shared.template, entry.shared.new_table(), entry.output, entry.columns_of)


def _save_order(running: Running, arrays: Arrays) -> Header:
    order = running.order
    parts = [Events(held.ticks, held.ticks[:0], held.ticks[:0], held.data) for held in order.open]
    for number, held in enumerate(parts + order.waiting.parts):
        arrays[f"e_{number}_ticks"] = np.ascontiguousarray(held.tick)
        arrays[f"e_{number}_ids"] = np.ascontiguousarray(held.arrival)
        arrays[f"e_{number}_data"] = raw(pa.Table.from_batches([held.data]))
    for number, late in enumerate(order.left_out.tables):
        arrays[f"late_{number}"] = raw(late)
    return {name: getattr(order, name) for name in OF_ORDER} | {
        "open": [held.first_row for held in order.open],
        "waiting": len(order.waiting.parts),
        "watermarks": None if order.wait is None else order.wait.watermarks.header(),
        "reads": None if order.wait is None else [order.wait.source, order.wait.sequence],
        "late": order.left_out.counts[LATE],
        "kept": len(order.left_out.tables),
    }


def _restore_order(running: Running, saved: Header, parts: dict[str, Arrays]) -> None:
    order, mine = running.order, parts.get("e", {})
    if saved["watermarks"] is not None:
        check("reads", good=all(isinstance(name, str | None) for name in saved["reads"]))
        running.order = order = Order(Wait(Watermarks.restore(saved["watermarks"]), *saved["reads"]))
    for name in OF_ORDER:
        if saved[name] is not None or name != "newest":
            number_in(name, saved[name], -COUNT if name in ("newest", "floor") else 0, COUNT)
        setattr(order, name, saved[name])
    rows = saved["open"]
    for number in range(len(rows) + number_in("waiting", saved["waiting"], 0, len(mine) + 1)):
        table = from_ipc(mine[f"{number}_data"]).combine_chunks()
        columns = [encode_text(column.combine_chunks()) for column in table.columns]
        data = pa.RecordBatch.from_arrays(columns, names=table.column_names)
        held = {name: mine[f"{number}_{name}"] for name in ("ticks", "ids")}
        is_open = number < len(rows)
        ids = Range(0 if is_open else data.num_rows, 0, COUNT)
        check_arrays(held, {"ticks": Range(data.num_rows, -TICK, TICK), "ids": ids})
        if is_open:
            order.open.append(EventBatch(number_in("row", rows[number], 0, COUNT), held["ticks"], data))
        else:
            order.waiting.add(Events(held["ticks"], held["ids"], held["ids"], data))
    order.left_out.counts[LATE] = number_in("late", saved["late"], 0, COUNT)
    order.left_out.tables = [from_ipc(parts["late"][str(number)]) for number in range(saved["kept"])]


def _save_levels(levels: Levels, arrays: Arrays) -> Header:
    kept: list[Any] = []
    members, entries = 0, defaultdict[object, list[int]](list)
    for of_entry, member in levels.members.items():
        entries[member].append(of_entry)
    for number, (key, level) in enumerate(levels.levels.items()):
        ones = []
        for one in level.side.queries:
            assert isinstance(one, OneQuery | TemplateMember)
            ones.append([entries[one], one.save_side(f"m{members}_", arrays)])
            members += 1
        arrays[f"l{number}_types"] = raw(pa.schema([*level.types.items()]).empty_table())
        kept.append([key, save_stream(level.side, arrays, f"l{number}_"), level.reads, level.rows, ones])
    return {"roles": levels.roles.plain, "published": levels.published, "levels": kept}


def _restored_levels(running: Running, saved: Header, parts: dict[str, Arrays], everyone: dict[int, Entry]) -> Levels:
    members = 0
    levels: Levels | None = None
    going = [number for change in running.changes for number in change.goes]
    known = np.array([*(number for number, *_ in running.graph.numbered), *running.leaving, *going], np.int64)
    for number, ((at, names), stream, reads, rows, ones) in enumerate(saved["levels"]):
        side = saved_stream(stream, parts[f"l{number}"], words_of(parts))
        if levels is None:  # level 0 comes first
            levels = Levels(running.graph, side.schema, side.roles, running.key_idle)
            levels.published = number_in("published", saved["published"], 0, COUNT)
        key = (at, None if names is None else tuple(names))
        types = from_ipc(parts[f"l{number}"]["types"]).schema
        for count in (rows, *reads.values()):
            number_in("levels", count, 0, COUNT)
        levels.put(key, Level(side, reads, rows, {field.name: field.type for field in types}))
        for numbers, header in ones:
            entry = everyone[numbers[0]]
            member = _member(side, entry)
            member.join()
            member.restore_side(header, parts[f"m{members}"])
            if isinstance(member, TemplateMember):
                check("numbers", good=np.isin(member.table.numbers[member.table.is_there], known).all())
            for one in numbers:
                levels.know(everyone[one], member)
            members += 1
    assert levels is not None, "there is level 0"
    return levels
